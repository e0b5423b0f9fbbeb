//! Tables as the catalog describes them, looked up under a lock that is held to the transaction's end.

use std::cell::Cell;
use std::ffi::CStr;
use std::rc::Rc;

use pgrx::prelude::*;
use pgrx::{PgList, PgTupleDesc, pg_sys};

use crate::pg::catalog::functions::FIRST_NORMAL_OID;
use crate::pg::catalog::names::{name, qualified_name, quote, text_of};
use crate::pg::error::{SqlError, Word};
use crate::pg::text::{checked, text_datum};

thread_local! {
    static CATALOG_GENERATION: Cell<u64> = const { Cell::new(0) };
}

/// Counts the invalidations of relations, of announced rows and of schemas that this backend has accepted. Values
/// derived from them are valid while the number stays the same.
pub fn catalog_generation() -> u64 {
    CATALOG_GENERATION.get()
}

/// Accepts the invalidations of all committed changes.
pub fn accept_invalidations() {
    // SAFETY: as before each lock that the server takes.
    unsafe { pg_sys::AcceptInvalidationMessages() };
}

/// Sends an invalidation of a relation: to every backend when this transaction commits, to this one after the
/// command.
pub fn announce_change(relation: pg_sys::Oid) {
    // SAFETY: the caller has the relation open, or it is one of the catalog: it is found by its OID.
    unsafe { pg_sys::CacheInvalidateRelcacheByRelid(relation) };
}

