//! `graph-kernel serve` without a browser: who is answered, what is refused, what stays in the database.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use postgres::Client;
use serde_json::{Value, json};

use crate::cluster::send_signal;
use crate::common::database::Database;
use crate::common::process::{execute, peak_memory};
use crate::common::{lack, variable};
use crate::import::pooler::Pooler;

/// The service on a free port.
struct Service {
    process: Child,
    address: SocketAddr,
    token: String,
}

/// A response: its status, its head, and its body as JSON where it is.
#[derive(Debug)]
struct Response {
    status: u16,
    head: String,
    body: Value,
}

impl Response {
    /// The status, the SQLSTATE and the word of an error.
    fn refusal(&self) -> (u16, &str, &str) {
        let text = |key: &str| self.body["error"][key].as_str().unwrap_or_default();
        (self.status, text("sqlstate"), text("detail"))
    }
}

fn program(database: &Database) -> Command {
    run_by(Command::new(variable("GRAPH_KERNEL_PROGRAM")), database)
}

/// The program, where the command is it or runs it.
fn run_by(mut command: Command, database: &Database) -> Command {
    command.env("PGDATABASE", &database.name).env("NO_COLOR", "1");
    for name in ["PGOPTIONS", "DATABASE_URL", "PORT"] {
        command.env_remove(name);
    }
    command.arg("serve");
    command
}

impl Service {
    fn start(database: &Database, arguments: &[&str]) -> Self {
        Self::start_by(&mut program(database), arguments)
    }

    fn start_by(command: &mut Command, arguments: &[&str]) -> Self {
        command.args(["--port", "0"]).args(arguments);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("http://").expect("it prints its address");
        let (address, token) = rest.split_once('/').unwrap();
        let token = token.strip_prefix("#token=").unwrap_or_default().to_owned();
        Service { process, address: address.parse().unwrap(), token }
    }

    /// Sends a request with these lines in its head, and Host where they have none.
    fn send(&self, request: &str, head: &[&str], body: &str) -> Response {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut text = format!("{request} HTTP/1.1\r\nConnection: close\r\n");
        if !head.iter().any(|line| line.to_lowercase().starts_with("host:")) {
            text.push_str(&format!("Host: {}\r\n", self.address));
        }
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.iter().for_each(|line| text.push_str(&format!("{line}\r\n")));
        stream.write_all(format!("{text}\r\n").as_bytes()).unwrap();
        // A refusal may come before all of a body is read.
        _ = stream.write_all(body.as_bytes());
        let mut answer = Vec::new();
        _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a response has a head");
        Response {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_owned(),
            body: serde_json::from_str(body).unwrap_or(Value::Null),
        }
    }

    fn get(&self, path: &str) -> Response {
        let token = format!("Authorization: Bearer {}", self.token);
        self.send(&format!("GET {path}"), &[&token], "")
    }

