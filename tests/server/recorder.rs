//! Chunks of recorder events through the server.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::database::Database;
use crate::common::process::{backend_pid, cancelled_after, execute, private_memory};
use crate::common::tell;
use graph_kernel_tests::recorder::{ChunkCase, ExpectedChunk, chunk_cases};
use postgres::error::SqlState;
use postgres::{Client, Error};

/// A chunk in the shape of the worked cases.
const CHUNK: &str = "jsonb_build_object(
    'chunk_id', chunk_id, 'policy_version', policy_version, 'pane_id', pane_id,
    'session_id', session_id, 'direction', direction,
    'start_offset', jsonb_build_object('segment_id', start_segment_id, 'ordinal', start_ordinal,
                                       'byte_offset', start_byte_offset),
    'end_offset', jsonb_build_object('segment_id', end_segment_id, 'ordinal', end_ordinal,
                                     'byte_offset', end_byte_offset),
    'event_ids', event_ids, 'event_count', event_count,
    'occurred_at_start_ms', occurred_at_start_ms, 'occurred_at_end_ms', occurred_at_end_ms,
    'text_chars', text_chars, 'content_hash', content_hash, 'text', chunk_text,
    'overlap', overlap, 'start_char', start_char, 'end_char', end_char)::text";

/// Fills the event table with the objects of a JSON array, `$1`.
const LOAD: &str = "INSERT INTO recorder_events
    SELECT (e #>> '{offset,segment_id}')::bigint, (e #>> '{offset,ordinal}')::bigint,
           (e #>> '{offset,byte_offset}')::bigint, e ->> 'schema_version', e ->> 'event_id',
           (e ->> 'pane_id')::bigint, e ->> 'session_id', (e ->> 'occurred_at_ms')::bigint,
           e ->> 'event_type', e ->> 'text', (e ->> 'is_gap')::boolean
    FROM jsonb_array_elements($1::text::jsonb) AS e";

fn database(name: &str) -> Database {
    let database = Database::empty(name);
    database
        .connect()
        .batch_execute("CREATE EXTENSION graph_kernel; SELECT graph_kernel.create_recorder_table()")
        .unwrap();
    database
}

fn chunks(client: &mut Client, from: &str, policy: &str, events: &str) -> Vec<ExpectedChunk> {
    let statement = format!("SELECT {CHUNK} FROM {from} ORDER BY chunk_index");
    let rows = if events.is_empty() {
        client.query(&statement, &[&policy])
    } else {
        client.query(&statement, &[&policy, &events])
    };
    rows.unwrap().iter().map(|row| serde_json::from_str(row.get(0)).unwrap()).collect()
}

/// Whether the table, which has one event for each position, holds these events.
fn load(client: &mut Client, case: &ChunkCase) -> bool {
    client.batch_execute("TRUNCATE recorder_events").unwrap();
    let events = serde_json::to_string(&case.events).unwrap();
    match client.execute(LOAD, &[&events]) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION), "{}", case.name);
            false
        }
    }
}

fn first_count(client: &mut Client, statement: &str, policy: &str) -> i64 {
    client.query_one(statement, &[&policy]).unwrap().get(0)
}

#[test]
fn worked_cases_are_chunked_as_the_contract_asks() {
    let database = database("recorder_cases");
    let mut client = database.connect();
    let mut stored = 0;
    for case in chunk_cases() {
        let policy = case.policy.to_string();
        let events = serde_json::to_string(&case.events).unwrap();
        let from = "recorder_chunk_events($2::text::jsonb, $1::text::chunking_policy)";
        assert!(chunks(&mut client, from, &policy, &events) == case.chunks, "{}", case.name);
        if load(&mut client, &case) {
            stored += 1;
            let from = "recorder_chunks($1::text::chunking_policy)";
            for _ in 0..2 {
                assert!(chunks(&mut client, from, &policy, "") == case.chunks, "{}", case.name);
            }
        }
    }
    assert!(stored >= 50, "{stored} cases fit the event table");
}

