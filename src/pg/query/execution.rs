//! Execution of statements: once, or started once and run again for each batch of ids.
//!
//! Starting a statement costs as much as five index probes, and an expansion learns which turns it needs
//! only from others. A statement over batches has four parameters: `$1` and `$2` uuid[], the ids of
//! a batch, and `$3` and `$4` uuid, the least and the greatest of all of them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ops::ControlFlow;
use std::ptr::null_mut;
use std::rc::Rc;

use kernel::graph::turn::TurnId;
use pgrx::prelude::*;
use pgrx::{PgList, pg_sys};

use super::plan::PreparedPlan;
use super::row::{ColumnType, Row, RowReceiver};
use super::statement::{Argument, Statement, param_list, uuid_array};
use crate::pg::error::{OrRaise, SqlError, Word};
use crate::pg::fixed_settings::{self, Level};
use crate::pg::session::{current_role, rights_changed};
use crate::pg::subtransaction;

/// Runs a statement with these values for `$1`, `$2`, …, and passes each row to `sink`. One that writes is run
/// to its end.
///
/// Raises what [`super::check`] and [`super::row`] find.
pub fn query(
    statement: &Statement,
    arguments: &[Argument<'_>],
    mut sink: impl FnMut(Row) -> ControlFlow<()>,
) {
    // SAFETY: reads the current context.
    let context = StatementContext::begin_below(unsafe { pg_sys::CurrentMemoryContext });
    let mut execution = Execution::start(statement, arguments);
    execution.run(ALL, &mut sink);
    let writes = execution.writes();
    execution.finish();
    if writes {
        // SAFETY: the command is finished, its triggers too; what follows sees what it wrote.
        unsafe { pg_sys::CommandCounterIncrement() };
    }
    context.leave();
    context.delete();
}

/// Lets the statements of `read` see what the calling statement itself has written so far, beside what its snapshot
/// sees.
pub fn with_own_writes<T>(read: impl FnOnce() -> T) -> T {
    // SAFETY: a function is called under an active snapshot. The copy is popped here; after an error the
    // (sub)transaction's abort does that. A parallel worker writes nothing, and its command is that of its leader.
    unsafe {
        pg_sys::PushCopiedSnapshot(pg_sys::GetActiveSnapshot());
        if !pg_sys::IsInParallelMode() {
            pg_sys::UpdateActiveSnapshotCommandId();
        }
        let result = read();
        pg_sys::PopActiveSnapshot();
        result
    }
}

/// Lets the statements of `read` see what is committed by now, and what this transaction has written so far.
pub fn with_latest<T>(read: impl FnOnce() -> T) -> T {
    // SAFETY: a transaction is running; the server's snapshot is copied where it is pushed. It is popped here; after an
    // error the (sub)transaction's abort does that.
    unsafe {
        pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
        let result = read();
        pg_sys::PopActiveSnapshot();
        result
    }
}

/// The query that calls a function for its rows, one at a time.
#[derive(Clone, Copy)]
pub struct CallingQuery(*mut pg_sys::ExprContext);

impl CallingQuery {
    /// That of the running call of a function that returns a set.
    ///
    /// # Errors
    /// 0A000 where no set is accepted.
    pub fn of(fcinfo: pg_sys::FunctionCallInfo) -> Result<Self, SqlError> {
        // SAFETY: the server's call information; a ReturnSetInfo is what a node of this tag is.
        unsafe {
            let result: *mut pg_sys::ReturnSetInfo = (*fcinfo).resultinfo.cast();
            if !result.is_null() && (*result).type_ == pg_sys::NodeTag::T_ReturnSetInfo {
                return Ok(CallingQuery((*result).econtext));
            }
        }
        Err(SqlError::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "a function that returns a set was called where none is accepted",
        ))
    }
}