    fn post(&self, path: &str, body: &Value) -> Response {
        let token = format!("Authorization: Bearer {}", self.token);
        self.send(&format!("POST {path}"), &[&token], &body.to_string())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// A database with two turns of one session.
fn database(name: &str) -> Database {
    let database = Database::with_tables(&format!("gk_serve_{name}"));
    execute(
        &mut database.connect(),
        "INSERT INTO memory_turns (id, session_id, role, content_text) VALUES \
         ('00000000-0000-4000-8000-000000000001', 's', 'user', 'question'), \
         ('00000000-0000-4000-8000-000000000002', 's', 'assistant', 'answer'); \
         INSERT INTO memory_turn_edges VALUES ('00000000-0000-4000-8000-000000000001', \
         '00000000-0000-4000-8000-000000000002', 'reply')",
    );
    database
}

/// A role that may read the turns, and nothing else.
fn reader(database: &Database) -> String {
    let role = format!("{}_reader", database.name);
    let commands = format!(
        "DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN; \
         GRANT SELECT ON memory_turns, memory_turn_edges TO {role}"
    );
    execute(&mut database.connect(), &commands);
    role
}

const ANCHOR: &str = "00000000-0000-4000-8000-000000000002";

#[test]
fn only_requests_for_this_service_with_the_token_are_answered() {
    let database = database("guard");
    let service = Service::start(&database, &[]);
    assert_eq!(service.token.len(), 32);
    let token = format!("Authorization: Bearer {}", service.token);
    let sessions = |head: &[&str]| service.send("GET /page/sessions", head, "");
    assert_eq!(service.get("/page/sessions").body[0]["session_id"], "s");

    for head in [&["Authorization: Bearer 0123"][..], &["Authorization: x"], &[]] {
        assert_eq!(sessions(head).refusal(), (401, "", "TOKEN_REQUIRED"), "{head:?}");
    }
    let port = service.address.port();
    let own = [format!("Host: localhost:{port}"), format!("Host: 127.0.0.1:{port}")];
    for host in &own {
        assert_eq!(sessions(&[&token, host]).status, 200, "{host}");
    }
    let rebound = format!("Host: evil.example:{port}");
    for host in [&rebound, "Host: localhost", "Host: 127.0.0.1:1", "Host:", "Host: 127.0.0.1"] {
        assert_eq!(sessions(&[&token, host]).refusal(), (403, "", "OTHER_HOST"), "{host}");
        // The page itself is not given either.
        assert_eq!(service.send("GET /", &[host], "").status, 403, "{host}");
    }
    assert_eq!(sessions(&[&token, &own[0], &own[1]]).status, 403);
    let own_origin = format!("Origin: http://127.0.0.1:{port}");
    assert_eq!(sessions(&[&token, &own_origin]).status, 200);
    for origin in ["Origin: http://evil.example", "Origin: null", "Origin: http://127.0.0.1:1"] {
        assert_eq!(sessions(&[&token, origin]).refusal(), (403, "", "OTHER_ORIGIN"), "{origin}");
    }
    for site in ["cross-site", "same-site"] {
        let line = format!("Sec-Fetch-Site: {site}");
        assert_eq!(sessions(&[&token, &line]).refusal(), (403, "", "OTHER_ORIGIN"), "{site}");
    }
    assert_eq!(service.send("GET /page/none", &[&token], "").status, 404);

    let page = service.send("GET /", &[], "");
    assert_eq!(page.status, 200);
    for line in [
        "content-security-policy: default-src 'none'; script-src 'self';",
        "require-trusted-types-for 'script'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(page.head.contains(line), "{line}: {}", page.head);
    }
    assert!(!page.head.contains("access-control"), "{}", page.head);
}

#[test]
fn errors_have_the_sqlstate_the_word_and_the_hint() {
    let database = database("errors");
    let role = reader(&database);
    let service = Service::start(&database, &["--database", &format!("user={role}")]);
    let context = |policy: Value, anchor: &str| {
        service.post("/page/context", &json!({"anchor": anchor, "policy": policy}))
    };
    let good = context(json!("chat"), ANCHOR);
    assert_eq!(good.body["messages"][1]["content"], "answer", "{good:?}");
    let missing = context(json!("chat"), "00000000-0000-4000-8000-00000000dead");
    assert_eq!(missing.refusal(), (404, "02000", "ANCHOR_NOT_FOUND"));
    let wrong = context(json!({"max_nodes": 0}), ANCHOR);
    assert_eq!(wrong.refusal(), (400, "22023", "INVALID_POLICY"));
    let unknown = context(json!("none of these"), ANCHOR);
    assert_eq!(unknown.refusal(), (404, "42704", "POLICY_NOT_FOUND"));
    assert!(unknown.body["error"]["hint"].is_string(), "{unknown:?}");
    let injected = context(json!("chat'); DROP TABLE memory_turns; --"), ANCHOR);
    assert_eq!(injected.refusal(), (404, "42704", "POLICY_NOT_FOUND"));
    for body in ["", "[]", "{", "{\"anchor\": 1}", "{\"anchor\": \"x\", \"policy\": \"chat\"}"] {
        let token = format!("Authorization: Bearer {}", service.token);
        let refused = service.send("POST /page/context", &[&token], body);
        assert_eq!(refused.refusal(), (400, "", "INVALID_REQUEST"), "{body}");
    }
    let registered = json!({"policy": "focused", "name": "x"});
    assert_eq!(service.post("/page/register", &registered).refusal(), (403, "42501", ""));
    drop(service);
    database.drop_role(&role);
}

#[test]
fn a_body_that_is_too_long_is_refused() {
    let database = database("bodies");
    let service = Service::start(&database, &["--no-token"]);
    assert_eq!(service.token, "");
    let long = |length: usize| json!({"document": "x".repeat(length)});
    assert_eq!(service.post("/page/context", &long(2 << 20)).status, 413);
    let repeated = service.post("/page/check", &long(2 << 20));
    let (status, sqlstate, detail) = repeated.refusal();
    assert_eq!((status, sqlstate), (400, "22P02"));
    assert!((1..=9000).contains(&detail.len()), "{}", detail.len());
    assert_eq!(service.post("/page/check", &long(17 << 20)).status, 413);
}

#[test]
fn what_reads_cannot_write_and_ends_in_time() {
    let database = database("limits");
    let role = reader(&database);
    execute(
        &mut database.connect(),
        "CREATE TABLE written (n int); GRANT INSERT ON written TO PUBLIC; \
         CREATE FUNCTION writes() RETURNS boolean LANGUAGE plpgsql SET search_path = public AS \
         'BEGIN INSERT INTO written VALUES (1); RETURN true; END'; \
         ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY reads ON memory_turns USING (public.writes())",
    );
    let user = format!("user={role}");
    let service = Service::start(&database, &["--database", &user, "--timeout", "1"]);
    let thread = || service.post("/page/thread", &json!({"session": "s"}));
    assert_eq!(thread().refusal(), (403, "25006", ""));
    let change = "ALTER POLICY reads ON memory_turns USING (pg_sleep(20) IS NOT NULL)";
    execute(&mut database.connect(), change);
    assert_eq!(thread().refusal(), (504, "57014", ""));
    execute(&mut database.connect(), "ALTER POLICY reads ON memory_turns USING (role = 'user')");
    // Row security of the one role holds, and the connections are whole after the errors.
    let turns = thread().body;
    assert_eq!(turns["turns"].as_array().map(Vec::len), Some(1), "{turns}");
    drop(service);
    database.drop_role(&role);
}

/// How many statements of the program have been running since it began them.
fn running(client: &mut Client) -> i64 {
    let count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                 AND application_name = 'graph-kernel' AND state = 'active' AND wait_event = 'PgSleep'";
    client.query_one(count, &[]).unwrap().get(0)
}

/// Waits until so many statements are running.
fn wait_for(client: &mut Client, expected: i64) {
    let end = Instant::now() + Duration::from_secs(20);
    while running(client) != expected {
        assert!(Instant::now() < end, "{} and not {expected}", running(client));
        thread::sleep(Duration::from_millis(10));
    }
}

/// A policy lets whoever reads turns wait.
fn let_turns_sleep(client: &mut Client) {
    execute(
        client,
        "ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY reads ON memory_turns USING (pg_sleep(600) IS NOT NULL)",
    );
}

#[test]
fn what_a_client_gave_up_does_not_run_on() {
    let database = database("given_up");
    let (role, mut client) = (reader(&database), database.connect());
    let_turns_sleep(&mut client);
    let user = format!("user={role}");
    let service = Service::start(
        &database,
        &["--no-token", "--database", &user, "--connections", "2", "--timeout", "600"],
    );
    let head = format!(
        "Host: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2025-06-18\r\n",
        service.address
    );
    let tool = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                      "params": {"name": "context", "arguments": {"turn": ANCHOR}}});
    for (path, body) in [
        ("/page/thread", json!({"session": "s"})),
        ("/api/slice", json!({"anchor_turn_id": ANCHOR})),
        ("/mcp", tool),
    ] {
        let body = body.to_string();
        let length = body.len();
        // As many as there are connections, and one that waits for one of them.
        let clients = [(); 3].map(|()| {
            let mut stream = TcpStream::connect(service.address).unwrap();
            write!(stream, "POST {path} HTTP/1.1\r\n{head}Content-Length: {length}\r\n\r\n{body}")
                .unwrap();
            stream
        });
        wait_for(&mut client, 2);
        drop(clients);
        wait_for(&mut client, 0);
    }
    execute(&mut client, "ALTER POLICY reads ON memory_turns USING (true)");
    assert_eq!(service.get("/page/sessions").body[0]["session_id"], "s");
    drop(service);
    database.drop_role(&role);
}

