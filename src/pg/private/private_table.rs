//! The extension's own tables, read as the server reads its catalogs. They are read whatever the caller's rights, at
//! the latest committed state, also on a standby and in parallel workers.

use std::ffi::{CStr, c_int};
use std::num::NonZeroUsize;

use pgrx::itemptr::item_pointer_get_block_number;
use pgrx::prelude::*;
use pgrx::trigger_support::called_as_trigger;
use pgrx::{FromDatum, PgTupleDesc, heap_getattr_raw, pg_sys};

use crate::pg::catalog::{relation, writers};
use crate::pg::error::{SqlError, Word};
use crate::pg::private::version;
use crate::pg::sql::types::{JsonbText, Text};
use crate::pg::text::{TextArg, replaced};

/// A table in the private schema, as the extension's script makes it.
pub struct PrivateTable {
    /// Its name.
    pub name: &'static CStr,
    /// The types of its columns.
    pub columns: &'static [pg_sys::Oid],
}

/// Stands for `graph_kernel.bound_relation`, which has another OID in each database.
const BOUND_RELATION: pg_sys::Oid = pg_sys::InvalidOid;

/// Stands for `graph_kernel.bound_role`; no column has this type.
const BOUND_ROLE: pg_sys::Oid = pg_sys::CSTRINGOID;

/// Stands for `graph_kernel.secret`; no column has this type.
const SECRET: pg_sys::Oid = pg_sys::INTERNALOID;

/// The tables whose rows decide which tables are the graph.
pub const BINDING: PrivateTable = PrivateTable {
    name: c"binding",
    columns: &[
        pg_sys::UUIDOID,
        pg_sys::TEXTOID,
        pg_sys::BOOLOID,
        BOUND_RELATION,
        BOUND_RELATION,
        pg_sys::JSONBOID,
        pg_sys::JSONBOID,
        pg_sys::TEXTOID,
        pg_sys::TIMESTAMPTZOID,
        BOUND_ROLE,
        pg_sys::OIDOID,
        BOUND_RELATION,
    ],
};

/// The table whose row decides which table holds recorder events.
pub const RECORDER_BINDING: PrivateTable = PrivateTable {
    name: c"recorder_binding",
    columns: &[pg_sys::BOOLOID, BOUND_RELATION, pg_sys::JSONBOID, pg_sys::TEXTOID, BOUND_ROLE],
};

/// The table whose row decides which table holds traces.
pub const TRACE_BINDING: PrivateTable = PrivateTable {
    name: c"trace_binding",
    columns: &[pg_sys::BOOLOID, BOUND_RELATION, pg_sys::TEXTOID, BOUND_ROLE],
};

/// The table whose rows decide which tables keep documents.
pub const STORE_BINDING: PrivateTable = PrivateTable {
    name: c"store_binding",
    columns: &[pg_sys::TEXTOID, BOUND_RELATION, pg_sys::TEXTOID, BOUND_ROLE],
};

/// The roots of the keys.
pub const ROOT_KEYS: PrivateTable = PrivateTable {
    name: c"root_keys",
    columns: &[pg_sys::INT4OID, SECRET, pg_sys::TIMESTAMPTZOID, pg_sys::OIDOID],
};

/// The keys that were revoked.
pub const REVOKED_KEYS: PrivateTable =
    PrivateTable { name: c"revoked_keys", columns: &[pg_sys::TEXTOID, pg_sys::TIMESTAMPTZOID] };

/// The tables whose changes are announced.
const ANNOUNCED: [PrivateTable; 3] = [BINDING, ROOT_KEYS, REVOKED_KEYS];

impl PrivateTable {
    /// Its OID.
    ///
    /// Raises 42P01 where the extension has no such table, even if another one has the name.
    pub fn oid(&self) -> pg_sys::Oid {
        self.with_extension().0
    }