/// Registers the callbacks that count; called once when the library is loaded.
pub fn watch_catalog() {
    // SAFETY: the callbacks only touch a thread-local number.
    unsafe {
        pg_sys::CacheRegisterRelcacheCallback(Some(relation_changed), pg_sys::Datum::from(0));
        pg_sys::CacheRegisterSyscacheCallback(
            pg_sys::SysCacheIdentifier::NAMESPACEOID as i32,
            Some(schema_changed),
            pg_sys::Datum::from(0),
        );
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn relation_changed(_arg: pg_sys::Datum, _relation: pg_sys::Oid) {
    CATALOG_GENERATION.set(CATALOG_GENERATION.get() + 1);
}

#[pg_guard]
unsafe extern "C-unwind" fn schema_changed(_arg: pg_sys::Datum, _cache: i32, _hash: u32) {
    CATALOG_GENERATION.set(CATALOG_GENERATION.get() + 1);
}

/// Whether a collation takes no texts as equal that differ. Types without one have the invalid OID.
pub fn is_deterministic(collation: pg_sys::Oid) -> bool {
    // SAFETY: a syscache look-up.
    collation == pg_sys::InvalidOid || unsafe { pg_sys::get_collation_isdeterministic(collation) }
}

/// A column of a table.
#[derive(Debug)]
pub struct TableColumn {
    /// Its number.
    pub number: i16,
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_oid: pg_sys::Oid,
    /// Its type; of a domain, the type below it.
    pub base_type: pg_sys::Oid,
    /// Its type's modifier, −1 where there is none.
    pub modifier: i32,
    /// Its collation; the invalid OID where its type has none.
    pub collation: pg_sys::Oid,
}

/// A table as it is now.
#[derive(Debug)]
pub struct Table {
    /// Its OID.
    pub oid: pg_sys::Oid,
    /// Its schema's name.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// `r`, `p`, `v`, …
    pub kind: u8,
    /// Whether row security is enabled on it.
    pub has_row_security: bool,
    /// Its columns, without dropped ones and those whose name is not text.
    pub columns: Rc<[TableColumn]>,
}

impl Table {
    /// The table of this OID, locked AccessShare, or `None` when it was dropped.
    ///
    /// Raises 22021 where its name or its schema's is not text.
    pub fn lock(oid: pg_sys::Oid) -> Option<Self> {
        // SAFETY: the relation is open, hence its descriptor valid, until relation_close; the
        // lock stays.
        unsafe {
            let relation = pg_sys::try_relation_open(oid, pg_sys::AccessShareLock as i32);
            if relation.is_null() {
                return None;
            }
            let class = (*relation).rd_rel;
            let columns = PgTupleDesc::from_pg_unchecked((*relation).rd_att)
                .iter()
                // A virtual generated column (from 18 on) is computed when it is read, by what a mapping may not hold.
                .filter(|attribute| !attribute.attisdropped && attribute.attgenerated as u8 != b'v')
                .filter_map(|attribute| {
                    let name = CStr::from_ptr(attribute.attname.data.as_ptr()).to_bytes();
                    let mut modifier = attribute.atttypmod;
                    let base_type =
                        pg_sys::getBaseTypeAndTypmod(attribute.atttypid, &raw mut modifier);
                    Some(TableColumn {
                        number: attribute.attnum,
                        // One that is not text is not named by any mapping.
                        name: checked(name).ok()?.to_owned(),
                        type_oid: attribute.atttypid,
                        base_type,
                        modifier,
                        collation: attribute.attcollation,
                    })
                })
                .collect();
            let schema = pg_sys::get_namespace_name((*class).relnamespace);
            let table = Table {
                oid,
                schema: if schema.is_null() { String::new() } else { text_of(schema) },
                name: text_of((*class).relname.data.as_ptr()),
                kind: (*class).relkind as u8,
                has_row_security: (*class).relrowsecurity,
                columns,
            };
            pg_sys::relation_close(relation, pg_sys::NoLock as i32);
            Some(table)
        }
    }

    /// The table's name for messages and statements: schema-qualified, quoted.
    pub fn qualified_name(&self) -> String {
        format!("{}.{}", quote(&self.schema), quote(&self.name))
    }
}

/// Whether a table that is locked has these columns, as they were.
pub fn has_columns(oid: pg_sys::Oid, columns: &[TableColumn]) -> bool {
    // SAFETY: the relation is open while its descriptor is looked at.
    unsafe {
        let relation = pg_sys::relation_open(oid, pg_sys::NoLock as i32);
        let now = PgTupleDesc::from_pg_unchecked((*relation).rd_att);
        let is_same = |column: &TableColumn| {
            now.get(column.number as usize - 1).is_some_and(|attribute| {
                !attribute.attisdropped
                    && attribute.atttypid == column.type_oid
                    && CStr::from_ptr(attribute.attname.data.as_ptr()).to_bytes()
                        == column.name.as_bytes()
            })
        };
        let same = columns.iter().all(is_same);
        drop(now);
        pg_sys::relation_close(relation, pg_sys::NoLock as i32);
        same
    }
}

/// Whether a table that is locked has a rule for this event.
pub fn has_rule(oid: pg_sys::Oid, event: pg_sys::CmdType::Type) -> bool {
    // SAFETY: the relation is open while its rules are looked at; it has as many as it says.
    unsafe {
        let relation = pg_sys::relation_open(oid, pg_sys::NoLock as i32);
        let has_rule = (*relation).rd_rules.as_ref().is_some_and(|rules| {
            let rules = std::slice::from_raw_parts(rules.rules, rules.numLocks as usize);
            rules.iter().any(|rule| (**rule).event == event)
        });
        pg_sys::relation_close(relation, pg_sys::NoLock as i32);
        has_rule
    }
}

/// Why a table is not stored as a bound table has to be.
#[derive(Debug)]
pub struct StorageError {
    message: String,
    hint: &'static str,
}

impl StorageError {
    /// The error for a client.
    pub fn into_sql_error(self) -> SqlError {
        SqlError::new(PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE, self.message)
            .word(Word::GraphTables)
            .hint(self.hint)
    }
}

/// Checks how a table is stored and returns the OIDs below it, which it locks AccessShare. Temporary, unlogged
/// and foreign data can change or vanish without the snapshot knowing.
///
/// # Errors
/// What is wrong with which table.
pub fn check_storage(oid: pg_sys::Oid) -> Result<Vec<pg_sys::Oid>, StorageError> {
    let wrong = |message| StorageError {
        message,
        hint: "Bind permanent plain tables, or partitioned tables made of them.",
    };
    // SAFETY: a syscache look-up of a relation that is locked.
    let kind = unsafe { pg_sys::get_rel_relkind(oid) } as u8;
    let below = match kind {
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE => partitions(oid),
        _ => return Err(wrong(format!("{} is not a table", qualified_name(oid)))),
    };
    if !is_permanent(oid) {
        return Err(wrong(format!("table {} is not permanent", qualified_name(oid))));
    }
    if let Some(leaf) = below.iter().find(|oid| !is_plain(**oid)) {
        return Err(wrong(format!(
            "partition {} of table {} is not a permanent plain table",
            qualified_name(*leaf),
            qualified_name(oid)
        )));
    }
    Ok(below)
}

/// Checks that a table to be written is one that stays: a plain or a partitioned one, not a temporary one.
///
/// # Errors
/// That it is not.
pub fn check_is_stored(oid: pg_sys::Oid) -> Result<(), StorageError> {
    // SAFETY: syscache look-ups of a relation that is locked.
    let (kind, persistence) =
        unsafe { (pg_sys::get_rel_relkind(oid) as u8, pg_sys::get_rel_persistence(oid) as u8) };
    if matches!(kind, pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE)
        && persistence != pg_sys::RELPERSISTENCE_TEMP
    {
        return Ok(());
    }
    Err(StorageError {
        message: format!("relation {} is not a permanent table", qualified_name(oid)),
        hint: "SELECT graph_kernel.create_trace_table();",
    })
}

/// Checks that a table is a user's own: neither of the catalog nor a member of an extension, this one's private tables
/// among them, whoever may read it. A slice runs with the rights of whoever calls, so the binding would show or change
/// what its binder cannot.
///
/// # Errors
/// Which table is which.
pub fn check_is_users(oid: pg_sys::Oid, below: &[pg_sys::Oid]) -> Result<(), StorageError> {
    for table in below.iter().chain([&oid]) {
        let what = match extension_of(*table) {
            _ if is_of_catalog(*table) => "is a table of the catalog".to_owned(),
            Some(extension) => format!("is a member of extension {}", quote(&extension)),
            None => continue,
        };
        return Err(StorageError {
            message: format!("table {} {what}", qualified_name(*table)),
            hint: "Bind tables of your own.",
        });
    }
    Ok(())
}

/// Whether a relation came with the server, or is in one of its schemas.
fn is_of_catalog(oid: pg_sys::Oid) -> bool {
    // SAFETY: syscache look-ups of a relation that is locked.
    unsafe {
        let schema = pg_sys::get_rel_namespace(oid);
        oid.to_u32() < FIRST_NORMAL_OID
            || pg_sys::IsCatalogNamespace(schema)
            || pg_sys::IsToastNamespace(schema)
            || schema == pg_sys::get_namespace_oid(c"information_schema".as_ptr(), true)
    }
}

/// The name of the extension that a relation is a member of.
fn extension_of(oid: pg_sys::Oid) -> Option<String> {
    // SAFETY: look-ups in the catalog; an extension that was dropped meanwhile has no name.
    unsafe {
        let extension = pg_sys::getExtensionOfObject(pg_sys::RelationRelationId, oid);
        if extension == pg_sys::InvalidOid {
            return None;
        }
        let text = pg_sys::get_extension_name(extension);
        Some(if text.is_null() { String::new() } else { name(text) })
    }
}

/// The OIDs below a partitioned table, locked AccessShare; none below another one. Read as the planner reads it, at the
/// latest committed state: a partition made after the transaction's snapshot is part of the table too.
pub fn partitions(root: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    inheritors(root, pg_sys::AccessShareLock)
}

fn inheritors(root: pg_sys::Oid, lock: u32) -> Vec<pg_sys::Oid> {
    // SAFETY: a syscache look-up of a relation that is locked.
    if unsafe { pg_sys::get_rel_relkind(root) } as u8 != pg_sys::RELKIND_PARTITIONED_TABLE {
        return Vec::new();
    }
    // SAFETY: the function is the server's own, with this signature in PostgreSQL 15 to 18; the
    // guard turns an error in it into a panic. It returns a list of OIDs, the root first.
    let all = unsafe {
        let list = pg_sys::ffi::pg_guard_ffi_boundary(|| {
            find_all_inheritors(root, lock as i32, std::ptr::null_mut())
        });
        PgList::<pg_sys::Oid>::from_pg(list).iter_oid().collect::<Vec<_>>()
    };
    all.into_iter().filter(|oid| *oid != root).collect()
}

fn is_permanent(oid: pg_sys::Oid) -> bool {
    // SAFETY: a syscache look-up of a relation that is locked.
    unsafe { pg_sys::get_rel_persistence(oid) as u8 == pg_sys::RELPERSISTENCE_PERMANENT }
}

/// Whether a relation below a partitioned table is one that snapshots hold for.
fn is_plain(oid: pg_sys::Oid) -> bool {
    // SAFETY: a syscache look-up of a relation that is locked.
    let kind = unsafe { pg_sys::get_rel_relkind(oid) } as u8;
    matches!(kind, pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE)
        && is_permanent(oid)
}

/// Whether a partition of this table, or of a partition below it, is being detached concurrently. Until that has ended,
/// a cached plan may read it although newer ones do not.
pub fn is_detaching(root: pg_sys::Oid, partitions: &[pg_sys::Oid]) -> bool {
    let is_parent = |oid: &pg_sys::Oid| {
        // SAFETY: a syscache look-up of a relation that is locked.
        unsafe { pg_sys::get_rel_relkind(*oid) as u8 == pg_sys::RELKIND_PARTITIONED_TABLE }
    };
    partitions.iter().chain([&root]).filter(|oid| is_parent(oid)).any(|parent| {
        let (mut is_detaching, mut xmin) = (false, pg_sys::InvalidTransactionId);
        // SAFETY: as `find_all_inheritors`; it locks nothing, and fills in the two.
        unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                find_inheritance_children_extended(
                    *parent,
                    false,
                    pg_sys::NoLock as i32,
                    &mut is_detaching,
                    &mut xmin,
                )
            });
        }
        is_detaching
    })
}

