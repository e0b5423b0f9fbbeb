use pgrx::prelude::*;

use crate::pg::error::OrRaise;
use crate::pg::trigger::{TriggerCall, no_row};
use crate::service::promotion::{require_admissible, require_admissible_result};

// Declared in sql/promotion.sql, as trigger functions.
#[pg_extern(sql = false)]
fn graph_require_admissible(call: TriggerCall) -> pgrx::Internal {
    require_admissible(&call).or_raise();
    no_row()
}

#[pg_extern(sql = false)]
fn graph_require_admissible_result(call: TriggerCall) -> pgrx::Internal {
    require_admissible_result(&call).or_raise();
    no_row()
}