/// Code of a table's owner that goes on after a cancel.
const TRAPS: &str = "\
    CREATE FUNCTION traps() RETURNS boolean LANGUAGE plpgsql AS $$BEGIN \
      LOOP BEGIN LOOP BEGIN PERFORM pg_sleep(1000); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; \
      EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; RETURN true; END$$; \
    ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY; \
    CREATE POLICY reads ON memory_turns USING (public.traps())";

#[test]
fn what_traps_its_cancel_is_ended() {
    let database = database("trapped");
    let role = reader(&database);
    let mut client = database.connect();
    execute(&mut client, TRAPS);
    let user = format!("user={role}");
    let arguments = ["--no-token", "--database", &user, "--connections", "1", "--timeout", "1"];
    let service = Service::start(&database, &arguments);
    // A connection that has ended counts for the limit a moment longer than it is shown.
    let asked = || loop {
        let answer = service.get("/page/sessions");
        if answer.status != 503 {
            return answer;
        }
        assert_eq!(answer.refusal().1, "53300", "{:?}", answer.body);
        thread::sleep(Duration::from_millis(10));
    };
    // Over another connection of the role, and where it may have no other.
    for limit in ["-1", "1"] {
        execute(&mut client, &format!("ALTER ROLE {role} CONNECTION LIMIT {limit}"));
        // Of a client that waits.
        assert_eq!(asked().refusal(), (504, "", "TIMEOUT"));
        wait_for(&mut client, 0);
        // Of a client that has gone.
        let gone = || {
            let mut stream = TcpStream::connect(service.address).unwrap();
            let address = service.address;
            write!(stream, "GET /page/sessions HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
            stream
        };
        let mut stream = gone();
        let end = Instant::now() + Duration::from_secs(20);
        for tries in 1.. {
            thread::sleep(Duration::from_millis(10));
            if running(&mut client) == 1 {
                break;
            }
            assert!(Instant::now() < end, "it does not run");
            if tries % 100 == 0 {
                stream = gone();
            }
        }
        drop(stream);
        wait_for(&mut client, 0);
        // The connection that has ended it closes a moment later.
        let sessions = format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{role}'");
        while client.query_one(&sessions, &[]).unwrap().get::<_, i64>(0) > 0 {
            thread::sleep(Duration::from_millis(10));
        }
    }
    execute(&mut client, "ALTER POLICY reads ON memory_turns USING (true)");
    assert_eq!(asked().body[0]["session_id"], "s");
    drop(service);
    database.drop_role(&role);
}

/// The pooler has no connection for the one that would end the other.
#[test]
fn what_traps_its_cancel_is_ended_where_a_pool_is_full() {
    let name = "serve::what_traps_its_cancel_is_ended_where_a_pool_is_full";
    let database = database("trapped_pool");
    let role = reader(&database);
    let settings = format!("user={role}");
    let Some(pooler) = Pooler::start_in("serve_trapped_pool", "transaction", 6436, &settings)
    else {
        return lack(name, "no PgBouncer");
    };
    let mut client = database.connect();
    let service = Service::start_by(
        &mut pooler.command(&database, &["serve"]),
        &["--no-token", "--connections", "1", "--timeout", "1"],
    );
    execute(&mut client, TRAPS);
    assert_eq!(service.get("/page/sessions").refusal(), (504, "", "TIMEOUT"));
    wait_for(&mut client, 0);
    execute(&mut client, "ALTER POLICY reads ON memory_turns USING (true)");
    assert_eq!(service.get("/page/sessions").body[0]["session_id"], "s");
    drop(service);
    drop(pooler);
    database.drop_role(&role);
}

/// Whoever owns a table can have code that raises what it likes.
#[test]
fn what_tables_raise_is_not_held_without_end() {
    let database = database("raised");
    let mut client = database.connect();
    let role = reader(&database);
    execute(
        &mut client,
        "CREATE FUNCTION raises(kind text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN \
           IF kind = 'error' THEN RAISE EXCEPTION USING MESSAGE = repeat('x', 300000000); \
           ELSE RAISE NOTICE '%', repeat('x', 300000000); END IF; RETURN true; END$$; \
         ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY reads ON memory_turns USING (public.raises('error'))",
    );
    let user = format!("user={role}");
    let service = Service::start(&database, &["--no-token", "--database", &user]);
    for kind in ["error", "notice"] {
        execute(
            &mut client,
            &format!("ALTER POLICY reads ON memory_turns USING (public.raises('{kind}'))"),
        );
        let answer = service.get("/page/sessions");
        assert_eq!(answer.refusal(), (422, "", "ANSWER_TOO_LARGE"), "{kind}");
    }
    execute(&mut client, "ALTER POLICY reads ON memory_turns USING (true)");
    assert_eq!(service.get("/page/sessions").body[0]["session_id"], "s");
    let peak = peak_memory(service.process.id());
    assert!(peak > 0 && peak < 100 << 10, "{peak} KiB");
    drop(service);
    database.drop_role(&role);
}

/// A hint is a command to run: it must be the extension's.
#[test]
fn what_tables_raise_is_not_a_hint_of_the_page() {
    let database = database("hint");
    let mut client = database.connect();
    let role = reader(&database);
    execute(
        &mut client,
        "CREATE FUNCTION raises() RETURNS boolean LANGUAGE plpgsql AS $$BEGIN \
           IF current_query() LIKE '%graph_search(%' THEN \
             RAISE 'x' USING ERRCODE = '22023', DETAIL = 'NO_WORDS', HINT = 'ALTER ROLE own SUPERUSER;'; \
           END IF; RETURN true; END$$; \
         ALTER TABLE memory_turns ADD words tsvector \
           GENERATED ALWAYS AS (to_tsvector('english', content_text)) STORED; \
         SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges'); \
         ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY reads ON memory_turns USING (public.raises())",
    );
    let user = format!("user={role}");
    let service = Service::start(&database, &["--no-token", "--database", &user]);
    let about = service.get("/page/about");
    assert_eq!((about.status, &about.body["no_words"]), (200, &Value::Null), "{about:?}");
    let raised = service.post("/page/search", &json!({"query": "word"}));
    assert_eq!(
        (raised.refusal(), &raised.body["error"]["hint"]),
        ((400, "22023", ""), &Value::Null)
    );
    drop(service);
    database.drop_role(&role);
}

/// An object takes a hundred times the memory of its text.
#[test]
fn bodies_of_many_small_values_are_refused() {
    let database = database("values");
    let service = Service::start(&database, &["--no-token"]);
    let values = vec![json!({"": 0}); 2_300_000];
    let answer = service.post("/page/check", &json!({"document": "{}", "x": values}));
    assert_eq!(answer.refusal(), (400, "", "INVALID_REQUEST"));
    let peak = peak_memory(service.process.id());
    assert!(peak > 0 && peak < 100 << 10, "{peak} KiB");
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for_without_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("host=127.0.0.1 port={}", listener.local_addr().unwrap().port());
    let begun = Instant::now();
    let done = program(&database("silent")).args(["--database", &place]).output().unwrap();
    let text = String::from_utf8(done.stderr).unwrap();
    assert!(text.ends_with("connection timed out\n"), "{text}");
    assert!((9..30).contains(&begun.elapsed().as_secs()));
}

/// Where a false server is, which says that a client's password is right, and then does this.
fn false_server(
    serve: impl Fn(TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, serve) = (client.unwrap(), Arc::clone(&serve));
            thread::spawn(move || {
                client.write_all(b"R\0\0\0\x08\0\0\0\0").and_then(|()| serve(client))
            });
        }
    });
    format!("host=127.0.0.1 port={port} sslmode=disable connect_timeout=2")
}

