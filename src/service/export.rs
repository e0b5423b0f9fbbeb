//! From slices to exports and records: signed with the keys of now.

use std::rc::Rc;

use kernel::export::document::Export;
use kernel::export::parse::MAX_EXPORT_BYTES;
use kernel::policy::SlicePolicy;
use kernel::prompt::record::{Hash, Record, RecordedMessage};
use kernel::slicing::slice::Slice;
use kernel::trust::attestation::{Circumstances, Status};
use kernel::trust::keys::{SigningKey, SigningKeys};
use pgrx::PgSqlErrorCode;

use super::reader::GraphReader;
use crate::pg::error::{SqlError, Word};
use crate::pg::interrupts::check_interrupts;
use crate::pg::private::keys::Keys;
use crate::pg::shortage::memory;

/// Signs slices of a graph, taken for a caller by a policy.
pub struct Signer<'a> {
    reader: &'a GraphReader,
    policy: &'a SlicePolicy,
    keys: Keys,
    active: Rc<SigningKeys>,
}

impl<'a> Signer<'a> {
    /// A signer with the keys that are active now.
    ///
    /// # Errors
    /// 55000 when no key can sign.
    pub fn new(reader: &'a GraphReader, policy: &'a SlicePolicy) -> Result<Self, SqlError> {
        let keys = reader.keys()?;
        let active = keys.active()?;
        Ok(Signer { reader, policy, keys, active })
    }

    /// The export with its attestation.
    ///
    /// # Errors
    /// 55000 when the caller's rights changed while the slice was taken.
    pub fn export<'s>(&self, slice: &'s Slice) -> Result<Export<'s>, SqlError> {
        let mut export = Export::new(slice, self.policy, &check_interrupts);
        let circumstances = self.circumstances()?;
        export.attest(self.policy, &self.active, self.v2_key(), circumstances);
        Ok(export)
    }

    /// The export with the published token alone, where the content is not returned as one.
    ///
    /// # Errors
    /// As [`Signer::export`].
    pub fn sign<'s>(&self, slice: &'s Slice) -> Result<Export<'s>, SqlError> {
        let mut export = Export::new(slice, self.policy, &check_interrupts);
        export.sign(self.v2_key(), &self.circumstances()?);
        Ok(export)
    }

    /// The record of these messages, which are those of this slice.
    ///
    /// # Errors
    /// As [`Signer::export`] and [`export_text`]; 54000 when the record is too large.
    pub fn record(
        &self,
        slice: &Slice,
        messages: Vec<RecordedMessage>,
        context: Option<Hash>,
    ) -> Result<String, SqlError> {
        let export = self.export(slice)?;
        let attestation = export.attestation.as_ref().expect("an export of a signer has one");
        let text = export_text(&export)?;
        let record = Record::new(context, messages, attestation, &self.active, &check_interrupts);
        memory::assure(record.expected_bytes() + text.len());
        expect_readable("prompt record", record.to_json(&text, &check_interrupts))
    }

    fn circumstances(&self) -> Result<Circumstances, SqlError> {
        let circumstances = self.reader.circumstances()?;
        if circumstances.status != Status::Attested {
            self.reader.notice_unattested();
        }
        Ok(circumstances)
    }

    fn v2_key(&self) -> &SigningKey {
        self.keys.v2_key(&self.active)
    }
}

/// The export's canonical JSON.
///
/// # Errors
/// 54000 when it is too large.
pub fn export_text(export: &Export<'_>) -> Result<String, SqlError> {
    memory::assure(export.expected_bytes());
    expect_readable("slice export", export.to_json())
}

/// A document that is not too long to be read again.
fn expect_readable(what: &str, text: String) -> Result<String, SqlError> {
    if text.len() <= MAX_EXPORT_BYTES {
        return Ok(text);
    }
    let message = format!("{what} of {} bytes is larger than {MAX_EXPORT_BYTES}", text.len());
    Err(SqlError::new(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message)
        .word(Word::SliceTooLarge)
        .hint("Use a policy with fewer max_nodes."))
}
