//! Indexes of a table, as the catalog stores them.

use std::ffi::{CString, c_int};

use pgrx::{PgList, pg_sys};

use crate::pg::text::with_bytes;

/// A valid B-tree index over all rows of a table.
pub struct BtreeIndex {
    /// Whether it is unique.
    pub is_unique: bool,
    /// Whether it is so after each row, not at the transaction's end alone.
    pub is_immediate: bool,
    /// Its keys, without the columns that it only includes.
    pub keys: Vec<IndexKey>,
}

/// What an index is ordered by at one place.
pub struct IndexKey {
    /// What is indexed.
    pub of: Indexed,
    /// The collation; the invalid OID where the type has none.
    pub collation: pg_sys::Oid,
    /// The family of its operators.
    pub family: pg_sys::Oid,
    /// Whether it descends, and whether NULLs come first (INDOPTION_DESC, INDOPTION_NULLS_FIRST).
    pub options: i16,
}

/// What an index holds at one place.
#[derive(Clone, Copy)]
pub enum Indexed {
    /// The column of this number.
    Column(i16),
    /// The value of an analysed expression over the table's columns, in the memory context that it was read in.
    Expression(*mut pg_sys::Node),
}

impl Indexed {
    /// Whether both are the same value, whatever they are written as.
    ///
    /// # Safety
    /// Expressions are trees in a memory context that is still there.
    pub unsafe fn is(self, other: Self) -> bool {
        match (self, other) {
            (Indexed::Column(one), Indexed::Column(other)) => one == other,
            // SAFETY: guaranteed by the caller.
            (Indexed::Expression(one), Indexed::Expression(other)) => unsafe {
                pg_sys::equal(one.cast(), other.cast())
            },
            _ => false,
        }
    }
}

/// The OIDs of the indexes of a table, or partitioned table, that is locked.
pub fn indexes(table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // SAFETY: the relation is locked, and open while its indexes are listed.
    unsafe {
        let relation = pg_sys::relation_open(table, pg_sys::NoLock as i32);
        let list = pg_sys::RelationGetIndexList(relation);
        pg_sys::relation_close(relation, pg_sys::NoLock as i32);
        PgList::<pg_sys::Oid>::from_pg(list).iter_oid().collect()
    }
}

/// The numbers of the columns of the primary key of a table that is locked; none where it has no such key.
pub fn primary_key(table: pg_sys::Oid) -> Vec<i16> {
    let columns = |row: &IndexRow| row.form().indisprimary.then(|| row.columns().to_vec());
    let mut keys = indexes(table).into_iter();
    keys.find_map(|index| IndexRow::read(index, columns).flatten()).unwrap_or_default()
}

/// The B-tree indexes of a table that is locked which are valid and hold all its rows.
pub fn btree_indexes(table: pg_sys::Oid) -> Vec<BtreeIndex> {
    indexes(table).into_iter().filter_map(btree_index).collect()
}

/// Whether a table that is locked has a GIN index of this column which is valid and holds all its rows.
pub fn has_gin_index(table: pg_sys::Oid, column: i16) -> bool {
    let holds = |row: &IndexRow| {
        let is_whole = row.form().indisvalid && row.value(pg_sys::Anum_pg_index_indpred).is_none();
        is_whole && row.columns().contains(&column)
    };
    let is_gin = |index: &pg_sys::Oid| relation_method(*index) == pg_sys::GIN_AM_OID;
    let indexes = indexes(table).into_iter().filter(is_gin);
    indexes.filter_map(|index| IndexRow::read(index, holds)).any(|holds| holds)
}

fn btree_index(index: pg_sys::Oid) -> Option<BtreeIndex> {
    let is_btree = relation_method(index) == pg_sys::BTREE_AM_OID;
    let whole = |row: &IndexRow| {
        // SAFETY: the vectors have as many elements as the index has keys.
        unsafe {
            let form = row.form();
            if !form.indisvalid || row.value(pg_sys::Anum_pg_index_indpred).is_some() {
                return None;
            }
            let collations = row.oids(pg_sys::Anum_pg_index_indcollation);
            let classes = row.oids(pg_sys::Anum_pg_index_indclass);
            let options: *mut pg_sys::int2vector =
                row.value(pg_sys::Anum_pg_index_indoption)?.cast_mut_ptr();
            let options = (*options).values.as_slice(row.key_count());
            let expressions = row.expressions();
            let mut expressions = expressions.iter_ptr();
            let keys = (0..row.key_count()).map_while(|at| {
                let of = match row.columns()[at] {
                    0 => Indexed::Expression(expressions.next()?),
                    column => Indexed::Column(column),
                };
                let family = pg_sys::get_opclass_family(classes[at]);
                Some(IndexKey { of, collation: collations[at], family, options: options[at] })
            });
            Some(BtreeIndex {
                is_unique: form.indisunique,
                is_immediate: form.indimmediate,
                keys: keys.collect(),
            })
        }
    };
    is_btree.then(|| IndexRow::read(index, whole)).flatten().flatten()
}

