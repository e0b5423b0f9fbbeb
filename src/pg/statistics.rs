//! Statistics of calls, in shared memory if the server preloads the library. They count calls, errors, times, turns and
//! results of verifications, for each function and database. Without preloading nothing is counted.
//!
//! Counters are atomics, so nobody waits. A function gets its entry when it is first called, and keeps it until the
//! server ends.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::CStr;
use std::ptr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use pgrx::prelude::*;
use pgrx::{PGRXSharedMemory, PgAtomic, pg_shmem_init, pg_sys};

use crate::pg::text::{replaced, with_bytes};

/// How many functions have statistics, over all databases of the server. Calls of further ones are not counted.
const MAX_FUNCTIONS: usize = 512;

/// How many words are counted for each function. Further ones are counted together, as [`OTHER`].
const MAX_WORDS: usize = 24;
const OTHER: &str = "OTHER";

/// The longest name of a function, and the longest word, in bytes.
const NAME_BYTES: usize = pg_sys::NAMEDATALEN as usize;
const WORD_BYTES: usize = 32;

/// The upper bounds of the histogram's buckets, in microseconds; one more bucket has what took longer.
pub const BUCKET_BOUNDS: [u64; 13] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
    10_000_000,
];

/// What a word says of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WordKind {
    /// The word in DETAIL of an error, or its SQLSTATE.
    Error = 1,
    /// The result of verifying an export, a proof, a token or a record of a search: `ok` or a reason.
    Verification = 2,
}

impl WordKind {
    const ALL: [WordKind; 2] = [WordKind::Error, WordKind::Verification];
}

/// Text in shared memory.
struct SharedText<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> SharedText<WORDS> {
    fn new() -> Self {
        SharedText([const { AtomicU64::new(0) }; WORDS])
    }

    /// Cut to what fits.
    fn packed(text: &str) -> [u64; WORDS] {
        let text = &text.as_bytes()[..text.floor_char_boundary(WORDS * 8)];
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(text.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(padded);
        }
        words
    }

    fn set(&self, packed: [u64; WORDS]) {
        for (target, word) in self.0.iter().zip(packed) {
            target.store(word, Ordering::Relaxed);
        }
    }

    fn is(&self, packed: [u64; WORDS]) -> bool {
        self.0.iter().zip(packed).all(|(word, other)| word.load(Ordering::Relaxed) == other)
    }

    fn text(&self) -> String {
        let bytes = self.0.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        replaced(&bytes.take_while(|byte| *byte != 0).collect::<Vec<u8>>()).into_owned()
    }
}

/// Whether an entry is used. It goes from free to claimed to used; that of a word is free again after a reset.
const FREE: u32 = 0;
const CLAIMED: u32 = 1;

/// Returns the entry for which `is_wanted`, or claims a free one and fills it in. `None` where all are used.
fn find_or_claim<'a, E>(
    entries: impl Iterator<Item = &'a E>,
    state: impl Fn(&E) -> &AtomicU32,
    used: u32,
    is_wanted: impl Fn(&E) -> bool,
    fill: impl Fn(&E),
) -> Option<&'a E> {
    for entry in entries {
        let state = state(entry);
        let claimed = state.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Acquire);
        if claimed.is_ok() {
            fill(entry);
            state.store(used, Ordering::Release);
            return Some(entry);
        }
        // Filling in takes a few stores. No error can end it, and a killed process takes the shared memory along.
        while state.load(Ordering::Acquire) == CLAIMED {
            std::hint::spin_loop();
        }
        if state.load(Ordering::Acquire) == used && is_wanted(entry) {
            return Some(entry);
        }
    }
    None
}

struct WordCount {
    /// [`FREE`], [`CLAIMED`], or [`Self::used`] of its kind.
    state: AtomicU32,
    word: SharedText<{ WORD_BYTES / 8 }>,
    count: AtomicU64,
}

impl WordCount {
    fn used(kind: WordKind) -> u32 {
        CLAIMED + kind as u32
    }
}

struct FunctionStatistics {
    state: AtomicU32,
    database: AtomicU32,
    name: SharedText<{ NAME_BYTES / 8 }>,
    calls: AtomicU64,
    nanoseconds: AtomicU64,
    turns_read: AtomicU64,
    turns_selected: AtomicU64,
    buckets: [AtomicU64; BUCKET_BOUNDS.len() + 1],
    /// The first for further words, one of each kind.
    words: [WordCount; WordKind::ALL.len() + MAX_WORDS],
}

const USED: u32 = 2;

