//! Rows on their way to the tables: they are put into parts, which threads store while files are read. There are two,
//! each with a connection of its own: while one inserts a batch, the next is copied by the other.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::columns::COLUMNS;
use super::writer::{Complete, End, Origin, Part, Stored, Writer};
use crate::Failure;
use crate::arguments::DatabaseArguments;
use crate::database::connect;

/// How many bytes of rows a part has, unless one row has more.
const PART_BYTES: usize = 1 << 20;

/// How many parts there are: one that is filled, and those that are stored or wait for it.
const PARTS: usize = 5;

/// How many rows, how many bytes of them, and how many conversations a transaction stores, unless one conversation
/// alone has more.
const MAX_ROWS: u64 = 20_000;
const MAX_BYTES: usize = 32 << 20;
const MAX_CONVERSATIONS: usize = 256;

/// How long the first lane is not used for the sake of the second one, which connects.
const CONNECTION_WAIT: Duration = Duration::from_secs(1);

/// What a row in the temporary tables is.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum RowKind {
    /// A turn, with the edge from its parent if it has one.
    Turn,
    /// A message that is not stored: what follows it follows its parent instead.
    Skipped,
    /// An edge alone: the message is the child.
    Edge,
}

/// The columns of a turn, as texts, in the order of [`COLUMNS`].
pub(super) type Columns = [Option<String>; COLUMNS.len()];

pub(super) struct StagedRow {
    pub(super) kind: RowKind,
    pub(super) message: String,
    pub(super) parent: Option<String>,
    pub(super) edge_type: String,
    pub(super) columns: Columns,
}

/// A part that comes back, and what was stored with it.
type Answer = (Part, thread::Result<Result<Stored, Failure>>);

/// A thread that stores batches, over a connection of its own.
struct Lane {
    server: String,
    parts: Sender<Part>,
    thread: JoinHandle<()>,
}

impl Lane {
    fn new(
        connection: &DatabaseArguments,
        origin: Origin,
        done: Sender<Answer>,
    ) -> Result<Self, Failure> {
        let mut writer = Writer::new(connect(connection)?, origin)?;
        let server = writer.server.clone();
        let (parts, to_store) = channel::<Part>();
        let thread = thread::spawn(move || {
            for mut part in to_store {
                let stored = catch_unwind(AssertUnwindSafe(|| writer.take(&mut part)));
                let goes_on = matches!(stored, Ok(Ok(_)));
                if done.send((part, stored)).is_err() || !goes_on {
                    return;
                }
            }
        });
        Ok(Lane { server, parts, thread })
    }
}

/// The second lane. Its connection is made beside the first lane, as a pooler may let it wait.
enum SecondLane {
    Untried(Sender<Answer>),
    Connecting(Receiver<Result<Lane, Failure>>),
    /// It is one of the lanes, or cannot be had.
    Tried,
}

pub(super) struct Store<'a> {
    connection: &'a DatabaseArguments,
    origin: Origin,
    /// The last one gets the next part. None where they have ended.
    lanes: VecDeque<Lane>,
    answers: Receiver<Answer>,
    second: SecondLane,
    /// Tells that the batch before has ended.
    before: Option<Receiver<()>>,
    /// What is being filled, and what can be.
    part: Part,
    spare: Vec<Part>,
    /// What was stored and not asked for yet.
    stored: Stored,
    /// Where the rows of the conversation that is being read begin in the part.
    start: (usize, usize),
    /// Whether rows of it were sent.
    is_sent: bool,
    /// The number of the conversation that is being read.
    number: i64,
    /// The rows so far, in this transaction and those before.
    row: i64,
    /// In this transaction.
    rows: u64,
    bytes: usize,
    complete: usize,
}