/// A statement that is suspended between its rows. It keeps the snapshot it was opened with. It is ended after its
/// last row, or by a callback when the calling query ends or is rescanned. After a failure there is no callback:
/// the statement's resources are released with those of the failed query.
pub struct Cursor {
    /// `None` after the last row.
    suspended: Option<*mut Suspended>,
    owner: OwningSubtransaction,
}

/// The state that ends with the calling query, in a memory context of its own below that query's.
struct Suspended {
    execution: Execution,
    context: StatementContext,
    calling: CallingQuery,
}

impl Cursor {
    /// Begins the statement; see [`query`].
    pub fn open(statement: &Statement, arguments: &[Argument<'_>], calling: CallingQuery) -> Self {
        // SAFETY: the calling query's context outlives its callbacks, which the server calls once each. The state
        // lives until it is ended, and after a failure as long as the query's memory; a cursor is not used after
        // either.
        unsafe {
            let context = StatementContext::begin_below((*calling.0).ecxt_per_query_memory);
            let execution = Execution::start(statement, arguments);
            let suspended: *mut Suspended = pg_sys::palloc(size_of::<Suspended>()).cast();
            context.leave();
            suspended.write(Suspended { execution, context, calling });
            let argument = pg_sys::Datum::from(suspended);
            pg_sys::RegisterExprContextCallback(calling.0, Some(end_suspended), argument);
            Cursor { suspended: Some(suspended), owner: OwningSubtransaction::current() }
        }
    }

    /// Passes the next row to `sink`; `false` at the end.
    ///
    /// # Errors
    /// 24000 where a savepoint was rolled back under which the statement was begun.
    pub fn next(&mut self, mut sink: impl FnMut(Row)) -> Result<bool, SqlError> {
        let Some(suspended) = self.suspended else { return Ok(false) };
        if self.owner.is_rolled_back() {
            return Err(SqlError::new(
                PgSqlErrorCode::ERRCODE_INVALID_CURSOR_STATE,
                "the savepoint under which the function began to read was rolled back",
            )
            .word(Word::CursorLost)
            .hint("Fetch the first row before the savepoint, or call the function in the FROM clause."));
        }
        let mut found = false;
        let mut sink = |row: Row| {
            found = true;
            sink(row);
            ControlFlow::Continue(())
        };
        // SAFETY: see `open`. After the last row it is ended here.
        unsafe {
            (*suspended).execution.run(1, &mut sink);
            if !found {
                self.suspended = None;
                end_now(suspended);
            }
        }
        Ok(found)
    }

    /// Ends the statement before its last row: else it would last as long as the calling query, which may call the
    /// function for each of its rows.
    pub fn end(mut self) {
        if let Some(suspended) = self.suspended.take()
            && !self.owner.is_rolled_back()
        {
            // SAFETY: see `open`.
            unsafe { end_now(suspended) }
        }
    }
}

/// Ends a suspended statement, and unregisters the callback that would.
///
/// # Safety
/// As of [`end`].
unsafe fn end_now(suspended: *mut Suspended) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (calling, argument) = ((*suspended).calling, pg_sys::Datum::from(suspended));
        pg_sys::UnregisterExprContextCallback(calling.0, Some(end_suspended), argument);
        end(suspended);
    }
}

/// Where the query that calls the function ends before the statement.
#[pg_guard]
unsafe extern "C-unwind" fn end_suspended(suspended: pg_sys::Datum) {
    // SAFETY: it is what `Cursor::open` has made, and not ended yet.
    unsafe { end(suspended.cast_mut_ptr()) }
}

/// Ends a suspended statement.
///
/// # Safety
/// It is what `Cursor::open` has made, and not ended yet.
unsafe fn end(suspended: *mut Suspended) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let Suspended { execution, context, .. } = suspended.read();
        execution.finish();
        context.delete();
    }
}

