//! Statements that are started once and answer batch after batch.
//!
//! Starting a statement costs as much as five index probes, and a slice knows which turns to ask for
//! only when it has seen others. Such a statement is left-joined to a relation of its own, `batch (ids
//! uuid[], others uuid[], first uuid, last uuid)`, which has one row: the batch that is asked next.

use std::ffi::CStr;
use std::ops::ControlFlow;
use std::ptr::null_mut;
use std::rc::Rc;

use kernel::turn::TurnId;
use pgrx::{PgList, pg_sys};

use super::spi::{Connection, Plan, Receiver, Row, kept_plan, make_plan, uuid_array};

/// A statement over `batch`, started when it is first asked.
pub struct BatchStatement<'a> {
    text: &'a str,
    running: Option<Running>,
}

impl<'a> BatchStatement<'a> {
    /// A statement whose first column is NULL only where a batch joined nothing.
    pub fn new(text: &'a str) -> Self {
        BatchStatement { text, running: None }
    }

    /// Hands each row for these ids, and those others, to `sink`, read on the snapshot of the first batch.
    pub fn ask(&mut self, batch: [&[TurnId]; 2], sink: impl FnMut(Row) -> ControlFlow<()>) {
        // Put back only after an answer without an error.
        let mut running = self.running.take().unwrap_or_else(|| Running::start(self.text));
        running.answer(batch, sink);
        self.running = Some(running);
    }
}

/// `first` and `last` are the least and the greatest of all ids.
const BATCH_COLUMNS: [(&CStr, pg_sys::Oid); 4] = [
    (c"ids", pg_sys::UUIDARRAYOID),
    (c"others", pg_sys::UUIDARRAYOID),
    (c"first", pg_sys::UUIDOID),
    (c"last", pg_sys::UUIDOID),
];

struct Running {
    desc: *mut pg_sys::QueryDesc,
    batch: *mut pg_sys::Tuplestorestate,
    columns: pg_sys::TupleDesc,
    cached: *mut pg_sys::CachedPlan,
    owner: pg_sys::ResourceOwner,
    /// Its text is the statement's.
    _plan: Rc<Plan>,
}

impl Running {
    fn start(text: &str) -> Self {
        // SAFETY: everything is made in the context and for the resource owner of the function that
        // the server called, which outlive it: it is dropped before that function returns. After an
        // error the transaction's abort gives all of it back. The statement has no parameters, so its
        // plan is generic; its text is that of the kept plan.
        unsafe {
            let columns = pg_sys::CreateTemplateTupleDesc(BATCH_COLUMNS.len() as i32);
            for (number, (name, oid)) in BATCH_COLUMNS.into_iter().enumerate() {
                pg_sys::TupleDescInitEntry(columns, number as i16 + 1, name.as_ptr(), oid, -1, 0);
            }
            // Never to disk: the ids are in memory anyway, and a store that was full once stays full.
            let batch = pg_sys::tuplestore_begin_heap(false, false, i32::MAX);
            let relation: *mut pg_sys::EphemeralNamedRelationData =
                pg_sys::palloc0(size_of::<pg_sys::EphemeralNamedRelationData>()).cast();
            (*relation).md.name = c"batch".as_ptr().cast_mut();
            (*relation).md.tupdesc = columns;
            (*relation).md.enrtype = pg_sys::EphemeralNameRelationType::ENR_NAMED_TUPLESTORE;
            (*relation).md.enrtuples = 1.0;
            (*relation).reldata = batch.cast();
            let environment = pg_sys::create_queryEnv();
            pg_sys::register_ENR(environment, relation);

            let plan = kept_plan(text).unwrap_or_else(|| {
                let _connection = Connection::open();
                let code = pg_sys::SPI_register_relation(relation);
                assert_eq!(
                    code,
                    pg_sys::SPI_OK_REL_REGISTER as i32,
                    "SPI_register_relation failed"
                );
                make_plan(text, &[])
            });
            let cached = plan.probing(environment);
            let statement = PgList::<pg_sys::PlannedStmt>::from_pg((*cached).stmt_list).get_ptr(0);
            let desc = pg_sys::CreateQueryDesc(
                statement.expect("a plan has a statement"),
                plan.text.as_ptr(),
                pg_sys::GetActiveSnapshot(),
                null_mut(),
                null_mut(),
                null_mut(),
                environment,
                0,
            );
            // Not with EXEC_FLAG_REWIND: it asks nodes to keep the rows they gave.
            pg_sys::ExecutorStart(desc, 0);
            let owner = pg_sys::CurrentResourceOwner;
            Running { desc, batch, columns, cached, owner, _plan: plan }
        }
    }

    fn answer(&mut self, batch: [&[TurnId]; 2], mut sink: impl FnMut(Row) -> ControlFlow<()>) {
        let ids = || batch.into_iter().flatten();
        let (Some(first), Some(last)) = (ids().min(), ids().max()) else { return };
        let mut joined = |row: Row| {
            if row.is_null(0) { ControlFlow::Continue(()) } else { sink(row) }
        };
        let mut receiver = Receiver::new(&mut joined);
        // SAFETY: the tuplestore copies the values. Rewinding makes the join ask for its outer row anew,
        // and with that for everything that depends on it. The executor runs on the statement's own
        // snapshot, and the receiver outlives the run.
        unsafe {
            let arrays = batch.map(uuid_array);
            let [first, last] = [first, last].map(|id| id.as_bytes().as_ptr().into());
            let mut values = [arrays[0], arrays[1], first, last];
            let mut nulls = [false; BATCH_COLUMNS.len()];
            pg_sys::tuplestore_clear(self.batch);
            pg_sys::tuplestore_putvalues(
                self.batch,
                self.columns,
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            arrays.into_iter().for_each(|array| pg_sys::pfree(array.cast_mut_ptr()));
            (*self.desc).dest = (&raw mut receiver).cast();
            pg_sys::PushActiveSnapshot((*self.desc).snapshot);
            pg_sys::ExecutorRewind(self.desc);
            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            #[cfg(not(feature = "pg18"))]
            pg_sys::ExecutorRun(self.desc, forward, 0, false);
            #[cfg(feature = "pg18")]
            pg_sys::ExecutorRun(self.desc, forward, 0);
            pg_sys::PopActiveSnapshot();
            (*self.desc).dest = null_mut();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After an error the (sub)transaction's abort gives everything back.
        if std::thread::panicking() {
            return;
        }
        // SAFETY: what `start` made, each given back once, under the same resource owner.
        unsafe {
            pg_sys::ExecutorFinish(self.desc);
            pg_sys::ExecutorEnd(self.desc);
            pg_sys::FreeQueryDesc(self.desc);
            pg_sys::ReleaseCachedPlan(self.cached, self.owner);
            pg_sys::tuplestore_end(self.batch);
        }
    }
}
