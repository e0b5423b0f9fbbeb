//! Settings of a session that decide what a text means, fixed while it is parsed, analysed or written out: any role may
//! set them, and the result is signed. What is computed of rows follows none: [`super::catalog::settings`]. And those
//! that decide which rows are read.

use std::ffi::{CStr, CString};

use pgrx::pg_sys;

use crate::pg::text::checked;

/// A setting and the value that it is fixed to.
type Fixed = (&'static CStr, &'static CStr);

/// The names' search_path, which a function of a row security policy may have set anew.
const PATH: Fixed = (c"search_path", c"pg_catalog, pg_temp");

/// What the parser follows, and constants when they are read or written out; and names.
pub const PARSING: [Fixed; 11] = [
    (c"standard_conforming_strings", c"on"),
    (c"transform_null_equals", c"off"),
    (c"extra_float_digits", c"1"),
    (c"bytea_output", c"hex"),
    (c"quote_all_identifiers", c"off"),
    (c"timezone_abbreviations", c"Default"),
    (c"DateStyle", c"ISO, MDY"),
    (c"IntervalStyle", c"postgres"),
    (c"TimeZone", c"UTC"),
    (c"array_nulls", c"on"),
    PATH,
];

/// What decides how many rows a scan gives: of a GIN index, a random part of those that match.
pub const READING: [Fixed; 1] = [(c"gin_fuzzy_search_limit", c"0")];

/// The level of settings that a caller began; what was changed since, by whatever code, is undone when it ends. After
/// an error the (sub)transaction's abort does that.
pub struct Level(i32);

impl Level {
    /// Begins a level.
    pub fn begin() -> Self {
        // SAFETY: called within a transaction.
        Level(unsafe { pg_sys::NewGUCNestLevel() })
    }

    /// Ends the level, as the abort of a subtransaction does: committed, a plain SET of users' code within would stay.
    pub fn end(self) {
        // SAFETY: pairs with `begin`.
        unsafe { pg_sys::AtEOXact_GUC(false, self.0) };
    }
}

/// Sets a setting, until the current level ends.
pub fn set(name: &CStr, value: &CStr) {
    // SAFETY: a setting of the server that anybody may set, as a function's SET clause does.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}

/// Sets those that have another value, until the current level ends: in a function with a SET clause, until it returns.
pub fn fix(settings: &[Fixed]) {
    for (name, value) in settings.iter().filter(|setting| !is_set(setting)) {
        set(name, value);
    }
}

/// Settings of pgvector by which the scan of an index goes on until enough rows were found.
const ITERATIVE: [Fixed; 2] =
    [(c"hnsw.iterative_scan", c"strict_order"), (c"ivfflat.iterative_scan", c"relaxed_order")];

/// The most that `hnsw.ef_search` can be.
const MAX_EF_SEARCH: u32 = 1000;

/// Lets the scan of an index of pgvector find so many rows, until the current level ends. By its defaults it finds 40,
/// of which a filter leaves fewer. pgvector's library has been loaded: before, its settings are not known.
pub fn let_indexes_find(rows: u32) {
    let wanted = rows.min(MAX_EF_SEARCH);
    let found = current(c"hnsw.ef_search");
    let found = found.and_then(|found| checked(found.to_bytes()).ok()?.parse().ok());
    if found.is_some_and(|found: u32| found < wanted) {
        let wanted = CString::new(wanted.to_string()).expect("digits hold no NUL");
        set(c"hnsw.ef_search", &wanted);
    }
    // From 0.8 on; who has set another way of going on keeps it.
    for (name, value) in ITERATIVE {
        if current(name).is_some_and(|current| current.as_c_str() == c"off") {
            set(name, value);
        }
    }
}

/// The value of a setting; `None` where there is none of that name.
fn current(name: &CStr) -> Option<CString> {
    // SAFETY: looks a setting up by name; the text is valid until the next call.
    unsafe {
        let current = pg_sys::GetConfigOption(name.as_ptr(), true, false);
        (!current.is_null()).then(|| CStr::from_ptr(current).to_owned())
    }
}

/// Whether names are looked up as statements were planned for.
pub fn is_path_fixed() -> bool {
    is_set(&PATH)
}

fn is_set((name, value): &Fixed) -> bool {
    current(name).is_some_and(|current| current.as_c_str() == *value)
}
