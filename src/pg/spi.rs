//! Read-only statements through SPI.
//!
//! Why not pgrx's `Spi`: its `select` is read-only only until the transaction has an XID, after
//! which a statement takes a snapshot of its own and the slice could mix two states; `get_one` and
//! `run` assign an XID, which fails on a standby. Here every statement runs `read_only` on the
//! caller's snapshot, and rows go from the executor straight to a closure: nothing is copied into
//! an SPI tuple table.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int};
use std::ops::ControlFlow;
use std::ptr::{NonNull, null_mut};
use std::rc::Rc;

use kernel::turn::TurnId;
use pgrx::prelude::*;
use pgrx::{PgList, pg_sys};

use super::error::SqlError;
use super::text_type::to_sql_uuid;

/// Kept plans are few: some statements for each shape of a graph this backend has read.
const MAX_PLANS: usize = 64;

thread_local! {
    /// By statement.
    static PLANS: RefCell<HashMap<String, Rc<Plan>>> = RefCell::default();
}

/// The `uuid[]` of these ids, in the current memory context.
pub(super) fn uuid_array(ids: &[TurnId]) -> pg_sys::Datum {
    let bytes = ARRAY_HEADER + size_of_val(ids);
    // SAFETY: an array of one dimension without NULLs is ArrayType, its length and its lower bound, then,
    // aligned, its elements; a uuid is stored as its 16 bytes. There is room for all of them.
    unsafe {
        if ids.is_empty() {
            return pg_sys::construct_empty_array(pg_sys::UUIDOID).into();
        }
        let array: *mut pg_sys::ArrayType = pg_sys::palloc(bytes).cast();
        pgrx::set_varsize_4b(array.cast(), bytes as i32);
        (*array).ndim = 1;
        (*array).dataoffset = 0;
        (*array).elemtype = pg_sys::UUIDOID;
        array.add(1).cast::<[c_int; 2]>().write([ids.len() as c_int, 1]);
        let elements = array.cast::<u8>().add(ARRAY_HEADER).cast::<[u8; 16]>();
        for (index, id) in ids.iter().enumerate() {
            elements.add(index).write(id.into_bytes());
        }
        array.into()
    }
}

/// A prepared statement that lives as long as the backend.
pub(super) struct Plan {
    plan: NonNull<pg_sys::_SPI_plan>,
    pub(super) text: CString,
    /// For whom it was last made.
    made_for: Cell<Option<(pg_sys::Oid, bool)>>,
}

impl Plan {
    pub(super) fn as_ptr(&self) -> *mut pg_sys::_SPI_plan {
        self.plan.as_ptr()
    }

    /// The server's plan, made anew where it does not hold, to be given back by the current resource owner.
    /// Estimates for a graph with hubs would have it scan the tables, compile that, and remember rows that do
    /// not come again: what asks by ids is planned to probe indexes.
    pub(super) fn probing(&self) -> *mut pg_sys::CachedPlan {
        // SAFETY: the source is kept and its plan generic. After an error the (sub)transaction's abort
        // unmakes the settings.
        let cached = unsafe {
            let (source, owner) = (self.source(), pg_sys::CurrentResourceOwner);
            let cached = || pg_sys::GetCachedPlan(source, null_mut(), owner, null_mut());
            if self.holds() {
                cached()
            } else {
                let level = pg_sys::NewGUCNestLevel();
                PROBING.into_iter().for_each(switch_off);
                let cached = cached();
                pg_sys::AtEOXact_GUC(true, level);
                cached
            }
        };
        self.made_for.set(Some(planned_for()));
        cached
    }

    /// Whether the server would use its plan as it is. Settings made at each call would cost a small slice
    /// about one per cent.
    fn holds(&self) -> bool {
        // SAFETY: a kept plan has one source, which lives as long as it.
        unsafe {
            let source = self.source();
            let plan = (*source).gplan;
            self.made_for.get() == Some(planned_for())
                && (*source).is_valid
                && !plan.is_null()
                && (*plan).is_valid
        }
    }

