//! The key store: a root for each epoch, in a private table or derived from a file outside the
//! database.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use kernel::trust::keys::{
    ProofKey, PublicKey, SECRET_MIN_BYTES, Secret, SigningKey, SigningKeys, VerifyingKey,
    VerifyingKeys, epoch_of_kid,
};
use kernel::verification::proof::KeySource;
use kernel::verification::verify::KeyRing;
use pgrx::{PgSqlErrorCode, pg_sys};

use zeroize::Zeroizing;

use crate::pg::error::{SqlError, Word};
use crate::pg::guc::{self, ConfiguredPath, PathSetting};
use crate::pg::interrupts::check_interrupts;
use crate::pg::private::private_table::{
    REVOKED_KEYS, ROOT_KEYS, insert_root, lock_against_writers, this_database,
};
use crate::pg::private::session_cache::SessionCache;
use crate::pg::shortage::memory;

/// The longest secret that is read from a file, in bytes.
const MAX_SECRET_BYTES: u64 = 4096;

/// The keys as they are now, for the bound graph.
pub struct Keys {
    graph: String,
    rows: Rc<KeyRows>,
    /// The root of every epoch, when it comes from a file.
    file: Option<Secret>,
    shared_v2: Option<SigningKey>,
}

struct Epoch {
    epoch: u32,
    /// An epoch begun with a key file has none.
    root: Option<Secret>,
    /// Whether another database wrote it, of which this one is a copy: what it signed verifies, and nothing more is
    /// signed with it.
    is_copied: bool,
}

/// The rows of the private tables.
struct KeyRows {
    /// The newest epoch last; never empty.
    epochs: Vec<Epoch>,
    /// The keys of the newest epoch, where it has a root and began in this database.
    newest: Option<Rc<SigningKeys>>,
    revoked: Vec<String>,
}

thread_local! {
    static KEY_ROWS: SessionCache<KeyRows> = const { SessionCache::new() };
}

impl KeyRows {
    fn read() -> Self {
        // First: a rotation that is committed meanwhile revokes the key before the one that is read then.
        let revoked = REVOKED_KEYS.scan(|row| row.text(0));
        let mut epochs = ROOT_KEYS.scan(|row| {
            let epoch = u32::try_from(row.integer(0)?).ok()?;
            let is_copied = row.oid(3)? != this_database();
            Some(Epoch { epoch, root: row.secret(1).map(Secret::new), is_copied })
        });
        epochs.sort_unstable_by_key(|epoch| epoch.epoch);
        let newest = epochs.last().filter(|newest| !newest.is_copied).and_then(|newest| {
            Some(Rc::new(SigningKeys::derive(newest.root.as_ref()?, newest.epoch)))
        });
        KeyRows { epochs, newest, revoked }
    }
}

impl Keys {
    /// The keys of now. Files are read each time.
    ///
    /// # Errors
    /// 55000 when a key file is named and not usable.
    pub fn load(graph: String) -> Result<Self, SqlError> {
        memory::check();
        let rows =
            KEY_ROWS.with(|cache| cache.get_or_compute(|| Ok::<_, SqlError>(KeyRows::read())))?;
        let file = read_secret(guc::root_key_file())?;
        let shared_v2 = read_secret(guc::v2_secret_file())?;
        if let (Some(root), Some(shared)) = (&file, &shared_v2)
            && root.same_as(shared)
        {
            return Err(unavailable("the shared v2 secret is a copy of the root key".to_owned())
                .hint("Give graph_kernel.v2_secret_file a secret of its own."));
        }
        Ok(Keys { graph, rows, file, shared_v2: shared_v2.map(SigningKey::new) })
    }

    /// The keys that sign: those of the newest epoch. With a key file an epoch that a restored
    /// list revokes is passed over.
    ///
    /// # Errors
    /// 55000 when the newest epoch's root is not known, revoked or that of a database that this one is a copy of.
    pub fn active(&self) -> Result<Rc<SigningKeys>, SqlError> {
        self.active_epoch().map(|(_, keys)| keys).ok_or_else(|| {
            let message = match self.rows.epochs.last() {
                Some(Epoch { is_copied: true, .. }) => {
                    "the keys of this database are those of another one, of which it is a copy"
                }
                _ => "the newest key is revoked or was in a file",
            };
            unavailable(message.to_owned()).hint("Run SELECT graph_kernel.rotate_key().")
        })
    }

