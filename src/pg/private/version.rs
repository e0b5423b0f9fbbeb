//! The version of the extension in this database beside that of the library.

use std::cmp::Ordering;
use std::hint::black_box;
use std::num::NonZeroUsize;

use pgrx::prelude::*;
use pgrx::{FromDatum, heap_getattr_raw, pg_sys};

use crate::pg::catalog::names;
use crate::pg::catalog::relation;
use crate::pg::error::{SqlError, Word};
use crate::pg::text::TextArg;

/// One string in the library's file, whose version the tests of upgrades replace, by a shorter one with spaces.
const NAME_AND_VERSION: &str = concat!("graph_kernel ", env!("CARGO_PKG_VERSION"));

/// That of this library, read when it is asked for: compiled in, a comparison would not see what was replaced.
pub fn of_library() -> &'static str {
    black_box(NAME_AND_VERSION).trim_start_matches("graph_kernel ").trim_end()
}

/// Checks that the objects of the extension are those that this library knows. The library may be newer, because a new
/// package replaces it for all databases at once. It may be older in a process that loaded it before.
///
/// Raises 55000 where they are not.
pub fn check(extension: pg_sys::Oid) {
    let installed = of_extension(extension);
    if installed != of_library() {
        mismatch(&installed).raise();
    }
}

// Declared in sql/bootstrap.sql. The first statement of every script calls it. A script may be run by a newer library,
// as one step of several, but never by an older one.
#[pg_extern(sql = false)]
fn require_library() {
    // SAFETY: a look-up in the catalog.
    let installed =
        of_extension(unsafe { pg_sys::get_extension_oid(c"graph_kernel".as_ptr(), false) });
    if compare(of_library(), &installed) == Ordering::Less {
        mismatch(&installed).raise();
    }
    // Backends with an older library must look again: an update of the catalog of extensions tells them nothing.
    relation::announce_change(pg_sys::ExtensionRelationId);
}

fn mismatch(installed: &str) -> SqlError {
    let library = of_library();
    let hint = match compare(library, installed) {
        Ordering::Greater => "Run ALTER EXTENSION graph_kernel UPDATE.",
        _ => {
            "Open a new session. Where the library is in shared_preload_libraries, restart the server. Where that does \
             not help, install the package of the extension's version."
        }
    };
    SqlError::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("extension graph_kernel has version {installed} in this database, the loaded library has {library}"),
    )
    .word(Word::ExtensionVersion)
    .hint(hint)
}

/// By the numbers in them, from the left.
fn compare(one: &str, other: &str) -> Ordering {
    let numbers = |version: &str| -> Vec<u64> {
        version.split('.').map(|number| number.parse().unwrap_or_default()).collect()
    };
    numbers(one).cmp(&numbers(other))
}

/// An object that was created in the extension's schema, as commands name it whatever their search_path is. The owner
/// of the schema may rename it, so it is looked up each time.
pub fn own_name(object: &str) -> String {
    // SAFETY: look-ups in the catalog; a schema that was found has a name, which comes NUL-terminated.
    let schema = unsafe {
        let extension = pg_sys::get_extension_oid(c"graph_kernel".as_ptr(), false);
        let schema = row_of(extension).map_or(pg_sys::InvalidOid, |(schema, _)| schema);
        let name = pg_sys::get_namespace_name(schema);
        if name.is_null() { String::new() } else { names::text_of(name) }
    };
    format!("{}.{object}", names::quote_as_needed(&schema))
}

/// The version that the catalog has, or "" where it has none.
fn of_extension(extension: pg_sys::Oid) -> String {
    row_of(extension).map(|(_, version)| version).unwrap_or_default()
}

/// The schema and the version of an extension.
fn row_of(extension: pg_sys::Oid) -> Option<(pg_sys::Oid, String)> {
    // SAFETY: the catalog is open and the scan's tuple valid while its columns are read as the types that the catalog
    // has: oids and a text. A NULL snapshot makes this a catalog scan.
    unsafe {
        let catalog =
            pg_sys::table_open(pg_sys::ExtensionRelationId, pg_sys::AccessShareLock as i32);
        let scan = pg_sys::systable_beginscan(
            catalog,
            pg_sys::InvalidOid,
            false,
            std::ptr::null_mut(),
            0,
            std::ptr::null_mut(),
        );
        let column = |tuple, number: u32| {
            heap_getattr_raw(tuple, NonZeroUsize::new(number as usize)?, (*catalog).rd_att)
        };
        let mut found = None;
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let oid = column(tuple, pg_sys::Anum_pg_extension_oid);
            if oid.and_then(|oid| pg_sys::Oid::from_datum(oid, false)) == Some(extension) {
                let schema = column(tuple, pg_sys::Anum_pg_extension_extnamespace)
                    .and_then(|schema| pg_sys::Oid::from_datum(schema, false));
                let version = column(tuple, pg_sys::Anum_pg_extension_extversion)
                    .and_then(|version| TextArg::from_datum(version, false));
                found = schema.zip(version.map(|version| version.0.to_owned()));
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, pg_sys::AccessShareLock as i32);
        found
    }
}
