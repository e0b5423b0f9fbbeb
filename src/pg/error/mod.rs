//! Errors as a client sees them: SQLSTATE, message, a stable word in DETAIL, and the command to type in HINT.

mod word;

use std::ffi::{CString, c_char, c_int};
use std::fmt::{self, Display};
use std::panic::AssertUnwindSafe;
use std::ptr::{null, null_mut};

use kernel::evidence::slice_sets::TooManyTurns;
use kernel::policy::PolicyError;
use kernel::retrieval::similarity::EmbeddingError;
use kernel::slicing::slicer::SliceError;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport};
use pgrx::{PgLogLevel, PgSqlErrorCode, PgTryBuilder, function_name, pg_sys};

pub use self::word::Word;

/// An error to be raised to the client.
#[derive(Debug)]
pub struct SqlError {
    code: PgSqlErrorCode,
    message: String,
    word: Option<Word>,
    reason: Option<&'static str>,
    hint: Option<String>,
}

impl SqlError {
    /// An error with this SQLSTATE and message.
    pub fn new(code: PgSqlErrorCode, message: impl Into<String>) -> Self {
        SqlError { code, message: message.into(), word: None, reason: None, hint: None }
    }

    /// Adds the stable word that programs match.
    #[must_use]
    pub fn word(mut self, word: Word) -> Self {
        self.word = Some(word);
        self
    }

    /// Adds a word that says which of several reasons the first word stands for: DETAIL is `WORD: reason`.
    #[must_use]
    pub fn reason(mut self, reason: &'static str) -> Self {
        self.reason = Some(reason);
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether this is its SQLSTATE.
    pub fn has_code(&self, code: PgSqlErrorCode) -> bool {
        self.code == code
    }

    /// Whether this is its word.
    pub fn is(&self, word: Word) -> bool {
        self.word == Some(word)
    }

    /// The name of its word, or "" where it has none.
    pub fn word_name(&self) -> &'static str {
        self.word.map(Word::name).unwrap_or_default()
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The hint; "" where it has none.
    pub fn into_hint(self) -> String {
        self.hint.unwrap_or_default()
    }

    /// Raises the error in PostgreSQL.
    pub fn raise(self) -> ! {
        self.report(PgLogLevel::ERROR);
        unreachable!("an ERROR report does not return")
    }

    /// Reports it at a level, which may be below an error.
    pub fn report(self, level: PgLogLevel) {
        let mut report =
            ErrorReport::new(self.code, cut(self.message, MAX_MESSAGE_BYTES), function_name!());
        if let Some(word) = self.word {
            report = report.set_detail(match self.reason {
                Some(reason) => format!("{}: {reason}", word.name()),
                None => word.name().to_owned(),
            });
        }
        if let Some(hint) = self.hint {
            report = report.set_hint(cut(hint, MAX_HINT_BYTES));
        }
        report.report(level);
    }
}

/// Longer messages are cut. The copy that the server gets cannot have a gigabyte: pgrx would end the process.
const MAX_MESSAGE_BYTES: usize = 8 * 1024;

/// Longer hints are cut. A command that repeats a whole mapping is shorter.
const MAX_HINT_BYTES: usize = 1024 * 1024;

fn cut(mut text: String, max_bytes: usize) -> String {
    if text.len() > max_bytes {
        text.truncate(text.floor_char_boundary(max_bytes));
        text.push_str("...");
    }
    text
}

// The bindings leave these out, as a report of an error does not return from them.
unsafe extern "C-unwind" {
    fn errstart(level: c_int, domain: *const c_char) -> bool;
    fn errcode(code: c_int) -> c_int;
    fn errfinish(file: *const c_char, line: c_int, function: *const c_char);
}

/// The error of a call for which there is not enough memory.
pub fn out_of_memory() -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY, "out of memory")
        .word(Word::OutOfMemory)
        .hint(
            "Ask for less at a time, such as fewer max_nodes, fewer anchors or a shorter document, \
            or give the server's processes more memory.",
        )
}