    /// Its OID and that of the extension.
    fn with_extension(&self) -> (pg_sys::Oid, pg_sys::Oid) {
        // SAFETY: look-ups in the catalog; a missing schema, table or extension gives InvalidOid.
        let (oid, extension, holder) = unsafe {
            let schema = pg_sys::get_namespace_oid(c"graph_kernel".as_ptr(), true);
            let oid = pg_sys::get_relname_relid(self.name.as_ptr(), schema);
            let extension = pg_sys::get_extension_oid(c"graph_kernel".as_ptr(), true);
            (oid, extension, pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, oid))
        };
        if holder == pg_sys::InvalidOid || holder != extension {
            self.missing("has no table").raise();
        }
        (oid, extension)
    }

    /// Checks that the extension has the version of the library.
    ///
    /// Raises 55000.
    pub fn check_version(&self) {
        version::check(self.with_extension().1);
    }

    /// Opens it. The caller closes it.
    ///
    /// Raises 55000 where the extension has another version than the library.
    fn open(&self, lock: u32) -> pg_sys::Relation {
        let (oid, extension) = self.with_extension();
        version::check(extension);
        // SAFETY: the relation stays open while its descriptor is looked at; after an error the transaction's
        // abort closes it.
        unsafe {
            let relation = pg_sys::try_relation_open(oid, lock as i32);
            if relation.is_null() {
                self.missing("has no table").raise();
            }
            let is_table = (*(*relation).rd_rel).relkind as u8 == pg_sys::RELKIND_RELATION;
            let columns = PgTupleDesc::from_pg_unchecked((*relation).rd_att);
            let is_same = columns.len() == self.columns.len()
                && columns.iter().zip(self.columns).all(|(a, made)| {
                    let is_own = || {
                        let class = pg_sys::TypeRelationId;
                        pg_sys::getExtensionOfObject(class, a.atttypid) == extension
                    };
                    match *made {
                        // Stored as an OID.
                        BOUND_RELATION | BOUND_ROLE => is_own() && a.attbyval && a.attlen == 4,
                        // Stored as a bytea.
                        SECRET => is_own() && a.attlen == -1,
                        made => a.atttypid == made,
                    }
                });
            if !is_table || !is_same {
                self.missing("has other columns in table").raise();
            }
            relation
        }
    }

    /// The error of an extension that lacks something.
    pub fn missing(&self, what: &str) -> SqlError {
        let name = replaced(self.name.to_bytes());
        SqlError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
            format!("extension graph_kernel {what} graph_kernel.{name}"),
        )
        .word(Word::PrivateTable)
        .hint("Run CREATE EXTENSION graph_kernel.")
    }

    /// The results of `read` for the row of each of these values of the columns of an index, all of them; `None` where
    /// the active snapshot sees no such row.
    pub fn look_up<T>(
        &self,
        index: &'static CStr,
        keys: &[Vec<Key<'_>>],
        read: impl Fn(&PrivateRow) -> Option<T>,
    ) -> Vec<Option<T>> {
        // SAFETY: as in `scan`; the scan keys are as many as the index has columns, compare each by equality of its
        // type, and live as long as the scan. A call of a function runs under an active snapshot.
        unsafe {
            let relation = self.open(pg_sys::AccessShareLock);
            let schema = (*(*relation).rd_rel).relnamespace;
            let index = pg_sys::get_relname_relid(index.as_ptr(), schema);
            let look_up = |values: &Vec<Key<'_>>| {
                let mut scan_keys = vec![pg_sys::ScanKeyData::default(); values.len()];
                for (number, (value, scan_key)) in values.iter().zip(&mut scan_keys).enumerate() {
                    let (equals, datum) = value.equality();
                    let column = (number + 1) as pg_sys::AttrNumber;
                    let strategy = pg_sys::BTEqualStrategyNumber as u16;
                    pg_sys::ScanKeyInit(scan_key, column, strategy, equals, datum);
                }
                let scan = pg_sys::systable_beginscan(
                    relation,
                    index,
                    true,
                    pg_sys::GetActiveSnapshot(),
                    scan_keys.len() as c_int,
                    scan_keys.as_mut_ptr(),
                );
                let tuple = pg_sys::systable_getnext(scan);
                let descriptor = (*relation).rd_att;
                let row = PrivateRow { tuple, descriptor, columns: self.columns };
                let result = if tuple.is_null() { None } else { read(&row) };
                pg_sys::systable_endscan(scan);
                result
            };
            let found = keys.iter().map(look_up).collect();
            pg_sys::table_close(relation, pg_sys::AccessShareLock as i32);
            found
        }
    }

    /// The results of `read` for each row, in no order.
    pub fn scan<T>(&self, read: impl Fn(&PrivateRow) -> Option<T>) -> Vec<T> {
        self.scan_by(std::ptr::null_mut(), read)
    }

    /// The transactions that made the table, that wrote the rows of which `is_meant` is true, and that deleted such
    /// rows after the active snapshot was taken, where they are not frozen.
    pub fn writers(&self, is_meant: impl Fn(&PrivateRow) -> bool) -> Vec<pg_sys::TransactionId> {
        let mut writers = writers::writers_of_relation(self.oid());
        writers.extend(self.scan(|row| row.writer().filter(|_| is_meant(row))));
        let deleter = |row: &PrivateRow| {
            // SAFETY: the scan that made the row is still open.
            let deleter = unsafe { writers::deleter(row.tuple) }?;
            // No vacuum removes what the snapshot sees, nor what is stored beside it.
            (writers::has_ended_unseen(deleter) && is_meant(row)).then_some(deleter)
        };
        writers.extend(self.scan_by(&raw mut pg_sys::SnapshotAnyData, deleter));
        writers
    }

    /// That there is no row.
    pub fn no_row(&self) -> RowPlace {
        RowPlace { table: self.oid(), place: None }
    }

    /// The results of `read` for each row that the active snapshot sees, in no order.
    pub fn scan_seen<T>(&self, read: impl Fn(&PrivateRow) -> Option<T>) -> Vec<T> {
        // SAFETY: a call of a function runs under an active snapshot.
        self.scan_by(unsafe { pg_sys::GetActiveSnapshot() }, read)
    }

    fn scan_by<T>(
        &self,
        snapshot: pg_sys::Snapshot,
        read: impl Fn(&PrivateRow) -> Option<T>,
    ) -> Vec<T> {
        // SAFETY: the relation is open and the scan's tuple valid while `read` looks at it. A NULL
        // snapshot makes this a catalog scan.
        unsafe {
            let relation = self.open(pg_sys::AccessShareLock);
            let scan = pg_sys::systable_beginscan(
                relation,
                pg_sys::InvalidOid,
                false,
                snapshot,
                0,
                std::ptr::null_mut(),
            );
            let mut rows = Vec::new();
            loop {
                let tuple = pg_sys::systable_getnext(scan);
                if tuple.is_null() {
                    break;
                }
                let row =
                    PrivateRow { tuple, descriptor: (*relation).rd_att, columns: self.columns };
                rows.extend(read(&row));
            }
            pg_sys::systable_endscan(scan);
            pg_sys::table_close(relation, pg_sys::AccessShareLock as i32);
            rows
        }
    }
}

