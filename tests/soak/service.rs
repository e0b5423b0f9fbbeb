//! `graph-kernel serve` under load: ten thousand requests a minute, its memory, and what it adds to a statement.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use postgres::types::Type;

use crate::Share;
use crate::calls::Size;
use crate::common::database::Database;
use crate::common::process::kib_of;
use crate::common::{tell, variable};

const SIZE: Size = Size { turns: 1_000, events: 1, policy: "focused", anchors: 5 };

/// How many requests a minute there are, where GRAPH_KERNEL_SOAK_REQUESTS does not say another number.
const REQUESTS: u32 = 10_000;

/// How many clients send them.
const CLIENTS: usize = 16;

/// The time between two pairs of a request and the same statement, prepared.
const PAIRS_EACH: Duration = Duration::from_millis(100);

/// How much the memory of the service may grow after its tenth minute, in KiB.
const GROWTH: i64 = 2048;

/// The statement of the request that is measured, as the service asks it.
const STATEMENT: &str = "
    SELECT coalesce(json_agg(to_json(r)), '[]')::text
      FROM (SELECT n, turn_id, part, role, content, payload, session_id, created_at, tokens, cumulative_tokens
              FROM graph_messages($1::text::uuid, $2::text::slice_policy) ORDER BY n) AS r";
const POLICY: &str = r#"{"preset": "chat", "max_tokens": 1000}"#;

/// The service, which ends with it.
struct Service {
    process: Child,
    address: String,
    token: String,
}

impl Service {
    fn start(database: &Database) -> Self {
        let mut command = Command::new(variable("GRAPH_KERNEL_PROGRAM"));
        command.env("PGDATABASE", &database.name).env_remove("DATABASE_URL");
        // One client alone asks for more than the service would let through.
        command.args(["serve", "--port", "0", "--rate", "0"]).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let shown = line.trim_end().strip_prefix("http://").unwrap();
        let (address, token) = shown.split_once("/#token=").unwrap();
        Service { process, address: address.to_owned(), token: token.to_owned() }
    }

    fn memory(&self) -> i64 {
        kib_of(self.process.id().try_into().unwrap(), "VmRSS:")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// A client that keeps its connection.
struct Client<'a> {
    service: &'a Service,
    stream: Option<BufReader<TcpStream>>,
}

impl Client<'_> {
    fn send(&mut self, path: &str, body: &str) {
        let Service { address, token, .. } = self.service;
        let stream = self.stream.get_or_insert_with(|| {
            let stream = TcpStream::connect(address).unwrap();
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            BufReader::new(stream)
        });
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2025-06-18\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.get_mut().write_all(request.as_bytes()).unwrap();
    }

    /// The status and the body of the answer.
    fn answer(&mut self) -> (u16, String) {
        let stream = self.stream.as_mut().unwrap();
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(code) = line.strip_prefix("http/1.1 ") {
                status = code[..3].parse().unwrap();
            } else if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        (status, String::from_utf8(body).unwrap())
    }
}

/// The request of this number, and the status of its answer; none where it is given up before.
fn request(n: u64, anchors: &[String]) -> (&'static str, String, Option<u16>) {
    let anchor = &anchors[usize::try_from(n * 7).unwrap() % anchors.len()];
    let session = format!("{{\"session\": \"s{}\"}}", n % 10);
    match n % 50 {
        49 => ("/page/thread", session, None),
        48 => {
            let missing = "00000000-0000-4000-8000-00000000dead";
            ("/api/messages", format!("{{\"anchor_turn_id\": \"{missing}\"}}"), Some(404))
        }
        n if n % 4 == 0 => ("/page/thread", session, Some(200)),
        n if n % 4 == 1 => {
            let call = format!(
                "{{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\", \"params\": {{\"name\": \"context\", \
                 \"arguments\": {{\"turn\": \"{anchor}\", \"max_tokens\": 1000}}}}}}"
            );
            ("/mcp", call, Some(200))
        }
        _ => ("/api/messages", messages(anchor), Some(200)),
    }
}

fn messages(anchor: &str) -> String {
    format!("{{\"anchor_turn_id\": \"{anchor}\", \"policy\": {POLICY}}}")
}