thread_local! {
    /// The (sub)transactions that suspended statements belong to, by a number of each.
    static SUSPENDED_IN: RefCell<HashMap<u64, pg_sys::SubTransactionId>> = RefCell::default();
    static NEXT_NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// The subtransaction that a suspended statement belongs to. Rolling it back releases the statement's resources.
struct OwningSubtransaction(u64);

impl OwningSubtransaction {
    /// The current (sub)transaction.
    fn current() -> Self {
        let number = NEXT_NUMBER.get();
        NEXT_NUMBER.set(number + 1);
        // SAFETY: reads the transaction's state.
        let subtransaction = unsafe { pg_sys::GetCurrentSubTransactionId() };
        SUSPENDED_IN.with_borrow_mut(|owners| owners.insert(number, subtransaction));
        OwningSubtransaction(number)
    }

    fn is_rolled_back(&self) -> bool {
        SUSPENDED_IN.with_borrow(|owners| !owners.contains_key(&self.0))
    }
}

impl Drop for OwningSubtransaction {
    fn drop(&mut self) {
        // Not there while it is being added, where memory ends then: the session ends too.
        SUSPENDED_IN
            .with(|owners| owners.try_borrow_mut().map(|mut owners| owners.remove(&self.0)).ok());
    }
}

/// Registers the callback that follows savepoints; called once when the library is loaded.
pub fn watch_savepoints() {
    // SAFETY: the callback touches thread-local state alone.
    unsafe { pg_sys::RegisterSubXactCallback(Some(follow_savepoint), null_mut()) };
}

#[pg_guard]
unsafe extern "C-unwind" fn follow_savepoint(
    event: pg_sys::SubXactEvent::Type,
    ended: pg_sys::SubTransactionId,
    parent: pg_sys::SubTransactionId,
    _argument: *mut c_void,
) {
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        subtransaction::count_rolled_back();
    }
    // It is borrowed where a session ends in the middle of an insertion. Then nothing will be suspended any more.
    SUSPENDED_IN.with(|owners| match (event, owners.try_borrow_mut()) {
        (pg_sys::SubXactEvent::SUBXACT_EVENT_COMMIT_SUB, Ok(mut owners)) => {
            owners.values_mut().filter(|of| **of == ended).for_each(|of| *of = parent);
        }
        (pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB, Ok(mut owners)) => {
            owners.retain(|_, of| *of != ended);
        }
        _ => {}
    });
}

/// A statement over batches of ids, started when it is first asked. It exists within one call of a function.
pub struct BatchStatement {
    statement: Rc<Statement>,
    started: Option<Execution>,
}

impl BatchStatement {
    /// A statement of scans, and of joins to what is sought from each row anew. Another join, or an aggregate, would
    /// keep rows of one batch for the next.
    pub fn new(statement: Rc<Statement>) -> Self {
        BatchStatement { statement, started: None }
    }

    /// Hands each row for `batch`, the two lists of ids, to `sink`, read on the snapshot of the first batch.
    /// Where Citus reads the tables, each batch is a statement by itself, planned for its ids.
    pub fn ask(&mut self, batch: [&[TurnId]; 2], mut sink: impl FnMut(Row) -> ControlFlow<()>) {
        if self.statement.is_distributed() {
            let [_, _, least, greatest] = WIDEST;
            let arguments = [Argument::Ids(batch[0]), Argument::Ids(batch[1]), least, greatest];
            return query(&self.statement, &arguments, sink);
        }
        // Not put back after an error.
        let mut started =
            self.started.take().unwrap_or_else(|| Execution::start(&self.statement, &WIDEST));
        started.answer(batch, &mut sink);
        self.started = Some(started);
    }
}

impl Drop for BatchStatement {
    fn drop(&mut self) {
        // After an error the (sub)transaction's abort releases everything.
        if !std::thread::panicking()
            && let Some(started) = self.started.take()
        {
            started.finish();
        }
    }
}

