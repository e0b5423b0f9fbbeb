//! A lock by which those who append to a table order themselves. The advisory locks of the server can be taken by any
//! role that may connect.

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::pg::catalog::names;
use crate::pg::error::{SqlError, Word};

/// Tells the lock from those of the server's functions, which have 1 or 2 there.
const KIND: u16 = 3;

/// Takes the lock of this key for a table, until the transaction ends. `pg_locks` shows it as an advisory lock, with
/// the table as `classid` and the key as `objid`.
///
/// # Errors
/// 42P01 where there is no such table; 42501 where the current role may not write it.
pub fn take(table: pg_sys::Oid, key: i32) -> Result<(), SqlError> {
    let Some(name) = names::typed_name(table) else {
        let message = format!("there is no table of OID {}", table.to_u32());
        let error = SqlError::new(PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE, message);
        return Err(error.word(Word::GraphTables));
    };
    if !may_write(table) {
        let message = format!("permission denied for table {name}");
        let error = SqlError::new(PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE, message);
        let error = error.word(Word::GraphTables);
        return Err(error.hint("The lock is for roles that may write the table."));
    }
    let lock = pg_sys::LOCKTAG {
        // SAFETY: reads a variable of the server.
        locktag_field1: unsafe { pg_sys::MyDatabaseId }.to_u32(),
        locktag_field2: table.to_u32(),
        locktag_field3: key.cast_unsigned(),
        locktag_field4: KIND,
        locktag_type: pg_sys::LockTagType::LOCKTAG_ADVISORY as u8,
        locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
    };
    // SAFETY: the tag is complete. The lock is the transaction's, and it is waited for as the server does: a cancel, a
    // timeout and a deadlock raise.
    unsafe { pg_sys::LockAcquire(&raw const lock, pg_sys::ExclusiveLock as i32, false, false) };
    Ok(())
}

fn may_write(table: pg_sys::Oid) -> bool {
    let writing = (pg_sys::ACL_INSERT | pg_sys::ACL_UPDATE | pg_sys::ACL_DELETE) as pg_sys::AclMode;
    let any = pg_sys::AclMaskHow::ACLMASK_ANY;
    // SAFETY: look-ups in the catalog; they raise where the table has been dropped since.
    unsafe {
        let role = pg_sys::GetUserId();
        pg_sys::pg_class_aclmask(table, role, writing, any) != 0
            || pg_sys::pg_attribute_aclcheck_all(table, role, writing, any)
                == pg_sys::AclResult::ACLCHECK_OK
    }
}
