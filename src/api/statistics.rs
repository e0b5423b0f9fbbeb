use pgrx::JsonB;
use pgrx::prelude::*;

use crate::pg::statistics;
use crate::service::statistics::rows;

// Declared in sql/statistics.sql, in the private schema.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn list_statistics() -> TableIterator<
    'static,
    (
        name!(function, String),
        name!(calls, i64),
        name!(total_time, f64),
        name!(histogram, JsonB),
        name!(turns_read, i64),
        name!(turns_selected, i64),
        name!(errors, JsonB),
        name!(verifications, JsonB),
    ),
> {
    TableIterator::new(rows().into_iter().map(|row| {
        (
            row.function,
            row.calls,
            row.total_time,
            JsonB(row.histogram),
            row.turns_read,
            row.turns_selected,
            JsonB(row.errors),
            JsonB(row.verifications),
        )
    }))
}

#[pg_extern(sql = false)]
fn reset_statistics() {
    statistics::reset();
}
