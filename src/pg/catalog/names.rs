//! Names and expressions of the catalog, as texts for messages and for statements.

use std::ffi::{CStr, CString, c_char};

use pgrx::pg_sys;

use crate::pg::error::OrRaise;
use crate::pg::text::{checked, replaced};

/// A relation's name for messages: schema-qualified, quoted.
pub fn qualified_name(oid: pg_sys::Oid) -> String {
    name_parts(oid).map_or_else(
        || oid.to_u32().to_string(),
        |[schema, relation]| format!("{}.{}", quote(&schema), quote(&relation)),
    )
}

/// A relation's name as one types it: schema-qualified, quoted where it has to be; `None` if it was dropped.
pub fn typed_name(oid: pg_sys::Oid) -> Option<String> {
    name_parts(oid).map(|parts| parts.map(|part| quote_as_needed(&part)).join("."))
}

/// The names of a relation's schema and of the relation.
fn name_parts(oid: pg_sys::Oid) -> Option<[String; 2]> {
    // SAFETY: syscache look-ups; a NULL is a relation or a schema that was dropped.
    unsafe {
        let (relation, schema) = (pg_sys::get_rel_name(oid), pg_sys::get_rel_namespace(oid));
        let schema = pg_sys::get_namespace_name(schema);
        let found = !relation.is_null() && !schema.is_null();
        found.then(|| [name(schema), name(relation)])
    }
}

/// A role's name for messages; `None` where there is none.
pub fn role_name(role: pg_sys::Oid) -> Option<String> {
    // SAFETY: a look-up that gives a NULL or a NUL-terminated name.
    let text = unsafe { pg_sys::GetUserNameFromId(role, true) };
    (!text.is_null()).then(|| name(text))
}

/// The function's name and arguments for messages.
pub fn function_name(oid: pg_sys::Oid) -> String {
    // SAFETY: format_procedure returns a NUL-terminated string for any OID.
    name(unsafe { pg_sys::format_procedure(oid) })
}

/// The type's name for messages.
pub fn type_name(type_oid: pg_sys::Oid) -> String {
    // SAFETY: format_type_be returns a NUL-terminated string for any OID.
    name(unsafe { pg_sys::format_type_be(type_oid) })
}

/// A name for messages.
pub(super) fn name(text: *const c_char) -> String {
    // SAFETY: every caller passes a NUL-terminated name of the catalog.
    replaced(unsafe { CStr::from_ptr(text) }.to_bytes()).into_owned()
}

/// A name or an expression for statements, as the server has it. Raises 22021 where it is not text.
pub fn text_of(text: *const c_char) -> String {
    // SAFETY: every caller passes a NUL-terminated string of the server.
    checked(unsafe { CStr::from_ptr(text) }.to_bytes()).or_raise().to_owned()
}

/// An identifier for a statement, quoted whether it needs it or not.
pub fn quote(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

/// An identifier as the server writes it: quoted where it has to be.
pub fn quote_as_needed(identifier: &str) -> String {
    let text = CString::new(identifier).expect("names hold no NUL byte");
    // SAFETY: quote_identifier returns its argument or a NUL-terminated copy.
    name(unsafe { pg_sys::quote_identifier(text.as_ptr()) })
}

/// A text as a literal in a statement, whatever `standard_conforming_strings` is.
pub fn literal_of(text: &str) -> String {
    let text = text.replace('\'', "''");
    if text.contains('\\') {
        return format!("E'{}'", text.replace('\\', "\\\\"));
    }
    format!("'{text}'")
}

/// An expression that the server wrote under `standard_conforming_strings`, with the literals that hold backslashes as
/// [`literal_of`] writes them: a command may be run while that is off, and a backslash would then hide a quote.
pub fn with_escapes(expression: &str) -> String {
    let mut written = String::with_capacity(expression.len());
    let mut rest = expression;
    while let Some(start) = rest.find(['\'', '"']) {
        let quote = &rest[start..=start];
        written.push_str(&rest[..start]);
        // A doubled quote ends one quoted part and begins the next.
        let mut end = rest[start + 1..].find(quote).map_or(rest.len(), |length| start + length + 2);
        while rest[end..].starts_with(quote) {
            end = rest[end + 1..].find(quote).map_or(rest.len(), |length| end + length + 2);
        }
        let quoted = &rest[start..end];
        if quote == "'" && quoted.contains('\\') {
            written.push('E');
            written.push_str(&quoted.replace('\\', "\\\\"));
        } else {
            written.push_str(quoted);
        }
        rest = &rest[end..];
    }
    written + rest
}
