//! Indexes that must not decide which rows are read: the server evaluates predicates and expressions of indexes when it
//! plans, and takes the index for the rows and values that these have now, not those that were written.

use std::ffi::{CString, c_int};

use pgrx::{PgList, pg_sys};

use crate::pg::catalog::functions::{Unfit, unfit};
use crate::pg::catalog::index::indexes;
use crate::pg::catalog::names::{function_name, qualified_name};
use crate::pg::catalog::settings;
use crate::pg::text::with_bytes;

/// What is wrong with an index of the table, which is locked, for a message; `None` if nothing is.
pub fn unfit_index(table: pg_sys::Oid) -> Option<String> {
    indexes(table).into_iter().find_map(|index| {
        let (part, why) = unfit_part(index)?;
        let why = match why {
            Unfit::Foreign(function) => {
                let function = function_name(function);
                format!("calls function {function}, which is not the server's own")
            }
            Unfit::Following(function) => settings::described(function),
            Unfit::Naming => "names an object that is not the server's own".to_owned(),
            Unfit::Constant => "mentions no column".to_owned(),
        };
        let (index, table) = (qualified_name(index), qualified_name(table));
        Some(format!("{part} of index {index} on table {table} {why}"))
    })
}

/// The part of an index that is unfit, and why. It is read as it is stored: the relation cache would evaluate it.
fn unfit_part(index: pg_sys::Oid) -> Option<(&'static str, Unfit)> {
    let cache = pg_sys::SysCacheIdentifier::INDEXRELID as c_int;
    // SAFETY: a syscache look-up; the tuple is released after all was copied from it. The vectors have as many elements
    // as the index has keys, the list of expressions one for each key that is not a column.
    unsafe {
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
            let tree = pg_sys::stringToNode(text.as_ptr()).cast::<pg_sys::Node>();
            (!tree.is_null()).then_some(tree)
        };
        let predicate = tree(pg_sys::Anum_pg_index_indpred)
            .and_then(|predicate| Some(("the predicate", unfit(predicate)?)));
        let part = predicate.or_else(|| {
            let expressions = tree(pg_sys::Anum_pg_index_indexprs)?;
            let expressions = PgList::<pg_sys::Node>::from_pg(expressions.cast());
            let count = row.indnkeyatts as usize;
            let classes: *mut pg_sys::oidvector =
                value(pg_sys::Anum_pg_index_indclass)?.cast_mut_ptr();
            let classes = (*classes).values.as_slice(count);
            let columns = row.indkey.values.as_slice(count).iter().zip(classes);
            let keys = columns.filter(|(column, _)| **column == 0).zip(expressions.iter_ptr());
            let mut keys = keys.filter(|((_, class), key)| {
                !is_never_sought(pg_sys::exprType((*key).cast())) && searches(**class)
            });
            keys.find_map(|(_, key)| Some(("an expression", unfit(key)?)))
        });
        pg_sys::ReleaseSysCache(tuple);
        part
    }
}

/// Whether no statement seeks rows by a value of this type: that of full-text search.
fn is_never_sought(type_oid: pg_sys::Oid) -> bool {
    type_oid == pg_sys::TSVECTOROID
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