impl<'a> Store<'a> {
    pub(super) fn new(connection: &'a DatabaseArguments, origin: Origin) -> Result<Self, Failure> {
        let (answer, answers) = channel::<Answer>();
        let lane = Lane::new(connection, origin.clone(), answer.clone())?;
        Ok(Store {
            connection,
            origin,
            lanes: VecDeque::from([lane]),
            answers,
            second: SecondLane::Untried(answer),
            before: None,
            part: Part::default(),
            spare: (1..PARTS).map(|_| Part::default()).collect(),
            stored: Stored::default(),
            start: (0, 0),
            is_sent: false,
            number: 0,
            row: 0,
            rows: 0,
            bytes: 0,
            complete: 0,
        })
    }

    /// Adds a row to the conversation.
    pub(super) fn add(&mut self, row: &StagedRow) -> Result<(), Failure> {
        let kind = match row.kind {
            RowKind::Turn => b't',
            RowKind::Skipped => b's',
            RowKind::Edge => b'e',
        };
        self.row += 1;
        self.rows += 1;
        let part = &mut self.part;
        part.has_skipped |= row.kind == RowKind::Skipped;
        part.count += 1;
        let before = part.bytes();
        const FIELDS: i16 = 6;
        part.rows.extend(FIELDS.to_be_bytes());
        let texts = [Some(&row.message), row.parent.as_ref(), Some(&row.edge_type)];
        field(&mut part.rows, Some(&self.row.to_be_bytes()));
        field(&mut part.rows, Some(&self.number.to_be_bytes()));
        field(&mut part.rows, Some(&[kind]));
        texts.iter().for_each(|text| field(&mut part.rows, text.map(String::as_bytes)));
        if row.kind == RowKind::Turn {
            const FIELDS: i16 = 1 + COLUMNS.len() as i16;
            part.values.extend(FIELDS.to_be_bytes());
            field(&mut part.values, Some(&self.row.to_be_bytes()));
            let texts = row.columns.iter().map(|text| text.as_deref().map(str::as_bytes));
            texts.for_each(|text| field(&mut part.values, text));
        }
        self.bytes += part.bytes() - before;
        if part.bytes() >= PART_BYTES { self.send(false) } else { Ok(()) }
    }

    /// Takes the conversation as complete. It is stored with others, at the latest by [`Store::flush`]; what was stored
    /// meanwhile is returned.
    pub(super) fn finish(&mut self, id: String, place: String) -> Result<Stored, Failure> {
        self.part.complete.push(Complete { number: self.number, id, place });
        self.complete += 1;
        self.next();
        if self.is_full() || self.complete >= MAX_CONVERSATIONS {
            self.send(true)?;
            self.change_lanes();
        }
        Ok(std::mem::take(&mut self.stored))
    }

    /// Leaves the conversation out.
    pub(super) fn abandon(&mut self) -> Result<(), Failure> {
        self.part.rows.truncate(self.start.0);
        self.part.values.truncate(self.start.1);
        if self.is_sent {
            self.part.left_out.push(self.number);
        }
        self.next();
        // What was left out would otherwise fill the server's disk.
        if self.is_full() && self.complete == 0 { self.send(true) } else { Ok(()) }
    }

    fn is_full(&self) -> bool {
        self.rows >= MAX_ROWS || self.bytes >= MAX_BYTES
    }

    fn next(&mut self) {
        self.number += 1;
        (self.start, self.is_sent) = ((self.part.rows.len(), self.part.values.len()), false);
    }

    /// Stores the conversations that are complete. None may be half read.
    pub(super) fn flush(&mut self) -> Result<Stored, Failure> {
        self.send(true)?;
        while self.spare.len() < PARTS - 1 {
            self.take_answer()?;
        }
        Ok(std::mem::take(&mut self.stored))
    }

