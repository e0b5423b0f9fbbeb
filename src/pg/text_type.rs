//! SQL types on the Rust side: those laid out as a text, and ids.

use kernel::chunking::policy::ChunkingPolicy;
use kernel::policy::SlicePolicy;
use kernel::turn::TurnId;

use super::error::{OrRaise, chunking_policy_error};

/// A Rust type for a SQL type that is stored as a text.
pub trait TextType: Sized {
    /// Reads the stored text.
    fn from_text(text: &str) -> Self;
    /// The text to store.
    fn into_text(self) -> String;
}

/// The SQL type `json`, byte for byte.
pub struct JsonText(pub String);

impl TextType for JsonText {
    fn from_text(text: &str) -> Self {
        JsonText(text.to_owned())
    }

    fn into_text(self) -> String {
        self.0
    }
}

/// The SQL type `slice_policy`: its canonical JSON text.
pub struct Policy(pub SlicePolicy);

impl TextType for Policy {
    fn from_text(text: &str) -> Self {
        Policy(text.parse().or_raise())
    }

    fn into_text(self) -> String {
        self.0.canonical_text()
    }
}

/// The SQL type `chunking_policy`: its canonical JSON text.
pub struct ChunkPolicy(pub ChunkingPolicy);

impl TextType for ChunkPolicy {
    fn from_text(text: &str) -> Self {
        ChunkPolicy(text.parse::<ChunkingPolicy>().map_err(chunking_policy_error).or_raise())
    }

    fn into_text(self) -> String {
        self.0.canonical_text()
    }
}

/// Says which SQL type a Rust type is.
macro_rules! sql_name {
    ($rust:ident, $sql:literal) => {
        // SAFETY: a type of this name exists before any function that uses it is created.
        unsafe impl pgrx::pgrx_sql_entity_graph::metadata::SqlTranslatable for $rust {
            const TYPE_IDENT: &'static str =
                concat!("graph_kernel::pg::text_type::", stringify!($rust));
            const TYPE_ORIGIN: pgrx::pgrx_sql_entity_graph::metadata::TypeOrigin =
                pgrx::pgrx_sql_entity_graph::metadata::TypeOrigin::External;
            const ARGUMENT_SQL: Result<
                pgrx::pgrx_sql_entity_graph::metadata::SqlMappingRef,
                pgrx::pgrx_sql_entity_graph::metadata::ArgumentError,
            > = Ok(pgrx::pgrx_sql_entity_graph::metadata::SqlMappingRef::literal($sql));
            const RETURN_SQL: Result<
                pgrx::pgrx_sql_entity_graph::metadata::ReturnsRef,
                pgrx::pgrx_sql_entity_graph::metadata::ReturnsError,
            > = Ok(pgrx::pgrx_sql_entity_graph::metadata::ReturnsRef::One(
                pgrx::pgrx_sql_entity_graph::metadata::SqlMappingRef::literal($sql),
            ));
        }
    };
}

