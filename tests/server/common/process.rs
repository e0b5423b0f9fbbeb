//! Processes of the server, and programs run as its account.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use postgres::error::SqlState;
use postgres::{Client, Error, NoTls};

use super::variable;

/// The programs of a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Programs {
    pub folder: PathBuf,
}

impl Programs {
    /// Those of the server under test.
    pub fn current() -> Self {
        Programs { folder: variable("GRAPH_KERNEL_BINDIR").into() }
    }

    /// One of them.
    pub fn program(&self, name: &str) -> Command {
        Command::new(self.folder.join(name))
    }

    /// One of them, to be run as the account that owns the primary's data.
    pub fn server_program(&self, name: &str) -> Command {
        let mut command = self.program(name);
        as_owner(&mut command);
        command
    }
}

/// Has a command run as the account that owns the primary's data.
pub fn as_owner(command: &mut Command) {
    let data = variable("GRAPH_KERNEL_DATADIR");
    let owner = fs::metadata(&data).unwrap_or_else(|error| panic!("{data}: {error}"));
    command.current_dir("/").env_remove("RUST_BACKTRACE");
    if owner.uid() != fs::metadata("/proc/self").unwrap().uid() {
        command.uid(owner.uid()).gid(owner.gid());
    }
}

/// One of the programs of the server under test, to be run as the account that owns the primary's data.
pub fn server_program(name: &str) -> Command {
    Programs::current().server_program(name)
}

/// One of the programs of the server under test.
pub fn program(name: &str) -> Command {
    Programs::current().program(name)
}

/// Runs a command to its end.
pub fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The process that serves this connection.
pub fn backend_pid(client: &mut Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0)
}

/// Memory of a process's own, in KiB.
pub fn private_memory(pid: i32) -> i64 {
    kib_of(pid, "RssAnon:")
}

/// What the kernel says of a process, in KiB.
pub fn kib_of(pid: i32, name: &str) -> i64 {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let line = line.unwrap_or_else(|| panic!("{path} has no {name}"));
    let kib = line.trim().trim_end_matches(" kB");
    kib.parse().unwrap_or_else(|_| panic!("{name} {line}"))
}

/// Lets a process have so many KiB of address space more than it has, or as many as it likes.
pub fn limit_address_space(pid: i32, more: Option<i64>) {
    let limit = more.map_or("unlimited".to_owned(), |more| {
        (1024 * (kib_of(pid, "VmSize:") + more)).to_string()
    });
    let mut command = Command::new("prlimit");
    as_owner(&mut command);
    // The soft limit alone, which can be raised again.
    run(command.arg(format!("--pid={pid}")).arg(format!("--as={limit}:")));
}

/// From the request to cancel to the error; `None` when the statement was faster.
pub fn cancelled_after(client: &mut Client, statement: &str, delay: Duration) -> Option<Duration> {
    let token = client.cancel_token();
    let request = thread::spawn(move || {
        thread::sleep(delay);
        let start = Instant::now();
        token.cancel_query(NoTls).unwrap();
        start
    });
    let result = client.batch_execute(statement);
    let end = Instant::now();
    let start = request.join().unwrap();
    let Err(error) = result else {
        // The request came too late: it ends whatever runs when it arrives.
        let _ = client.batch_execute("SELECT pg_catalog.pg_sleep(0.2)");
        return None;
    };
    assert_cancelled(&error);
    Some(end - start)
}

/// Runs a command, once more where a cancel of the statement before came too late for that one.
pub fn execute(client: &mut Client, command: &str) {
    if let Err(error) = client.batch_execute(command) {
        assert_cancelled(&error);
        client.batch_execute(command).unwrap();
    }
}

/// From the end of the time allowed to the error; `None` when the statement was faster.
pub fn timed_out_after(
    client: &mut Client,
    statement: &str,
    allowed: Duration,
) -> Option<Duration> {
    let milliseconds = allowed.as_millis().max(1);
    execute(client, &format!("SET statement_timeout = {milliseconds}"));
    let start = Instant::now();
    let result = client.batch_execute(statement);
    let elapsed = start.elapsed();
    execute(client, "RESET statement_timeout");
    assert_cancelled(&result.err()?);
    Some(elapsed.saturating_sub(allowed))
}

/// That a statement has ended since it was asked to.
pub fn assert_cancelled(error: &Error) {
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{error:?}");
}

/// The most memory that a process has held so far, in KiB; 0 after its end.
pub fn peak_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    kib.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
