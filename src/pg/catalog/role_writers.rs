//! The transactions that lately changed roles. Rights are read as they are now, rows as of a snapshot. If a transaction
//! that changed the rights is not over for the snapshot, such rights and rows never existed together.

use std::cell::{Cell, RefCell};
use std::ptr::null_mut;

use pgrx::{pg_guard, pg_sys};

use super::relation::accept_invalidations;
use super::writers::{FRESH, deleter, is_newer, writer};

/// Changes that may be newer than a snapshot.
struct Recent {
    /// The number of invalidations, and the next transaction, when they were read.
    generation: u64,
    at: u64,
    /// Older ones are left out.
    horizon: pg_sys::TransactionId,
    changes: Vec<Change>,
}

/// A transaction, and the role whose rights it changed, with those of its members; `None` for all roles.
struct Change(pg_sys::TransactionId, Option<pg_sys::Oid>);

thread_local! {
    static RECENT: RefCell<Option<Recent>> = const { RefCell::new(None) };
    static GENERATION: Cell<u64> = const { Cell::new(0) };
}

/// `AuthMemRelationId` and `DatabaseRelationId`, which the bindings do not have.
const AUTH_MEMBERS: pg_sys::Oid = pg_sys::Oid::from_u32(1261);
const DATABASES: pg_sys::Oid = pg_sys::Oid::from_u32(1262);

/// The position of pg_auth_members.member among the oids that its rows begin with; 16 has put one before it.
const MEMBER: usize = if cfg!(feature = "pg15") { 1 } else { 2 };

/// Registers the callbacks that count; called once when the library is loaded.
pub fn watch_roles() {
    use pg_sys::SysCacheIdentifier as Cache;
    for cache in [Cache::AUTHOID, Cache::AUTHMEMROLEMEM, Cache::DATABASEOID] {
        // SAFETY: the callback only touches a thread-local number.
        unsafe {
            pg_sys::CacheRegisterSyscacheCallback(
                cache as i32,
                Some(roles_changed),
                pg_sys::Datum::from(0),
            );
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn roles_changed(_arg: pg_sys::Datum, _cache: i32, _hash: u32) {
    GENERATION.set(GENERATION.get() + 1);
}

/// The number of changes of roles that this session has heard of.
pub fn generation() -> u64 {
    GENERATION.get()
}

/// Whether one of these roles was changed, its memberships, or those of a role that it is a member of. What counts is
/// this transaction, and each that is not over for the active snapshot.
pub fn are_newer(roles: &[pg_sys::Oid]) -> bool {
    accept_invalidations();
    // SAFETY: a counter of the server's; a call of a function runs under an active snapshot.
    let (now, xmin) =
        unsafe { (pg_sys::ReadNextFullTransactionId().value, (*pg_sys::GetActiveSnapshot()).xmin) };
    let generation = GENERATION.get();
    let is_known = RECENT.with_borrow(|known| {
        known.as_ref().is_some_and(|known| {
            known.generation == generation
                && now.saturating_sub(known.at) <= FRESH
                && !precedes(xmin, known.horizon)
        })
    });
    if !is_known {
        let recent = Recent { generation, at: now, horizon: xmin, changes: changes_since(xmin) };
        RECENT.set(Some(recent));
    }
    RECENT.with_borrow(|known| {
        known.iter().flat_map(|known| &known.changes).any(|Change(transaction, changed)| {
            // SAFETY: a look-up in the cache of memberships, which raises for no role.
            let concerns = |role: &pg_sys::Oid| unsafe {
                changed.is_none_or(|changed| pg_sys::is_member_of_role_nosuper(*role, changed))
            };
            is_newer(*transaction) && roles.iter().any(concerns)
        })
    })
}

fn changes_since(horizon: pg_sys::TransactionId) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut add = |tuple, role| {
        // SAFETY: the scan's tuple is valid. A transaction that is neither over nor this one has changed nothing yet:
        // an invalidation tells when it does.
        unsafe {
            let transactions = [writer(tuple), deleter(tuple)].into_iter().flatten();
            changes.extend(transactions.filter_map(|transaction| {
                let counts = !precedes(transaction, horizon)
                    && (pg_sys::TransactionIdDidCommit(transaction)
                        || pg_sys::TransactionIdIsCurrentTransactionId(transaction));
                counts.then_some(Change(transaction, role))
            }));
        }
    };
    // SAFETY: the rows of these catalogs begin with these structures.
    unsafe {
        scan(pg_sys::AuthIdRelationId, |tuple| {
            add(tuple, Some((*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_authid>()).oid));
        });
        scan(AUTH_MEMBERS, |tuple| {
            let row = pg_sys::GETSTRUCT(tuple).cast::<[pg_sys::Oid; 3]>();
            add(tuple, Some((*row)[MEMBER]));
        });
        // The owner of this database is a member of pg_database_owner.
        scan(DATABASES, |tuple| {
            let row = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_database>();
            if (*row).oid == pg_sys::MyDatabaseId {
                add(tuple, None);
            }
        });
    }
    changes
}

/// Calls `each` for the rows of a catalog, deleted ones too, which no vacuum removes while the active snapshot sees
/// them.
fn scan(catalog: pg_sys::Oid, mut each: impl FnMut(pg_sys::HeapTuple)) {
    // SAFETY: the catalog is open and the scan's tuple valid while `each` looks at it.
    unsafe {
        let relation = pg_sys::table_open(catalog, pg_sys::AccessShareLock as i32);
        let snapshot = &raw mut pg_sys::SnapshotAnyData;
        let none = pg_sys::InvalidOid;
        let scan = pg_sys::systable_beginscan(relation, none, false, snapshot, 0, null_mut());
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            each(tuple);
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(relation, pg_sys::AccessShareLock as i32);
    }
}

fn precedes(one: pg_sys::TransactionId, other: pg_sys::TransactionId) -> bool {
    // SAFETY: compares two numbers.
    unsafe { pg_sys::TransactionIdPrecedes(one, other) }
}