impl FunctionStatistics {
    fn new() -> Self {
        FunctionStatistics {
            state: AtomicU32::new(FREE),
            database: AtomicU32::new(0),
            name: SharedText::new(),
            calls: AtomicU64::new(0),
            nanoseconds: AtomicU64::new(0),
            turns_read: AtomicU64::new(0),
            turns_selected: AtomicU64::new(0),
            buckets: [const { AtomicU64::new(0) }; BUCKET_BOUNDS.len() + 1],
            words: [const {
                WordCount {
                    state: AtomicU32::new(FREE),
                    word: SharedText([const { AtomicU64::new(0) }; WORD_BYTES / 8]),
                    count: AtomicU64::new(0),
                }
            }; WordKind::ALL.len() + MAX_WORDS],
        }
    }

    fn count(&self, call: &Call, error: Option<&str>) {
        let time = call.start.elapsed();
        self.nanoseconds.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
        if !call.is_continued {
            let microseconds = time.as_micros() as u64;
            let bucket = BUCKET_BOUNDS.partition_point(|bound| *bound < microseconds);
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(word) = error {
            self.count_word(WordKind::Error, word);
        }
    }

    fn count_word<'s>(&'s self, kind: WordKind, word: &str) {
        let used = WordCount::used(kind);
        let find = |words: &'s [WordCount], packed| {
            find_or_claim(
                words.iter(),
                |entry| &entry.state,
                used,
                |entry| entry.word.is(packed),
                |entry| {
                    entry.word.set(packed);
                    entry.count.store(0, Ordering::Relaxed);
                },
            )
        };
        let (others, words) = self.words.split_at(WordKind::ALL.len());
        let entry = find(words, SharedText::packed(word))
            .or_else(|| find(others, SharedText::packed(OTHER)));
        if let Some(entry) = entry {
            entry.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn reset(&self) {
        let counters = [&self.calls, &self.nanoseconds, &self.turns_read, &self.turns_selected];
        for counter in counters.into_iter().chain(&self.buckets) {
            counter.store(0, Ordering::Relaxed);
        }
        // Its place is free for other words. What is counted just now may be counted for one of those.
        for word in &self.words {
            word.count.store(0, Ordering::Relaxed);
            let (success, failure) = (Ordering::Release, Ordering::Relaxed);
            let free = |kind| {
                let used = WordCount::used(kind);
                word.state.compare_exchange(used, FREE, success, failure).is_ok()
            };
            _ = WordKind::ALL.into_iter().any(free);
        }
    }

    fn is_of_this_database(&self) -> bool {
        self.state.load(Ordering::Acquire) == USED
            && self.database.load(Ordering::Relaxed) == this_database()
    }
}

struct Statistics([FunctionStatistics; MAX_FUNCTIONS]);

// SAFETY: it consists of atomics, and holds no address.
unsafe impl PGRXSharedMemory for Statistics {}

// SAFETY: no other shared memory has this name.
static STATISTICS: PgAtomic<Statistics> = unsafe { PgAtomic::new(c"graph_kernel statistics") };

static mut PREVIOUS_HOOK: pg_sys::fmgr_hook_type = None;

thread_local! {
    static IS_COUNTING: Cell<bool> = const { Cell::new(false) };
    /// The entry of each function that was called, by its oid; `None` for those of others.
    static ENTRIES: RefCell<HashMap<pg_sys::Oid, Option<usize>>> = RefCell::default();
    /// The calls in progress, the innermost last.
    static CALLS: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
}

/// A call that the server has announced.
struct Call {
    /// The entry of the function; `None` for one of others.
    entry: Option<usize>,
    start: Instant,
    /// Whether this is the second or a later row of a call that returns row after row.
    is_continued: bool,
}

/// Requests shared memory and hooks into calls if the server preloads the library; called once when it is loaded.
pub fn register() {
    // SAFETY: reads a variable of the server; hooks are installed before any other process exists.
    unsafe {
        if !pg_sys::process_shared_preload_libraries_in_progress {
            return;
        }
        PREVIOUS_HOOK = pg_sys::fmgr_hook;
        pg_sys::fmgr_hook = Some(on_call);
        pg_sys::CacheRegisterSyscacheCallback(
            pg_sys::SysCacheIdentifier::PROCOID as i32,
            Some(function_changed),
            pg_sys::Datum::from(0),
        );
    }
    #[allow(unexpected_cfgs)] // the macro asks for versions that are not built
    {
        pg_shmem_init!(STATISTICS = Statistics(std::array::from_fn(|_| FunctionStatistics::new())));
    }
    IS_COUNTING.set(true);
}

#[pg_guard]
unsafe extern "C-unwind" fn function_changed(_arg: pg_sys::Datum, _cache: i32, _hash: u32) {
    // It is borrowed where a session ends in the middle of an insertion.
    ENTRIES.with(|entries| entries.try_borrow_mut().map(|mut entries| entries.clear())).ok();
}

/// The server calls this around each call of a function with a SET clause, which all functions with statistics have.
#[pg_guard]
unsafe extern "C-unwind" fn on_call(
    event: pg_sys::FmgrHookEventType::Type,
    function: *mut pg_sys::FmgrInfo,
    private: *mut pg_sys::Datum,
) {
    // SAFETY: as the server has called us.
    unsafe {
        if let Some(previous) = PREVIOUS_HOOK {
            pg_sys::submodules::ffi::pg_guard_ffi_boundary(|| previous(event, function, private));
        }
    }
    if event == pg_sys::FmgrHookEventType::FHET_START {
        // SAFETY: the server passes a function that it is about to call.
        let function = unsafe { &*function };
        let entry = entry_of(function.fn_oid);
        let is_continued = function.fn_retset && !function.fn_extra.is_null();
        CALLS.with_borrow_mut(|calls| {
            calls.push(Call { entry, start: Instant::now(), is_continued })
        });
    } else if let Some(call) = CALLS.with_borrow_mut(Vec::pop)
        && let Some(entry) = call.entry
    {
        // No look-up in the catalog here: an error may be in progress.
        let has_failed = event == pg_sys::FmgrHookEventType::FHET_ABORT;
        STATISTICS.get().0[entry].count(&call, has_failed.then(error_word).as_deref());
    }
}

/// The index of the entry of a function of this extension.
fn entry_of(function: pg_sys::Oid) -> Option<usize> {
    if let Some(entry) = ENTRIES.with_borrow(|entries| entries.get(&function).copied()) {
        return entry;
    }
    let entry = name_if_of_extension(function).and_then(|name| {
        let (packed, database) = (SharedText::packed(&name), this_database());
        let all = &STATISTICS.get().0;
        let found = find_or_claim(
            all.iter(),
            |entry| &entry.state,
            USED,
            |entry| entry.database.load(Ordering::Relaxed) == database && entry.name.is(packed),
            |entry| {
                entry.database.store(database, Ordering::Relaxed);
                entry.name.set(packed);
            },
        );
        found.and_then(|entry| all.iter().position(|other| ptr::eq(other, entry)))
    });
    ENTRIES.with_borrow_mut(|entries| entries.insert(function, entry));
    entry
}

/// The names of the functions that the scripts in `sql` make, in ascending order.
static SCRIPTED: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!(concat!(env!("OUT_DIR"), "/functions.txt")).lines().collect());