/// The value of a column of an index that rows are looked up by.
pub enum Key<'a> {
    /// An `oid`.
    Oid(pg_sys::Oid),
    /// An `integer`.
    Integer(i32),
    /// A `text[]` of this text alone.
    Texts(&'a str),
}

impl Key<'_> {
    /// The function that compares with it, and the value.
    fn equality(&self) -> (pg_sys::RegProcedure, pg_sys::Datum) {
        let (function, value) = match self {
            Key::Oid(oid) => (pg_sys::F_OIDEQ, (*oid).into()),
            Key::Integer(number) => (pg_sys::F_INT4EQ, (*number).into()),
            Key::Texts(text) => {
                let value = vec![Text((*text).to_owned())];
                (pg_sys::F_ARRAY_EQ, value.into_datum().expect("an array is not NULL"))
            }
        };
        (function.into(), value)
    }
}

/// What a column is read as. A text is checked.
trait Stored: FromDatum {}

impl Stored for i32 {}
impl Stored for i64 {}
impl Stored for bool {}
impl Stored for pg_sys::Oid {}
impl Stored for pgrx::Uuid {}
impl Stored for Vec<u8> {}
impl Stored for TextArg<'_> {}
impl Stored for JsonbText {}

/// A row of a private table; columns count from 0.
pub struct PrivateRow {
    tuple: pg_sys::HeapTuple,
    descriptor: pg_sys::TupleDesc,
    columns: &'static [pg_sys::Oid],
}