/// Ends this session alone, where there is no memory even for an error. Allocates nothing.
pub fn end_session() -> ! {
    // SAFETY: a report that ends the process in good order, as that of a termination does: nothing that runs now runs
    // on. The end of the transaction drops what lives in memory contexts, such as the state of a function that returns
    // rows. A part of it may be allocating just then: that can be Vec, VecDeque, String and HashMap, which can be
    // dropped whenever they allocate. No unsafe code of our own allocates. The formats take no values.
    unsafe {
        // Its frames are gone where pgrx has just caught an error.
        pg_sys::error_context_stack = null_mut();
        errstart(pg_sys::FATAL as i32, null());
        errcode(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as i32);
        pg_sys::errmsg_internal(c"out of memory".as_ptr());
        pg_sys::errdetail_internal(c"OUT_OF_MEMORY".as_ptr());
        errfinish(c"".as_ptr(), 0, c"".as_ptr());
    }
    std::process::abort()
}

/// Writes a line into the server's log, without the statement that is running: it may hold contents.
pub fn log(message: &str) {
    let message = CString::new(message.replace('\0', " ")).expect("no NUL byte is left");
    // SAFETY: a report below an error, which returns; the format takes one string.
    unsafe {
        if errstart(pg_sys::LOG_SERVER_ONLY as i32, null()) {
            pg_sys::errmsg_internal(c"%s".as_ptr(), message.as_ptr());
            pg_sys::errhidestmt(true);
            pg_sys::errhidecontext(true);
            errfinish(c"".as_ptr(), 0, c"".as_ptr());
        }
    }
}

/// What reads tables whose errors need a hint.
#[derive(Clone, Copy, Default)]
pub struct Reads {
    /// Row security applies.
    pub row_security: bool,
    /// Bound expressions compute values.
    pub expressions: bool,
    /// Citus reads the tables.
    pub distributed: bool,
}

/// Runs `read`. A policy's function that depends on the caller's search_path fails under the fixed one. Its error names
/// neither the policy nor the search_path, that of an expression neither key nor row, and that of Citus says nothing of
/// the call. So they get a hint.
pub fn with_hints<T>(reads: Reads, read: impl FnOnce() -> T) -> T {
    let Reads { row_security, expressions, distributed } = reads;
    if !row_security && !expressions && !distributed {
        return read();
    }
    PgTryBuilder::new(AssertUnwindSafe(read))
        .catch_others(|error| {
            let CaughtError::PostgresError(report) = &error else { error.rethrow() };
            let code = report.sql_error_code();
            let hinting = |word, hint| SqlError::new(code, report.message()).word(word).hint(hint).raise();
            if row_security && is_undefined(code) {
                hinting(
                    Word::GraphPolicy,
                    "Slices run with search_path = pg_catalog, pg_temp: a function of a row security policy needs \
                     its own (ALTER FUNCTION ... SET search_path = ...). graph_check() names them to their owner.",
                )
            }
            let has_none = report.hint().is_none();
            if expressions && (is_data_exception(code) || is_beyond_limit(code)) && has_none {
                hinting(
                    Word::BoundExpression,
                    "An expression of the binding may have raised this: graph_check() names the key and the row.",
                )
            }
            if distributed && has_none && code == PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED {
                hinting(
                    Word::Distributed,
                    "Citus does not run this over tables that it distributes. Distribute turns by their id and edges \
                     by their parent, or bind tables that it does not distribute.",
                )
            }
            if distributed && has_none && is_connection_exception(code) {
                hinting(
                    Word::Distributed,
                    "A server of Citus does not answer: SELECT * FROM pg_catalog.citus_check_cluster_node_health();",
                )
            }
            error.rethrow()
        })
        .execute()
}

/// Whether the SQLSTATE says that a name was not found, as it does under another search_path.
fn is_undefined(code: PgSqlErrorCode) -> bool {
    matches!(
        code,
        PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE
            | PgSqlErrorCode::ERRCODE_UNDEFINED_FUNCTION
            | PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT
    )
}

/// Whether the SQLSTATE is of class 22.
fn is_data_exception(code: PgSqlErrorCode) -> bool {
    is_of_class(code, *b"22")
}

/// Whether the SQLSTATE is of class 54, as that of a text that is longer than a value may be.
fn is_beyond_limit(code: PgSqlErrorCode) -> bool {
    is_of_class(code, *b"54")
}

/// Whether the SQLSTATE is of class 08.
fn is_connection_exception(code: PgSqlErrorCode) -> bool {
    is_of_class(code, *b"08")
}

/// A SQLSTATE is packed as six bits for each character, the first lowest.
fn is_of_class(code: PgSqlErrorCode, class: [u8; 2]) -> bool {
    let [first, second] = class.map(|digit| i32::from(digit - b'0'));
    (code as i32) & 0xfff == first | second << 6
}