unsafe extern "C-unwind" {
    /// catalog/pg_inherits.h; not among the bindings.
    fn find_inheritance_children_extended(
        parent: pg_sys::Oid,
        omit_detached: bool,
        lock: pg_sys::LOCKMODE,
        is_detaching: *mut bool,
        detached_xmin: *mut pg_sys::TransactionId,
    ) -> *mut pg_sys::List;

    /// The same.
    fn find_all_inheritors(
        parent: pg_sys::Oid,
        lock: pg_sys::LOCKMODE,
        parents: *mut *mut pg_sys::List,
    ) -> *mut pg_sys::List;
}

/// The rights to a table of which one is enough to lock it AccessShare, as for LOCK TABLE.
const RIGHTS: pg_sys::AclMode = (pg_sys::ACL_SELECT
    | pg_sys::ACL_INSERT
    | pg_sys::ACL_UPDATE
    | pg_sys::ACL_DELETE
    | pg_sys::ACL_TRUNCATE) as pg_sys::AclMode;

/// Whether the current role may name a relation and has a right to it or to a column of it; also where that was
/// dropped. The server asks whether it may be named when it analyses a statement: plans are kept for the roles that
/// come later.
pub fn has_rights(oid: pg_sys::Oid) -> bool {
    // SAFETY: look-ups in the catalog by an OID that may be of no relation.
    unsafe {
        let (role, mut is_missing) = (pg_sys::GetUserId(), false);
        let ok = pg_sys::AclResult::ACLCHECK_OK;
        let any = pg_sys::AclMaskHow::ACLMASK_ANY;
        let has_right = pg_sys::pg_class_aclcheck_ext(oid, role, RIGHTS, &raw mut is_missing) == ok;
        is_missing
            || (has_right || pg_sys::pg_attribute_aclcheck_all(oid, role, RIGHTS, any) == ok)
                && may_name(oid, role)
    }
}