/// Makes a [`TextType`] an argument and a result of SQL functions.
macro_rules! sql_text_type {
    ($rust:ident, $sql:literal) => {
        impl pgrx::FromDatum for $rust {
            unsafe fn from_polymorphic_datum(
                datum: pgrx::pg_sys::Datum,
                is_null: bool,
                typoid: pgrx::pg_sys::Oid,
            ) -> Option<Self> {
                // SAFETY: the datum is of the SQL type named here, which is laid out as text.
                let text = unsafe { <&str>::from_polymorphic_datum(datum, is_null, typoid) }?;
                Some(Self::from_text(text))
            }
        }

        impl pgrx::IntoDatum for $rust {
            fn into_datum(self) -> Option<pgrx::pg_sys::Datum> {
                self.into_text().into_datum()
            }

            fn type_oid() -> pgrx::pg_sys::Oid {
                pgrx::wrappers::regtypein($sql)
            }
        }

        // SAFETY: the datum is the varlena IntoDatum makes, of the declared SQL type.
        unsafe impl pgrx::callconv::BoxRet for $rust {
            unsafe fn box_into<'fcx>(
                self,
                fcinfo: &mut pgrx::callconv::FcInfo<'fcx>,
            ) -> pgrx::datum::Datum<'fcx> {
                match pgrx::IntoDatum::into_datum(self) {
                    // SAFETY: see above.
                    Some(datum) => unsafe { fcinfo.return_raw_datum(datum) },
                    None => fcinfo.return_null(),
                }
            }
        }

        // SAFETY: read through FromDatum; NULL does not reach a plain argument, as functions that
        // have one are STRICT.
        unsafe impl<'fcx> pgrx::callconv::ArgAbi<'fcx> for $rust {
            unsafe fn unbox_arg_unchecked(arg: pgrx::callconv::Arg<'_, 'fcx>) -> Self {
                // SAFETY: the declared SQL type of the argument is the one named here.
                unsafe { arg.unbox_arg_using_from_datum() }.expect("a strict argument is not NULL")
            }
        }

        sql_name!($rust, $sql);
    };
}

sql_text_type!(JsonText, "json");
sql_text_type!(Policy, "slice_policy");
sql_text_type!(ChunkPolicy, "chunking_policy");

/// An argument of the SQL type `jsonb`, as text.
pub struct JsonbText(pub String);

impl pgrx::FromDatum for JsonbText {
    unsafe fn from_polymorphic_datum(
        datum: pgrx::pg_sys::Datum,
        is_null: bool,
        _typoid: pgrx::pg_sys::Oid,
    ) -> Option<Self> {
        if is_null {
            return None;
        }
        // SAFETY: the datum is a jsonb, of which jsonb_out makes a palloc'ed, NUL-terminated text.
        unsafe {
            let text = pgrx::direct_function_call::<&std::ffi::CStr>(
                pgrx::pg_sys::jsonb_out,
                &[Some(datum)],
            )?;
            let copy = text.to_string_lossy().into_owned();
            pgrx::pg_sys::pfree(text.as_ptr().cast_mut().cast());
            Some(JsonbText(copy))
        }
    }
}

// SAFETY: read through FromDatum.
unsafe impl<'fcx> pgrx::callconv::ArgAbi<'fcx> for JsonbText {
    unsafe fn unbox_arg_unchecked(arg: pgrx::callconv::Arg<'_, 'fcx>) -> Self {
        // SAFETY: the declared SQL type of the argument is jsonb.
        unsafe { arg.unbox_arg_using_from_datum() }.expect("a strict argument is not NULL")
    }
}

sql_name!(JsonbText, "jsonb");

/// The text that a type's receive function is given.
pub fn message_text(message: pgrx::Internal) -> String {
    // SAFETY: a receive function's first argument points to a StringInfo; pq_getmsgtext returns
    // `length` bytes in the server's encoding, palloc'ed.
    let bytes = unsafe {
        let buffer = message
            .unwrap()
            .map(|datum| datum.cast_mut_ptr::<pgrx::pg_sys::StringInfoData>())
            .expect("a receive function is called with a message");
        let mut length = 0;
        let rest = (*buffer).len - (*buffer).cursor;
        let text = pgrx::pg_sys::pq_getmsgtext(buffer, rest, &mut length);
        std::slice::from_raw_parts(text.cast::<u8>(), length as usize)
    };
    String::from_utf8_lossy(bytes).into_owned()
}

/// The SQL uuid of a turn.
pub fn to_sql_uuid(id: TurnId) -> pgrx::Uuid {
    pgrx::Uuid::from_bytes(*id.as_bytes())
}

/// The turn of a SQL uuid.
pub fn from_sql_uuid(id: pgrx::Uuid) -> TurnId {
    TurnId::from_bytes(*id.as_bytes())
}
