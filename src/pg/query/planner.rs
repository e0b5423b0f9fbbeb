//! What the server may believe when it plans a statement of sql/queries.
//!
//! Indexes and bounds of partitions say which rows there are without a look at them. The tables' owner can make both
//! say something else: by a function that he calls immutable, or by what a session was set to when a row was written.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int};

use pgrx::prelude::*;
use pgrx::{PgList, pg_sys};

use super::check::check_query;
use super::statement::Statement;
use crate::pg::catalog::functions::FIRST_NORMAL_OID;
use crate::pg::catalog::unfit_index::{is_seen, is_unfit, recent_makers};
use crate::pg::error::OrRaise;

static mut PREVIOUS_HOOK: pg_sys::get_relation_info_hook_type = None;
static mut PREVIOUS_ANALYSED: pg_sys::post_parse_analyze_hook_type = None;

thread_local! {
    /// How many statements are being planned: users' code that the server runs for one may call a function of ours.
    static PLANNED: Cell<usize> = const { Cell::new(0) };
    /// Whether the hooks are there. A library whose loading has failed at its end is loaded again: a hook must not be
    /// the one before itself.
    static IS_WATCHING: Cell<bool> = const { Cell::new(false) };
    /// The recent makers of indexes that the statement being planned could use.
    static MAKERS: RefCell<Vec<pg_sys::TransactionId>> = const { RefCell::new(Vec::new()) };
    /// The text that is analysed for a statement.
    static ANALYSED: Cell<Option<(*const c_char, *const Statement)>> = const { Cell::new(None) };
}

/// Hooks into the server's planner; called when the library is loaded.
pub fn watch_planner() {
    if IS_WATCHING.replace(true) {
        return;
    }
    // SAFETY: a process has one thread; whoever hooked in before is called before us.
    unsafe {
        PREVIOUS_HOOK = pg_sys::get_relation_info_hook;
        pg_sys::get_relation_info_hook = Some(restrict);
        PREVIOUS_ANALYSED = pg_sys::post_parse_analyze_hook;
        pg_sys::post_parse_analyze_hook = Some(check_analysed);
        EXCLUSION = exclusion();
    }
}

/// As long as it lives, a text that the server analyses is that of a statement of ours. It is checked before anything
/// is planned: a name may have gone to another object, and planning runs immutable functions.
pub(super) struct Analysed(Option<(*const c_char, *const Statement)>);

impl Analysed {
    /// The text is known by its place.
    pub(super) fn begin(text: *const c_char, statement: &Statement) -> Self {
        Analysed(ANALYSED.replace(Some((text, std::ptr::from_ref(statement)))))
    }
}

impl Drop for Analysed {
    fn drop(&mut self) {
        ANALYSED.set(self.0);
    }
}

/// The server calls this when it has analysed a text, before rules and policies are added.
#[pg_guard]
unsafe extern "C-unwind" fn check_analysed(
    state: *mut pg_sys::ParseState,
    query: *mut pg_sys::Query,
    jumble: *mut pg_sys::JumbleState,
) {
    // SAFETY: as the server has called us; the statement lives as long as the guard that has put it there.
    unsafe {
        if let Some(previous) = PREVIOUS_ANALYSED {
            pg_sys::submodules::ffi::pg_guard_ffi_boundary(|| previous(state, query, jumble));
        }
        let statement = ANALYSED.get().filter(|(text, _)| *text == (*state).p_sourcetext);
        if let Some((_, statement)) = statement {
            check_query(query, &*statement).or_raise();
        }
    }
}

/// The server's record of `constraint_exclusion`, which stays where it is.
static mut EXCLUSION: *mut pg_sys::config_enum = std::ptr::null_mut();

fn exclusion() -> *mut pg_sys::config_enum {
    const NAME: &CStr = c"constraint_exclusion";
    #[cfg(feature = "pg15")]
    // SAFETY: an array of so many settings.
    let found = unsafe {
        let settings = pg_sys::get_guc_variables();
        let settings = std::slice::from_raw_parts(settings, pg_sys::GetNumConfigOptions() as usize);
        let found = settings.iter().find(|setting| CStr::from_ptr((***setting).name) == NAME);
        *found.expect("the server has this setting")
    };
    #[cfg(not(feature = "pg15"))]
    // SAFETY: a look-up by name, which raises where there is none.
    let found =
        unsafe { pg_sys::find_option(NAME.as_ptr(), false, false, pgrx::PgLogLevel::ERROR as i32) };
    found.cast()
}