impl Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Unwraps a result or raises its error.
pub trait OrRaise<T> {
    /// The value; an error goes to the client.
    fn or_raise(self) -> T;
}

impl<T, E: Into<SqlError>> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> T {
        self.unwrap_or_else(|error| error.into().raise())
    }
}

impl From<PolicyError> for SqlError {
    fn from(error: PolicyError) -> Self {
        let mut hint =
            "Give a preset (default, focused, broad, lineage, chat, recall) or a JSON object such as \
                        '{\"max_nodes\": 64, \"max_radius\": 4}'."
                .to_owned();
        // The input of a type is immutable, so that it cannot look a registered name up.
        if let PolicyError::UnknownPreset { name, .. } = &error
            && may_be_registered(name)
        {
            hint += &format!(
                " For a registered policy, give what the function graph_policy returns for {name}."
            );
        }
        if let Some(key) = error.near_key() {
            hint = format!("The key may be meant to be {key:?}. {hint}");
        }
        if let PolicyError::Parameter(message) = &error
            && message.starts_with("slice policy key \"as_of\" must")
        {
            hint = "as_of is a time in seconds since 1970, as extract(epoch FROM timestamptz '2025-03-01')::bigint \
                    gives it: '{\"version\": \"slice_policy_v2\", \"as_of\": 1740787200}'."
                .to_owned();
        }
        if let PolicyError::OtherVersion { version, .. } = &error {
            hint = format!(
                "A policy of another version has it: write '{{\"preset\": \"chat\", ...}}' for a prompt, or \
                 \"version\": \"{version}\"."
            );
        }
        policy_error(&error).hint(hint)
    }
}

/// Whether a name is one that people give to policies, and can be repeated in a statement without quoting.
fn may_be_registered(name: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=63).contains(&name.len()) && name.chars().all(in_name)
}

/// The error for a text that is not a chunking policy.
pub fn chunking_policy_error(error: PolicyError) -> SqlError {
    policy_error(&error).hint(
        "Give default or a JSON object such as '{\"max_chunk_chars\": 900, \"overlap_chars\": 0}'.",
    )
}

fn policy_error(error: &PolicyError) -> SqlError {
    let code = match error {
        PolicyError::Syntax(_) | PolicyError::UnknownPreset { .. } => {
            PgSqlErrorCode::ERRCODE_INVALID_TEXT_REPRESENTATION
        }
        PolicyError::Parameter(_) | PolicyError::OtherVersion { .. } => {
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE
        }
        PolicyError::TooLong(_) => PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
    };
    SqlError::new(code, error.to_string()).word(Word::InvalidPolicy)
}

impl From<EmbeddingError> for SqlError {
    fn from(error: EmbeddingError) -> Self {
        SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, error.to_string())
            .word(Word::InvalidEmbedding)
            .hint("Give the embedding that the model made of the question.")
    }
}

impl From<SliceError<SqlError>> for SqlError {
    fn from(error: SliceError<SqlError>) -> Self {
        let message = error.to_string();
        match error {
            SliceError::Store(error) => error,
            SliceError::AnchorNotFound(_) => {
                // What reads the graph adds the hint, which names it.
                SqlError::new(PgSqlErrorCode::ERRCODE_NO_DATA, message).word(Word::AnchorNotFound)
            }
            SliceError::DuplicateTurn(_) => {
                SqlError::new(PgSqlErrorCode::ERRCODE_CARDINALITY_VIOLATION, message)
                    .word(Word::DuplicateTurn)
                    .hint("Two rows have this id: see duplicate_turns of graph_check().")
            }
            SliceError::TooManyIds(_) => {
                SqlError::new(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message)
                    .word(Word::SliceTooLarge)
                    .hint(
                        "Use a policy with fewer max_nodes, max_radius or max_siblings_per_node, without \
                         include_children, or, where each turn takes much of it, with more max_tokens.",
                    )
            }
            SliceError::Inconsistent(_) => {
                SqlError::new(PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, message)
                    .word(Word::SliceFailed)
            }
        }
    }
}

impl From<TooManyTurns> for SqlError {
    fn from(error: TooManyTurns) -> Self {
        SqlError::new(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, error.to_string())
            .word(Word::SliceTooLarge)
            .hint("Give fewer anchors, or a policy with fewer max_nodes.")
    }
}