/// That queries may come.
const READY: &[u8] = b"Z\0\0\0\x05I";

#[test]
fn a_server_that_does_not_say_what_it_is_is_not_waited_for_without_end() {
    let place = false_server(|mut client| {
        client.write_all(READY)?;
        std::io::copy(&mut client, &mut std::io::sink()).map(|_| ())
    });
    let place = format!("{place} target_session_attrs=read-write");
    let begun = Instant::now();
    let done = program(&database("undecided")).args(["--database", &place]).output().unwrap();
    let text = String::from_utf8(done.stderr).unwrap();
    assert!(text.ends_with("connection timed out\n"), "{text}");
    assert!((2..6).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[test]
fn notices_of_a_login_that_has_no_end_are_not_held() {
    let notice = [b"N\0\x0f\x42\x44M", &[b'x'; 999_998][..], b"\0"].concat();
    let place = false_server(move |mut client| {
        loop {
            client.write_all(&notice)?;
        }
    });
    let mut command = program(&database("login"));
    let mut process = command.args(["--database", &place]).stderr(Stdio::null()).spawn().unwrap();
    let mut peak = 0;
    while process.try_wait().unwrap().is_none() {
        peak = peak.max(peak_memory(process.id()));
        thread::sleep(Duration::from_millis(10));
    }
    assert!(peak < 100 << 10, "{peak} KiB");
}

#[test]
fn types_that_a_server_makes_up_are_not_looked_up() {
    let is_asked = Arc::<AtomicBool>::default();
    let asked = Arc::clone(&is_asked);
    let place = false_server(move |mut client| {
        client.write_all(READY)?;
        let mut room = vec![0; 1 << 16];
        loop {
            let length = client.read(&mut room)?;
            let said = String::from_utf8_lossy(&room[..length]);
            if length == 0 {
                return Ok(());
            } else if said.contains("BEGIN") {
                client.write_all(&[b"C\0\0\0\x0aBEGIN\0", READY].concat())?;
            } else if said.contains("pg_extension") {
                // One column of type 100000.
                let column =
                    b"T\0\0\0\x1a\0\x01c\0\0\0\0\0\0\0\0\x01\x86\xa0\xff\xff\xff\xff\xff\xff\0\x01";
                client.write_all(&[b"1\0\0\0\x042\0\0\0\x04", &column[..]].concat())?;
            } else if said.contains("pg_type") {
                asked.store(true, Ordering::SeqCst);
            }
        }
    });
    let mut process = program(&database("types")).args(["--database", &place]).spawn().unwrap();
    let begun = Instant::now();
    while process.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(10));
    }
    _ = process.kill();
    assert_eq!(process.wait().unwrap().code(), Some(2));
    assert!(!is_asked.load(Ordering::SeqCst));
}

