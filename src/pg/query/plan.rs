//! Plans, cached for the backend's life.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int};
use std::ptr::{NonNull, null_mut};
use std::rc::Rc;

use pgrx::{PgList, pg_sys};

use super::check::{analysed, check_query, has_rules, replaced};
use super::planner::{Analysed, IndexMakers, Planned};
use super::scans::check_scans;
use super::statement::{Argument, Planning, Statement};
use crate::pg::catalog::{relation, role_writers};
use crate::pg::error::SqlError;
use crate::pg::fixed_settings::{self, Level};
use crate::pg::session::{current_role, rights_changed};

/// Plans are few: some statements for each shape of a graph this backend has read.
const MAX_PLANS: usize = 64;

/// What takes more memory, such as a plan with a constant that a mapping computes, is not kept.
const MAX_PLAN_BYTES: usize = 4 << 20;

thread_local! {
    static PLANS: RefCell<PlanCache> = RefCell::default();
}

/// Plans by statement text; the least recently used one is dropped when there are too many.
#[derive(Default)]
struct PlanCache {
    by_text: HashMap<String, (u64, Rc<PreparedPlan>)>,
    uses: u64,
}

impl PlanCache {
    fn get(&mut self, text: &str) -> Option<Rc<PreparedPlan>> {
        self.uses += 1;
        let (last_use, plan) = self.by_text.get_mut(text)?;
        // A function that is called during planning may run the same statement. It gets a plan of its own:
        // analysing this one again would change the query that is being planned and then checked.
        if plan.is_planning.get() {
            return None;
        }
        *last_use = self.uses;
        Some(Rc::clone(plan))
    }

    fn keep(&mut self, text: &str, plan: &Rc<PreparedPlan>) {
        if self.by_text.len() >= MAX_PLANS {
            let oldest = self.by_text.iter().min_by_key(|(_, (last_use, _))| *last_use);
            if let Some(text) = oldest.map(|(text, _)| text.clone()) {
                self.by_text.remove(&text);
            }
        }
        self.by_text.insert(text.to_owned(), (self.uses, Rc::clone(plan)));
    }
}

/// A prepared statement that lives as long as the backend.
pub(super) struct PreparedPlan {
    plan: NonNull<pg_sys::_SPI_plan>,
    pub(super) text: CString,
    planning: Planning,
    /// What it was last analysed or planned for.
    made_for: Cell<PlannedFor>,
    /// The oldest transaction that the session's snapshots might see when it was planned, and who had made indexes
    /// since.
    planned_at: Cell<pg_sys::TransactionId>,
    /// With the generation of the server's plan that they are of.
    index_makers: RefCell<(c_int, IndexMakers)>,
    is_planning: Cell<bool>,
    /// The generation of the server's plan that was checked, and the tables that it reads.
    checked: RefCell<Option<(c_int, Vec<pg_sys::Oid>)>>,
}

