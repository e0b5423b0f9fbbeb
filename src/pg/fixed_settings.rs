//! Settings of a session that decide what a text means or what an expression gives, fixed while it is read or computed:
//! any role may set them, and the result is signed.

use std::ffi::CStr;

use pgrx::{PgSqlErrorCode, pg_sys};

use crate::pg::error::{SqlError, Word};
use crate::pg::text::replaced;

/// A setting and the value that it is fixed to.
type Fixed = (&'static CStr, &'static CStr);

/// What functions follow that the server calls immutable: the output of numbers and bytes, quoting, time zones by
/// abbreviation. The parser's come with them, as statements with expressions are prepared while rows are read.
pub const COMPUTING: [Fixed; 6] = [
    (c"extra_float_digits", c"1"),
    (c"bytea_output", c"hex"),
    (c"quote_all_identifiers", c"off"),
    (c"timezone_abbreviations", c"Default"),
    (c"standard_conforming_strings", c"on"),
    (c"transform_null_equals", c"off"),
];

/// What constants follow besides, when they are read or written; and names, which a function of a row security policy may
/// have set another path for.
pub const PARSING: [Fixed; 5] = [
    (c"DateStyle", c"ISO, MDY"),
    (c"IntervalStyle", c"postgres"),
    (c"TimeZone", c"UTC"),
    (c"array_nulls", c"on"),
    (c"search_path", c"pg_catalog, pg_temp"),
];

/// The level of settings that a caller began; what was changed since, by whatever code, is undone when it ends. After an
/// error the (sub)transaction's abort does that.
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

/// Checks that all still have these values: code of users that runs while rows are read, such as a function of a row
/// security policy, may set them.
///
/// # Errors
/// 55000.
pub fn check(settings: &[Fixed]) -> Result<(), SqlError> {
    let Some((name, _)) = settings.iter().find(|setting| !is_set(setting)) else { return Ok(()) };
    let name = replaced(name.to_bytes());
    Err(SqlError::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("setting {name}, which computed values depend on, changed while rows were read"),
    )
    .word(Word::SettingsChanged)
    .hint("A function of a row security policy must not set it; its SET clause may."))
}

fn is_set((name, value): &Fixed) -> bool {
    // SAFETY: looks a setting up by name; the text is valid until the next call.
    unsafe {
        let current = pg_sys::GetConfigOption(name.as_ptr(), false, false);
        !current.is_null() && CStr::from_ptr(current) == *value
    }
}
