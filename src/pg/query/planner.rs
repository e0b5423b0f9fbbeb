//! What the server may believe when it plans a statement of sql/queries.
//!
//! Indexes and bounds of partitions say which rows there are without a look at them. The tables' owner can make both
//! say something else: by a function that he calls immutable, or by what a session was set to when a row was written.

use std::cell::Cell;

use pgrx::prelude::*;
use pgrx::{PgList, pg_sys};

use crate::pg::catalog::functions::FIRST_NORMAL_OID;
use crate::pg::catalog::unfit_index::is_unfit;

static mut PREVIOUS_HOOK: pg_sys::get_relation_info_hook_type = None;

thread_local! {
    /// How many statements are being planned: users' code that the server runs for one may call a function of ours.
    static PLANNED: Cell<usize> = const { Cell::new(0) };
}

/// Hooks into the server's planner; called when the library is loaded.
pub fn watch_planner() {
    // SAFETY: a process has one thread; whoever hooked in before is called before us.
    unsafe {
        PREVIOUS_HOOK = pg_sys::get_relation_info_hook;
        pg_sys::get_relation_info_hook = Some(restrict);
    }
}

/// As long as it lives, the server plans a statement of ours.
pub(super) struct Planned;

impl Planned {
    pub(super) fn begin() -> Self {
        PLANNED.set(PLANNED.get() + 1);
        Planned
    }
}

impl Drop for Planned {
    fn drop(&mut self) {
        PLANNED.set(PLANNED.get() - 1);
    }
}

/// The server calls this when it has learnt of a table what a plan may use.
#[pg_guard]
unsafe extern "C-unwind" fn restrict(
    root: *mut pg_sys::PlannerInfo,
    table: pg_sys::Oid,
    is_parent: bool,
    relation: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: as the server has called us; the list has elements of this type, and the relation is its planner's own.
    unsafe {
        if let Some(previous) = PREVIOUS_HOOK {
            pg_sys::submodules::ffi::pg_guard_ffi_boundary(|| {
                previous(root, table, is_parent, relation);
            });
        }
        if PLANNED.get() == 0 || table.to_u32() < FIRST_NORMAL_OID {
            return;
        }
        let mut fit = PgList::<pg_sys::IndexOptInfo>::new();
        for index in PgList::<pg_sys::IndexOptInfo>::from_pg((*relation).indexlist).iter_ptr() {
            if !is_unfit((*index).indexoid) {
                fit.push(index);
            }
        }
        (*relation).indexlist = fit.into_pg();
        // With bounds as of hash partitions nothing is read in the order of partitions. The rest of them stays, for what
        // else may be planned meanwhile.
        if let Some(bounds) = (*relation).boundinfo.as_ref() {
            let unordered: *mut pg_sys::PartitionBoundInfoData =
                pg_sys::palloc(size_of::<pg_sys::PartitionBoundInfoData>()).cast();
            unordered.write(*bounds);
            (*unordered).strategy = b'h' as _; // PARTITION_STRATEGY_HASH
            (*relation).boundinfo = unordered;
        }
    }
}