impl PreparedPlan {
    /// The statement's plan, cached from now on.
    pub(super) fn of(statement: &Statement, arguments: &[Argument<'_>]) -> Rc<Self> {
        let cached = PLANS.with_borrow_mut(|plans| plans.get(&statement.text));
        // A table that Citus has begun to read is asked by the same text, planned in another way.
        let cached = cached.filter(|plan| plan.planning == statement.planning);
        cached.unwrap_or_else(|| {
            let plan = Rc::new(Self::prepare(statement, arguments));
            PLANS.with_borrow_mut(|plans| plans.keep(&statement.text, &plan));
            plan
        })
    }

    fn prepare(statement: &Statement, arguments: &[Argument<'_>]) -> Self {
        let text = CString::new(statement.text.as_str()).expect("statements hold no NUL byte");
        let mut types: Vec<pg_sys::Oid> = arguments.iter().map(|a| a.type_oid()).collect();
        let planned = match statement.planning {
            Planning::Once | Planning::Probing => pg_sys::CURSOR_OPT_GENERIC_PLAN,
            Planning::EachTime => pg_sys::CURSOR_OPT_CUSTOM_PLAN,
        };
        // An error may come before it is planned, and undo rights that the analysis has followed.
        let made_for = planned_for();
        let _connection = Connection::open();
        let level = Level::begin();
        fixed_settings::fix(&fixed_settings::PARSING);
        let analysed = Analysed::begin(text.as_ptr(), statement);
        // SAFETY: `types` has as many entries as said; an unparsable statement raises an error.
        let plan = unsafe {
            let plan = pg_sys::SPI_prepare_cursor(
                text.as_ptr(),
                types.len() as c_int,
                types.as_mut_ptr(),
                (planned | pg_sys::CURSOR_OPT_NO_SCROLL) as c_int,
            );
            let plan = NonNull::new(plan).expect("SPI_prepare_cursor returns a plan or raises");
            assert_eq!(pg_sys::SPI_keepplan(plan.as_ptr()), 0, "SPI_keepplan failed");
            plan
        };
        drop(analysed);
        level.end();
        PreparedPlan {
            plan,
            text,
            planning: statement.planning,
            made_for: Cell::new(made_for),
            planned_at: Cell::new(pg_sys::InvalidTransactionId),
            index_makers: RefCell::default(),
            is_planning: Cell::new(false),
            checked: RefCell::new(None),
        }
    }

    /// The server's plan, planned again where it is not valid, and checked; to be released by the current
    /// resource owner.
    ///
    /// # Errors
    /// As [`check_query`].
    pub(super) fn cached(
        &self,
        statement: &Statement,
        parameters: pg_sys::ParamListInfo,
    ) -> Result<*mut pg_sys::CachedPlan, SqlError> {
        // Without parameters the server's plan is the generic one, whatever plan_cache_mode says.
        let parameters = match statement.planning {
            Planning::EachTime => parameters,
            Planning::Once | Planning::Probing => null_mut(),
        };
        let is_valid = self.is_valid();
        let made_for = planned_for();
        if self.made_for.get().rights != made_for.rights || self.is_of_other_snapshot() {
            // SAFETY: the source lives as long as the plan. The server keeps policies that it has added for rights of
            // before, and indexes that only other snapshots may use.
            unsafe { (*self.source()).is_valid = false };
        }
        self.is_planning.set(true);
        let current = is_valid.then(|| self.planned(statement, parameters, &[]));
        let cached = match current {
            Some(current) if self.is_checked(current) => current,
            // None, or one that the server has made in its place, without the settings.
            current => {
                if let Some(current) = current {
                    // SAFETY: it was taken for this owner.
                    unsafe {
                        (*current).is_valid = false;
                        pg_sys::ReleaseCachedPlan(current, pg_sys::CurrentResourceOwner);
                    }
                }
                // SAFETY: reads the session's state.
                self.planned_at.set(unsafe { pg_sys::TransactionXmin });
                self.planned(statement, parameters, switched_off(statement.planning))
            }
        };
        self.is_planning.set(false);
        let PlannedFor { role, row_security, .. } = planned_for();
        if (role, row_security) != (made_for.role, made_for.row_security) {
            rights_changed().raise();
        }
        self.made_for.set(made_for);
        let checked = self.check(statement, cached);
        if checked.is_err() {
            // SAFETY: it was taken for this owner.
            unsafe { pg_sys::ReleaseCachedPlan(cached, pg_sys::CurrentResourceOwner) };
        }
        // SAFETY: it was taken for this owner; its context lives as long as it.
        let bytes = unsafe { pg_sys::MemoryContextMemAllocated((*cached).context, true) };
        if checked.is_ok() && bytes > MAX_PLAN_BYTES {
            PLANS.with_borrow_mut(|plans| plans.by_text.remove(&statement.text));
        }
        checked.map(|()| cached)
    }

    /// The server's plan, planned again where it is not valid, with these settings off.
    fn planned(
        &self,
        statement: &Statement,
        parameters: pg_sys::ParamListInfo,
        off: &[&'static CStr],
    ) -> *mut pg_sys::CachedPlan {
        let level = Level::begin();
        // It may analyse anew as well what was valid before: a change of a table is seen when a lock on it is got.
        fixed_settings::fix(&fixed_settings::PARSING);
        for setting in off {
            fixed_settings::set(setting, c"off");
        }
        // SAFETY: the source lives as long as the plan.
        let analysed = Analysed::begin(unsafe { (*self.source()).query_string }, statement);
        let planned = Planned::begin();
        // SAFETY: the source lives as long as the plan. Planning may run code of users, for index expressions and
        // statistics: what that sets is undone. After an error the (sub)transaction's abort resets the settings, and
        // this plan is not used again.
        let cached = unsafe {
            let owner = pg_sys::CurrentResourceOwner;
            pg_sys::GetCachedPlan(self.source(), parameters, owner, null_mut())
        };
        // SAFETY: it was taken for this owner.
        let generation = unsafe { (*cached).generation };
        // A plan that was there already was made with others.
        if self.index_makers.borrow().0 != generation {
            self.index_makers.replace((generation, planned.index_makers()));
        }
        drop((planned, analysed));
        level.end();
        cached
    }

    fn is_checked(&self, cached: *mut pg_sys::CachedPlan) -> bool {
        // SAFETY: the caller holds the plan.
        let generation = unsafe { (*cached).generation };
        self.checked.borrow().as_ref().is_some_and(|(of, _)| *of == generation)
    }

    /// Checks a plan that was not checked before. Also checks that it reads the statement's tables: the text has only
    /// their names, which other tables may have now.
    fn check(
        &self,
        statement: &Statement,
        cached: *mut pg_sys::CachedPlan,
    ) -> Result<(), SqlError> {
        // SAFETY: the caller holds the plan.
        let generation = unsafe { (*cached).generation };
        let mut checked = self.checked.borrow_mut();
        match checked.as_ref().filter(|(of, _)| *of == generation) {
            Some((_, tables)) if statement.names(tables) => Ok(()),
            Some(_) => Err(replaced()),
            None => {
                let written = statement.tables.iter().map(|table| table.oid);
                if self.writes().is_some_and(|event| {
                    written.clone().any(|table| relation::has_rule(table, event))
                }) {
                    return Err(has_rules());
                }
                // SAFETY: the source was planned just now, and nothing has analysed it anew since.
                unsafe {
                    check_query(analysed(self.source()), statement)?;
                    check_scans(cached, statement)?;
                }
                let tables = statement.tables.iter().map(|table| table.oid);
                *checked = Some((generation, tables.collect()));
                Ok(())
            }
        }
    }

    /// Whether the server would use its plan as it is: then nothing need be switched off for the call. A plan that
    /// does without an index that is too new is good for as long as the oldest transaction is the same.
    fn is_valid(&self) -> bool {
        // SAFETY: a saved plan has one source, which lives as long as it; the other is the session's state.
        unsafe {
            let source = self.source();
            let plan = (*source).gplan;
            self.made_for.get() == planned_for()
                && !self.is_of_other_snapshot()
                && fixed_settings::is_path_fixed()
                && (*source).is_valid
                && !plan.is_null()
                && (*plan).is_valid
                && ((*plan).saved_xmin == pg_sys::InvalidTransactionId
                    || (*plan).saved_xmin == pg_sys::TransactionXmin)
        }
    }

    /// Whether the present snapshot may see older transactions than when the statement was planned, as an imported one
    /// does, or sees other makers of indexes: an index is not for a snapshot that is older than it.
    fn is_of_other_snapshot(&self) -> bool {
        // SAFETY: reads the session's state, and compares two numbers.
        let is_older = unsafe {
            pg_sys::TransactionIdPrecedes(pg_sys::TransactionXmin, self.planned_at.get())
        };
        is_older || !self.index_makers.borrow().1.are_seen_alike()
    }

    /// How the statement writes, where it does.
    fn writes(&self) -> Option<pg_sys::CmdType::Type> {
        // SAFETY: the source lives as long as the plan.
        match unsafe { (*self.source()).commandTag } {
            pg_sys::CommandTag::CMDTAG_INSERT => Some(pg_sys::CmdType::CMD_INSERT),
            pg_sys::CommandTag::CMDTAG_UPDATE => Some(pg_sys::CmdType::CMD_UPDATE),
            _ => None,
        }
    }

    fn source(&self) -> *mut pg_sys::CachedPlanSource {
        // SAFETY: a saved plan has a list of one source; both live as long as it.
        unsafe {
            let sources = pg_sys::SPI_plan_get_plan_sources(self.plan.as_ptr());
            let source = PgList::<pg_sys::CachedPlanSource>::from_pg(sources).get_ptr(0);
            source.expect("a plan has a source")
        }
    }
}

impl Drop for PreparedPlan {
    fn drop(&mut self) {
        // SAFETY: the plan was saved by SPI_keepplan and is freed once. A statement that runs on the server's plan
        // holds a reference of its own to that.
        unsafe { pg_sys::SPI_freeplan(self.plan.as_ptr()) };
    }
}

/// What a plan depends on besides the catalog and the search_path.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PlannedFor {
    role: pg_sys::Oid,
    row_security: bool,
    /// For what else policies follow the server analyses nothing anew: how many changes of roles there were, and
    /// whether the owner of a table is not held to its policies, as in the cascade of a foreign key.
    rights: (u64, bool),
}

fn planned_for() -> PlannedFor {
    // SAFETY: reads the session's state.
    let (row_security, is_not_forced) =
        unsafe { (pg_sys::row_security, pg_sys::InNoForceRLSOperation()) };
    let rights = (role_writers::generation(), is_not_forced);
    PlannedFor { role: current_role(), row_security, rights }
}

/// The planner settings that are switched off.
fn switched_off(planning: Planning) -> &'static [&'static CStr] {
    match planning {
        Planning::Probing => &[c"enable_seqscan", c"enable_bitmapscan", c"enable_memoize", c"jit"],
        Planning::Once | Planning::EachTime => &[],
    }
}

/// A connection to SPI, closed when it is dropped.
struct Connection;

impl Connection {
    fn open() -> Self {
        // SAFETY: called inside a function the server calls, within a transaction.
        let code = unsafe { pg_sys::SPI_connect() };
        assert_eq!(code, pg_sys::SPI_OK_CONNECT as c_int, "SPI_connect failed");
        Connection
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // After an error the (sub)transaction's abort closes the connection.
        if !std::thread::panicking() {
            // SAFETY: pairs with SPI_connect above, on the same nesting level.
            unsafe { pg_sys::SPI_finish() };
        }
    }
}