/// Chunks whose ids, hashes, text or overlap plain SQL does not find in the log. `$1` is the policy.
const UNTRACEABLE: &str = "
    WITH chunk AS (
        SELECT *, lag(chunk_id) OVER w AS id_before, lag(chunk_text) OVER w AS text_before,
               lag(end_ordinal) OVER w AS end_before, lag(pane_id) OVER w AS pane_before
        FROM recorder_chunks($1::text::chunking_policy) WINDOW w AS (ORDER BY chunk_index)
    ), replayed AS (
        SELECT c.*, s.body, s.ids
        FROM chunk AS c CROSS JOIN LATERAL (
            SELECT string_agg(p.event_text, E'\\n' ORDER BY p.segment_id, p.ordinal) AS body,
                   array_agg(p.event_id ORDER BY p.segment_id, p.ordinal) AS ids
            FROM recorder_chunk_span(c.start_segment_id, c.start_ordinal, c.start_char,
                                     c.end_segment_id, c.end_ordinal, c.end_char) AS p) AS s
    )
    SELECT count(*) FROM replayed WHERE (
        event_ids = ids
        AND chunk_text = coalesce(overlap ->> 'text' || E'\\n', '') || body
        AND text_chars = char_length(chunk_text)
        AND content_hash = encode(sha256(convert_to(chunk_text, 'UTF8')), 'hex')
        AND chunk_id = encode(sha256(convert_to(concat_ws(':', policy_version, pane_id, direction,
            start_ordinal, end_ordinal, content_hash), 'UTF8')), 'hex')
        AND (overlap IS NULL
             OR pane_id = pane_before AND start_ordinal <= end_before + 1
                AND overlap ->> 'from_chunk_id' = id_before
                AND right(text_before, (overlap ->> 'chars')::int) = overlap ->> 'text')
    ) IS NOT TRUE";

#[test]
fn every_chunk_is_traced_to_the_log_in_plain_sql() {
    let database = database("recorder_trace");
    let mut client = database.connect();
    // Worked cases whose ordinals have no holes, so that "next" can be said in SQL.
    for name in ["76_realistic_agents", "82_random_seed1002", "71_long_ingress_paste"] {
        let cases = chunk_cases();
        let case = cases.iter().find(|case| case.name == name).unwrap();
        assert!(load(&mut client, case));
        let policy = case.policy.to_string();
        assert_eq!(first_count(&mut client, UNTRACEABLE, &policy), 0, "{name}");
    }
}

#[test]
fn chunking_since_any_event_gives_the_same_chunks() {
    let database = database("recorder_since");
    let mut client = database.connect();
    let cases = chunk_cases();
    let case = cases.iter().find(|case| case.name == "83_random_seed1003").unwrap();
    assert!(load(&mut client, case));
    let policy = case.policy.to_string();
    let whole = chunks(&mut client, "recorder_chunks($1::text::chunking_policy)", &policy, "");
    let positions = client.query("SELECT segment_id, ordinal FROM recorder_events", &[]).unwrap();
    let mut starts = std::collections::BTreeSet::new();
    for row in positions {
        let position: (i64, i64) = (row.get(0), row.get(1));
        let arguments = format!("{}, {}, $1::text::chunking_policy", position.0, position.1);
        let since =
            chunks(&mut client, &format!("recorder_chunks_since({arguments})"), &policy, "");
        assert!(whole.ends_with(&since), "{position:?}");
        starts.insert(since.len());
        // What holds the event is in it.
        let place = |o: graph_kernel_tests::recorder::ExpectedOffset| (o.segment_id, o.ordinal);
        let holding = |chunk: &&ExpectedChunk| {
            place(chunk.start_offset) <= position && position <= place(chunk.end_offset)
        };
        let expected: Vec<ExpectedChunk> = whole.iter().filter(holding).cloned().collect();
        let found =
            chunks(&mut client, &format!("recorder_event_chunks({arguments})"), &policy, "");
        assert!(found == expected, "{position:?}");
    }
    assert!(starts.len() > 10, "restarts at {} points", starts.len());
}

#[test]
fn a_pane_by_itself_is_chunked_as_if_alone() {
    let database = database("recorder_panes");
    let mut client = database.connect();
    let cases = chunk_cases();
    let case = cases.iter().find(|case| case.name == "76_realistic_agents").unwrap();
    assert!(load(&mut client, case));
    let policy = case.policy.to_string();
    let together = chunks(
        &mut client,
        "recorder_chunks($1::text::chunking_policy, per_pane => true)",
        &policy,
        "",
    );
    let mut apart = Vec::new();
    let mut panes: Vec<i64> = together.iter().map(|chunk| chunk.pane_id).collect();
    panes.dedup();
    assert!(panes.len() > 1 && panes.is_sorted());
    for pane in panes {
        let of_pane: Vec<_> =
            case.events.iter().filter(|event| event["pane_id"] == pane).cloned().collect();
        let events = serde_json::to_string(&of_pane).unwrap();
        let from = "recorder_chunk_events($2::text::jsonb, $1::text::chunking_policy)";
        apart.extend(chunks(&mut client, from, &policy, &events));
    }
    assert!(together == apart);
}

