use pgrx::prelude::*;
use pgrx::{AllocatedByPostgres, PgTriggerError, WhoAllocated};

use crate::pg::relation;

// Declared in sql/bootstrap.sql, in the private schema.
#[pg_trigger(sql = false)]
fn announce_change<'a>(
    trigger: &'a PgTrigger<'a>,
) -> Result<Option<PgHeapTuple<'a, impl WhoAllocated>>, PgTriggerError> {
    relation::announce_change(trigger.relation()?.oid());
    Ok(None::<PgHeapTuple<'a, AllocatedByPostgres>>)
}