/// The parameters at the start, which leave out nothing that a later batch needs.
const WIDEST: [Argument<'_>; 4] = [
    Argument::Ids(&[]),
    Argument::Ids(&[]),
    Argument::Id(TurnId::nil()),
    Argument::Id(TurnId::max()),
];

/// A step of a statement, in which code of the tables' owners may run, within a level of settings of its own: what that
/// code sets, also by a plain SET, is undone, and whoever called goes on with the settings of before.
///
/// Raises 55000 where it leaves another role.
fn step<T>(run: impl FnOnce() -> T) -> T {
    let role = current_role();
    let level = Level::begin();
    fixed_settings::fix(&fixed_settings::READING);
    let result = run();
    let is_same = current_role() == role;
    level.end();
    if !is_same {
        rights_changed().raise();
    }
    result
}

/// A started statement. It is not a portal, so that SQL cannot close or replace it by name.
struct Execution {
    desc: *mut pg_sys::QueryDesc,
    cached: *mut pg_sys::CachedPlan,
    owner: pg_sys::ResourceOwner,
    columns: &'static [ColumnType],
}

impl Execution {
    fn start(statement: &Statement, arguments: &[Argument<'_>]) -> Self {
        step(|| Self::start_here(statement, arguments))
    }

    fn start_here(statement: &Statement, arguments: &[Argument<'_>]) -> Self {
        let plan = PreparedPlan::of(statement, arguments);
        let parameters = param_list(arguments);
        let cached = plan.cached(statement, parameters).or_raise();
        // SAFETY: everything is made in the current memory context and for the current resource owner. These are of the
        // function that the server called, or of the query that called it, and outlive the execution. After an error
        // the transaction's abort releases all of it. The text is a copy, as the plan may be dropped from the cache
        // meanwhile; the server's plan is not freed before it is released.
        unsafe {
            let planned = PgList::<pg_sys::PlannedStmt>::from_pg((*cached).stmt_list).get_ptr(0);
            let planned = planned.expect("a plan has a statement");
            let desc = pg_sys::CreateQueryDesc(
                planned,
                pg_sys::pstrdup(plan.text.as_ptr()),
                pg_sys::GetActiveSnapshot(),
                null_mut(),
                null_mut(),
                parameters,
                null_mut(),
                0,
            );
            // Not with EXEC_FLAG_REWIND: it asks nodes to keep the rows they gave.
            pg_sys::ExecutorStart(desc, 0);
            let (owner, columns) = (pg_sys::CurrentResourceOwner, statement.columns);
            Execution { desc, cached, owner, columns }
        }
    }

    /// Ends the statement; one that wrote fires its triggers.
    fn finish(self) {
        // SAFETY: what `start` made, each released once, for the same resource owner.
        step(|| unsafe {
            pg_sys::ExecutorFinish(self.desc);
            pg_sys::ExecutorEnd(self.desc);
            pg_sys::FreeQueryDesc(self.desc);
            pg_sys::ReleaseCachedPlan(self.cached, self.owner);
        });
    }

    fn writes(&self) -> bool {
        // SAFETY: the statement is started.
        unsafe { (*self.desc).operation != pg_sys::CmdType::CMD_SELECT }
    }

    /// Runs until `most` rows were returned, or the sink breaks.
    fn run(&mut self, most: u64, sink: &mut dyn FnMut(Row) -> ControlFlow<()>) {
        let mut receiver = RowReceiver::new(self.columns, sink);
        // SAFETY: the receiver outlives the run. The executor runs on the statement's own snapshot.
        step(|| unsafe {
            (*self.desc).dest = (&raw mut receiver).cast();
            pg_sys::PushActiveSnapshot((*self.desc).snapshot);
            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            #[cfg(not(feature = "pg18"))]
            pg_sys::ExecutorRun(self.desc, forward, most, false);
            #[cfg(feature = "pg18")]
            pg_sys::ExecutorRun(self.desc, forward, most);
            pg_sys::PopActiveSnapshot();
            (*self.desc).dest = null_mut();
        });
    }

    /// Runs again for a batch of ids: it was started with [`WIDEST`].
    fn answer(&mut self, batch: [&[TurnId]; 2], sink: &mut dyn FnMut(Row) -> ControlFlow<()>) {
        // The server would sort them by calls of the type's function.
        let sorted = batch.map(|ids| {
            let mut ids = ids.to_vec();
            ids.sort_unstable();
            ids
        });
        let first = sorted.iter().filter_map(|ids| ids.first()).min();
        let last = sorted.iter().filter_map(|ids| ids.last()).max();
        let (Some(first), Some(last)) = (first, last) else { return };
        // SAFETY: the executor reads the parameters through the list that it was given at the start. It does so when a
        // scan begins or, without an index, at each row; rewinding begins the scans again. The list has these four.
        // Their values outlive the run and are put back after it: a module that logs the statement at its end prints
        // them.
        unsafe {
            let arrays = [uuid_array(&sorted[0]), uuid_array(&sorted[1])];
            let [first, last] = [first, last].map(|id| id.as_bytes().as_ptr().into());
            let widest = self.set_parameters([arrays[0], arrays[1], first, last]);
            self.rewind();
            self.run(ALL, sink);
            self.set_parameters(widest);
            arrays.into_iter().for_each(|array| pg_sys::pfree(array.cast_mut_ptr()));
        }
    }

    /// Returns what they were before.
    ///
    /// # Safety
    /// The values are of the parameters' types, and live as long as they are set.
    unsafe fn set_parameters(&self, values: [pg_sys::Datum; 4]) -> [pg_sys::Datum; 4] {
        // SAFETY: `start` made the list with four parameters; it lives as long as the statement.
        unsafe {
            let parameters = (*(*self.desc).params).params.as_mut_ptr();
            let mut number = 0;
            values.map(|value| {
                let parameter = parameters.add(number);
                number += 1;
                std::mem::replace(&mut (*parameter).value, value)
            })
        }
    }

    /// Restarts the scans. The executor does not notice that external parameters have changed. Row security's
    /// subqueries have executor parameters and run again only where those are marked as changed, so all are.
    fn rewind(&self) {
        // SAFETY: the statement is started. Its planned statement lists the types of the executor's parameters,
        // and the set is the plan state's, which frees it.
        unsafe {
            let types = (*(*self.desc).plannedstmt).paramExecTypes;
            let count = PgList::<c_void>::from_pg(types).len() as c_int;
            if count > 0 {
                (*(*self.desc).planstate).chgParam =
                    pg_sys::bms_add_range(null_mut(), 0, count - 1);
            }
            step(|| pg_sys::ExecutorRewind(self.desc));
        }
    }
}

/// No limit on the number of rows, for the executor.
const ALL: u64 = 0;

/// A memory context for one statement, freed with its parent at the latest.
#[derive(Clone, Copy)]
struct StatementContext {
    context: pg_sys::MemoryContext,
    before: pg_sys::MemoryContext,
}

impl StatementContext {
    /// Creates it and switches to it.
    fn begin_below(parent: pg_sys::MemoryContext) -> Self {
        // SAFETY: the new context is a child of one that outlives it.
        unsafe {
            let before = pg_sys::CurrentMemoryContext;
            let context = pg_sys::AllocSetContextCreateInternal(
                parent,
                c"graph_kernel statement".as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            );
            pg_sys::MemoryContextSwitchTo(context);
            StatementContext { context, before }
        }
    }

    /// Switches back to the context that was current before.
    fn leave(self) {
        // SAFETY: the context that was current before still is there.
        unsafe { pg_sys::MemoryContextSwitchTo(self.before) };
    }

    fn delete(self) {
        // SAFETY: nothing in it is used any more, and it is not the current one.
        unsafe { pg_sys::MemoryContextDelete(self.context) };
    }
}
