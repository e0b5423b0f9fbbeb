//! The key store: a root for each epoch, in a private table or derived from a file outside the
//! database.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

use kernel::keys::{EpochKeys, SECRET_MIN_BYTES, Secret, epoch_of_kid};
use kernel::verify::KeyRing;
use pgrx::{IntoDatum, PgSqlErrorCode, pg_sys};

use super::error::SqlError;
use super::{guc, private_table};

const ROOTS: &CStr = c"root_keys";
const REVOKED: &CStr = c"revoked_keys";

/// The longest secret that is read from a file, in bytes.
const SECRET_MAX_BYTES: u64 = 4096;

/// The keys as they are now, for the bound graph.
pub struct Keys {
    graph: String,
    /// The newest epoch last; never empty.
    epochs: Vec<(u32, Secret)>,
    /// The root of every epoch, when a file holds it.
    file: Option<Secret>,
    revoked: Vec<String>,
    shared_v2: Option<Secret>,
}

impl Keys {
    /// Reads the keys.
    ///
    /// # Errors
    /// 55000 when a key file is named and not usable.
    pub fn load(graph: String) -> Result<Self, SqlError> {
        let mut epochs = private_table::scan(ROOTS, |row| {
            // SAFETY: columns as sql/bootstrap.sql declares them: epoch integer, root bytea.
            unsafe {
                let epoch = u32::try_from(row.get::<i32>(1)?).ok()?;
                Some((epoch, Secret::new(row.get::<Vec<u8>>(2)?)))
            }
        });
        epochs.sort_unstable_by_key(|(epoch, _)| *epoch);
        if epochs.is_empty() {
            return Err(unavailable("there is no key".to_owned())
                .hint("Have a superuser run SELECT graph_kernel.rotate_key()."));
        }
        let file = guc::root_key_file().map(|path| read_secret(&path)).transpose()?;
        let shared_v2 = guc::v2_secret_file().map(|path| read_secret(&path)).transpose()?;
        if let (Some(root), Some(shared)) = (&file, &shared_v2)
            && root.same_as(shared)
        {
            return Err(unavailable("the shared v2 secret is a copy of the root key".to_owned())
                .hint("Give graph_kernel.v2_secret_file a secret of its own."));
        }
        // SAFETY: the first column of revoked_keys is kid text.
        let revoked = private_table::scan(REVOKED, |row| unsafe { row.get::<String>(1) });
        Ok(Keys { graph, epochs, file, revoked, shared_v2 })
    }

    /// The keys that sign: those of the newest epoch. With a key file an epoch that a restored
    /// list revokes is passed over.
    pub fn active(&self) -> EpochKeys {
        let (newest, root) = self.epochs.last().expect("there is an epoch");
        let Some(file) = &self.file else { return EpochKeys::derive(root, *newest) };
        (*newest..)
            .map(|epoch| EpochKeys::derive(file, epoch))
            .find(|keys| !self.is_revoked(&keys.kid))
            .expect("fewer epochs are revoked than there are")
    }

    /// The secret that signs published tokens.
    pub fn v2_secret<'a>(&'a self, active: &'a EpochKeys) -> &'a Secret {
        self.shared_v2.as_ref().unwrap_or(&active.v2)
    }

    /// Every key that is known, oldest first; with a key file those of the epochs begun here.
    pub fn all(&self) -> Vec<EpochKeys> {
        let root = |root| self.file.as_ref().unwrap_or(root);
        let mut keys: Vec<EpochKeys> =
            self.epochs.iter().map(|(epoch, own)| EpochKeys::derive(root(own), *epoch)).collect();
        let active = self.active();
        if keys.iter().all(|known| known.kid != active.kid) {
            keys.push(active);
        }
        keys
    }
}

impl KeyRing for Keys {
    fn graph(&self) -> &str {
        &self.graph
    }

    fn keys(&self, kid: &str) -> Option<EpochKeys> {
        let epoch = epoch_of_kid(kid)?;
        let own = || self.epochs.iter().find(|(known, _)| *known == epoch).map(|(_, root)| root);
        let root = self.file.as_ref().or_else(own)?;
        Some(EpochKeys::derive(root, epoch)).filter(|keys| keys.kid == kid)
    }

    fn is_revoked(&self, kid: &str) -> bool {
        self.revoked.iter().any(|revoked| revoked == kid)
    }

    fn shared_v2_secret(&self) -> Option<&Secret> {
        self.shared_v2.as_ref()
    }
}

/// Begins an epoch with a root of its own. The caller must hold admin rights.
pub fn begin_epoch() {
    // SAFETY: raises where writing is not allowed.
    unsafe { pg_sys::PreventCommandIfReadOnly(c"rotate_key()".as_ptr()) };
    private_table::lock_against_writers(ROOTS);
    // SAFETY: the first column of root_keys is epoch integer.
    let epochs = private_table::scan(ROOTS, |row| unsafe { row.get::<i32>(1) });
    let epoch = epochs.into_iter().max().unwrap_or(0) + 1;
    let mut root = zeroize::Zeroizing::new([0u8; SECRET_MIN_BYTES]);
    // SAFETY: the buffer has the length given.
    if !unsafe { pg_sys::pg_strong_random(root.as_mut_ptr().cast(), root.len()) } {
        unavailable("the system gave no random bytes".to_owned()).raise();
    }
    // SAFETY: reads the time the transaction began.
    let now = unsafe { pg_sys::GetCurrentTransactionStartTimestamp() };
    let values = [epoch.into_datum(), root.as_slice().into_datum(), now.into_datum()];
    private_table::insert_undecoded(ROOTS, values);
}

fn read_secret(path: &str) -> Result<Secret, SqlError> {
    let refuse = |why: String| {
        Err(unavailable(format!("key file \"{path}\" {why}")).hint(
            "It must be a regular file of 32 to 4096 bytes that only the server's user can read \
             (chmod 600).",
        ))
    };
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return refuse(format!("cannot be opened: {error}")),
    };
    let Ok(metadata) = file.metadata() else { return refuse("cannot be examined".to_owned()) };
    if !metadata.is_file() {
        return refuse("is not a regular file".to_owned());
    }
    // As for the server's SSL key: root may lend a file to the server's group.
    let lent = metadata.uid() == 0 && metadata.mode() & 0o037 == 0;
    if metadata.mode() & 0o077 != 0 && !lent {
        return refuse("can be read by others".to_owned());
    }
    let mut bytes = zeroize::Zeroizing::new(Vec::with_capacity(SECRET_MAX_BYTES as usize + 1));
    if let Err(error) = file.by_ref().take(SECRET_MAX_BYTES + 1).read_to_end(&mut bytes) {
        return refuse(format!("cannot be read: {error}"));
    }
    if bytes.len() < SECRET_MIN_BYTES || bytes.len() as u64 > SECRET_MAX_BYTES {
        return refuse(format!("holds {} bytes", bytes.len()));
    }
    Ok(Secret::new(std::mem::take(&mut bytes)))
}

fn unavailable(message: String) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        .detail("KEYS_UNAVAILABLE")
}
