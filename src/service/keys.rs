//! The keys of this database.

use kernel::trust::keys::KeyState;
use kernel::verification::proof::KeySource;
use kernel::verification::verify::KeyRing;

use crate::pg::error::SqlError;
use crate::pg::private::keys::{Keys, begin_epoch};
use crate::pg::private::members::call_member;
use crate::pg::session::commit_durably;
use crate::pg::sql::call::FunctionCall;

/// Begins an epoch. Returns the id of the key that signs from now on. The caller must have admin rights.
///
/// # Errors
/// 55000 when a key file is named and not usable.
pub fn rotate() -> Result<String, SqlError> {
    begin_epoch()?;
    Ok(keys()?.active()?.kid.clone())
}

/// Begins an epoch, and may revoke the key before, with the arguments of a call of `rotate_key`. Once that is
/// committed, no crash takes it back.
///
/// Raises as [`call_member`].
pub fn rotate_key(call: &FunctionCall) -> pgrx::Internal {
    commit_durably();
    call_member(call, c"rotate_key_for")
}

/// Revokes a key, with the arguments of a call of `revoke_key`, as durably as [`rotate_key`].
///
/// Raises as [`call_member`].
pub fn revoke_key(call: &FunctionCall) -> pgrx::Internal {
    commit_durably();
    call_member(call, c"revoke_key_for")
}

/// The keys, whatever graph is bound: they are listed and rotated where none can be read.
fn keys() -> Result<Keys, SqlError> {
    Keys::load(String::new())
}

/// A public key that checks proofs.
pub struct PublishedKey {
    /// Names the key.
    pub kid: String,
    /// What it is used for.
    pub state: KeyState,
    /// In PEM.
    pub public_key: String,
    /// Where its root is kept.
    pub source: KeySource,
}

/// The public key of each known key, oldest first.
///
/// # Errors
/// As [`Keys::load`].
pub fn published() -> Result<Vec<PublishedKey>, SqlError> {
    let (keys, states) = (keys()?, states()?);
    let published = states.into_iter().filter_map(|(kid, state)| {
        let public_key = keys.public_key(&kid)?.to_pem();
        Some(PublishedKey { kid, state, public_key, source: keys.source() })
    });
    Ok(published.collect())
}

/// The id of each known key, oldest first, and its state.
///
/// # Errors
/// As [`Keys::load`].
pub fn states() -> Result<Vec<(String, KeyState)>, SqlError> {
    let keys = keys()?;
    let active = keys.active().ok().map(|active| active.kid.clone());
    let state = |kid: &str| match () {
        () if keys.is_revoked(kid) => KeyState::Revoked,
        () if Some(kid) == active.as_deref() => KeyState::Active,
        () => KeyState::Verifying,
    };
    Ok(keys.all().into_iter().map(|epoch| (epoch.kid.clone(), state(&epoch.kid))).collect())
}
