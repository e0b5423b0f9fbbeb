use kernel::trust::keys::epoch_of_kid;
use pgrx::prelude::*;

use crate::pg::error::OrRaise;
use crate::pg::sql::call::FunctionCall;
use crate::pg::sql::types::Text;
use crate::pg::text::TextArg;
use crate::service::keys;

// Declared in sql/keys.sql, in the private schema.
#[pg_extern(sql = false)]
fn add_epoch() -> Text {
    Text(keys::rotate().or_raise())
}

#[pg_extern(sql = false)]
fn rotate_key(call: FunctionCall) -> pgrx::Internal {
    keys::rotate_key(&call)
}

#[pg_extern(sql = false)]
fn revoke_key(call: FunctionCall) -> pgrx::Internal {
    keys::revoke_key(&call)
}

#[pg_extern(sql = false)]
fn list_keys() -> TableIterator<'static, (name!(kid, Text), name!(state, &'static str))> {
    let states = keys::states().or_raise().into_iter();
    TableIterator::new(states.map(|(kid, state)| (Text(kid), state.name())))
}

#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn list_proof_keys() -> TableIterator<
    'static,
    (
        name!(kid, Text),
        name!(state, &'static str),
        name!(public_key, Text),
        name!(key_source, &'static str),
    ),
> {
    let published = keys::published().or_raise().into_iter();
    TableIterator::new(
        published.map(|k| (Text(k.kid), k.state.name(), Text(k.public_key), k.source.name())),
    )
}

#[pg_extern(sql = false)]
fn is_kid(kid: TextArg) -> bool {
    epoch_of_kid(&kid).is_some()
}