impl PrivateRow {
    /// The value of a column that has this type, copied.
    fn get<T: Stored>(&self, column: usize, type_oid: pg_sys::Oid) -> Option<T> {
        assert_eq!(self.columns[column], type_oid, "a column is read as its type");
        let column = NonZeroUsize::MIN.saturating_add(column);
        // SAFETY: the scan that made this row is still open. The table's columns were compared with `columns` when it
        // was opened. Each caller reads a SQL type as the Rust type for it.
        unsafe {
            let datum = heap_getattr_raw(self.tuple, column, self.descriptor)?;
            T::from_datum(datum, false)
        }
    }

    /// The transaction that wrote it; `None` where the row is frozen.
    pub fn writer(&self) -> Option<pg_sys::TransactionId> {
        // SAFETY: the scan that made this row is still open.
        unsafe { writers::writer(self.tuple) }
    }

    /// Where it is stored.
    pub fn place(&self) -> RowPlace {
        // SAFETY: the scan that made this row is still open.
        let (tuple, writer) = unsafe { (&*self.tuple, writers::xmin(&*self.tuple)) };
        RowPlace { table: tuple.t_tableOid, place: Some((tuple.t_self, writer)) }
    }

    /// An `integer`.
    pub fn integer(&self, column: usize) -> Option<i32> {
        self.get(column, pg_sys::INT4OID)
    }

    /// A `bigint`.
    pub fn bigint(&self, column: usize) -> Option<i64> {
        self.get(column, pg_sys::INT8OID)
    }

    /// A `graph_kernel.secret`.
    pub fn secret(&self, column: usize) -> Option<Vec<u8>> {
        self.get(column, SECRET)
    }

    /// A `text`. Raises 22021 where it is not text.
    pub fn text(&self, column: usize) -> Option<String> {
        self.get::<TextArg<'_>>(column, pg_sys::TEXTOID).map(|text| text.0.to_owned())
    }

    /// A `boolean`.
    pub fn boolean(&self, column: usize) -> Option<bool> {
        self.get(column, pg_sys::BOOLOID)
    }

    /// A `uuid`.
    pub fn uuid(&self, column: usize) -> Option<uuid::Uuid> {
        let id: pgrx::Uuid = self.get(column, pg_sys::UUIDOID)?;
        Some(uuid::Uuid::from_bytes(*id.as_bytes()))
    }

    /// A `graph_kernel.bound_relation`; 0 is one that a restore did not find.
    pub fn relation(&self, column: usize) -> Option<pg_sys::Oid> {
        self.get(column, BOUND_RELATION)
    }

    /// A `graph_kernel.bound_role`; 0 is one that a restore did not find.
    pub fn role(&self, column: usize) -> Option<pg_sys::Oid> {
        self.get(column, BOUND_ROLE)
    }

    /// An `oid`.
    pub fn oid(&self, column: usize) -> Option<pg_sys::Oid> {
        self.get(column, pg_sys::OIDOID)
    }

    /// A `jsonb`.
    pub fn json(&self, column: usize) -> Option<JsonbText> {
        self.get(column, pg_sys::JSONBOID)
    }
}

/// Where a row of a private table is stored, or which table has none. A row that is written anew is stored elsewhere.
#[derive(Clone, Copy)]
pub struct RowPlace {
    table: pg_sys::Oid,
    /// With the transaction that wrote the row: VACUUM FULL puts another one there.
    place: Option<(pg_sys::ItemPointerData, pg_sys::TransactionId)>,
}

impl RowPlace {
    /// Whether it says that there is no row.
    pub fn is_of_no_row(&self) -> bool {
        self.place.is_none()
    }

    /// Whether the active snapshot sees the row that is stored there. Of no row it is true where the table is empty.
    pub fn is_seen(&self) -> bool {
        // SAFETY: the table is open while the row is looked for, in a block that it has; what is found is released. A
        // call of a function runs under an active snapshot.
        unsafe {
            let relation = pg_sys::try_relation_open(self.table, pg_sys::AccessShareLock as i32);
            if relation.is_null() {
                return false;
            }
            let main = pg_sys::ForkNumber::MAIN_FORKNUM;
            let blocks = pg_sys::RelationGetNumberOfBlocksInFork(relation, main);
            let is_seen = self.place.map_or(blocks == 0, |(place, writer)| {
                let mut tuple = pg_sys::HeapTupleData { t_self: place, ..Default::default() };
                let mut buffer = 0;
                let is_found = item_pointer_get_block_number(&raw const place) < blocks
                    && pg_sys::heap_fetch(
                        relation,
                        pg_sys::GetActiveSnapshot(),
                        &raw mut tuple,
                        &raw mut buffer,
                        false,
                    );
                let is_same = is_found && writers::xmin(&tuple) == writer;
                if is_found {
                    pg_sys::ReleaseBuffer(buffer);
                }
                is_same
            });
            pg_sys::relation_close(relation, pg_sys::AccessShareLock as i32);
            is_seen
        }
    }
}