fn message(error: &Error) -> (String, String) {
    let error = error.as_db_error().unwrap_or_else(|| panic!("{error:?}"));
    (error.code().code().to_owned(), error.message().to_owned())
}

#[test]
fn bad_events_are_errors_that_name_them() {
    let database = database("recorder_bad");
    let mut client = database.connect();
    client
        .batch_execute(
            "CREATE TABLE loose (LIKE recorder_events INCLUDING DEFAULTS);
             ALTER TABLE loose ALTER byte_offset DROP NOT NULL, ALTER event_id DROP NOT NULL,
                 ALTER pane_id DROP NOT NULL, ALTER occurred_at_ms DROP NOT NULL,
                 ALTER event_type DROP NOT NULL, ALTER segment_id DROP NOT NULL,
                 ALTER ordinal DROP NOT NULL;
             CREATE UNIQUE INDEX loose_key ON loose (segment_id, ordinal);
             SELECT graph_kernel.bind_recorder_table('loose')",
        )
        .unwrap();
    let good = "INSERT INTO loose (segment_id, ordinal, byte_offset, event_id, pane_id,
                    occurred_at_ms, event_type, text)
                SELECT 0, i, i, 'e' || i, 1, i, 'egress_output', 'x' FROM generate_series(1, 3) AS i";
    let cases = [
        (
            "event_type = 'paste'",
            "22000",
            r#"event "e2" at segment 0, ordinal 2: unknown event_type "paste""#,
        ),
        ("event_type = NULL", "22000", r#"event "e2" at segment 0, ordinal 2: event_type is null"#),
        (
            "schema_version = 'v9'",
            "22000",
            r#"event "e2" at segment 0, ordinal 2: unknown schema_version "v9""#,
        ),
        ("text = NULL", "22000", r#"event "e2" at segment 0, ordinal 2: text is null"#),
        ("event_id = NULL", "22000", "event at segment 0, ordinal 2: event_id is null"),
        ("pane_id = -1", "22000", r#"event "e2" at segment 0, ordinal 2: pane_id is negative: -1"#),
        ("pane_id = NULL", "22000", r#"event "e2" at segment 0, ordinal 2: pane_id is null"#),
        ("ordinal = NULL", "22000", r#"event "e2" at segment 0, ordinal null: ordinal is null"#),
        (
            "segment_id = NULL",
            "22000",
            r#"event "e2" at segment null, ordinal 2: segment_id is null"#,
        ),
        (
            "ordinal = -5",
            "22000",
            r#"event "e2" at segment 0, ordinal -5: ordinal is negative: -5"#,
        ),
        (
            "byte_offset = NULL",
            "22000",
            r#"event "e2" at segment 0, ordinal 2: byte_offset is null"#,
        ),
        (
            "occurred_at_ms = NULL",
            "22000",
            r#"event "e2" at segment 0, ordinal 2: occurred_at_ms is null"#,
        ),
        ("ordinal = 1", "21000", "is not the only one at segment 0, ordinal 1"),
    ];
    for (change, code, expected) in cases {
        client.batch_execute(&format!("TRUNCATE loose; {good}")).unwrap();
        client.batch_execute("DROP INDEX IF EXISTS loose_key").unwrap();
        client.batch_execute(&format!("UPDATE loose SET {change} WHERE ordinal = 2")).unwrap();
        for per_pane in [false, true] {
            let statement = format!("SELECT count(*) FROM recorder_chunks(per_pane => {per_pane})");
            let (found, text) = message(&client.batch_execute(&statement).unwrap_err());
            assert_eq!(found, code, "{change}: {text}");
            assert!(text.contains(expected), "{change}: {text}");
        }
    }
    // Readings: any time is fine, a step back counts as none, a session and a gap may be NULL.
    client
        .batch_execute(&format!(
            "TRUNCATE loose; {good}; UPDATE loose SET occurred_at_ms = -9223372036854775808,
             is_gap = NULL, session_id = NULL, schema_version = NULL WHERE ordinal = 2"
        ))
        .unwrap();
    let ends = "SELECT array_agg(ARRAY[start_ordinal, end_ordinal])::text FROM recorder_chunks()";
    let ends: String = client.query_one(ends, &[]).unwrap().get(0);
    assert_eq!(ends, "{{1,2},{3,3}}");
}

#[test]
fn bad_json_is_an_error() {
    let database = database("recorder_json");
    let mut client = database.connect();
    let event = |change: &str| {
        format!(
            r#"[{{"segment_id":0,"ordinal":1,"byte_offset":0,"event_id":"e","pane_id":1,
            "occurred_at_ms":0,"event_type":"egress_output","text":"x"{change}}}]"#
        )
    };
    let cases = [
        ("{}".to_owned(), "22023", "events must be a JSON array, not an object"),
        ("[[]]".to_owned(), "22023", "events[0]: an event must be a JSON object, not an array"),
        (
            event(r#","ordinal":9223372036854775808"#),
            "22023",
            "ordinal must be an integer in the range of bigint",
        ),
        (
            event(r#","ordinal":1e400"#),
            "22023",
            "ordinal must be an integer in the range of bigint, not 1000",
        ),
        (event(r#","text":"a\u0000b""#), "22P05", "unsupported Unicode escape sequence"),
        (event(r#","text":7"#), "22023", "text must be a string, not 7"),
        (
            event(&format!(r#","x":{}{}"#, "[".repeat(200), "]".repeat(200))),
            "22023",
            "JSON nested more than 128 deep",
        ),
    ];
    for (events, code, expected) in cases {
        let error = client
            .query("SELECT chunk_id FROM recorder_chunk_events($1::text::jsonb)", &[&events])
            .unwrap_err();
        let (found, text) = message(&error);
        assert_eq!(found, code, "{events}: {text}");
        assert!(text.contains(expected), "{events}: {text}");
    }
    let twice = event("").replace("}]", "},") + &event("")[1..];
    let rows = client
        .query("SELECT event_ids FROM recorder_chunk_events($1::text::jsonb)", &[&twice])
        .unwrap();
    assert_eq!(rows[0].get::<_, Vec<String>>(0), ["e", "e"]);
}

#[test]
fn a_huge_event_is_cut_and_the_backend_goes_on() {
    let database = database("recorder_huge");
    let mut client = database.connect();
    client
        .batch_execute(
            "INSERT INTO recorder_events (segment_id, ordinal, byte_offset, event_id, pane_id,
                 occurred_at_ms, event_type, text)
             VALUES (0, 0, 0, 'huge', 1, 0, 'egress_output', repeat('0123456789abcde ', 4194304))",
        )
        .unwrap();
    let start = Instant::now();
    let row = client
        .query_one(
            "SELECT count(*), max(end_char), max(text_chars), sum(event_count)
             FROM (SELECT (c).* FROM (SELECT recorder_chunks() AS c OFFSET 0) AS s) AS chunks",
            &[],
        )
        .unwrap();
    let (count, end, most): (i64, i32, i32) = (row.get(0), row.get(1), row.get(2));
    // The space at the very end is trimmed.
    assert_eq!((end, most, row.get::<_, i64>(3)), (67_108_864 + 6 - 1, 1800, count));
    tell(&format!("an event of 64 MiB: {count} chunks in {:.1?}", start.elapsed()));
    let cancelled = cancelled_after(
        &mut client,
        "SELECT count(*) FROM recorder_chunks()",
        Duration::from_millis(1500),
    );
    tell(&format!("cancel in an event of 64 MiB: {cancelled:.1?}"));
}

#[test]
fn a_million_events_stream_in_flat_memory_and_answer_a_cancel() {
    let database = database("recorder_million");
    let mut client = database.connect();
    client
        .batch_execute(
            "INSERT INTO recorder_events (segment_id, ordinal, byte_offset, event_id, pane_id,
                 session_id, occurred_at_ms, event_type, text)
             SELECT i / 50000, i, i * 100, 'evt-' || i, i / 500 % 3, 's', i * 700,
                    CASE WHEN i % 25 = 0 THEN 'ingress_text' ELSE 'egress_output' END,
                    repeat(md5(i::text), 2)
             FROM generate_series(0, 999999) AS i;
             ANALYZE recorder_events",
        )
        .unwrap();
    let chunks = "SELECT recorder_chunks('{\"max_chunk_chars\": 600}')";
    let pid = backend_pid(&mut client);
    client.batch_execute(&format!("BEGIN; DECLARE chunks CURSOR FOR {chunks}")).unwrap();
    client.batch_execute("MOVE 1000 FROM chunks").unwrap();
    let before = private_memory(pid);
    let start = Instant::now();
    let mut most = 0;
    loop {
        let moved = client.execute("MOVE 10000 FROM chunks", &[]).unwrap();
        most = most.max(private_memory(pid) - before);
        if moved == 0 {
            break;
        }
    }
    client.batch_execute("COMMIT").unwrap();
    tell(&format!("1000000 events: {:.1?}, memory grew by {most} KiB at most", start.elapsed()));
    // Far less than what is read.
    assert!(most <= 8 * 1024, "{most} KiB more");

    for statement in [chunks, "SELECT count(*) FROM recorder_chunks(per_pane => true)"] {
        let mut times: Vec<Duration> = (1..=20)
            .filter_map(|n| cancelled_after(&mut client, statement, Duration::from_millis(n * 15)))
            .collect();
        times.sort();
        assert!(times.len() >= 10, "{statement}: {} runs cancelled", times.len());
        let median = times[times.len() / 2];
        tell(&format!("cancel of {statement}: median {median:.1?}"));
        assert!(median <= Duration::from_secs(1), "{statement}: {times:.1?}");
    }
    assert_eq!(backend_pid(&mut client), pid);
}

/// Fills the event table with so many events of this text, in one pane.
fn fill(client: &mut Client, events: u32, text: &str) {
    let command = format!(
        "TRUNCATE recorder_events;
         INSERT INTO recorder_events (segment_id, ordinal, byte_offset, event_id, pane_id,
             occurred_at_ms, event_type, text)
         SELECT 0, i, i, 'e' || i, 1, i, 'egress_output', {text} FROM generate_series(1, {events}) AS i"
    );
    execute(client, &command);
}

/// The policy under which a chunk is largest.
const LARGEST: &str = r#"'{"max_chunk_chars": 16777216, "max_chunk_events": 65536, "min_chunk_chars": 16777216,
    "overlap_chars": 16777216, "max_window_ms": 2147483647, "merge_window_ms": 2147483647}'"#;

#[test]
fn a_chunk_is_bounded_in_bytes() {
    let database = database("recorder_bytes");
    let mut client = database.connect();
    for (events, text, largest) in [
        // As many characters as bytes.
        (2, "repeat('x', 8000000)", Ok(16_000_013)),
        // Fewer characters than a chunk may have, but too many bytes.
        (2, "repeat('\u{6f22}', 4000000)", Err(())),
        (1, "repeat('\u{1f389}', 5000000)", Err(())),
        // Texts so short that ids outweigh them.
        (60_000, "''", Ok(60_000 * 6 - 1)),
    ] {
        fill(&mut client, events, text);
        let statement =
            format!("SELECT max(octet_length(chunk_text)) FROM recorder_chunks({LARGEST})");
        match (client.query_one(&statement, &[]), largest) {
            (Ok(row), Ok(bytes)) => assert_eq!(row.get::<_, i32>(0), bytes, "{text}"),
            (Err(error), Err(())) => {
                let error = error.as_db_error().unwrap();
                assert_eq!(error.code(), &SqlState::PROGRAM_LIMIT_EXCEEDED, "{error:?}");
                assert_eq!(error.detail(), Some("CHUNK_TOO_LARGE"));
                assert_eq!(
                    error.message(),
                    "chunk from segment 0, ordinal 1 is longer than 16777216 bytes"
                );
                assert!(error.hint().is_some());
            }
            (answer, expected) => panic!("{text}: {answer:?}, not {expected:?}"),
        }
        // The same policy in characters that fit.
        let fine = "SELECT count(*) FROM recorder_chunks('{\"max_chunk_chars\": 4000000}')";
        assert!(client.query_one(fine, &[]).unwrap().get::<_, i64>(0) > 0);
    }
    // The ids of its events count like its text.
    fill(&mut client, 5000, "''");
    client
        .batch_execute("UPDATE recorder_events SET event_id = repeat('i', 4000) || ordinal")
        .unwrap();
    let all = format!("SELECT count(*) FROM recorder_chunks({LARGEST})");
    assert_eq!(message(&client.batch_execute(&all).unwrap_err()).0, "54000");
}

#[test]
fn long_ids_stand_as_their_hash() {
    let database = database("recorder_ids");
    let mut client = database.connect();
    fill(&mut client, 3, "repeat('x', 100)");
    client
        .batch_execute(
            "ALTER TABLE recorder_events DROP CONSTRAINT IF EXISTS recorder_events_event_id_key;
             UPDATE recorder_events SET event_id = repeat('\u{e9}', 2048 + ordinal::integer) || 'z',
                 session_id = repeat('s', 100000)",
        )
        .unwrap();
    let wanted = "SELECT bool_and(c.session_id = 'sha256:' || encode(sha256(convert_to(e.session_id, 'UTF8')), 'hex')
                        AND c.event_ids[1] = 'sha256:' || encode(sha256(convert_to(e.event_id, 'UTF8')), 'hex')
                        AND s.event_id = c.event_ids[1]), count(*)
                  FROM recorder_chunks('{\"max_chunk_chars\": 10, \"overlap_chars\": 0}') AS c
                  JOIN recorder_events AS e ON e.ordinal = c.start_ordinal
                  CROSS JOIN recorder_chunk_span(c.start_segment_id, c.start_ordinal, c.start_char,
                                                 c.end_segment_id, c.end_ordinal, c.end_char) AS s";
    let row = client.query_one(wanted, &[]).unwrap();
    assert_eq!((row.get::<_, Option<bool>>(0), row.get::<_, i64>(1)), (Some(true), 33));
}

#[test]
fn events_of_100_mb_are_not_held_together() {
    let database = database("recorder_large");
    let mut client = database.connect();
    fill(&mut client, 11, "repeat('0123456789abcde ', 6250000)");
    // Before there was a limit, all of them were one chunk.
    let unbounded = LARGEST.replace("16777216", "2147483647");
    let refused =
        client.batch_execute(&format!("SELECT recorder_chunks({unbounded})")).unwrap_err();
    assert_eq!(message(&refused).0, "22023");
    let mut client = database.connect();
    let pid = backend_pid(&mut client);
    let before = private_memory(pid);
    client
        .batch_execute(&format!(
            "BEGIN; DECLARE chunks NO SCROLL CURSOR FOR SELECT recorder_chunks({LARGEST})"
        ))
        .unwrap();
    let (most, is_running) = (AtomicI64::new(0), AtomicBool::new(true));
    thread::scope(|scope| {
        scope.spawn(|| {
            while is_running.load(Relaxed) {
                most.fetch_max(private_memory(pid) - before, Relaxed);
                thread::sleep(Duration::from_millis(2));
            }
        });
        while client.execute("MOVE 1000 FROM chunks", &[]).unwrap() > 0 {}
        is_running.store(false, Relaxed);
    });
    let most = most.into_inner() / 1024;
    tell(&format!("{most} MiB: eleven events of 100 MB"));
    assert!(most <= 512, "{most} MiB");
}

#[test]
fn a_cancel_ends_a_long_event_at_once() {
    let database = database("recorder_cancel");
    let mut client = database.connect();
    let pid = backend_pid(&mut client);
    for text in [
        "repeat('\u{6f22}', 33000000)",
        "'x' || repeat(' ', 33000000)",
        "repeat('x' || chr(8195), 16500000)",
        "repeat(E'\\n', 33000000)",
        "repeat(E'a\\r\\n', 11000000)",
    ] {
        fill(&mut client, 1, text);
        for statement in [
            "SELECT count(*) FROM recorder_chunks('{\"max_chunk_chars\": 5000000, \"overlap_chars\": 2500000}')",
            "SELECT count(*) FROM recorder_chunks('{\"max_chunk_chars\": 40}')",
            "SELECT count(*) FROM recorder_chunk_span(0, 1, 0, 0, 1, 5)",
        ] {
            let mut times: Vec<Duration> = (1..=8)
                .filter_map(|n| {
                    cancelled_after(&mut client, statement, Duration::from_millis(n * 40))
                })
                .collect();
            times.sort();
            let Some(longest) = times.last() else { continue };
            tell(&format!(
                "cancel of {statement} over {text}: {} runs, longest {longest:.1?}",
                times.len()
            ));
            assert!(
                times[times.len() / 2] <= Duration::from_millis(200),
                "{statement}: {times:.1?}"
            );
        }
    }
    assert_eq!(backend_pid(&mut client), pid);
}
