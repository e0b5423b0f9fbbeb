//! The transactions that wrote what the catalog says of a graph. A statement reads rows by its snapshot, and the
//! catalog as it is now. If one of these transactions is not over for the snapshot, such a catalog and such rows never
//! existed together.

use std::cell::RefCell;
use std::ptr::null_mut;

use pgrx::pg_sys;

use crate::pg::catalog::relation::catalog_generation;

/// Those of a graph as it was looked up, read when they are first asked for.
#[derive(Default)]
pub struct CatalogWriters(RefCell<Option<Known>>);

struct Known {
    /// The next transaction when they were read: numbers wrap.
    at: u64,
    /// The generation of the catalog then: a table, or a partition, may be waited for after that.
    generation: u64,
    writers: Vec<pg_sys::TransactionId>,
}

/// After so many transactions they are read again: most are frozen by then.
pub(super) const FRESH: u64 = 1 << 30;

impl CatalogWriters {
    /// Whether one of these transactions, or of those of `also`, is not over for the active snapshot, or is this one.
    ///
    /// `tables` are the tables and their partitions, which are locked.
    pub fn are_newer(
        &self,
        tables: impl Iterator<Item = pg_sys::Oid>,
        also: impl Iterator<Item = pg_sys::TransactionId>,
    ) -> bool {
        self.any(tables, also, is_newer)
    }

    /// As [`CatalogWriters::are_newer`], of others than this one.
    pub fn are_unseen(
        &self,
        tables: impl Iterator<Item = pg_sys::Oid>,
        also: impl Iterator<Item = pg_sys::TransactionId>,
    ) -> bool {
        self.any(tables, also, is_unseen)
    }

    fn any(
        &self,
        tables: impl Iterator<Item = pg_sys::Oid>,
        also: impl Iterator<Item = pg_sys::TransactionId>,
        is_meant: impl Fn(pg_sys::TransactionId) -> bool,
    ) -> bool {
        // SAFETY: a counter of the server's.
        let at = unsafe { pg_sys::ReadNextFullTransactionId() }.value;
        let generation = catalog_generation();
        let mut known = self.0.borrow_mut();
        let is_fresh =
            |known: &Known| known.generation == generation && at.saturating_sub(known.at) <= FRESH;
        if !known.as_ref().is_some_and(is_fresh) {
            *known = Some(Known { at, generation, writers: writers_of(tables) });
        }
        let writers = known.iter().flat_map(|known| &known.writers).copied();
        writers.chain(also).any(is_meant)
    }
}

/// Whether others than this transaction, which are not over for the active snapshot, wrote what the catalog says of
/// these tables, which are locked. A table that was written anew has no row for the snapshot, one that was replaced
/// neither.
pub fn are_unseen(tables: impl Iterator<Item = pg_sys::Oid>) -> bool {
    writers_of(tables).into_iter().any(is_unseen)
}

/// Whether this transaction of others has committed, but is not over for the active snapshot.
pub fn has_ended_unseen(transaction: pg_sys::TransactionId) -> bool {
    // SAFETY: looks the state of a transaction up that a stored row names.
    is_unseen(transaction) && unsafe { pg_sys::TransactionIdDidCommit(transaction) }
}

/// Whether one of these transactions is another one than the current one, and is not over for the active snapshot.
pub fn any_unseen(writers: Vec<pg_sys::TransactionId>) -> bool {
    writers.into_iter().any(is_unseen)
}

/// The transactions that wrote the row of a relation in pg_class.
pub fn writers_of_relation(relation: pg_sys::Oid) -> Vec<pg_sys::TransactionId> {
    let mut writers = Vec::new();
    let class = (pg_sys::RelationRelationId, oid(pg_sys::ClassOidIndexId), 1);
    rows(class, relation, Rows::Current, &mut writers);
    writers
}

/// Whether this transaction is not over for the active snapshot, or is the current one.
pub(super) fn is_newer(transaction: pg_sys::TransactionId) -> bool {
    is_current(transaction) || is_unseen(transaction)
}

fn is_current(transaction: pg_sys::TransactionId) -> bool {
    // SAFETY: looks at the state of the transaction.
    transaction >= FIRST_NORMAL
        && unsafe { pg_sys::TransactionIdIsCurrentTransactionId(transaction) }
}

/// Whether this transaction is another one than the current one, and is not over for the active snapshot.
fn is_unseen(transaction: pg_sys::TransactionId) -> bool {
    // SAFETY: a call of a function runs under an active snapshot, which is that of a query, hence an MVCC one. A frozen
    // transaction is over for all.
    transaction >= FIRST_NORMAL
        && !is_current(transaction)
        && unsafe { pg_sys::XidInMVCCSnapshot(transaction, pg_sys::GetActiveSnapshot()) }
}

/// FirstNormalTransactionId, as a number: 0 is none, 1 the bootstrap's, 2 a frozen one.
const FIRST_NORMAL: pg_sys::TransactionId = pg_sys::TransactionId::from_inner(3);

/// `InheritsRelationId` and `InheritsParentIndexId`, which the bindings do not have.
const INHERITS: pg_sys::Oid = pg_sys::Oid::from_u32(2611);
const INHERITS_PARENT_INDEX: pg_sys::Oid = pg_sys::Oid::from_u32(2187);

