//! The HTTP API of `graph-kernel serve`: what the published service has answered, is answered alike, and
//! `/api/openapi.json` describes what is answered.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use graph_kernel_tests::shared::shared_or_skip;
use serde_json::{Value, json};

use crate::common::database::Database;
use crate::import::graph_kernel;

/// The service over a database, which ends with it.
struct Service {
    process: Child,
    address: String,
    token: String,
}

/// An answer: its status and its body.
type Answer = (u16, String);

impl Service {
    fn start(database: &Database, arguments: &[&str]) -> Self {
        Service::start_by(graph_kernel(database), arguments)
    }

    fn start_by(mut command: Command, arguments: &[&str]) -> Self {
        command.args(["serve", "--port", "0"]).args(arguments).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let shown = line.trim_end().strip_prefix("http://").unwrap_or_else(|| panic!("{line:?}"));
        let (address, token) = shown.split_once("/#token=").unwrap();
        Service { process, address: address.to_owned(), token: token.to_owned() }
    }

    /// Sends a request with more lines of a head.
    fn send(&self, method: &str, path: &str, more: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\
             {more}\r\n{body}"
        )
        .unwrap();
        answer_on(stream)
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        self.send(method, path, &self.head("application/json"), body)
    }

    /// The lines of a head for a body of a type, with what /mcp asks for.
    fn head(&self, content_type: &str) -> String {
        format!(
            "Authorization: Bearer {}\r\nContent-Type: {content_type}\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\n",
            self.token
        )
    }

    /// Begins a request whose body does not come.
    fn begin(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (host, head) = (&self.address, self.head("application/json"));
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 2\r\n{head}\r\n"
        )
        .unwrap();
        stream
    }
}

fn answer_on(mut stream: TcpStream) -> Answer {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(!head.to_ascii_lowercase().contains("transfer-encoding"), "{head}");
    (status, body.to_owned())
}