    fn active_epoch(&self) -> Option<(u32, Rc<SigningKeys>)> {
        let newest = self.rows.epochs.last()?.epoch;
        let alive = |(_, keys): &(u32, Rc<SigningKeys>)| !self.is_revoked(&keys.kid);
        match &self.file {
            Some(file) => {
                (newest..).map(|e| (e, Rc::new(SigningKeys::derive(file, e)))).find(alive)
            }
            None => self.rows.newest.clone().map(|keys| (newest, keys)).filter(alive),
        }
    }

    /// The key that signs published tokens.
    pub fn v2_key<'a>(&'a self, active: &'a SigningKeys) -> &'a SigningKey {
        self.shared_v2.as_ref().unwrap_or(&active.v2)
    }

    /// The key of this kid that signs proofs, if it is known.
    ///
    /// # Errors
    /// 55000 when it is that of a database that this one is a copy of.
    pub fn proof_key(&self, kid: &str) -> Result<Option<ProofKey>, SqlError> {
        let Some((epoch, root)) = self.root_of(kid) else { return Ok(None) };
        let key = Some(ProofKey::derive(root, epoch)).filter(|key| key.kid == kid);
        if key.is_some()
            && self.file.is_none()
            && self.rows.epochs.iter().any(|known| known.epoch == epoch && known.is_copied)
        {
            return Err(unavailable(format!(
                "key {kid} is that of another database, of which this one is a copy"
            ))
            .hint("Take the slice again, after SELECT graph_kernel.rotate_key()."));
        }
        Ok(key)
    }

    /// The key of this kid that checks proofs, if it is known.
    pub fn public_key(&self, kid: &str) -> Option<PublicKey> {
        let (epoch, root) = self.root_of(kid)?;
        let key = ProofKey::derive(root, epoch);
        (key.kid == kid).then(|| key.public_key())
    }

    /// Where the roots are kept.
    pub fn source(&self) -> KeySource {
        if self.file.is_some() { KeySource::File } else { KeySource::Database }
    }

    /// The epoch that a kid names, and the root that its keys would have.
    fn root_of(&self, kid: &str) -> Option<(u32, &Secret)> {
        let epoch = epoch_of_kid(kid)?;
        let own = || self.rows.epochs.iter().find(|known| known.epoch == epoch)?.root.as_ref();
        Some((epoch, self.file.as_ref().or_else(own)?))
    }

    /// Every key that is known, oldest first: with a key file those of all epochs up to the one that signs, also of one
    /// that signed before without a row.
    pub fn all(&self) -> Vec<VerifyingKeys> {
        let begun = self.rows.epochs.iter();
        let epochs: Vec<(u32, &Secret)> = match &self.file {
            Some(file) => {
                let newest = begun.map(|Epoch { epoch, .. }| *epoch).max().unwrap_or(0);
                let newest = newest.max(self.active_epoch().map_or(0, |(epoch, _)| epoch));
                (1..=newest).map(|epoch| (epoch, file)).collect()
            }
            None => begun.filter_map(|known| Some((known.epoch, known.root.as_ref()?))).collect(),
        };
        epochs.into_iter().map(|(epoch, root)| VerifyingKeys::derive(root, epoch)).collect()
    }
}

impl KeyRing for Keys {
    fn graph(&self) -> &str {
        &self.graph
    }

    fn verifying_keys(&self, kid: &str) -> Option<VerifyingKeys> {
        let (epoch, root) = self.root_of(kid)?;
        Some(VerifyingKeys::derive(root, epoch)).filter(|keys| keys.kid == kid)
    }

    fn is_revoked(&self, kid: &str) -> bool {
        self.rows.revoked.iter().any(|revoked| revoked == kid)
    }

    fn shared_v2_key(&self) -> Option<VerifyingKey> {
        self.shared_v2.as_ref().map(SigningKey::verifying_key)
    }

    fn check_interrupts(&self) {
        check_interrupts();
    }
}

/// Begins an epoch, one past the epoch that signs now. With a key file the epoch gets no root in
/// the database. The caller must have admin rights.
///
/// # Errors
/// As [`Keys::load`].
pub fn begin_epoch() -> Result<(), SqlError> {
    // SAFETY: raises where writing is not allowed.
    unsafe { pg_sys::PreventCommandIfReadOnly(c"rotate_key()".as_ptr()) };
    lock_against_writers(&ROOT_KEYS);
    let keys = Keys::load(String::new())?;
    let newest = keys.rows.epochs.last().map_or(0, |newest| newest.epoch);
    let epoch = newest.max(keys.active_epoch().map_or(0, |(epoch, _)| epoch)) + 1;
    let root = match keys.file {
        Some(_) => None,
        None => Some(random_root()?),
    };
    // SAFETY: reads the time the transaction began.
    let now = unsafe { pg_sys::GetCurrentTransactionStartTimestamp() };
    insert_root(epoch as i32, root.as_ref().map(|root| root.as_slice()), now);
    Ok(())
}