    /// Lets the other lane take the next batch. Where there is not a second connection yet, or cannot be, or it leads
    /// to another server, one lane takes all.
    fn change_lanes(&mut self) {
        self.second = match std::mem::replace(&mut self.second, SecondLane::Tried) {
            SecondLane::Untried(answer) => {
                let (lane, connecting) = channel();
                let (connection, origin) = (self.connection.clone(), self.origin.clone());
                // Where the import ends before, this has no transaction.
                thread::spawn(move || lane.send(Lane::new(&connection, origin, answer)));
                self.second_lane(connecting, CONNECTION_WAIT)
            }
            SecondLane::Connecting(connecting) => self.second_lane(connecting, Duration::ZERO),
            SecondLane::Tried => SecondLane::Tried,
        };
        self.lanes.rotate_left(1);
    }

    /// Takes the second lane where it is connected within this time.
    fn second_lane(
        &mut self,
        connecting: Receiver<Result<Lane, Failure>>,
        wait: Duration,
    ) -> SecondLane {
        match connecting.recv_timeout(wait) {
            Ok(Ok(lane)) if self.lanes.iter().all(|first| first.server == lane.server) => {
                self.lanes.push_front(lane);
                SecondLane::Tried
            }
            Err(RecvTimeoutError::Timeout) => SecondLane::Connecting(connecting),
            _ => SecondLane::Tried,
        }
    }

    /// Hands the part to the thread; with `is_end` the transaction ends with it.
    fn send(&mut self, is_end: bool) -> Result<(), Failure> {
        if is_end {
            let (done, before) = channel();
            self.part.end = Some(End { before: self.before.replace(before), done });
        }
        let next = match self.spare.pop() {
            Some(part) => part,
            None => {
                self.take_answer()?;
                self.spare.pop().unwrap_or_default()
            }
        };
        let part = std::mem::replace(&mut self.part, next);
        // Parts with long rows are not held beside each other.
        let is_long = part.bytes() > 2 * PART_BYTES;
        (self.start, self.is_sent) = ((0, 0), true);
        if is_end {
            (self.is_sent, self.rows, self.bytes, self.complete) = (false, 0, 0, 0);
        }
        if let Some(lane) = self.lanes.back() {
            // Where the thread has ended, its last answer says why.
            _ = lane.parts.send(part);
        }
        while is_long && self.spare.len() < PARTS - 1 {
            self.take_answer()?;
        }
        Ok(())
    }

    /// Waits until a part comes back.
    fn take_answer(&mut self) -> Result<(), Failure> {
        // A lane that is not one of these yet would let an import that has ended wait.
        let answer = match self.lanes.is_empty() {
            true => self.answers.try_recv().ok(),
            false => self.answers.recv().ok(),
        };
        let Some((mut part, stored)) = answer else {
            self.join();
            return Err("what could not be stored was reported before".to_owned());
        };
        match stored {
            Ok(Ok(stored)) => self.stored.add(stored),
            Ok(Err(failure)) => {
                // The next batch waits for its end.
                drop(part);
                self.join();
                return Err(failure);
            }
            Err(panicked) => resume_unwind(panicked),
        }
        part.rows.clear();
        part.values.clear();
        for bytes in [&mut part.rows, &mut part.values] {
            bytes.shrink_to(2 * PART_BYTES);
        }
        (part.count, part.has_skipped, part.end) = (0, false, None);
        self.spare.push(part);
        Ok(())
    }

    /// Waits for the end of the threads, which leave no transaction open.
    fn join(&mut self) {
        self.second = SecondLane::Tried;
        let (senders, threads): (Vec<_>, Vec<_>) =
            self.lanes.drain(..).map(|lane| (lane.parts, lane.thread)).unzip();
        drop(senders);
        for thread in threads {
            thread.join().expect("it sends on what panics");
        }
    }
}

impl Drop for Store<'_> {
    fn drop(&mut self) {
        self.join();
    }
}

fn field(buffer: &mut Vec<u8>, value: Option<&[u8]>) {
    let length = value.map_or(-1, |value| value.len() as i32);
    buffer.extend(length.to_be_bytes());
    buffer.extend(value.unwrap_or_default());
}