    fn source(&self) -> *mut pg_sys::CachedPlanSource {
        // SAFETY: a kept plan has a list of one source; both live as long as it.
        unsafe {
            let sources = pg_sys::SPI_plan_get_plan_sources(self.as_ptr());
            let source = PgList::<pg_sys::CachedPlanSource>::from_pg(sources).get_ptr(0);
            source.expect("a plan has a source")
        }
    }
}

/// What a plan depends on beside the catalog and the search_path, which is fixed.
fn planned_for() -> (pg_sys::Oid, bool) {
    // SAFETY: reads the session's state.
    unsafe { (pg_sys::GetUserId(), pg_sys::row_security) }
}

/// What the planner must not think of where indexes are to be probed.
const PROBING: [&CStr; 4] = [c"enable_seqscan", c"enable_bitmapscan", c"enable_memoize", c"jit"];

/// Switches a setting off as a function's SET clause would.
fn switch_off(setting: &CStr) {
    // SAFETY: a setting of the server that anybody may set.
    unsafe {
        pg_sys::set_config_option(
            setting.as_ptr(),
            c"off".as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: the plan was kept by SPI_keepplan and is freed once; no statement runs on it,
        // as a running one holds its own Rc.
        unsafe { pg_sys::SPI_freeplan(self.as_ptr()) };
    }
}

/// A connection to SPI, ended when it goes out of scope.
pub(super) struct Connection;

impl Connection {
    pub(super) fn open() -> Self {
        // SAFETY: called inside a function the server calls, within a transaction.
        let code = unsafe { pg_sys::SPI_connect() };
        assert_eq!(code, pg_sys::SPI_OK_CONNECT as c_int, "SPI_connect failed");
        Connection
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // After an error the (sub)transaction's abort ends the connection itself.
        if !std::thread::panicking() {
            // SAFETY: pairs with SPI_connect above, on the same nesting level.
            unsafe { pg_sys::SPI_finish() };
        }
    }
}

/// A value for a parameter of a statement.
#[derive(Clone, Copy)]
pub enum Argument<'a> {
    /// A `uuid[]`.
    Ids(&'a [TurnId]),
    /// A `uuid`.
    Id(TurnId),
    /// A `bigint`.
    Number(i64),
    /// A `text`.
    Text(Option<&'a str>),
}

impl Argument<'_> {
    fn type_oid(self) -> pg_sys::Oid {
        match self {
            Argument::Ids(_) => pg_sys::UUIDARRAYOID,
            Argument::Id(_) => pg_sys::UUIDOID,
            Argument::Number(_) => pg_sys::INT8OID,
            Argument::Text(_) => pg_sys::TEXTOID,
        }
    }

    /// The value, in the current memory context; `None` for NULL.
    fn datum(self) -> Option<pg_sys::Datum> {
        match self {
            Argument::Ids(ids) => Some(uuid_array(ids)),
            Argument::Id(id) => to_sql_uuid(id).into_datum(),
            Argument::Number(number) => Some(number.into()),
            Argument::Text(text) => text.and_then(IntoDatum::into_datum),
        }
    }
}

/// The parameter list of a statement, in the current memory context.
pub(super) fn param_list(arguments: &[Argument<'_>]) -> pg_sys::ParamListInfo {
    // SAFETY: the list is made with room for as many entries as are written.
    unsafe {
        let list = pg_sys::makeParamList(arguments.len() as c_int);
        for (index, argument) in arguments.iter().enumerate() {
            let entry = (*list).params.as_mut_ptr().add(index);
            let value = argument.datum();
            (*entry).isnull = value.is_none();
            (*entry).value = value.unwrap_or(pg_sys::Datum::null());
            (*entry).pflags = pg_sys::PARAM_FLAG_CONST as u16;
            (*entry).ptype = argument.type_oid();
        }
        list
    }
}

/// Runs a read-only statement on the caller's snapshot, with these values for `$1`, `$2`, …, and
/// hands each row to `sink`.
///
/// The statement's plan is generic and kept by its text, so the text must name its tables with
/// their schemas and say all that the plan depends on. One that asks by ids is planned to probe indexes.
pub fn query(
    statement: &str,
    arguments: &[Argument<'_>],
    mut sink: impl FnMut(Row) -> ControlFlow<()>,
) {
    let _connection = Connection::open();
    let plan = plan(statement, arguments);
    if arguments.iter().any(|argument| matches!(argument, Argument::Ids(_))) {
        // SAFETY: the owner is the one it was taken for.
        unsafe { pg_sys::ReleaseCachedPlan(plan.probing(), pg_sys::CurrentResourceOwner) };
    }
    let mut receiver = Receiver::new(&mut sink);
    // SAFETY: the parameter list lives, like the values in it, in SPI's procedure context until
    // SPI_finish; the receiver and the sink it points to outlive the call.
    let code = unsafe {
        let options = pg_sys::SPIExecuteOptions {
            params: param_list(arguments),
            read_only: true,
            dest: (&raw mut receiver).cast(),
            ..Default::default()
        };
        pg_sys::SPI_execute_plan_extended(plan.as_ptr(), &options)
    };
    assert!(code >= 0, "SPI_execute_plan_extended failed: {code}");
}

/// A read-only statement that is suspended between its rows, as long as the caller's own statement
/// runs. It keeps the snapshot it was opened with.
pub struct Cursor {
    /// The portal's name. Not the portal: the transaction may have closed it by the time this is
    /// dropped.
    name: CString,
    fetched: u64,
}

impl Cursor {
    /// Begins the statement; see [`query`].
    pub fn open(statement: &str, arguments: &[Argument<'_>]) -> Self {
        let _connection = Connection::open();
        let plan = plan(statement, arguments);
        // SAFETY: the portal copies the parameters and holds the plan; its name lives as long as it
        // does and is copied. A portal that is not visible is not listed in pg_cursors. One that may
        // be held is not closed by PreCommit_Portals while a caller's WITH HOLD cursor still needs it.
        let name = unsafe {
            let portal = pg_sys::SPI_cursor_open_with_paramlist(
                std::ptr::null(),
                plan.as_ptr(),
                param_list(arguments),
                true,
            );
            (*portal).visible = false;
            (*portal).cursorOptions |= pg_sys::CURSOR_OPT_HOLD as c_int;
            CStr::from_ptr((*portal).name).to_owned()
        };
        Cursor { name, fetched: 0 }
    }

    /// Hands the next row to `sink`; `false` at the end.
    ///
    /// # Errors
    /// 24000 when somebody has closed or moved the cursor.
    pub fn next(&mut self, mut sink: impl FnMut(Row)) -> Result<bool, SqlError> {
        // SAFETY: a look-up by name.
        let portal = unsafe { pg_sys::SPI_cursor_find(self.name.as_ptr()) };
        // SAFETY: the portal is valid when it is not null.
        if portal.is_null() || unsafe { (*portal).portalPos } != self.fetched {
            return Err(SqlError::new(
                PgSqlErrorCode::ERRCODE_INVALID_CURSOR_STATE,
                "the cursor of a running function was closed or moved",
            )
            .detail("CURSOR_LOST")
            .hint("Call the function in the FROM clause, where it runs to its end at once."));
        }
        let mut sink = |row: Row| {
            sink(row);
            ControlFlow::Continue(())
        };
        let mut receiver = Receiver::new(&mut sink);
        // SAFETY: the portal is open and not running; the receiver outlives the call.
        let rows = unsafe {
            pg_sys::PortalRunFetch(
                portal,
                pg_sys::FetchDirection::FETCH_FORWARD,
                1,
                (&raw mut receiver).cast(),
            )
        };
        self.fetched += rows as u64;
        Ok(rows > 0)
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        // SAFETY: look-ups, and the end of a portal that is not running. A transaction that is being
        // aborted ends its portals itself.
        unsafe {
            if std::thread::panicking() || !pg_sys::IsTransactionState() {
                return;
            }
            let portal = pg_sys::SPI_cursor_find(self.name.as_ptr());
            if !portal.is_null() {
                pg_sys::SPI_cursor_close(portal);
            }
        }
    }
}

fn plan(statement: &str, arguments: &[Argument<'_>]) -> Rc<Plan> {
    kept_plan(statement).unwrap_or_else(|| make_plan(statement, arguments))
}

/// The statement's plan, if it has one already.
pub(super) fn kept_plan(statement: &str) -> Option<Rc<Plan>> {
    PLANS.with_borrow(|plans| plans.get(statement).cloned())
}

/// The statement's plan, kept from now on. Called within a [`Connection`].
pub(super) fn make_plan(statement: &str, arguments: &[Argument<'_>]) -> Rc<Plan> {
    let text = CString::new(statement).expect("statements hold no NUL byte");
    let mut types: Vec<pg_sys::Oid> = arguments.iter().map(|a| a.type_oid()).collect();
    // SAFETY: `types` has as many entries as said; an unparsable statement raises an error.
    let plan = unsafe {
        let plan = pg_sys::SPI_prepare_cursor(
            text.as_ptr(),
            types.len() as c_int,
            types.as_mut_ptr(),
            (pg_sys::CURSOR_OPT_GENERIC_PLAN | pg_sys::CURSOR_OPT_NO_SCROLL) as c_int,
        );
        let plan = NonNull::new(plan).expect("SPI_prepare_cursor returns a plan or raises");
        assert_eq!(pg_sys::SPI_keepplan(plan.as_ptr()), 0, "SPI_keepplan failed");
        Rc::new(Plan { plan, text, made_for: Cell::new(None) })
    };
    PLANS.with_borrow_mut(|plans| {
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        plans.insert(statement.to_owned(), Rc::clone(&plan));
    });
    plan
}

/// A DestReceiver whose rows go to a closure. The interface stands first, as PostgreSQL hands the
/// callbacks a pointer to it.
#[repr(C)]
pub(super) struct Receiver<'a> {
    interface: pg_sys::DestReceiver,
    sink: &'a mut dyn FnMut(Row) -> ControlFlow<()>,
}

impl<'a> Receiver<'a> {
    pub(super) fn new(sink: &'a mut dyn FnMut(Row) -> ControlFlow<()>) -> Self {
        let interface = pg_sys::DestReceiver {
            receiveSlot: Some(receive_slot),
            rStartup: Some(receiver_startup),
            rShutdown: Some(receiver_nothing),
            rDestroy: Some(receiver_nothing),
            // As PL/pgSQL's own: anything but DestNone and DestSPI keeps SPI's hands off the rows.
            mydest: pg_sys::CommandDest::DestTuplestore,
        };
        Receiver { interface, sink }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn receive_slot(
    slot: *mut pg_sys::TupleTableSlot,
    receiver: *mut pg_sys::DestReceiver,
) -> bool {
    // SAFETY: `receiver` is the first field of a Receiver, which is borrowed for the
    // whole execution; the slot is valid during the call.
    unsafe {
        let receiver = &mut *receiver.cast::<Receiver<'_>>();
        let columns = (*(*slot).tts_tupleDescriptor).natts;
        if i32::from((*slot).tts_nvalid) < columns {
            pg_sys::slot_getsomeattrs_int(slot, columns);
        }
        (receiver.sink)(Row { slot }).is_continue()
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn receiver_startup(
    _receiver: *mut pg_sys::DestReceiver,
    _operation: c_int,
    _columns: pg_sys::TupleDesc,
) {
}

#[pg_guard]
unsafe extern "C-unwind" fn receiver_nothing(_receiver: *mut pg_sys::DestReceiver) {}

/// One row of an answer, valid while its sink runs. Columns count from 0; a column is read by the
/// getter of its type as the statement's select list says it.
pub struct Row {
    slot: *mut pg_sys::TupleTableSlot,
}

impl Row {
    fn datum(&self, column: usize) -> Option<pg_sys::Datum> {
        // SAFETY: `receive_slot` has deformed all columns; the statement has more than `column`.
        unsafe {
            debug_assert!(column < (*(*self.slot).tts_tupleDescriptor).natts as usize);
            let null = *(*self.slot).tts_isnull.add(column);
            (!null).then(|| *(*self.slot).tts_values.add(column))
        }
    }

    /// A `uuid`.
    pub fn id(&self, column: usize) -> Option<TurnId> {
        // SAFETY: a uuid is a pointer to its 16 bytes.
        self.datum(column).map(|d| TurnId::from_bytes(unsafe { *d.cast_mut_ptr::<[u8; 16]>() }))
    }

    /// A `bigint`, or anything else stored in 8 bytes by value.
    pub fn i64(&self, column: usize) -> Option<i64> {
        self.datum(column).map(|d| d.value() as i64)
    }

    /// A `boolean`.
    pub fn bool(&self, column: usize) -> Option<bool> {
        self.datum(column).map(|d| d.value() as u8 != 0)
    }

    /// A `double precision`.
    pub fn f64(&self, column: usize) -> Option<f64> {
        self.datum(column).map(|d| f64::from_bits(d.value() as u64))
    }

    /// A `text`, handed to `read`; bytes that are no UTF-8 are replaced.
    pub fn text<T>(&self, column: usize, read: impl FnOnce(Option<&str>) -> T) -> T {
        let Some(datum) = self.datum(column) else {
            return read(None);
        };
        let stored: *mut pg_sys::varlena = datum.cast_mut_ptr();
        // SAFETY: a text is a varlena; one that is compressed or stored elsewhere is copied by
        // the detoaster, and the copy is freed here.
        unsafe {
            let plain = pgrx::varatt_is_4b_u(stored)
                || (pgrx::varatt_is_1b(stored) && !pgrx::varatt_is_1b_e(stored));
            let text = if plain { stored } else { pg_sys::pg_detoast_datum_packed(stored) };
            let bytes = std::slice::from_raw_parts(
                pgrx::vardata_any(text).cast::<u8>(),
                pgrx::varsize_any_exhdr(text),
            );
            // The lossy conversion looks at each byte, this one at eight.
            let result = match std::str::from_utf8(bytes) {
                Ok(text) => read(Some(text)),
                Err(_) => read(Some(&String::from_utf8_lossy(bytes))),
            };
            if text != stored {
                pg_sys::pfree(text.cast());
            }
            result
        }
    }

    /// A `real[]`, handed to `read`: `None` when it is NULL, has a NULL in it or not one dimension.
    pub fn floats<T>(&self, column: usize, read: impl FnOnce(Option<&[f32]>) -> T) -> T {
        let Some(datum) = self.datum(column) else {
            return read(None);
        };
        let stored: *mut pg_sys::varlena = datum.cast_mut_ptr();
        // SAFETY: a real[] is a varlena that, detoasted, begins with ArrayType; with one dimension
        // and no bitmap of NULLs its length follows, then its lower bound, then, aligned, as many
        // binary32 numbers. A copy that the detoaster made is freed here.
        unsafe {
            let array: *mut pg_sys::ArrayType = pg_sys::pg_detoast_datum(stored).cast();
            let plain = (*array).ndim == 1
                && (*array).dataoffset == 0
                && (*array).elemtype == pg_sys::FLOAT4OID;
            let values = plain.then(|| {
                let length = *array.add(1).cast::<c_int>();
                let first = array.cast::<u8>().add(ARRAY_HEADER).cast::<f32>();
                std::slice::from_raw_parts(first, length as usize)
            });
            let result = read(values);
            if array.cast() != stored {
                pg_sys::pfree(array.cast());
            }
            result
        }
    }
}

/// Bytes before the elements of an array with one dimension and no NULLs (ARR_OVERHEAD_NONULLS).
const ARRAY_HEADER: usize =
    (size_of::<pg_sys::ArrayType>() + 2 * size_of::<c_int>()).next_multiple_of(8);
