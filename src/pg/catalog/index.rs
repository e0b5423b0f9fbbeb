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

/// The B-tree indexes of a table that is locked which are valid and hold all its rows.
pub fn btree_indexes(table: pg_sys::Oid) -> Vec<BtreeIndex> {
    indexes(table).into_iter().filter_map(btree_index).collect()
}

fn btree_index(index: pg_sys::Oid) -> Option<BtreeIndex> {
    let cache = pg_sys::SysCacheIdentifier::INDEXRELID as c_int;
    // SAFETY: a syscache look-up; the tuple is released after all was copied from it. The vectors have as many elements
    // as the index has keys, the list of expressions one for each key that is not a column.
    unsafe {
        if relation_method(index) != pg_sys::BTREE_AM_OID {
            return None;
        }
        let tuple = pg_sys::SearchSysCache1(cache, index.into());
        if tuple.is_null() {
            return None;
        }
        let row = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_index>();
        let value = |attribute: u32| {
            let mut is_null = false;
            let datum = pg_sys::SysCacheGetAttr(cache, tuple, attribute as i16, &raw mut is_null);
            (!is_null).then_some(datum)
        };
        let tree = |attribute| {
            let text = with_bytes(value(attribute)?, |text| CString::new(text.to_vec())).ok()?;
            Some(PgList::<pg_sys::Node>::from_pg(pg_sys::stringToNode(text.as_ptr()).cast()))
        };
        let found = (row.indisvalid && value(pg_sys::Anum_pg_index_indpred).is_none()).then(|| {
            let count = row.indnkeyatts as usize;
            let vector = |attribute| value(attribute).expect("every index has it");
            let collations: *mut pg_sys::oidvector =
                vector(pg_sys::Anum_pg_index_indcollation).cast_mut_ptr();
            let classes: *mut pg_sys::oidvector =
                vector(pg_sys::Anum_pg_index_indclass).cast_mut_ptr();
            let options: *mut pg_sys::int2vector =
                vector(pg_sys::Anum_pg_index_indoption).cast_mut_ptr();
            let columns = row.indkey.values.as_slice(count);
            let collations = (*collations).values.as_slice(count);
            let classes = (*classes).values.as_slice(count);
            let options = (*options).values.as_slice(count);
            let expressions = tree(pg_sys::Anum_pg_index_indexprs);
            let mut expressions = expressions.iter().flat_map(PgList::iter_ptr);
            let keys = (0..count).map_while(|at| {
                let of = match columns[at] {
                    0 => Indexed::Expression(expressions.next()?),
                    column => Indexed::Column(column),
                };
                let family = pg_sys::get_opclass_family(classes[at]);
                Some(IndexKey { of, collation: collations[at], family, options: options[at] })
            });
            BtreeIndex {
                is_unique: row.indisunique,
                is_immediate: row.indimmediate,
                keys: keys.collect(),
            }
        });
        pg_sys::ReleaseSysCache(tuple);
        found
    }
}

/// The access method of a relation; the invalid OID where there is none.
fn relation_method(oid: pg_sys::Oid) -> pg_sys::Oid {
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