/// The library as functions in C name it, which only a superuser makes.
const LIBRARY: &CStr = c"$libdir/graph_kernel";

/// The name of a function of this library, or of one that its scripts make. The owner of the extension can add
/// functions of his own to it, and those must not use up the entries.
fn name_if_of_extension(function: pg_sys::Oid) -> Option<String> {
    // SAFETY: look-ups in the catalog, within the call of a function and so within a transaction.
    unsafe {
        let extension = pg_sys::get_extension_oid(c"graph_kernel".as_ptr(), true);
        if extension == pg_sys::InvalidOid
            || pg_sys::getExtensionOfObject(pg_sys::ProcedureRelationId, function) != extension
        {
            return None;
        }
        let name = pg_sys::get_func_name(function);
        let name =
            (!name.is_null()).then(|| replaced(CStr::from_ptr(name).to_bytes()).into_owned())?;
        (is_in_library(function) || SCRIPTED.binary_search(&name.as_str()).is_ok()).then_some(name)
    }
}

/// Whether a function is in C, and of this library.
fn is_in_library(function: pg_sys::Oid) -> bool {
    let cache = pg_sys::SysCacheIdentifier::PROCOID as i32;
    // SAFETY: a syscache look-up; the tuple is released after its value was compared. The value is a text.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache, function.into());
        if tuple.is_null() {
            return false;
        }
        let mut is_null = false;
        let attribute = pg_sys::Anum_pg_proc_probin as i16;
        let datum = pg_sys::SysCacheGetAttr(cache, tuple, attribute, &raw mut is_null);
        let is_ours = !is_null && with_bytes(datum, |file| file == LIBRARY.to_bytes());
        pg_sys::ReleaseSysCache(tuple);
        is_ours
    }
}