/// Whether a role may name what is in the schema of a relation; not where that was dropped.
pub fn may_name(relation: pg_sys::Oid, role: pg_sys::Oid) -> bool {
    let usage = pg_sys::ACL_USAGE as pg_sys::AclMode;
    // SAFETY: look-ups in the catalog; a schema that is not there raises.
    unsafe {
        let schema = pg_sys::get_rel_namespace(relation);
        if schema == pg_sys::InvalidOid {
            return false;
        }
        #[cfg(feature = "pg15")]
        let may_name = pg_sys::pg_namespace_aclcheck(schema, role, usage);
        #[cfg(not(feature = "pg15"))]
        let may_name = pg_sys::object_aclcheck(pg_sys::NamespaceRelationId, schema, role, usage);
        may_name == pg_sys::AclResult::ACLCHECK_OK
    }
}

/// Raises the server's error (42501) where [`has_rights`] says no: before a lock is taken, as a lock is held to the
/// transaction's end.
pub fn check_rights(oid: pg_sys::Oid) {
    if has_rights(oid) {
        return;
    }
    // SAFETY: look-ups in the catalog; a NULL is a relation that was dropped meanwhile. The error leaves no lock
    // behind.
    unsafe {
        let name = pg_sys::get_rel_name(oid);
        if !name.is_null() {
            let denied = pg_sys::AclResult::ACLCHECK_NO_PRIV;
            if !may_name(oid, pg_sys::GetUserId()) {
                let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(oid));
                pg_sys::aclcheck_error(denied, pg_sys::ObjectType::OBJECT_SCHEMA, schema);
            }
            let kind = pg_sys::get_relkind_objtype(pg_sys::get_rel_relkind(oid));
            pg_sys::aclcheck_error(denied, kind, name);
        }
    }
}