/// The row of an index in pg_index. It is read as it is stored: the relation cache would evaluate expressions.
pub(super) struct IndexRow(pg_sys::HeapTuple);

impl IndexRow {
    const CACHE: c_int = pg_sys::SysCacheIdentifier::INDEXRELID as c_int;

    /// What `read` makes of the row of an index; `None` if there is none.
    pub(super) fn read<T>(index: pg_sys::Oid, read: impl FnOnce(&Self) -> T) -> Option<T> {
        // SAFETY: a syscache look-up; the tuple is released after it was read.
        unsafe {
            let tuple = pg_sys::SearchSysCache1(Self::CACHE, index.into());
            if tuple.is_null() {
                return None;
            }
            let value = read(&IndexRow(tuple));
            pg_sys::ReleaseSysCache(tuple);
            Some(value)
        }
    }

    /// The part of the row that is always there.
    pub(super) fn form(&self) -> &pg_sys::FormData_pg_index {
        // SAFETY: what a tuple of this cache begins with.
        unsafe { &*pg_sys::GETSTRUCT(self.0).cast() }
    }

    /// How many keys it has, without the columns that it only includes.
    pub(super) fn key_count(&self) -> usize {
        self.form().indnkeyatts as usize
    }

    /// The numbers of the columns that are its keys; 0 where one is an expression.
    pub(super) fn columns(&self) -> &[i16] {
        // SAFETY: the vector has an element for each key at least.
        unsafe { self.form().indkey.values.as_slice(self.key_count()) }
    }

    /// An attribute that is not NULL; a pointer into the row.
    pub(super) fn value(&self, attribute: u32) -> Option<pg_sys::Datum> {
        let mut is_null = false;
        // SAFETY: the attribute is one of this catalog.
        let datum = unsafe {
            pg_sys::SysCacheGetAttr(Self::CACHE, self.0, attribute as i16, &raw mut is_null)
        };
        (!is_null).then_some(datum)
    }

    /// An attribute with an OID for each key.
    ///
    /// # Safety
    /// The attribute is such a one.
    pub(super) unsafe fn oids(&self, attribute: u32) -> &[pg_sys::Oid] {
        let vector = self.value(attribute).expect("every index has it");
        // SAFETY: guaranteed by the caller; such an attribute is never stored apart from the row.
        unsafe { (*vector.cast_mut_ptr::<pg_sys::oidvector>()).values.as_slice(self.key_count()) }
    }

    /// The expressions, one for each key that is not a column.
    pub(super) fn expressions(&self) -> PgList<pg_sys::Node> {
        let tree = self.tree(pg_sys::Anum_pg_index_indexprs);
        // SAFETY: they are stored as a list; a null pointer is an empty one.
        unsafe { PgList::from_pg(tree.unwrap_or(std::ptr::null_mut()).cast()) }
    }

    /// The predicate, where there is one.
    pub(super) fn predicate(&self) -> Option<*mut pg_sys::Node> {
        self.tree(pg_sys::Anum_pg_index_indpred)
    }

    fn tree(&self, attribute: u32) -> Option<*mut pg_sys::Node> {
        // SAFETY: such an attribute is the text of a tree.
        unsafe {
            let text =
                with_bytes(self.value(attribute)?, |text| CString::new(text.to_vec())).ok()?;
            let tree = pg_sys::stringToNode(text.as_ptr()).cast::<pg_sys::Node>();
            (!tree.is_null()).then_some(tree)
        }
    }
}

/// The access method of a relation; the invalid OID where there is none.
pub(super) fn relation_method(oid: pg_sys::Oid) -> pg_sys::Oid {
    let cache = pg_sys::SysCacheIdentifier::RELOID as c_int;
    // SAFETY: a syscache look-up; the tuple is released after it was read.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache, oid.into());
        if tuple.is_null() {
            return pg_sys::InvalidOid;
        }
        let method = (*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>()).relam;
        pg_sys::ReleaseSysCache(tuple);
        method
    }
}

/// The family of the operators that order a type. An index uses it unless it names another one. The invalid OID if the
/// type has no order.
pub fn default_family(type_oid: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: look-ups in the catalog.
    unsafe {
        let class = pg_sys::GetDefaultOpClass(type_oid, pg_sys::BTREE_AM_OID);
        match class {
            pg_sys::InvalidOid => class,
            class => pg_sys::get_opclass_family(class),
        }
    }
}