impl Drop for Service {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// The graph of the recorded answers, with words to search by.
fn recorded_graph(name: &str) -> Database {
    let database = Database::empty(name);
    database
        .connect()
        .batch_execute(
            "CREATE EXTENSION graph_kernel;
             SELECT graph_kernel.create_tables('public', '{\"words\": \"english\"}');
             INSERT INTO memory_turns (id, session_id, role, content_text, payload, created_at)
             SELECT ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, 's', 'user', 'heron ' || n,
                    '{\"a\": 1}', 'epoch' FROM unnest('{1,2,4}'::int[]) AS n;
             INSERT INTO memory_turn_edges
             SELECT ('00000000-0000-0000-0000-' || lpad(p::text, 12, '0'))::uuid,
                    ('00000000-0000-0000-0000-' || lpad(c::text, 12, '0'))::uuid, 'reply'
               FROM (VALUES (1, 2), (2, 4)) AS v (p, c)",
        )
        .unwrap();
    database
}

const FIRST: &str = "00000000-0000-0000-0000-000000000001";

/// What depends on the database's keys, contents, version and registry, replaced in both answers by its kind.
fn without_own(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(without_own),
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "admissibility_token" | "graph_snapshot_hash" | "registry_fingerprint" => {
                        let text = value.as_str().unwrap();
                        assert!(text.bytes().all(|byte| byte.is_ascii_hexdigit()));
                        *value = json!(text.len());
                    }
                    "version" => *value = json!(value.as_str().unwrap().split('.').count()),
                    "policy_count" | "pool_size" | "pool_idle" | "pool_max" => {
                        *value = json!(value.is_u64());
                    }
                    // The presets are registered here from the beginning; the first is the service's.
                    "policies" => value.as_array_mut().unwrap().truncate(1),
                    _ => without_own(value),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn the_requests_of_the_published_service_are_answered_alike() {
    let test = "http::the_requests_of_the_published_service_are_answered_alike";
    let Some(shared) = shared_or_skip(test) else { return };
    let recorded = fs::read_to_string(shared.join("vectors/reference-service.txt")).unwrap();
    let database = recorded_graph("http_recorded");
    let service = Service::start(&database, &[]);
    // Of these requests the token and the hash are the other service's: in their place come our own.
    let (_, own) = service.ask(
        "POST",
        "/api/policies",
        r#"{"policy": {"version": "slice_policy_v1", "max_nodes": 3, "max_radius": 2}}"#,
    );
    let reference: Value = serde_json::from_str(&own).unwrap();
    let request = json!({"anchor_turn_id": FIRST, "policy_ref": reference["policy_ref"]});
    let (_, own) = service.ask("POST", "/api/slice", &request.to_string());
    let own: Value = serde_json::from_str(&own).unwrap();
    let own = |name: &str| own["slice"][name].as_str().unwrap().to_owned();
    let mut count = 0;
    let mut lines = recorded.lines();
    while let Some(line) = lines.next() {
        let request = line.strip_prefix("## ").unwrap_or_else(|| panic!("{line}"));
        let (status, expected) = lines.next().unwrap().split_once(' ').unwrap();
        let mut words = request.splitn(3, ' ');
        let (method, path, body) =
            (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or_default());
        let body = body
            .replace("cc103577c693d33e2f4db39881c845de", &own("admissibility_token"))
            .replace("d827601470bcadd8", &own("graph_snapshot_hash"));
        let (given, answer) = service.ask(method, path, &body);
        assert_eq!(given.to_string(), status, "{request}: {answer}");
        count += 1;
        let Ok(mut expected) = serde_json::from_str::<Value>(expected) else {
            assert_eq!(answer, expected, "{request}");
            continue;
        };
        let mut parsed: Value = serde_json::from_str(&answer).unwrap();
        without_own(&mut parsed);
        without_own(&mut expected);
        assert_eq!(parsed, expected, "{request}");
        // In the same order, too.
        let keys = |text: &str| {
            let quoted = text.split('"').skip(1).step_by(2).map(str::to_owned);
            quoted.filter(|word| word.contains('_') && !word.contains(' ')).collect::<Vec<_>>()
        };
        if !path.ends_with("policies") && !path.ends_with("health") {
            let hashes = |key: &String| !key.starts_with("0000");
            let (mine, theirs) = (keys(&answer), keys(lines_of(&recorded, request)));
            assert!(
                mine.iter().filter(|key| hashes(key)).eq(theirs.iter().filter(|key| hashes(key))),
                "{request}"
            );
        }
    }
    assert_eq!(count, 15);
}

/// The recorded answer of a request.
fn lines_of<'a>(recorded: &'a str, request: &str) -> &'a str {
    let behind = recorded.split_once(&format!("## {request}\n")).unwrap().1;
    behind.lines().next().unwrap()
}

/// Whether a value is of a schema; notes each property that was seen, by the schema's own place.
fn check(
    document: &Value,
    schema: &Value,
    value: &Value,
    place: &str,
    seen: &mut BTreeSet<String>,
) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).unwrap();
        return check(document, target, value, reference, seen);
    }
    if let Some(all) = schema["anyOf"].as_array() {
        // Errors of both forms have an `error`, one a text and one an object.
        let error = |schema: &Value| {
            let target = schema["$ref"].as_str().unwrap_or("#").trim_start_matches('#');
            document.pointer(target).unwrap()["properties"]["error"]["type"].clone()
        };
        let fits = |schema: &&Value| {
            let is_text = error(schema) == "string";
            (schema["type"] == "null") == value.is_null() && is_text == value["error"].is_string()
        };
        let schema = all.iter().find(fits).unwrap_or_else(|| panic!("{place}: {value}"));
        return check(document, schema, value, place, seen);
    }
    if let Some(names) = schema["enum"].as_array() {
        assert!(names.contains(value), "{place}: {value}");
    }
    if let Some(constant) = schema.get("const") {
        assert_eq!(constant, value, "{place}");
    }
    let types = match &schema["type"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().map(|name| name.as_str().unwrap()).collect(),
        _ => vec![],
    };
    let is = |name: &&str| match *name {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{place}: type {other}"),
    };
    assert!(types.is_empty() || types.iter().any(is), "{place}: {value} is not one of {types:?}");
    if let Some(values) = value.as_array() {
        for value in values {
            check(document, &schema["items"], value, &format!("{place}/items"), seen);
        }
    }
    let (Some(fields), Some(properties)) = (value.as_object(), schema["properties"].as_object())
    else {
        return;
    };
    assert_eq!(schema["additionalProperties"], false, "{place}");
    for name in schema["required"].as_array().unwrap() {
        assert!(fields.contains_key(name.as_str().unwrap()), "{place} lacks {name}: {value}");
    }
    for (name, value) in fields {
        let property =
            properties.get(name).unwrap_or_else(|| panic!("{place} does not tell of {name}"));
        let place = format!("{place}/properties/{name}");
        check(document, property, value, &place, seen);
        seen.insert(place);
    }
}