/// A socket from which all goes on to the server, until the network fails.
struct Relay {
    folder: PathBuf,
    failures: Arc<AtomicUsize>,
    is_silent: Arc<AtomicBool>,
}

impl Relay {
    /// `spoil` has the end to the program of a connection that was there before a failure, once its server was asked.
    fn start(database: &Database, spoil: fn(&mut UnixStream)) -> Self {
        let server = &database.server;
        let folder = std::env::temp_dir().join(format!("{}_{}", database.name, std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let name = format!(".s.PGSQL.{}", server.port);
        let listener = UnixListener::bind(folder.join(&name)).unwrap();
        let target = PathBuf::from(&server.socket).join(name);
        let failures = Arc::<AtomicUsize>::default();
        let is_silent = Arc::<AtomicBool>::default();
        let (known, silent) = (Arc::clone(&failures), Arc::clone(&is_silent));
        thread::spawn(move || {
            let mut unanswered = Vec::new();
            while let Ok((mut client, _)) = listener.accept() {
                if silent.load(Ordering::SeqCst) {
                    unanswered.push(client);
                    continue;
                }
                let mut server = UnixStream::connect(&target).unwrap();
                let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                thread::spawn(move || {
                    _ = std::io::copy(&mut from, &mut to);
                    _ = to.shutdown(Shutdown::Both);
                });
                let known = Arc::clone(&known);
                let before = known.load(Ordering::SeqCst);
                thread::spawn(move || {
                    let mut room = vec![0; 1 << 16];
                    while let Ok(length @ 1..) = client.read(&mut room) {
                        if known.load(Ordering::SeqCst) > before {
                            spoil(&mut client);
                        } else if server.write_all(&room[..length]).is_err() {
                            break;
                        }
                    }
                    _ = server.shutdown(Shutdown::Both);
                });
            }
        });
        Relay { folder, failures, is_silent }
    }

    fn place(&self) -> String {
        format!("host={}", self.folder.display())
    }

    /// Lets nothing through of the connections that are there. New ones are good.
    fn fail(&self) {
        self.failures.fetch_add(1, Ordering::SeqCst);
    }

    /// Lets nothing through any more.
    fn fall_silent(&self) {
        self.is_silent.store(true, Ordering::SeqCst);
        self.fail();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_kept_connection_that_has_gone_silent_is_closed() {
    let database = database("gone_silent");
    let relay = Relay::start(&database, |_| ());
    let place = relay.place();
    let service =
        Service::start(&database, &["--database", &place, "--connections", "1", "--timeout", "1"]);
    assert_eq!(service.get("/page/sessions").status, 200);
    relay.fail();
    assert_eq!(service.get("/page/sessions").refusal(), (504, "", "TIMEOUT"));
    assert_eq!(service.get("/page/sessions").status, 200);
}

#[test]
fn a_host_that_has_gone_silent_keeps_no_connection_from_the_next_one() {
    let database = database("silent_host");
    let (role, mut client) = (reader(&database), database.connect());
    let_turns_sleep(&mut client);
    let relay = Relay::start(&database, |_| ());
    let place =
        format!("{},{} user={role} connect_timeout=2", relay.place(), database.server.socket);
    let arguments = ["--no-token", "--database", &place, "--connections", "1", "--timeout", "600"];
    let service = Service::start(&database, &arguments);
    let mut stream = TcpStream::connect(service.address).unwrap();
    write!(stream, "GET /page/sessions HTTP/1.1\r\nHost: {}\r\n\r\n", service.address).unwrap();
    wait_for(&mut client, 1);
    relay.fall_silent();
    drop(stream);
    let begun = Instant::now();
    execute(&mut client, "ALTER POLICY reads ON memory_turns USING (true)");
    assert_eq!(service.get("/page/sessions").status, 200);
    // To be closed, and for the first host to be given up.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    drop(service);
    database.drop_role(&role);
}

#[test]
fn rows_without_end_to_a_beginning_are_not_held() {
    let database = database("rows");
    let relay = Relay::start(&database, |client| {
        let row = [&b"D\0\0\x04\x0a\0\x01\0\0\x04\0"[..], &[b'x'; 1024]].concat();
        let rows = row.repeat(100);
        _ = client
            .write_all(b"T\0\0\0\x1a\0\x01a\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0");
        while client.write_all(&rows).is_ok() {}
    });
    let place = relay.place();
    let service =
        Service::start(&database, &["--database", &place, "--connections", "1", "--timeout", "1"]);
    assert_eq!(service.get("/page/sessions").status, 200);
    relay.fail();
    assert_eq!(service.get("/page/sessions").refusal(), (504, "", "TIMEOUT"));
    assert_eq!(service.get("/page/sessions").status, 200);
    let peak = peak_memory(service.process.id());
    assert!(peak > 0 && peak < 100 << 10, "{peak} KiB");
}

#[test]
fn more_requests_than_the_rate_are_told_when_to_come_again() {
    let database = database("rate");
    let service = Service::start(&database, &["--rate", "1"]);
    // Two at once, and no more: what is refused for its token is not counted.
    for _ in 0..5 {
        assert_eq!(service.send("GET /page/about", &[], "").status, 401);
    }
    let answers = [(); 5].map(|()| service.get("/page/about"));
    let good = answers.iter().filter(|answer| answer.status == 200).count();
    assert!((2..=4).contains(&good), "{answers:?}");
    let refused = answers.iter().find(|answer| answer.status != 200).unwrap();
    assert_eq!(refused.refusal(), (429, "", "TOO_MANY_REQUESTS"));
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
    // The files of the page and the probes ask the database for nothing.
    assert_eq!(service.get("/").status, 200);
    assert_eq!(service.get("/health/live").status, 200);
    drop(service);
    let service = Service::start(&database, &["--rate", "0"]);
    assert!((0..20).all(|_| service.get("/page/about").status == 200));
}

#[test]
fn the_database_is_asked_for_its_health_once_a_second() {
    let database = database("health");
    let mut client = database.connect();
    let mut commits = || -> i64 {
        let query = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
        client.query_one(query, &[]).unwrap().get(0)
    };
    let before = commits();
    let service = Service::start(&database, &[]);
    for n in 0..300 {
        let path = ["/health", "/health/ready", "/health/startup"][n % 3];
        assert_eq!(service.get(path).status, 200, "{path}");
    }
    drop(service);
    // Backends report what they have done when they end.
    let mut other = database.connect();
    let left = "SELECT count(*) FROM pg_stat_activity \
                WHERE datname = current_database() AND application_name = 'graph-kernel'";
    while other.query_one(left, &[]).unwrap().get::<_, i64>(0) > 0 {
        thread::sleep(Duration::from_millis(10));
    }
    let asked = commits() - before;
    assert!(asked < 150, "{asked} transactions");
}

#[test]
fn a_connection_that_is_lost_is_made_again() {
    let database = database("lost");
    let service = Service::start(&database, &["--connections", "2"]);
    let is_good = || service.get("/page/sessions").status == 200;
    thread::scope(|scope| {
        let requests: Vec<_> = (0..20).map(|_| scope.spawn(is_good)).collect();
        assert!(requests.into_iter().all(|request| request.join().unwrap()));
    });
    let count = "SELECT count(*) FROM pg_stat_activity \
                 WHERE datname = current_database() AND application_name = 'graph-kernel'";
    let open: i64 = database.connect().query_one(count, &[]).unwrap().get(0);
    assert!((1..=2).contains(&open), "{open}");
    execute(
        &mut database.connect(),
        "DO $$ BEGIN PERFORM pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name = 'graph-kernel'; END $$",
    );
    assert!(is_good());
}

#[test]
fn what_a_policy_sets_for_the_session_does_not_stay() {
    let database = database("settings");
    let role = reader(&database);
    let other = format!("{}_other", database.name);
    execute(
        &mut database.connect(),
        &format!(
            "DROP ROLE IF EXISTS {other}; CREATE ROLE {other}; GRANT {other} TO {role}; \
             CREATE FUNCTION sets() RETURNS boolean LANGUAGE plpgsql AS \
             $$BEGIN PERFORM pg_catalog.set_config('role', '{other}', false); RETURN true; END$$; \
             GRANT SELECT ON memory_turns, memory_turn_edges TO {other}; \
             ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY reads ON memory_turns USING (public.sets())"
        ),
    );
    let user = format!("user={role}");
    let service = Service::start(&database, &["--database", &user, "--connections", "1"]);
    let roles = || [(); 2].map(|()| service.get("/page/about").body["role"].clone());
    assert_eq!(roles(), [role.as_str(), role.as_str()]);
    _ = service.get("/page/sessions");
    _ = service.post("/page/thread", &json!({"session": "s"}));
    assert_eq!(roles(), [role.as_str(), role.as_str()]);
    drop(service);
    database.drop_role(&role);
    database.drop_role(&other);
}

#[test]
fn an_answer_that_is_too_long_is_not_held() {
    let database = database("long");
    execute(
        &mut database.connect(),
        "ALTER TABLE memory_turns ALTER session_id SET STORAGE PLAIN; \
         INSERT INTO memory_turns (id, session_id, role, content_text) \
         SELECT gen_random_uuid(), 'long', repeat('x', 1000000), repeat('y', 1000000) FROM generate_series(1, 40)",
    );
    let service = Service::start(&database, &["--connections", "1"]);
    let memory =
        || crate::common::process::kib_of(service.process.id().try_into().unwrap(), "VmRSS:");
    // Names are cut, texts are the beginnings.
    let thread = service.post("/page/thread", &json!({"session": "long"}));
    assert_eq!(thread.status, 200);
    assert!(thread.body.to_string().len() < 100_000);
    let before = memory();
    let anchor = thread.body["turns"][0]["id"].as_str().unwrap();
    let pins: Vec<&str> = thread.body["turns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| turn["id"].as_str().unwrap())
        .collect();
    let policy = json!({"preset": "chat", "max_tokens": 100_000_000, "pins": pins});
    for _ in 0..3 {
        let long = service.post("/page/context", &json!({"anchor": anchor, "policy": policy}));
        assert_eq!(
            long.refusal(),
            (422, "", "ANSWER_TOO_LARGE"),
            "{:?}",
            long.body.to_string().len()
        );
    }
    assert!(memory() - before < 20_000, "{} KiB", memory() - before);
}

#[test]
fn clients_that_do_not_read_keep_nobody_out() {
    let database = database("unread");
    let service = Service::start(&database, &[]);
    let request = format!("GET /assets/page.css HTTP/1.1\r\nHost: {}\r\n\r\n", service.address);
    let open: Vec<_> = (0..300).map(|_| TcpStream::connect(service.address).unwrap()).collect();
    for mut stream in &open {
        stream.set_write_timeout(Some(Duration::from_millis(1))).unwrap();
        _ = stream.write_all(request.repeat(50).as_bytes());
    }
    for _ in 0..10 {
        assert_eq!(service.get("/health/live").status, 200);
        assert_eq!(service.get("/page/sessions").status, 200);
    }
}

#[test]
fn who_is_sent_a_long_answer_is_not_cut_off_for_others() {
    let database = database("slow");
    execute(
        &mut database.connect(),
        "INSERT INTO memory_turns (id, session_id, role, content_text) \
         SELECT gen_random_uuid(), 'long', 'user', repeat('x', 4000000) FROM generate_series(1, 5); \
         INSERT INTO memory_turn_edges \
         SELECT id, '00000000-0000-4000-8000-000000000002', 'reply' FROM memory_turns WHERE session_id = 'long'",
    );
    let service = Service::start(&database, &[]);
    let body =
        json!({"anchor_turn_id": ANCHOR, "policy": {"preset": "chat", "max_tokens": 10_000_000}});
    let body = body.to_string();
    let mut stream = TcpStream::connect(service.address).unwrap();
    write!(
        stream,
        "POST /api/messages HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        service.address,
        service.token,
        body.len()
    )
    .unwrap();
    let mut answer = vec![0; 1024];
    stream.read_exact(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    let _open: Vec<_> = (0..300).map(|_| TcpStream::connect(service.address).unwrap()).collect();
    assert_eq!(service.get("/health/live").status, 200);
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.len() > 20_000_000 && answer.ends_with(b"}"), "{}", answer.len());
}

#[test]
fn clients_that_say_nothing_keep_nobody_out_where_files_are_few() {
    let database = database("files");
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n 256 && exec \"$0\" \"$@\"", &variable("GRAPH_KERNEL_PROGRAM")]);
    let service = Service::start_by(&mut run_by(shell, &database), &[]);
    let request = format!("GET /api/openapi.json HTTP/1.1\r\nHost: {}\r\n\r\n", service.address);
    let connect = |_| TcpStream::connect(service.address).unwrap();
    // Faster than they are closed, and what they ask for is not read.
    let mut flood: VecDeque<_> = (0..300).map(connect).collect();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        let mut stream = connect(0);
        stream.set_nonblocking(true).unwrap();
        _ = stream.write(request.repeat(40).as_bytes());
        flood.push_back(stream);
        flood.pop_front();
    }
    let begun = Instant::now();
    for _ in 0..3 {
        assert_eq!(service.get("/page/sessions").status, 200);
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    drop(flood);
    // As many have a place as before.
    let mut idle: Vec<_> = (0..120).map(connect).collect();
    assert_eq!(service.get("/page/sessions").status, 200);
    for stream in &mut idle {
        stream.set_nonblocking(true).unwrap();
        let error = stream.read(&mut [0]).expect_err("nobody else has its place");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
}

#[test]
fn a_document_in_which_a_key_stands_twice_is_not_valid() {
    let database = database("twice");
    let service = Service::start(&database, &[]);
    execute(&mut database.connect(), "ALTER TABLE memory_turns ADD embedding real[]");
    execute(&mut database.connect(), "UPDATE memory_turns SET embedding = '{1,2,3}'");
    let row = database
        .connect()
        .query_one(
            &format!(
                "SELECT provenance::text FROM graph_search_slice('{{1,2,3}}', '{ANCHOR}') LIMIT 1"
            ),
            &[],
        )
        .unwrap();
    let provenance: String = row.get(0);
    let check = |document: &str| service.post("/page/check", &json!({"document": document})).body;
    let whole = check(&provenance);
    assert_eq!((&whole["valid"], &whole["reason"]), (&json!(true), &Value::Null), "{whole}");
    let inside =
        provenance.replacen("\"attestation\": {", "\"attestation\": {\"role\": \"x\", ", 1);
    let twice = format!("{{\"retrieved_turn_ids\":[],{}", &provenance[1..]);
    let edited = provenance.replacen(ANCHOR, "00000000-0000-4000-8000-00000000dead", 1);
    let out_of_range = "malformed: a number is out of range, or there are more than 127 levels";
    let deep = format!("{}1{}", "[".repeat(130), "]".repeat(130));
    for (document, reason) in [
        (inside, "malformed: a key stands twice in an object"),
        // What follows such a number is not looked at by every program.
        (twice.replacen('{', "{\"elapsed_ms\":1e999,", 1), out_of_range),
        (twice.replacen('{', &format!("{{\"x\":{deep},"), 1), out_of_range),
        (twice, "malformed: a key stands twice in an object"),
        (edited, "not an admissible result"),
    ] {
        assert_ne!(document, provenance);
        let answer = check(&document);
        assert_eq!(
            (&answer["valid"], &answer["reason"]),
            (&json!(false), &json!(reason)),
            "{answer}"
        );
    }
}

#[test]
fn it_ends_when_it_is_told_to() {
    let database = database("end");
    let mut service = Service::start(&database, &[]);
    // More clients than there may be, each in the midst of a head.
    let open: Vec<_> = (0..300).map(|_| TcpStream::connect(service.address).unwrap()).collect();
    open.iter().for_each(|mut stream| stream.write_all(b"GET / HTTP/1.1\r\n").unwrap());
    let start = Instant::now();
    send_signal("TERM", service.process.id());
    assert!(service.process.wait().unwrap().success());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// A user that tests do not run as.
const NOBODY: u32 = 65534;

#[test]
fn what_would_let_others_in_is_refused_and_no_password_is_shown() {
    let database = database("start");
    let fails = |command: &mut Command, word: &str| {
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(word) && !text.contains("s3cret"), "{text}");
    };
    fails(program(&database).args(["--listen", "0.0.0.0"]), "--token-file");
    fails(program(&database).args(["--listen", "::", "--no-token"]), "--token-file");
    fails(program(&database).env("PORT", "many"), "PORT");
    let url = "postgresql://nobody:s3cret@127.0.0.1:1/none";
    fails(program(&database).env("DATABASE_URL", url), "no connection");
    fails(program(&database).args(["--database", url]), "can be seen by others");
    fails(program(&database).env("DATABASE_URL", "mysql://u:s3cret@h/x"), "DATABASE_URL");

    let file = std::env::temp_dir().join(format!("gk_serve_token_{}", std::process::id()));
    let path = file.to_str().unwrap();
    let write = |text: &str, mode: u32| {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    };
    let token = "s3cret".repeat(6);
    write(&token, 0o644);
    fails(program(&database).args(["--token-file", path]), "others can read it");
    write("s3cret", 0o600);
    fails(program(&database).args(["--token-file", path]), "32 to 256");
    write(&format!("{token}\n"), 0o600);
    // Only root gives files away.
    if chown(&file, Some(NOBODY), None).is_ok() {
        fails(program(&database).args(["--token-file", path]), "another user");
    }
    fs::remove_file(&file).unwrap();
    write(&format!("{token}\n"), 0o600);
    let mut service =
        Service::start(&database, &["--token-file", path, "--host", "memory.example"]);
    assert_eq!(service.token, "", "a token that is known is not printed");
    service.token = token;
    assert_eq!(service.get("/page/sessions").status, 200);
    let bearer = format!("Authorization: Bearer {}", service.token);
    let head = [bearer.as_str(), "Host: memory.example", "Origin: https://memory.example"];
    assert_eq!(service.send("GET /page/sessions", &head, "").status, 200);
    fs::remove_file(&file).unwrap();
}
