//! Functions that the server calls immutable and whose results follow what a session or a server is set to. Any role
//! may set that, and users' code may do so while rows are read: neither a mapping nor the predicate of an index may
//! call them. `tests/attacks/settings.rs` calls every immutable function of the server under two sets of settings.

use std::ffi::CStr;

use pgrx::{PgList, pg_sys};

use crate::pg::catalog::names;
use crate::pg::text::with_bytes;

/// Functions that follow a setting, whatever their arguments are. OIDs of the server's own are the same in all majors.
const FOLLOWING: [u32; 20] = [
    201,  // float4out: extra_float_digits, as the next eight
    215,  // float8out
    118,  // point_out
    120,  // lseg_out
    122,  // path_out
    124,  // box_out
    348,  // poly_out
    1491, // line_out
    1451, // circle_out
    31,   // byteaout: bytea_output
    5019, // pg_mcv_list_out
    1282, // quote_ident: quote_all_identifiers
    1199, // age of two times with time zone: TimeZone
    324,  // json_send: client_encoding, as the next four
    3638, // tsvectorsend
    3640, // tsquerysend
    3803, // jsonb_send
    4004, // jsonpath_send
    2850, // pg_walfile_name_offset: the timeline, as the next
    2851, // pg_walfile_name
];

/// Functions that take the name of a time zone, and the position of that argument.
const OF_TIME_ZONE: [(u32, usize); 5] = [
    (1159, 0), // timezone(text, timestamptz)
    (2069, 0), // timezone(text, timestamp)
    (1284, 2), // date_trunc(text, timestamptz, text)
    (6222, 2), // date_add(timestamptz, interval, text)
    (6273, 2), // date_subtract(timestamptz, interval, text)
];

/// Functions whose second argument is a jsonpath: jsonb_path_exists to jsonb_path_match, and the operators @? and @@.
const OF_JSONPATH: std::ops::RangeInclusive<u32> = 4005..=4011;

/// The function that a node of an analysed expression calls and that follows settings; `None` where there is none,
/// without looking below the node.
///
/// # Safety
/// `node` is part of an analysed expression.
pub unsafe fn following(node: *mut pg_sys::Node) -> Option<pg_sys::Oid> {
    use pg_sys::NodeTag as Tag;
    // SAFETY: each cast follows the check of the node's tag; the others are look-ups in the catalog.
    unsafe {
        let output = |of| {
            let (mut function, mut is_varlena) = (pg_sys::InvalidOid, false);
            pg_sys::getTypeOutputInfo(of, &raw mut function, &raw mut is_varlena);
            function
        };
        let (function, arguments) = match (*node).type_ {
            Tag::T_FuncExpr => {
                let call = &*node.cast::<pg_sys::FuncExpr>();
                (call.funcid, call.args)
            }
            Tag::T_OpExpr => {
                let operator = &*node.cast::<pg_sys::OpExpr>();
                (pg_sys::get_opcode(operator.opno), operator.args)
            }
            // Of an array of arguments none is looked at.
            Tag::T_ScalarArrayOpExpr => {
                let operator = &*node.cast::<pg_sys::ScalarArrayOpExpr>();
                (pg_sys::get_opcode(operator.opno), std::ptr::null_mut())
            }
            Tag::T_CoerceViaIO => {
                let cast = &*node.cast::<pg_sys::CoerceViaIO>();
                (output(pg_sys::exprType(cast.arg.cast())), std::ptr::null_mut())
            }
            _ => return None,
        };
        let number = function.to_u32();
        let constant = |position| {
            let argument = PgList::<pg_sys::Node>::from_pg(arguments).get_ptr(position)?;
            let is_constant = (*argument).type_ == Tag::T_Const;
            is_constant.then(|| &*argument.cast::<pg_sys::Const>()).filter(|at| !at.constisnull)
        };
        let follows = if let Some((_, position)) = OF_TIME_ZONE.iter().find(|of| of.0 == number) {
            !constant(*position).is_some_and(|zone| is_fixed_zone(zone))
        } else if OF_JSONPATH.contains(&number) {
            !constant(1).is_some_and(|path| is_fixed_path(path))
        } else {
            FOLLOWING.contains(&number)
        };
        follows.then_some(function)
    }
}

/// Whether a constant names a time zone that is the same whatever is set: no abbreviation but those of UTC. From 18 on
/// any name is first looked for among the abbreviations of the session's time zone, which may be any.
///
/// # Safety
/// `zone` is not NULL.
unsafe fn is_fixed_zone(zone: &pg_sys::Const) -> bool {
    if cfg!(feature = "pg18") || zone.consttype != pg_sys::TEXTOID {
        return false;
    }
    // SAFETY: a constant of type text that is not NULL.
    unsafe {
        with_bytes(zone.constvalue, |name| {
            name.contains(&b'/')
                || [b"UTC", b"GMT"].iter().any(|utc| name.eq_ignore_ascii_case(*utc))
        })
    }
}

/// Whether a constant is a jsonpath that reads no time as the session is set to. From 17 on a text may hold an
/// abbreviation of a time zone, by a template or without.
///
/// # Safety
/// `path` is not NULL.
unsafe fn is_fixed_path(path: &pg_sys::Const) -> bool {
    if path.consttype != pg_sys::JSONPATHOID {
        return false;
    }
    // SAFETY: a constant of this type that is not NULL; the output function gives a NUL-terminated text.
    unsafe {
        let (mut output, mut is_varlena) = (pg_sys::InvalidOid, false);
        pg_sys::getTypeOutputInfo(path.consttype, &raw mut output, &raw mut is_varlena);
        let text = pg_sys::OidOutputFunctionCall(output, path.constvalue);
        let text = CStr::from_ptr(text).to_bytes();
        !READING_TIME.iter().any(|method| text.windows(method.len()).any(|part| part == *method))
    }
}

/// How methods that make a time of a text begin in a jsonpath that is written out, where a key stands in quotes: the
/// first is there in all majors. A text in quotes may look like one, and is refused as well.
const READING_TIME: [&[u8]; 6] =
    [b".datetime(", b".date(", b".time(", b".time_tz(", b".timestamp(", b".timestamp_tz("];

/// What to write in place of a call of this function, for a hint.
pub fn instead_of(function: pg_sys::Oid) -> &'static str {
    match function.to_u32() {
        201 | 215 => {
            "A text of a real or double precision depends on extra_float_digits. Cast it to numeric first, as in \
             (...)::numeric::text, or bind a column that is written with the text."
        }
        31 => "Use encode(..., 'hex').",
        number if OF_TIME_ZONE.iter().any(|of| of.0 == number) => {
            "Use AT TIME ZONE interval '0' for UTC, or bind a column that is written with the time, such as a stored \
             generated one."
        }
        number if OF_JSONPATH.contains(&number) => {
            "Write the path as a constant that makes no time of a text, as .datetime() does, \
            or bind a column that is written with the value."
        }
        _ => "Bind a column that is written with the value.",
    }
}

/// What a message says of a function that follows settings.
pub fn described(function: pg_sys::Oid) -> String {
    format!("calls function {}, which follows settings", names::function_name(function))
}