/// [`check_rights`], called by the server when it has looked a name up.
#[pg_guard]
unsafe extern "C-unwind" fn check_rights_of_named(
    _name: *const pg_sys::RangeVar,
    found: pg_sys::Oid,
    _found_before: pg_sys::Oid,
    _arg: *mut std::ffi::c_void,
) {
    check_rights(found);
}

/// Locks a relation AccessShare, to the transaction's end.
pub fn lock_shared(oid: pg_sys::Oid) {
    // SAFETY: any OID may be locked; invalidations are taken in on the way.
    unsafe { pg_sys::LockRelationOid(oid, pg_sys::AccessShareLock as i32) };
}

/// As [`lock_shared`], of a table, its partitions and their indexes, which are locked when a statement is planned;
/// false where one of them cannot be locked at once.
pub fn lock_at_once(table: pg_sys::Oid) -> bool {
    let mode = pg_sys::AccessShareLock as i32;
    // SAFETY: any OID may be locked; invalidations are taken in on the way.
    let lock = |oid| unsafe { pg_sys::ConditionalLockRelationOid(oid, mode) };
    let lock_all = |table| lock(table) && indexes(table).into_iter().all(lock);
    lock_all(table) && inheritors(table, pg_sys::NoLock).into_iter().all(lock_all)
}

/// The OIDs of the indexes of a table that is locked; none where it was dropped.
fn indexes(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // SAFETY: the relation is open while its indexes are listed; the list is of OIDs.
    unsafe {
        let relation = pg_sys::try_relation_open(table, pg_sys::NoLock as i32);
        if relation.is_null() {
            return Vec::new();
        }
        let list = PgList::<pg_sys::Oid>::from_pg(pg_sys::RelationGetIndexList(relation));
        pg_sys::relation_close(relation, pg_sys::NoLock as i32);
        list.iter_oid().collect()
    }
}