/// The median and the 99th percentile, in milliseconds.
fn percentiles(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    format!("{:.2} ms, p99 {:.2} ms", at(50).as_secs_f64() * 1e3, at(99).as_secs_f64() * 1e3)
}

/// The times of a request and of the same statement, prepared, one after the other, until the end.
fn pairs(
    service: &Service,
    database: &Database,
    anchors: &[String],
    each: Duration,
    end: Instant,
) -> (Vec<Duration>, Vec<Duration>) {
    let mut direct = database.connect();
    let prepared = direct.prepare_typed(STATEMENT, &[Type::TEXT, Type::TEXT]).unwrap();
    let mut client = Client { service, stream: None };
    let (mut served, mut asked) = (Vec::new(), Vec::new());
    for anchor in anchors.iter().cycle() {
        if Instant::now() >= end {
            break;
        }
        let start = Instant::now();
        client.send("/api/messages", &messages(anchor));
        let (status, body) = client.answer();
        served.push(start.elapsed());
        let start = Instant::now();
        let row = direct.query_one(&prepared, &[anchor, &POLICY]).unwrap();
        asked.push(start.elapsed());
        assert!(status == 200 && body.contains(row.get::<_, &str>(0)), "{status} {body}");
        thread::sleep(each);
    }
    (served, asked)
}

#[test]
fn ten_thousand_requests_a_minute_leave_no_memory_behind() {
    let share = Share::begin(5);
    let database = Database::empty("soak_service");
    let mut client = database.connect();
    SIZE.set_up(&mut client);
    let anchors: Vec<String> = client
        .query("SELECT turn(n)::text FROM generate_series(1, 1000) AS n", &[])
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    let service = Service::start(&database);
    let given = std::env::var("GRAPH_KERNEL_SOAK_REQUESTS").ok();
    let each = Duration::from_secs(60) / given.map_or(REQUESTS, |given| given.parse().unwrap());
    let begun = Instant::now() + share.left().min(Duration::from_secs(30)) / 5;
    let (mut served, mut asked) = pairs(&service, &database, &anchors, Duration::ZERO, begun);
    tell(&format!(
        "service: one client: {} requests: {}; the statement, prepared: {}",
        served.len(),
        percentiles(&mut served),
        percentiles(&mut asked)
    ));

    let (start, next, errors) = (Instant::now(), AtomicU64::new(0), AtomicU32::new(0));
    let times = Arc::new(Mutex::new(Vec::new()));
    let mut memory = Vec::new();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = Client { service: &service, stream: None };
                while !share.is_over() {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let due = start + each * u32::try_from(n).unwrap();
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    let (path, body, expected) = request(n, &anchors);
                    client.send(path, &body);
                    let Some(expected) = expected else {
                        client.stream = None;
                        continue;
                    };
                    let (status, answer) = client.answer();
                    // From when it was due: a service that is behind is not let off.
                    times.lock().unwrap().push(due.elapsed());
                    if status != expected && errors.fetch_add(1, Ordering::Relaxed) < 10 {
                        tell(&format!("service: {path} {body}: {status} {answer}"));
                    }
                }
            });
        }
        let beside = scope.spawn(|| {
            pairs(&service, &database, &anchors, PAIRS_EACH, Instant::now() + share.left())
        });
        while !share.is_over() {
            thread::sleep(share.left().min(Duration::from_secs(60)));
            let mut times = std::mem::take(&mut *times.lock().unwrap());
            memory.push(service.memory());
            tell(&format!(
                "service: minute {}: {} answers: {}; {} errors; {} KiB",
                memory.len(),
                times.len(),
                percentiles(&mut times),
                errors.load(Ordering::Relaxed),
                memory[memory.len() - 1]
            ));
        }
        let (mut served, mut asked) = beside.join().unwrap();
        tell(&format!(
            "service: under this load: {} requests: {}; the statement, prepared: {}",
            served.len(),
            percentiles(&mut served),
            percentiles(&mut asked)
        ));
    });
    assert_eq!(errors.load(Ordering::Relaxed), 0);
    if share.is_long {
        // Where there are not so many minutes, after a third of them.
        let first = memory.len().div_ceil(3).min(10) - 1;
        let grown = memory[memory.len() - 1] - memory[first];
        assert!(grown <= GROWTH, "{grown} KiB more: {memory:?}");
    }
}