/// The database of this session. A row keeps that of its writer when the database is copied as a template.
pub fn this_database() -> pg_sys::Oid {
    // SAFETY: reads a variable of the server.
    unsafe { pg_sys::MyDatabaseId }
}

/// Whether this transaction may have written to a table whose changes are announced. It sees its own rows at once,
/// but the invalidation is sent at the end of the statement.
pub fn may_be_changing() -> bool {
    // SAFETY: reads the transaction's state. Without an XID nothing was written.
    let has_xid = unsafe { pg_sys::GetTopTransactionIdIfAny() != pg_sys::InvalidTransactionId };
    has_xid && ANNOUNCED.iter().any(|table| relation::is_locked_for_writing(table.oid()))
}

/// Locks a table against other writers to the transaction's end.
pub fn lock_against_writers(table: &PrivateTable) {
    // SAFETY: any OID may be locked.
    unsafe { pg_sys::LockRelationOid(table.oid(), pg_sys::ExclusiveLock as i32) };
}

/// Adds an epoch's root so that logical decoding never sees it. The table has no index.
pub fn insert_root(epoch: i32, root: Option<&[u8]>, created_at: pg_sys::TimestampTz) {
    let values = [
        epoch.into_datum(),
        root.and_then(|root| root.into_datum()),
        created_at.into_datum(),
        this_database().into_datum(),
    ];
    let mut nulls = values.map(|value| value.is_none());
    let mut values = values.map(|value| value.unwrap_or(pg_sys::Datum::null()));
    // SAFETY: `open` has found the columns that these are the values of; the relation is open while the tuple
    // is formed and inserted.
    unsafe {
        let relation = ROOT_KEYS.open(pg_sys::RowExclusiveLock);
        let tuple =
            pg_sys::heap_form_tuple((*relation).rd_att, values.as_mut_ptr(), nulls.as_mut_ptr());
        pg_sys::heap_insert(
            relation,
            tuple,
            pg_sys::GetCurrentCommandId(true),
            pg_sys::HEAP_INSERT_NO_LOGICAL as c_int,
            std::ptr::null_mut(),
        );
        // No trigger does.
        relation::announce_change((*relation).rd_id);
        pg_sys::table_close(relation, pg_sys::NoLock as i32);
        pg_sys::CommandCounterIncrement();
    }
}

// Declared in sql/bootstrap.sql, in the private schema.
/// Whether this process applies the changes of a publisher: as a superuser, and without a client.
#[pg_extern(sql = false)]
fn is_applying() -> bool {
    // SAFETY: reads the process's and the session's state.
    unsafe {
        pg_sys::SessionReplicationRole as u32 == pg_sys::SESSION_REPLICATION_ROLE_REPLICA
            && pg_sys::MyBackendType == pg_sys::BackendType::B_BG_WORKER
    }
}

// Declared in sql/bootstrap.sql, in the private schema, as a trigger function.
#[pg_extern(sql = false)]
fn announce_change(fcinfo: pg_sys::FunctionCallInfo) -> pgrx::Internal {
    // SAFETY: the server calls this with its call information, whose context is a TriggerData when a trigger
    // fires; the relation in it is open.
    unsafe {
        if !called_as_trigger(fcinfo) {
            SqlError::new(
                PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                "announce_change() runs as a trigger only",
            )
            .word(Word::InvalidTrigger)
            .raise();
        }
        let trigger: *mut pg_sys::TriggerData = (*fcinfo).context.cast();
        relation::announce_change((*(*trigger).tg_relation).rd_id);
    }
    // The result of an AFTER trigger is ignored; this is a null pointer that is not SQL NULL.
    pgrx::Internal::from(Some(pg_sys::Datum::null()))
}