/// Every property of the schemas of answers, by its place.
fn properties(document: &Value, schema: &Value, place: &str, all: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.trim_start_matches('#')).unwrap();
        return properties(document, target, reference, all);
    }
    for schema in schema["anyOf"].as_array().into_iter().flatten() {
        properties(document, schema, place, all);
    }
    if schema["items"].is_object() {
        properties(document, &schema["items"], &format!("{place}/items"), all);
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{place}/properties/{name}");
        properties(document, schema, &place, all);
        all.insert(place);
    }
}

#[test]
fn the_description_is_that_of_the_answers() {
    let database = recorded_graph("http_described");
    let service = Service::start(&database, &[]);
    let (_, text) = service.send("GET", "/api/openapi.json", "", "");
    let document: Value = serde_json::from_str(&text).unwrap();
    let first = format!("\"{FIRST}\"");
    let (_, export) = service.ask("POST", "/api/recall", r#"{"query": "heron"}"#);
    let export = serde_json::from_str::<Value>(&export).unwrap()["slice"].to_string();
    let default = r#"{"policy_id": "slice_policy_v1", "params_hash": "02005444cae1117d"}"#;
    let unknown = r#"{"policy_id": "slice_policy_v1", "params_hash": "nope"}"#;
    let none = "\"00000000-0000-0000-0000-0000000fffff\"";
    let many = format!("[{}]", vec![first.as_str(); 101].join(", "));
    let token = json!({"admissibility_token": "a", "slice_id": "b", "anchor_turn_id": FIRST, "policy_id": "c",
                       "policy_params_hash": "d", "graph_snapshot_hash": "e", "schema_version": "f"});
    let notification = r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#;
    let requests: Vec<(&str, &str, String, u16)> = vec![
        ("POST", "/api/slice", format!(r#"{{"anchor_turn_id": {first}}}"#), 200),
        (
            "POST",
            "/api/slice",
            format!(r#"{{"anchor_turn_id": {first}, "policy_ref": {default}}}"#),
            200,
        ),
        ("POST", "/api/slice", r#"{"anchor_turn_id": "x"}"#.to_owned(), 400),
        (
            "POST",
            "/api/slice",
            format!(r#"{{"anchor_turn_id": {first}, "policy_ref": {unknown}}}"#),
            404,
        ),
        ("POST", "/api/slice", format!(r#"{{"anchor_turn_id": {none}}}"#), 500),
        ("POST", "/api/slice", "{}".to_owned(), 422),
        ("POST", "/api/slice/batch", format!(r#"{{"anchor_turn_ids": [{first}, "x"]}}"#), 200),
        ("POST", "/api/slice/batch", format!(r#"{{"anchor_turn_ids": {many}}}"#), 400),
        (
            "POST",
            "/api/slice/batch",
            format!(r#"{{"anchor_turn_ids": [], "policy_ref": {unknown}}}"#),
            404,
        ),
        ("POST", "/api/slice/batch", "{}".to_owned(), 422),
        ("GET", "/api/policies", String::new(), 200),
        (
            "POST",
            "/api/policies",
            r#"{"policy": {"max_nodes": 7}, "name": "seven"}"#.to_owned(),
            200,
        ),
        ("POST", "/api/policies", r#"{"policy": {"max_nodes": 0}}"#.to_owned(), 400),
        (
            "POST",
            "/api/policies",
            r#"{"policy": {"max_nodes": 8}, "name": "seven"}"#.to_owned(),
            409,
        ),
        ("POST", "/api/policies", "{}".to_owned(), 422),
        ("POST", "/api/verify_token", token.to_string(), 200),
        ("POST", "/api/verify_token", "{}".to_owned(), 422),
        ("POST", "/api/verify", export.clone(), 200),
        ("POST", "/api/verify", "{}".to_owned(), 200),
        ("POST", "/api/verify", "{".to_owned(), 400),
        ("POST", "/api/messages", format!(r#"{{"anchor_turn_id": {first}, "record": true}}"#), 200),
        (
            "POST",
            "/api/messages",
            r#"{"session_id": "s", "policy": {"preset": "chat"}}"#.to_owned(),
            200,
        ),
        ("POST", "/api/messages", r#"{"session_id": "s", "policy": "seven"}"#.to_owned(), 200),
        ("POST", "/api/messages", "{}".to_owned(), 400),
        ("POST", "/api/messages", r#"{"session_id": "t"}"#.to_owned(), 404),
        ("POST", "/api/messages", r#"{"sesion_id": "t"}"#.to_owned(), 422),
        (
            "POST",
            "/api/recall",
            r#"{"query": "heron", "filter": {"sessions": ["s"]}}"#.to_owned(),
            200,
        ),
        ("POST", "/api/recall", r#"{"query": "nothing"}"#.to_owned(), 200),
        ("POST", "/api/recall", "{}".to_owned(), 400),
        ("POST", "/api/recall", format!(r#"{{"query": "heron", "anchor_turn_id": {none}}}"#), 404),
        ("POST", "/api/recall", r#"{"query_embedding": [1]}"#.to_owned(), 500),
        ("POST", "/api/recall", r#"{"query": 1}"#.to_owned(), 422),
        (
            "POST",
            "/api/rag/search/slice",
            format!(r#"{{"query": "heron", "anchor_turn_id": {first}, "limit": 2}}"#),
            200,
        ),
        (
            "POST",
            "/api/rag/search/slice",
            format!(r#"{{"query": "heron", "slice": {export}}}"#),
            200,
        ),
        ("POST", "/api/rag/search/slice", "{}".to_owned(), 400),
        (
            "POST",
            "/api/rag/search/slice",
            format!(r#"{{"query": "heron", "anchor_turn_id": {none}}}"#),
            404,
        ),
        ("POST", "/api/rag/search/slice", "7".to_owned(), 422),
        ("GET", "/api/rag/search/global?query=heron%204&limit=2", String::new(), 200),
        ("GET", "/api/rag/search/global", String::new(), 400),
        (
            "POST",
            "/mcp",
            r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "recall", "arguments": {"question": "heron"}}}"#
                .to_owned(),
            200,
        ),
        ("POST", "/mcp", notification.to_owned(), 202),
        ("GET", "/health", String::new(), 200),
        ("GET", "/health/live", String::new(), 200),
        ("GET", "/health/ready", String::new(), 200),
        ("GET", "/health/startup", String::new(), 200),
        ("GET", "/api/openapi.json", String::new(), 200),
    ];
    let (mut seen, mut all, mut asked) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let schema_of = |path: &str, method: &str, status: u16| {
        let operation = &document["paths"][path][method.to_ascii_lowercase()];
        let mut response = &operation["responses"][status.to_string()];
        if let Some(reference) = response["$ref"].as_str() {
            response = document.pointer(reference.trim_start_matches('#')).unwrap();
        }
        assert!(response.is_object(), "{method} {path} does not tell of {status}");
        response["content"].clone()
    };
    let mut judge = |method: &str, path: &str, (status, body): Answer, wanted: u16| {
        assert_eq!(status, wanted, "{method} {path}: {body}");
        let path = path.split('?').next().unwrap();
        let content = schema_of(path, method, status);
        let place = format!("{method} {path} {status}");
        let as_json = content.get("application/json").filter(|_| body.starts_with('{'));
        match as_json {
            _ if content.is_null() => assert_eq!(body, "", "{place}"),
            Some(content) => {
                let value = serde_json::from_str(&body).unwrap();
                check(&document, &content["schema"], &value, &place, &mut seen);
            }
            None => assert!(
                content.get("text/plain").is_some() && !body.starts_with('{'),
                "{place}: {body}"
            ),
        }
        asked.insert((path.to_owned(), method.to_ascii_lowercase(), status));
    };
    let paths = document["paths"].as_object().unwrap();
    let posted: Vec<(&String, &Value)> = paths
        .iter()
        .filter(|(_, operations)| operations["post"].is_object())
        .map(|(path, operations)| (path, &operations["post"]["responses"]))
        .collect();
    // As many requests as are taken at once, whose bodies do not come.
    let full = Service::start(&database, &["--timeout", "1"]);
    let mut begun: Vec<(&String, TcpStream)> = Vec::new();
    for (path, _) in posted.iter().cycle() {
        let stream = full.begin(path);
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        if stream.peek(&mut [0]).is_ok() {
            break;
        }
        stream.set_read_timeout(None).unwrap();
        begun.push((path, stream));
    }
    assert_eq!(begun.len(), 64);
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().unwrap() {
            let method = method.to_ascii_uppercase();
            if operation["security"] != json!([]) {
                judge(&method, path, full.ask(&method, path, "{}"), 503);
            }
        }
    }
    for (method, path, body, status) in &requests {
        judge(method, path, service.ask(method, path, body), *status);
    }
    // Bodies that are no JSON, that do not say that they are, and that are too long.
    let long = format!("\"{}\"", "x".repeat(17 << 20));
    for (path, responses) in &posted {
        judge("POST", path, service.ask("POST", path, "{"), 400);
        judge("POST", path, service.ask("POST", path, &long), 413);
        let answer = service.send("POST", path, &service.head("text/plain"), notification);
        assert_eq!(answer.0 == 415, responses["415"].is_object(), "{path}: {answer:?}");
        if answer.0 == 415 {
            judge("POST", path, answer, 415);
        }
    }
    let only_json = service.head("application/json").replace(", text/event-stream", "");
    judge("POST", "/mcp", service.send("POST", "/mcp", &only_json, notification), 406);
    // Statements that wait for tables.
    let waiting = Service::start(&database, &["--timeout", "1"]);
    let mut holder = database.connect();
    let mut holder = holder.transaction().unwrap();
    holder
        .batch_execute(
            "DO $$DECLARE t regclass; BEGIN
                FOR t IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace IN (
                    'graph_kernel'::regnamespace, 'public'::regnamespace) LOOP
                    EXECUTE 'LOCK TABLE ' || t;
                END LOOP;
             END$$",
        )
        .unwrap();
    for (method, path, body, status) in &requests {
        let told = &paths[path.split('?').next().unwrap()][method.to_ascii_lowercase()];
        if *status == 200 && told["responses"]["504"].is_object() {
            judge(method, path, waiting.ask(method, path, body), 504);
        }
    }
    holder.rollback().unwrap();
    drop(waiting);
    // Without the token, what is not open is refused; from the page of another origin all is.
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let method = method.to_ascii_uppercase();
            let is_open = operation["security"] == json!([]);
            let answer = service.send(&method, path, "Content-Type: application/json\r\n", "{}");
            assert_eq!(answer.0 == 401, !is_open, "{method} {path}: {}", answer.1);
            if !is_open {
                judge(&method, path, answer, 401);
            }
            let head =
                format!("Origin: http://another.example\r\n{}", service.head("application/json"));
            judge(&method, path, service.send(&method, path, &head, "{}"), 403);
        }
    }
    // Two at once are answered, and no more.
    let limited = Service::start(&database, &["--rate", "1"]);
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let method = method.to_ascii_uppercase();
            if operation["security"] != json!([]) {
                let mut answers = (0..4).map(|_| limited.ask(&method, path, "{}"));
                judge(&method, path, answers.find(|answer| answer.0 == 429).unwrap(), 429);
            }
        }
    }
    drop(limited);
    // A role that may not register, and a server that is gone.
    database
        .connect()
        .batch_execute(
            "CREATE ROLE gk_test_http_reader LOGIN;
             GRANT SELECT ON memory_turns, memory_turn_edges TO gk_test_http_reader",
        )
        .unwrap();
    let reader = {
        let mut command = graph_kernel(&database);
        command.env("PGUSER", "gk_test_http_reader");
        Service::start_by(command, &[])
    };
    let answer = reader.ask("POST", "/api/policies", r#"{"policy": {"max_nodes": 9}}"#);
    judge("POST", "/api/policies", answer, 403);
    assert_eq!(reader.ask("POST", "/api/slice", &requests[0].2).0, 200);
    drop(reader);
    database
        .connect()
        .batch_execute("DROP OWNED BY gk_test_http_reader; DROP ROLE gk_test_http_reader")
        .unwrap();
    drop_all(&database);
    // Probes are answered from what was asked in the last second.
    while service.ask("GET", "/health", "").0 == 200 {
        sleep(Duration::from_millis(20));
    }
    for (method, path, body, status) in &requests {
        let told = &document["paths"][path.split('?').next().unwrap()][method.to_ascii_lowercase()]
            ["responses"];
        // The tools say it in their results.
        if *status == 200 && *path != "/mcp" && told["503"].is_object() {
            judge(method, path, service.ask(method, path, body), 503);
        }
    }
    for (path, stream) in begun {
        judge("POST", path, answer_on(stream), 408);
    }
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            for (status, _) in operation["responses"].as_object().unwrap() {
                let number: u16 = status.parse().unwrap();
                let case = (path.clone(), method.clone(), number);
                assert!(asked.contains(&case), "not asked: {case:?}");
                let content = schema_of(path, method, number);
                let place = format!("{} {path} {status}", method.to_ascii_uppercase());
                properties(&document, &content["application/json"]["schema"], &place, &mut all);
            }
        }
    }
    let unseen: Vec<&String> = all.difference(&seen).collect();
    assert!(unseen.is_empty(), "no answer has {unseen:#?}");
}

/// Makes the database one that cannot be connected to.
fn drop_all(database: &Database) {
    let name = &database.name;
    let mut admin = database.server.connect_admin();
    admin.batch_execute(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false")).unwrap();
    admin
        .execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1",
            &[name],
        )
        .unwrap();
}

/// One call of the tools at /mcp.
fn call(service: &Service, tool: &str, arguments: Value) -> String {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                         "params": {"name": tool, "arguments": arguments}});
    let (status, body) = service.ask("POST", "/mcp", &request.to_string());
    assert_eq!(status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
}

#[test]
fn no_function_of_another_is_called_for_one_of_the_extension() {
    let database = recorded_graph("http_overloads");
    let mut owner = database.connect();
    for (name, arguments) in [
        ("graph_anchor", "uuid, text"),
        ("graph_anchor", "uuid, text, text"),
        ("graph_search", "real[], text, integer, text"),
        ("graph_search", "query_text text, limit_count integer"),
        ("graph_recall", "real[], text, slice_policy, text, jsonb"),
        ("graph_messages", "uuid"),
        ("graph_messages", "text, slice_policy"),
        ("graph_messages_record", "uuid, slice_policy"),
        ("graph_messages_show", "json"),
        ("graph_replay", "json"),
        ("graph_slice", "uuid"),
        ("graph_why", "uuid, uuid"),
    ] {
        let body = "BEGIN RAISE 'foreign code'; END";
        let create = format!(
            "CREATE FUNCTION {name}({arguments}) RETURNS SETOF text LANGUAGE plpgsql AS $${body}$$"
        );
        owner.batch_execute(&create).unwrap();
    }
    let service = Service::start(&database, &[]);
    let whole = json!({"anchor_turn_id": FIRST, "record": true});
    let (status, body) = service.ask("POST", "/api/messages", &whole.to_string());
    assert_eq!(status, 200, "{body}");
    let record = serde_json::from_str::<Value>(&body).unwrap()["record"].take();
    let context = json!({"anchor": FIRST, "policy": "chat", "query": "heron"});
    for (path, body) in [
        ("/api/recall", json!({"query": "heron"})),
        ("/page/search", json!({"query": "heron"})),
        ("/page/context", context.clone()),
        ("/page/why", json!({"anchor": FIRST, "policy": "chat", "turn": FIRST})),
        ("/page/diff", json!({"was": context, "now": context})),
        ("/page/check", json!({"document": record.to_string()})),
    ] {
        let (status, body) = service.ask("POST", path, &body.to_string());
        assert!(status == 200 && !body.contains("foreign code"), "{path}: {status} {body}");
    }
    for (tool, arguments) in [
        ("recall", json!({"question": "heron"})),
        ("context", json!({"session": "s"})),
        ("why", json!({"turn": FIRST})),
        ("record", json!({"turn": FIRST})),
        ("show", json!({"record": record})),
    ] {
        let text = call(&service, tool, arguments);
        assert!(!text.contains("foreign code") && !text.contains("42725"), "{tool}: {text}");
        assert!(!text.contains("not unique"), "{tool}: {text}");
    }
    for command in ["slice", "prompt"] {
        crate::import::ask(&database, &[command, FIRST]).expect_success();
    }
}

#[test]
fn a_model_may_have_its_tools_over_http() {
    let database = recorded_graph("http_mcp");
    let service = Service::start(&database, &["--allow-writes"]);
    let more = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let (status, body) = service.send("POST", "/mcp", more, "{}");
    assert_eq!(status, 401, "{body}");
    let text = call(&service, "recall", json!({"question": "heron 4"}));
    assert!(text.contains("\n| heron 4\n"), "{text}");
    let text = call(&service, "remember", json!({"session": "s", "text": "egret"}));
    assert!(text.starts_with("Stored as turn "), "{text}");
    assert!(call(&service, "context", json!({})).ends_with("\n| egret\n"));
    let large = format!("{{\"jsonrpc\": \"2.0\", \"x\": \"{}\"}}", "x".repeat(5 << 20));
    let token = format!("Authorization: Bearer {}\r\n{more}", service.token);
    for _ in 0..20 {
        // The answer comes before the body is read, and must not be lost.
        assert_eq!(service.send("POST", "/mcp", &token, &large).0, 413);
        assert_eq!(service.send("POST", "/mcp", more, &large).0, 401);
    }
    assert_eq!(service.send("GET", "/mcp", &token, "").0, 405);
    // Without the option nothing is written.
    let service = Service::start(&database, &[]);
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                         "params": {"name": "remember", "arguments": {"session": "s", "text": "x"}}});
    let token = format!(
        "Authorization: Bearer {}\r\n{more}MCP-Protocol-Version: 2025-06-18\r\n",
        service.token
    );
    let (_, body) = service.send("POST", "/mcp", &token, &request.to_string());
    assert!(body.contains("there is no tool"), "{body}");
}
