//! How far an import is.

use std::cell::Cell;
use std::io::{IsTerminal, Write, stderr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

/// How often a line about the progress is printed where there is no terminal.
const PROGRESS_PERIOD: Duration = Duration::from_secs(10);

/// How far the files are read: a bar on a terminal, a line from time to time elsewhere.
pub(super) struct Progress {
    pub(super) bar: ProgressBar,
    read: Rc<Cell<u64>>,
    total: u64,
    /// Messages so far.
    messages: u64,
    last_printed: Instant,
}

impl Progress {
    /// For files of so many bytes, of which `read` counts those that were read.
    pub(super) fn new(total: u64, read: Rc<Cell<u64>>) -> Self {
        let bar =
            if stderr().is_terminal() { ProgressBar::new(total) } else { ProgressBar::hidden() };
        let style =
            ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}, {eta} left, {msg}");
        bar.set_style(style.expect("the template is valid"));
        Progress { bar, read, total, messages: 0, last_printed: Instant::now() }
    }

    /// Counts a message.
    pub(super) fn update(&mut self) {
        const MESSAGES_BETWEEN: u64 = 256;
        self.messages += 1;
        let messages = self.messages;
        if !messages.is_multiple_of(MESSAGES_BETWEEN) {
            return;
        }
        let read = self.read.get();
        self.bar.set_message(format!("{messages} messages"));
        self.bar.set_position(read.min(self.total));
        if self.bar.is_hidden() && self.last_printed.elapsed() >= PROGRESS_PERIOD {
            self.last_printed = Instant::now();
            let (read, total) = (HumanBytes(read), HumanBytes(self.total));
            _ = writeln!(stderr(), "{read} of {total}, {messages} messages");
        }
    }
}