/// `PolicyRelationId` and `PolicyPolrelidPolnameIndexId`, the same.
const POLICIES: pg_sys::Oid = pg_sys::Oid::from_u32(3256);
const POLICIES_INDEX: pg_sys::Oid = pg_sys::Oid::from_u32(3258);

fn oid(index: u32) -> pg_sys::Oid {
    pg_sys::Oid::from_u32(index)
}

fn writers_of(tables: impl Iterator<Item = pg_sys::Oid>) -> Vec<pg_sys::TransactionId> {
    let mut writers = Vec::new();
    for table in tables {
        writers.extend(writers_of_relation(table));
        let attribute = (pg_sys::AttributeRelationId, oid(pg_sys::AttributeRelidNumIndexId), 1);
        rows(attribute, table, Rows::Current, &mut writers);
        // A partition that was detached is not among the tables any more: its row is dead, and the snapshot may see it.
        rows((INHERITS, INHERITS_PARENT_INDEX, 2), table, Rows::WithDead, &mut writers);
        rows((POLICIES, POLICIES_INDEX, 3), table, Rows::WithDead, &mut writers);
        // SAFETY: a syscache look-up of a relation that is locked.
        let schema = unsafe { pg_sys::get_rel_namespace(table) };
        let namespace = (pg_sys::NamespaceRelationId, oid(pg_sys::NamespaceOidIndexId), 1);
        rows(namespace, schema, Rows::Current, &mut writers);
    }
    writers.sort_unstable();
    writers.dedup();
    writers
}

/// The transactions that wrote the labels of an enum, which has no part in a table's rows of the catalog.
pub fn writers_of_enum(type_oid: pg_sys::Oid) -> Vec<pg_sys::TransactionId> {
    let mut writers = Vec::new();
    let labels = (pg_sys::EnumRelationId, oid(pg_sys::EnumTypIdSortOrderIndexId), 2);
    rows(labels, type_oid, Rows::Current, &mut writers);
    writers
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// As the catalog is now.
    Current,
    /// Deleted ones too, which no vacuum removes while the active snapshot sees them.
    WithDead,
}

/// The number of the transaction that wrote a row, frozen or not.
///
/// # Safety
/// The tuple is valid.
pub unsafe fn xmin(tuple: &pg_sys::HeapTupleData) -> pg_sys::TransactionId {
    // SAFETY: a stored tuple's header holds transactions.
    unsafe { (*tuple.t_data).t_choice.t_heap.t_xmin }
}

/// The transaction that wrote a row; `None` where the row is frozen, which keeps its number: numbers wrap.
///
/// # Safety
/// The tuple is valid.
pub unsafe fn writer(tuple: pg_sys::HeapTuple) -> Option<pg_sys::TransactionId> {
    // SAFETY: guaranteed by the caller.
    let header = unsafe { &*(*tuple).t_data };
    let info = u32::from(header.t_infomask);
    let is_frozen = info & pg_sys::HEAP_XMIN_FROZEN == pg_sys::HEAP_XMIN_FROZEN;
    // SAFETY: a stored tuple's header holds transactions.
    (!is_frozen).then_some(unsafe { header.t_choice.t_heap }.t_xmin)
}

/// The transaction that deleted a row, where one did or tried to.
///
/// # Safety
/// The tuple is valid.
pub unsafe fn deleter(tuple: pg_sys::HeapTuple) -> Option<pg_sys::TransactionId> {
    // SAFETY: guaranteed by the caller.
    let header = unsafe { &*(*tuple).t_data };
    let unset =
        pg_sys::HEAP_XMAX_INVALID | pg_sys::HEAP_XMAX_LOCK_ONLY | pg_sys::HEAP_XMAX_IS_MULTI;
    let is_deleted = u32::from(header.t_infomask) & unset == 0;
    // SAFETY: a stored tuple's header holds transactions.
    is_deleted.then_some(unsafe { header.t_choice.t_heap }.t_xmax)
}

/// Adds the transactions that wrote the rows of a catalog whose column has this value, and those that deleted them. The
/// catalog comes with an index whose first column that is, and the column's number.
fn rows(
    (catalog, index, column): (pg_sys::Oid, pg_sys::Oid, i16),
    value: pg_sys::Oid,
    which: Rows,
    writers: &mut Vec<pg_sys::TransactionId>,
) {
    // SAFETY: the catalog is open and the scan's tuple valid while its header is read. The key compares an oid column
    // with an oid. A NULL snapshot makes this a catalog scan.
    unsafe {
        let relation = pg_sys::table_open(catalog, pg_sys::AccessShareLock as i32);
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &raw mut key,
            column,
            pg_sys::BTEqualStrategyNumber as u16,
            OIDEQ,
            value.into(),
        );
        let snapshot = match which {
            Rows::Current => null_mut(),
            Rows::WithDead => &raw mut pg_sys::SnapshotAnyData,
        };
        let scan = pg_sys::systable_beginscan(relation, index, true, snapshot, 1, &raw mut key);
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            writers.extend(writer(tuple));
            if which == Rows::WithDead {
                writers.extend(deleter(tuple));
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(relation, pg_sys::AccessShareLock as i32);
    }
}

/// F_OIDEQ.
const OIDEQ: pg_sys::RegProcedure = pg_sys::Oid::from_u32(184);