fn random_root() -> Result<Zeroizing<[u8; SECRET_MIN_BYTES]>, SqlError> {
    let mut root = Zeroizing::new([0; SECRET_MIN_BYTES]);
    // SAFETY: the buffer has the length given.
    if unsafe { pg_sys::pg_strong_random(root.as_mut_ptr().cast(), root.len()) } {
        Ok(root)
    } else {
        Err(unavailable("the system gave no random bytes".to_owned()))
    }
}

/// How often a file is read that is replaced or written to meanwhile.
const READ_ATTEMPTS: usize = 4;

/// A file that was written to this recently may still be being written to: a clock tick later, its time may be the
/// same.
const SETTLING: Duration = Duration::from_millis(100);

/// The secret in the file that a setting names. Only superusers may see the path, so no message has it.
fn read_secret(setting: PathSetting) -> Result<Option<Secret>, SqlError> {
    let path = match setting.path {
        ConfiguredPath::Unset => return Ok(None),
        ConfiguredPath::Refused => {
            return Err(unavailable(format!("this session tried to set {}", setting.name))
                .hint("Connect again without setting it."));
        }
        ConfiguredPath::File(path) => path,
    };
    let read = if Path::new(&path).is_absolute() {
        // One that is renamed into place while the one before it is read is read the next time.
        (0..READ_ATTEMPTS).find_map(|_| read_settled(Path::new(&path)).transpose()).unwrap_or_else(
            || {
                Err("changes while it is read: write a new file beside it and rename that"
                    .to_owned())
            },
        )
    } else {
        Err("is not named by an absolute path".to_owned())
    };
    read.map(Some).map_err(|why| {
        unavailable(format!("the file named by {} {why}", setting.name)).hint(
            "It must be a regular file of 32 to 4096 bytes that only the server's user can read \
             (chmod 600), named by an absolute path.",
        )
    })
}

/// The secret in a file; `None` where the file was written to meanwhile: half of it would be another root.
///
/// # Errors
/// Why it cannot be used.
fn read_settled(path: &Path) -> Result<Option<Secret>, String> {
    // Not blocking: opening a pipe without a writer would hang the backend.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let mut file = file.map_err(|error| format!("cannot be opened: {error}"))?;
    let examine = |file: &File| file.metadata().map_err(|_| "cannot be examined".to_owned());
    let metadata = examine(&file)?;
    if !metadata.is_file() {
        return Err("is not a regular file".to_owned());
    }
    // As for the server's SSL key: a file of root may be readable by the server's group.
    let lent = metadata.uid() == 0 && metadata.mode() & 0o037 == 0;
    if metadata.mode() & 0o077 != 0 && !lent {
        return Err("can be read by others".to_owned());
    }
    // A time in the future is another clock's, or was set: it says nothing of now.
    let age = metadata.modified().ok().and_then(|time| time.elapsed().ok());
    if age.is_some_and(|age| age < SETTLING) {
        for _ in 0..10 {
            check_interrupts();
            std::thread::sleep(SETTLING / 10);
        }
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_SECRET_BYTES as usize + 1));
    let read = file.by_ref().take(MAX_SECRET_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("cannot be read: {error}"))?;
    let size = bytes.len() as u64;
    if FileState::of(&examine(&file)?) != FileState::of(&metadata)
        || size != metadata.size().min(MAX_SECRET_BYTES + 1)
    {
        return Ok(None);
    }
    if size < SECRET_MIN_BYTES as u64 || size > MAX_SECRET_BYTES {
        return Err(format!("holds {size} bytes"));
    }
    Ok(Some(Secret::new(std::mem::take(&mut bytes))))
}

/// What changes when a file is written to.
#[derive(PartialEq, Eq)]
struct FileState {
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileState {
    fn of(metadata: &Metadata) -> Self {
        FileState {
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

fn unavailable(message: String) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, message)
        .word(Word::KeysUnavailable)
}