/// The word in DETAIL of the error in progress, or its SQLSTATE.
fn error_word() -> String {
    // SAFETY: an error is in progress. It is copied into a context of its own, unless memory is short: FreeErrorData
    // does not free all of a copy. Where the copy fails, the session ends.
    unsafe {
        let code = pg_sys::geterrcode();
        if code != pg_sys::errcodes::PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as i32 {
            let context = pg_sys::AllocSetContextCreateInternal(
                pg_sys::ErrorContext,
                c"error of graph_kernel".as_ptr(),
                0,
                pg_sys::ALLOCSET_SMALL_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            );
            let before = pg_sys::MemoryContextSwitchTo(context);
            let error = pg_sys::CopyErrorData();
            let detail = (*error).detail;
            // A reason may follow the word. Cut, as interrupts must not be checked while reading a long one.
            let word = (!detail.is_null()).then(|| {
                let detail = CStr::from_ptr(detail).to_bytes();
                let detail = replaced(&detail[..detail.len().min(WORD_BYTES + 2)]);
                detail.split(": ").next().unwrap_or_default().to_owned()
            });
            pg_sys::MemoryContextSwitchTo(before);
            pg_sys::MemoryContextDelete(context);
            let is_word = |word: &String| {
                (1..=WORD_BYTES).contains(&word.len())
                    && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
            };
            if let Some(word) = word.filter(is_word) {
                return word;
            }
        }
        // Six bits for each character, the first lowest.
        (0..5).map(|n| char::from(((code >> (6 * n)) & 0x3f) as u8 + b'0')).collect()
    }
}

fn this_database() -> u32 {
    // SAFETY: reads a variable of the server.
    unsafe { pg_sys::MyDatabaseId }.to_u32()
}

fn with_current(count: impl FnOnce(&FunctionStatistics)) {
    if !IS_COUNTING.get() {
        return;
    }
    if let Some(entry) = CALLS.with_borrow(|calls| calls.last().and_then(|call| call.entry)) {
        count(&STATISTICS.get().0[entry]);
    }
}

/// Counts turns that the call in progress read from the tables.
pub fn count_read(turns: u64) {
    with_current(|statistics| _ = statistics.turns_read.fetch_add(turns, Ordering::Relaxed));
}

/// Counts turns that the call in progress selected into a slice.
pub fn count_selected(turns: usize) {
    with_current(|statistics| {
        _ = statistics.turns_selected.fetch_add(turns as u64, Ordering::Relaxed)
    });
}

/// Counts the result of a verification for the call in progress.
pub fn count_verification(result: &str) {
    with_current(|statistics| statistics.count_word(WordKind::Verification, result));
}

/// What was counted of a function.
pub struct CallCounts {
    /// Its name.
    pub function: String,
    /// Calls, those that failed included.
    pub calls: u64,
    /// Their time in nanoseconds.
    pub nanoseconds: u64,
    /// Turns read from the tables.
    pub turns_read: u64,
    /// Turns selected into slices.
    pub turns_selected: u64,
    /// Calls by time: of each bucket those that took no longer than its bound, and longer than the one before.
    pub buckets: [u64; BUCKET_BOUNDS.len() + 1],
    /// Words with their counts.
    pub words: Vec<(WordKind, String, u64)>,
}

/// The statistics of this database; `None` where nothing is counted.
pub fn counts() -> Option<Vec<CallCounts>> {
    if !IS_COUNTING.get() {
        return None;
    }
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let entries = STATISTICS.get().0.iter().filter(|entry| entry.is_of_this_database());
    let counts = entries.map(|entry| {
        let words = entry.words.iter().filter_map(|word| {
            let state = word.state.load(Ordering::Acquire);
            let kind = WordKind::ALL.into_iter().find(|kind| WordCount::used(*kind) == state)?;
            Some((kind, word.word.text(), get(&word.count)))
        });
        CallCounts {
            function: entry.name.text(),
            calls: get(&entry.calls),
            nanoseconds: get(&entry.nanoseconds),
            turns_read: get(&entry.turns_read),
            turns_selected: get(&entry.turns_selected),
            buckets: std::array::from_fn(|n| get(&entry.buckets[n])),
            words: words.filter(|(_, _, count)| *count > 0).collect(),
        }
    });
    Some(counts.filter(|counts| counts.calls > 0).collect())
}

/// Sets the statistics of this database to zero.
pub fn reset() {
    if IS_COUNTING.get() {
        STATISTICS
            .get()
            .0
            .iter()
            .filter(|entry| entry.is_of_this_database())
            .for_each(FunctionStatistics::reset);
    }
}