/// Whether this transaction holds a lock on the relation that lets it write there or change it.
pub fn is_locked_for_writing(oid: pg_sys::Oid) -> bool {
    // SAFETY: the relation is open while it is looked at.
    unsafe {
        let relation = pg_sys::try_relation_open(oid, pg_sys::AccessShareLock as i32);
        if relation.is_null() {
            return false;
        }
        let locked =
            pg_sys::CheckRelationLockedByMe(relation, pg_sys::RowExclusiveLock as i32, true);
        pg_sys::relation_close(relation, pg_sys::AccessShareLock as i32);
        locked
    }
}

/// The OID of a relation by its literal schema and name.
pub fn find(schema: &CStr, relation: &CStr) -> Option<pg_sys::Oid> {
    look_up(schema, relation, pg_sys::NoLock, None)
}

/// The OID of a relation by its name as one types it, by the search_path where it has no schema. The right to look into
/// the schema is not asked for.
///
/// # Errors
/// 54000 where the text is too long. Raises 42601 or 42602 where it is not a name.
pub fn find_typed(name: &str) -> Result<Option<pg_sys::Oid>, SqlError> {
    let text = text_datum(name)?;
    // SAFETY: the lists and names live in the current memory context; the schema is NULL where the name has none.
    let found = unsafe {
        let parts = pg_sys::textToQualifiedNameList(text.cast_mut_ptr());
        let name = pg_sys::makeRangeVarFromNameList(parts);
        if !(*name).catalogname.is_null() {
            pg_sys::InvalidOid
        } else if (*name).schemaname.is_null() {
            pg_sys::RelnameGetRelid((*name).relname)
        } else {
            let schema = pg_sys::get_namespace_oid((*name).schemaname, true);
            pg_sys::get_relname_relid((*name).relname, schema)
        }
    };
    Ok((found != pg_sys::InvalidOid).then_some(found))
}

/// As [`find`], locked AccessShare; raises as [`check_rights`].
pub fn lock_by_name(schema: &CStr, relation: &CStr) -> Option<pg_sys::Oid> {
    look_up(schema, relation, pg_sys::AccessShareLock, Some(check_rights_of_named))
}

fn look_up(
    schema: &CStr,
    relation: &CStr,
    lock: u32,
    callback: pg_sys::RangeVarGetRelidCallback,
) -> Option<pg_sys::Oid> {
    // SAFETY: the names outlive the call; a missing schema or relation gives InvalidOid.
    let oid = unsafe {
        let name =
            pg_sys::makeRangeVar(schema.as_ptr().cast_mut(), relation.as_ptr().cast_mut(), -1);
        pg_sys::RangeVarGetRelidExtended(
            name,
            lock as i32,
            pg_sys::RVROption::RVR_MISSING_OK,
            callback,
            std::ptr::null_mut(),
        )
    };
    (oid != pg_sys::InvalidOid).then_some(oid)
}

/// Whether the type is an enum.
pub fn is_enum(type_oid: pg_sys::Oid) -> bool {
    // SAFETY: a syscache look-up.
    unsafe { pg_sys::type_is_enum(type_oid) }
}

/// Whether values of the type are of one length: they fit into any index.
pub fn is_short(type_oid: pg_sys::Oid) -> bool {
    // SAFETY: a syscache look-up.
    unsafe { pg_sys::get_typlen(type_oid) > 0 }
}

/// Whether row security applies to this table for the current role.
pub fn row_security_applies_to(table: pg_sys::Oid) -> bool {
    // SAFETY: a look-up; InvalidOid means the current role, and no error is raised.
    let status = unsafe { pg_sys::check_enable_rls(table, pg_sys::InvalidOid, true) };
    status == pg_sys::CheckEnableRlsResult::RLS_ENABLED as i32
}