/// As long as it lives, the server plans a statement of ours. Constraint exclusion is off: a CHECK constraint may call
/// a function of its table's owner, which must not decide what is read. Code of users runs while the server plans, so
/// the setting stands apart from what the planner reads meanwhile: no SET or RESET reaches that.
pub(super) struct Planned {
    /// Of the statement around this one, if there is any.
    makers_before: Vec<pg_sys::TransactionId>,
}

/// The recent makers of indexes that a plan could use, and whether its snapshot saw each.
#[derive(Default)]
pub(super) struct IndexMakers(Vec<(pg_sys::TransactionId, bool)>);

impl IndexMakers {
    /// Whether the active snapshot sees the same of them. With another one, indexes may be used that were left out, or
    /// must be left out that are used.
    pub(super) fn are_seen_alike(&self) -> bool {
        self.0.iter().all(|(maker, was_seen)| is_seen(*maker) == *was_seen)
    }
}

/// The value of the setting while it stands apart.
static mut APART: c_int = 0;

impl Planned {
    pub(super) fn begin() -> Self {
        if PLANNED.get() == 0 {
            // SAFETY: the setting is the server's own, of this type; a process has one thread.
            unsafe {
                APART = pg_sys::constraint_exclusion;
                (*EXCLUSION).variable = &raw mut APART;
                pg_sys::constraint_exclusion =
                    pg_sys::ConstraintExclusionType::CONSTRAINT_EXCLUSION_OFF as c_int;
            }
        }
        PLANNED.set(PLANNED.get() + 1);
        Planned { makers_before: MAKERS.take() }
    }

    /// Of the indexes that the plan could use.
    pub(super) fn index_makers(&self) -> IndexMakers {
        let makers = MAKERS.with_borrow(Vec::clone).into_iter();
        IndexMakers(makers.map(|maker| (maker, is_seen(maker))).collect())
    }
}

impl Drop for Planned {
    fn drop(&mut self) {
        MAKERS.set(std::mem::take(&mut self.makers_before));
        PLANNED.set(PLANNED.get() - 1);
        if PLANNED.get() == 0 {
            // SAFETY: as in `begin`.
            unsafe {
                pg_sys::constraint_exclusion = APART;
                (*EXCLUSION).variable = &raw mut pg_sys::constraint_exclusion;
            }
        }
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
            let makers = recent_makers((*index).indexoid);
            let is_made = makers.iter().all(|maker| is_seen(*maker));
            MAKERS.with_borrow_mut(|all| all.extend(makers));
            if is_made && !is_unfit((*index).indexoid) {
                fit.push(index);
            }
        }
        (*relation).indexlist = fit.into_pg();
        forget_bounds(&mut *relation);
    }
}

/// Has the server plan a partitioned table as any parent of others, whatever its settings: with keys that no condition
/// mentions, nothing is left out or joined by its bounds; with bounds as of hash partitions, nothing is in their order.
///
/// # Safety
/// The relation is a planner's own, and complete.
unsafe fn forget_bounds(relation: &mut pg_sys::RelOptInfo) {
    /// A column that no table has.
    const NONE: i16 = i16::MAX;
    // What the bounds of the table above say of it.
    relation.partition_qual = std::ptr::null_mut();
    // SAFETY: guaranteed by the caller; a partitioned table has bounds, and a list of one expression for each key. What
    // is made here lives as long as the plan is made.
    unsafe {
        let (Some(bounds), Some(scheme)) =
            (relation.boundinfo.as_ref(), relation.part_scheme.as_ref())
        else {
            return;
        };
        let unordered: *mut pg_sys::PartitionBoundInfoData =
            pg_sys::palloc(size_of::<pg_sys::PartitionBoundInfoData>()).cast();
        unordered.write(*bounds);
        (*unordered).strategy = b'h' as _; // PARTITION_STRATEGY_HASH
        relation.boundinfo = unordered;
        let keys = std::slice::from_raw_parts_mut(relation.partexprs, scheme.partnatts as usize);
        for key in keys {
            let relation = relation.relid as c_int;
            let column =
                pg_sys::makeVar(relation, NONE, pg_sys::INT4OID, -1, pg_sys::InvalidOid, 0);
            let mut list = PgList::<pg_sys::Var>::new();
            list.push(column);
            *key = list.into_pg();
        }
    }
}
