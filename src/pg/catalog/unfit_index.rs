//! Indexes that must not decide which rows are read: the server evaluates predicates and expressions of indexes when it
//! plans. It takes the index for the rows and values that these have now, not those that were written.

use std::ffi::c_int;

use pgrx::pg_sys;

use crate::pg::catalog::expression_check::check;
use crate::pg::catalog::functions::is_server_own;
use crate::pg::catalog::index::{IndexRow, relation_method};

/// Whether a plan must do without an index: its predicate, or an expression that rows may be sought by, is another one
/// now than when the rows were written, for all that is known; or a scan may give a part of what matches, as a setting
/// has it (gin_fuzzy_search_limit). Ids and times are sought by B-trees and hashes alone; lists of ids by GIN, as
/// that setting is fixed while a statement runs.
pub fn is_unfit(index: pg_sys::Oid) -> bool {
    let method = relation_method(index);
    let is_exact = [pg_sys::BTREE_AM_OID, pg_sys::HASH_AM_OID].contains(&method);
    // SAFETY: the trees were read from the catalog; a class of operators stands for each key.
    let is_unfit = IndexRow::read(index, |row| unsafe {
        if row.predicate().is_some_and(|predicate| is_unfit_part(predicate)) {
            return true;
        }
        let expressions = row.expressions();
        let mut expressions = expressions.iter_ptr();
        let classes = row.oids(pg_sys::Anum_pg_index_indclass);
        row.columns().iter().zip(classes).any(|(column, class)| {
            let expression = (*column == 0).then(|| expressions.next()).flatten();
            let is_sought = searches(*class) && !is_of_words(*class);
            let is_unfit_key = || match expression {
                Some(key) => is_unfit_part(key),
                None => can_be_altered(pg_sys::get_atttype(row.form().indrelid, *column)),
            };
            let is_exact = is_exact || method == pg_sys::GIN_AM_OID && is_of_lists(*class);
            is_sought && (!is_exact || is_unfit_key())
        })
    });
    is_unfit.unwrap_or(true)
}

/// The transactions that made an index, or made it anew, as far as they may not be over for each snapshot of the
/// session. An index has no entries for rows that were deleted before it was made, which an older snapshot still sees.
/// The server looks at this for some indexes alone. Who makes one CONCURRENTLY waits for older snapshots, but not for
/// those that a session imports later, nor for those of a standby.
pub fn recent_makers(index: pg_sys::Oid) -> Vec<pg_sys::TransactionId> {
    use pg_sys::SysCacheIdentifier as Cache;
    // REINDEX writes the row of pg_class alone.
    let makers = [Cache::INDEXRELID, Cache::RELOID].into_iter().filter_map(|cache| {
        // SAFETY: a syscache look-up; the tuple is released after its header was read.
        unsafe {
            let tuple = pg_sys::SearchSysCache1(cache as c_int, index.into());
            if tuple.is_null() {
                return None;
            }
            let header = &*(*tuple).t_data;
            let is_frozen =
                u32::from(header.t_infomask) & pg_sys::HEAP_XMIN_FROZEN == pg_sys::HEAP_XMIN_FROZEN;
            let maker = header.t_choice.t_heap.t_xmin;
            pg_sys::ReleaseSysCache(tuple);
            let is_old = is_frozen || pg_sys::TransactionIdPrecedes(maker, pg_sys::TransactionXmin);
            (!is_old).then_some(maker)
        }
    });
    makers.collect()
}

/// Whether the active snapshot sees what this transaction has done. It has committed, or is the current one.
pub fn is_seen(transaction: pg_sys::TransactionId) -> bool {
    // SAFETY: a statement is planned and run under an active snapshot.
    unsafe {
        pg_sys::TransactionIdIsCurrentTransactionId(transaction)
            || !pg_sys::XidInMVCCSnapshot(transaction, pg_sys::GetActiveSnapshot())
    }
}

/// Whether values of a type may be compared otherwise now than when they were stored, or in no order at all: any but
/// the server's own and enums. A composite type's attributes can be changed; an extension's comparison may hold a value
/// to be equal to each other one. From 18 on the server skips from one value of a key to the next.
fn can_be_altered(type_oid: pg_sys::Oid) -> bool {
    // SAFETY: look-ups of a type.
    unsafe {
        let base = pg_sys::getBaseType(type_oid);
        let element = pg_sys::get_element_type(base);
        if element != pg_sys::InvalidOid {
            return can_be_altered(element);
        }
        !is_server_own(base) && pg_sys::get_typtype(base) as u8 != pg_sys::TYPTYPE_ENUM
    }
}

/// Whether a stored predicate or expression may say of a row something else than when the row was written, or says
/// nothing of it. What is computed of constants is not computed for the row but when a statement is planned.
///
/// # Safety
/// `part` points to an expression tree.
unsafe fn is_unfit_part(part: *mut pg_sys::Node) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { check(part).map_or(true, |facts| facts.columns.is_empty() || facts.folds) }
}

/// Whether a class is of what full-text search asks for, and nothing else.
fn is_of_words(class: pg_sys::Oid) -> bool {
    // SAFETY: a syscache look-up.
    unsafe { pg_sys::get_opclass_input_type(class) == pg_sys::TSVECTOROID }
}

/// Whether a class is that of arrays.
fn is_of_lists(class: pg_sys::Oid) -> bool {
    // SAFETY: a syscache look-up.
    unsafe { pg_sys::get_opclass_input_type(class) == pg_sys::ANYARRAYOID }
}

/// Whether rows may be sought by operators of this class. The other classes, those of vectors, only give the nearest
/// rows, which are approximate and never signed.
fn searches(class: pg_sys::Oid) -> bool {
    let cache = pg_sys::SysCacheIdentifier::AMOPSTRATEGY as c_int;
    // SAFETY: a look-up of a list, released after it was read; its members are rows of pg_amop, as many as it says.
    unsafe {
        let family = pg_sys::Datum::from(pg_sys::get_opclass_family(class));
        let none = pg_sys::Datum::from(0);
        let list = pg_sys::SearchSysCacheList(cache, 1, family, none, none);
        let members = (*list).members.as_slice((*list).n_members as usize);
        let searches = members.iter().any(|member| {
            let row = pg_sys::GETSTRUCT(&raw mut (**member).tuple);
            let purpose = (*row.cast::<pg_sys::FormData_pg_amop>()).amoppurpose;
            purpose as u8 == pg_sys::AMOP_SEARCH
        });
        pg_sys::ReleaseCatCacheList(list);
        searches
    }
}
