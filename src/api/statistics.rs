use pgrx::prelude::*;

use crate::pg::sql::types::{JsonbText, Text};
use crate::service::statistics::{self, rows};

// Declared in sql/statistics.sql, in the private schema.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn list_statistics() -> TableIterator<
    'static,
    (
        name!(function, Text),
        name!(calls, i64),
        name!(total_time, f64),
        name!(histogram, JsonbText),
        name!(turns_read, i64),
        name!(turns_selected, i64),
        name!(errors, JsonbText),
        name!(verifications, JsonbText),
    ),
> {
    TableIterator::new(rows().into_iter().map(|row| {
        (
            Text(row.function),
            row.calls,
            row.total_time,
            row.histogram.into(),
            row.turns_read,
            row.turns_selected,
            row.errors.into(),
            row.verifications.into(),
        )
    }))
}

#[pg_extern(sql = false)]
fn reset_statistics() {
    statistics::reset();
}
