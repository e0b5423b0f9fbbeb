use kernel::trust::keys::epoch_of_kid;
use kernel::trust::verify::KeyRing;
use pgrx::prelude::*;

use crate::pg::error::OrRaise;
use crate::pg::private::keys::{Keys, begin_epoch};
use crate::pg::tables::graph::Graph;

// Declared in sql/keys.sql, in the private schema.
#[pg_extern(sql = false)]
fn add_epoch() -> String {
    begin_epoch().or_raise();
    Keys::load(Graph::current_name()).and_then(|keys| keys.active()).or_raise().kid.clone()
}

#[pg_extern(sql = false)]
fn list_keys() -> TableIterator<'static, (name!(kid, String), name!(state, &'static str))> {
    let keys = Keys::load(Graph::current_name()).or_raise();
    let active = keys.active().ok().map(|active| active.kid.clone());
    let rows: Vec<_> = keys
        .all()
        .into_iter()
        .map(|epoch| {
            let state = match () {
                () if keys.is_revoked(&epoch.kid) => "revoked",
                () if Some(&epoch.kid) == active.as_ref() => "active",
                () => "verifying",
            };
            (epoch.kid.clone(), state)
        })
        .collect();
    TableIterator::new(rows)
}

#[pg_extern(sql = false)]
fn is_kid(kid: &str) -> bool {
    epoch_of_kid(kid).is_some()
}
