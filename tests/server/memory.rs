//! What a call holds of the largest inputs that are taken, and that larger ones are refused.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::database::Database;
use crate::common::export::EXPORT;
use crate::common::process::{backend_pid, private_memory};
use crate::common::shortage::{Shortage, answer};
use crate::common::tell;
use postgres::Client;

/// The most that a call may hold, in KiB.
const MOST: i64 = 256 * 1024;

/// A table with one event of so many characters.
const EVENT: &str = "CREATE TABLE given AS SELECT jsonb_build_array(jsonb_build_object(
    'segment_id', 0, 'ordinal', 1, 'byte_offset', 0, 'event_id', 'e', 'pane_id', 1, 'occurred_at_ms', 0,
    'event_type', 'egress_output', 'text', repeat('x', {}))) AS j";

const EVENTS: &str = "CREATE TABLE given AS SELECT jsonb_agg(jsonb_build_object(
    'segment_id', 0, 'ordinal', i, 'byte_offset', 0, 'event_id', 'e', 'pane_id', 1, 'occurred_at_ms', 0,
    'event_type', 'egress_output', 'text', 'x')) AS j FROM generate_series(1, {}) AS i";

/// A record of so many messages, of no slice.
const MESSAGES: &str = "CREATE TABLE given AS SELECT json_build_object('v', 1, 'messages', json_agg(json_build_object(
    'turn_id', md5(i::text)::uuid, 'part', 'line', 'role', 'user', 'created_at', 0, 'tokens', 1,
    'content', repeat('0', 64), 'payload', repeat('0', 64)))) AS j FROM generate_series(1, {}) AS i";

/// Four texts of so many times 16 bytes.
const TEXTS: &str =
    "CREATE TABLE given AS SELECT array_fill(repeat('0123456789abcdef', {}), '{4}') AS j";

const IDS: &str = "CREATE TABLE given AS
    SELECT array_agg(md5(i::text)::uuid) AS j FROM generate_series(1, {}) AS i";

const NUMBERS: &str =
    "CREATE TABLE given AS SELECT jsonb_agg(i) AS j FROM generate_series(1, {}) AS i";

/// What a statement answers, and how much more memory of its own its process had meanwhile, in KiB.
fn measured(client: &mut Client, statement: &str) -> (Result<String, String>, i64) {
    let pid = backend_pid(client);
    let before = private_memory(pid);
    let (running, most) = (AtomicBool::new(true), AtomicI64::new(before));
    let answer = thread::scope(|scope| {
        scope.spawn(|| {
            while running.load(Ordering::Relaxed) {
                most.fetch_max(private_memory(pid), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(1));
            }
        });
        let answer = answer(client, statement);
        running.store(false, Ordering::Relaxed);
        answer
    });
    (answer, most.into_inner() - before)
}

#[test]
fn no_call_holds_more_than_is_said() {
    let database = Database::with_tables("memory");
    let chunks = "SELECT count(*)::text FROM recorder_chunk_events((SELECT j FROM given)";
    let fine = format!(r#"{chunks}, '{{"max_chunk_chars": 1}}')"#);
    let coarse = format!(r#"{chunks}, '{{"max_chunk_chars": 16777216}}')"#);
    let slices = "SELECT count(s.error)::text FROM graph_slices((SELECT j FROM given)) AS s";
    let kept = "SELECT count(*)::text FROM graph_messages_show('{}', (SELECT j FROM given))";
    let filtered = "SELECT cardinality(graph_filter_admissible('{}', (SELECT j FROM given)))::text";
    let cases: [(&str, u32, &str, Result<&str, &str>); 17] = [
        (EVENT, 1_000_000, &fine, Ok("1000006")),
        (EVENT, 16_000_000, &coarse, Ok("1")),
        (EVENT, 17_000_000, &coarse, Err("54000 INVALID_EVENT")),
        (EVENTS, 105_000, &format!("{chunks})"), Ok("2188")),
        (NUMBERS, 3_000_000, &format!("{chunks})"), Err("54000 INVALID_EVENT")),
        (
            EXPORT,
            14_000,
            "SELECT reason FROM graph_verify((SELECT j FROM given))",
            Ok("unattested"),
        ),
        (
            EXPORT,
            14_000,
            "SELECT count(*)::text FROM graph_slice_diff((SELECT j FROM given), (SELECT j FROM given))",
            Ok("0"),
        ),
        (
            EXPORT,
            14_000,
            "SELECT length(graph_export_draw((SELECT j FROM given), 'dot'))::text",
            Ok("2366401"),
        ),
        (EXPORT, 16_000, "SELECT reason FROM graph_verify((SELECT j FROM given))", Ok("malformed")),
        (
            MESSAGES,
            180_000,
            "SELECT reason FROM graph_verify((SELECT j FROM given))",
            Ok("malformed"),
        ),
        (
            MESSAGES,
            250_000,
            "SELECT reason FROM graph_verify((SELECT j FROM given))",
            Ok("malformed"),
        ),
        (TEXTS, 900_000, kept, Err("22023 NOT_ADMISSIBLE: malformed")),
        (TEXTS, 1_100_000, kept, Err("22023 NOT_ADMISSIBLE: malformed")),
        (IDS, 1_000_000, filtered, Ok("0")),
        (IDS, 1_000_001, filtered, Err("54000 TOO_MANY_IDS")),
        (IDS, 1_000_001, slices, Err("54000 TOO_MANY_IDS")),
        (
            NUMBERS,
            1_000_000,
            "SELECT is_admissible::text FROM graph_is_admissible_result((SELECT j FROM given)) AS is_admissible",
            Ok("false"),
        ),
    ];
    for (given, size, statement, expected) in cases {
        let mut client = database.connect();
        client.batch_execute("DROP TABLE IF EXISTS given").unwrap();
        client.batch_execute(&given.replace("{}", &size.to_string())).unwrap();
        // Not where the input was made, which leaves memory to take from.
        let mut client = database.connect();
        let (answer, held) = measured(&mut client, statement);
        let answer = answer.as_deref().map_err(String::as_str);
        assert_eq!(answer, expected, "{statement} of {size}");
        tell(&format!("{} MiB: {statement} of {size}", held / 1024));
        assert!(held <= MOST, "{statement} of {size} holds {held} KiB");
    }
}

#[test]
fn lengths_are_asked_for_before_values_are_read() {
    let database = Database::with_tables("memory_lengths");
    let mut client = database.connect();
    client
        .batch_execute(
            "ALTER TABLE memory_turns ADD COLUMN embedding real[];
             INSERT INTO memory_turns (id, embedding, content_text)
             VALUES ('00000000-0000-4000-8000-000000000001', '{1}', repeat('0123456789abcdef', 9000000))",
        )
        .unwrap();
    let anchor = "'00000000-0000-4000-8000-000000000001'";
    for (statement, expected) in [
        (
            format!("SELECT count(*)::text FROM graph_messages({anchor})"),
            Err("54000 SEARCH_TOO_LARGE"),
        ),
        (
            format!("SELECT length(graph_messages_record({anchor})::text)::text"),
            Err("54000 SEARCH_TOO_LARGE"),
        ),
        (format!("SELECT count(*)::text FROM graph_search_slice('{{1}}', {anchor})"), Ok("0")),
        ("SELECT count(*)::text FROM graph_search('{1}')".to_owned(), Ok("0")),
        ("SELECT count(*)::text FROM graph_recall('{1}')".to_owned(), Ok("0")),
    ] {
        let mut client = database.connect();
        let (answer, held) = measured(&mut client, &statement);
        assert_eq!(answer.as_deref().map_err(String::as_str), expected, "{statement}");
        tell(&format!("{} MiB: {statement} of 144 MB", held / 1024));
        assert!(held <= 64 * 1024, "{statement} holds {held} KiB");
    }
}

/// A name of a session may be as long as a value: what stands for it takes no more memory than the value itself.
#[test]
fn long_names_of_sessions_are_hashed_where_they_stand() {
    let database = Database::with_tables("memory_names");
    let mut client = database.connect();
    client
        .batch_execute(
            "DO $$ BEGIN EXECUTE (SELECT string_agg(format('DROP INDEX %s', i.indexrelid::regclass), '; ')
                 FROM pg_index AS i WHERE i.indrelid = 'memory_turns'::regclass AND NOT i.indisprimary); END $$;
             INSERT INTO memory_turns (id, session_id, role, content_text)
             VALUES ('00000000-0000-4000-8000-000000000001', repeat(chr(92), 100000000), 'user', 'x')",
        )
        .unwrap();
    let hash = answer(
        &mut client,
        "SELECT 'sha256:' || encode(sha256(decode(repeat('5c', 100000000), 'hex')), 'hex')",
    );
    let hash = hash.unwrap();
    for statement in [
        "SELECT session_id FROM graph_kernel.list_sessions()".to_owned(),
        "SELECT session_id FROM graph_kernel.list_turns()".to_owned(),
        format!("SELECT session_id FROM graph_kernel.list_turns(session => '{hash}')"),
    ] {
        let mut client = database.connect();
        let (answer, held) = measured(&mut client, &statement);
        assert_eq!(answer, Ok(hash.clone()), "{statement}");
        tell(&format!("{} MiB: {statement} of 100 MB", held / 1024));
        assert!(held <= 128 * 1024, "{statement} holds {held} KiB");
    }
}

/// What stands in the place of a hash may be as long as a value, and hides no other that is none.
#[test]
fn long_hashes_are_told_by_their_lengths() {
    let database = Database::with_tables("memory_hashes");
    let mut client = database.connect();
    client
        .batch_execute(
            "ALTER TABLE memory_turns DISABLE TRIGGER USER;
             INSERT INTO memory_turns (id, content_text, content_hash)
             SELECT gen_random_uuid(), 'x', h FROM (VALUES (repeat('a', 300000000)), ('b')) AS v (h)",
        )
        .unwrap();
    let found = |name: &str| {
        let query = format!(
            "SELECT concat(count, ' ', hint) FROM graph_check() WHERE check_name = '{name}'"
        );
        let (answer, held) = measured(&mut database.connect(), &query);
        assert!(held <= 64 * 1024, "{name} holds {held} KiB");
        answer.unwrap()
    };
    let malformed = found("malformed_content_hashes");
    let (count, hint) = malformed.split_once(' ').unwrap();
    assert_eq!(count, "2");
    let counted = format!("SELECT count(s.id)::text FROM ({}) AS s", hint.trim_end_matches(';'));
    assert_eq!(answer(&mut client, &counted).as_deref(), Ok("2"), "{hint}");
    assert_eq!(found("stale_content_hashes"), "0 ");
}

/// One turn that is too long ends no search of the others, whether it is found or stands beside what is.
#[test]
fn what_cannot_be_shown_is_left_out_of_what_is_found() {
    let database = Database::with_tables("memory_left_out");
    let mut client = database.connect();
    let fruit = "00000000-0000-4000-8000-000000000001";
    let huge = "00000000-0000-4000-8000-000000000002";
    client
        .batch_execute(&format!(
            "ALTER TABLE memory_turns ADD COLUMN words tsvector
                 GENERATED ALWAYS AS (to_tsvector('english'::regconfig, left(content_text, 1000))) STORED;
             INSERT INTO memory_turns (id, content_text, token_count) VALUES
                 ('{fruit}', 'a banana', 2),
                 ('{huge}', repeat('banana ', 10) || repeat(' ', 70000000), 1)"
        ))
        .unwrap();
    let ids = |client: &mut Client, call: &str| {
        let query = format!("SELECT coalesce(string_agg(turn_id::text, ' '), 'none') FROM {call}");
        answer(client, &query)
    };
    let recall = "graph_recall(NULL::real[], 'banana')";
    let search = "graph_search(NULL::real[], 'banana')";
    for call in [recall, search] {
        assert_eq!(ids(&mut client, call).as_deref(), Ok(fruit), "{call}");
    }
    let short = "SELECT provenance ->> 'admissibility_shortfall' FROM ".to_owned() + search;
    assert_eq!(answer(&mut client, &short).as_deref(), Ok("true"));
    let verified = format!("SELECT (graph_verify(slice)).valid::text FROM {recall} WHERE n = 1");
    assert_eq!(answer(&mut client, &verified).as_deref(), Ok("true"));
    // Not found, but beside what is.
    client
        .batch_execute(&format!(
            "UPDATE memory_turns SET content_text = repeat(' ', 70000000) WHERE id = '{huge}';
             INSERT INTO memory_turn_edges (parent_turn_id, child_turn_id) VALUES ('{fruit}', '{huge}')"
        ))
        .unwrap();
    assert_eq!(ids(&mut client, recall).as_deref(), Ok(fruit));
    client
        .batch_execute(&format!(
            "UPDATE memory_turns SET content_text = 'banana', payload = (SELECT jsonb_agg(1e130000::numeric)
                 FROM generate_series(1, 600)) WHERE id = '{huge}'"
        ))
        .unwrap();
    assert_eq!(ids(&mut client, recall).as_deref(), Ok(fruit));
    let given = format!("graph_recall(NULL::real[], 'banana', anchor => '{huge}')");
    assert_eq!(ids(&mut client, &given), Err("54000 SEARCH_TOO_LARGE".to_owned()));
    client
        .batch_execute(
            "DELETE FROM memory_turn_edges; DELETE FROM memory_turns;
             INSERT INTO memory_turns (id, content_text, token_count)
             SELECT gen_random_uuid(), 'banana' || repeat(' ', 16000000), 1 FROM generate_series(1, 5)",
        )
        .unwrap();
    for call in [recall, search] {
        let count = format!("SELECT count(*)::text FROM {call}");
        assert_eq!(answer(&mut client, &count).as_deref(), Ok("4"), "{call}");
    }
}

/// A recall that leaves out one hit after the other takes as many slices, and reads each text once.
#[test]
fn a_recall_reads_no_text_twice() {
    let database = Database::with_tables("memory_once");
    let mut client = database.connect();
    let best = "00000000-0000-4000-8000-000000000001";
    client
        .batch_execute(&format!(
            "ALTER TABLE memory_turns ADD COLUMN words tsvector
                 GENERATED ALWAYS AS (to_tsvector('english'::regconfig, left(content_text, 1000))) STORED;
             INSERT INTO memory_turns (id, content_text, token_count)
             VALUES ('{best}', repeat('banana ', 10) || repeat(' ', 40000000), 10);
             INSERT INTO memory_turns (id, content_text, token_count)
             SELECT ('00000000-0000-4000-8000-00000000001' || n)::uuid, 'beside', 10 FROM generate_series(1, 4) AS n;
             INSERT INTO memory_turn_edges (parent_turn_id, child_turn_id)
             SELECT '{best}', ('00000000-0000-4000-8000-00000000001' || n)::uuid FROM generate_series(1, 4) AS n;
             INSERT INTO memory_turns (id, content_text, token_count)
             SELECT gen_random_uuid(), 'banana' || repeat(' ', 30000000), 3900 FROM generate_series(1, 8)"
        ))
        .unwrap();
    // How many pieces of long texts are read.
    let mut pieces = |statement: &str, expected: &str| {
        let read = "SELECT coalesce(s.idx_tup_fetch, 0)::text FROM pg_stat_xact_all_tables AS s
             JOIN pg_class AS c ON c.reltoastrelid = s.relid WHERE c.oid = 'memory_turns'::regclass";
        client.batch_execute("BEGIN").unwrap();
        let before: u32 = answer(&mut client, read).unwrap().parse().unwrap();
        assert_eq!(answer(&mut client, statement).as_deref(), Ok(expected));
        let after: u32 = answer(&mut client, read).unwrap().parse().unwrap();
        client.batch_execute("COMMIT").unwrap();
        after - before
    };
    let best = format!("SELECT length(content_text)::text FROM memory_turns WHERE id = '{best}'");
    let once = pieces(&best, "40000070");
    let recall = pieces("SELECT count(*)::text FROM graph_recall(NULL::real[], 'banana')", "5");
    // What does not fit beside it is not read at all.
    assert!(once > 100 && recall == once, "{recall} of {once}");
}

/// What reads a part of the log for each row of a query leaves nothing open of it.
#[test]
fn chunks_of_one_event_after_the_other_keep_nothing() {
    let database = Database::with_tables("memory_chunks");
    let mut client = database.connect();
    client
        .batch_execute(
            "SELECT graph_kernel.create_recorder_table();
             INSERT INTO recorder_events (segment_id, ordinal, byte_offset, event_id, pane_id, session_id,
                                          occurred_at_ms, event_type, text)
             SELECT 0, n, n, n, 1, 's', n, 'ingress_text', 'x' FROM generate_series(1, 20000) AS n",
        )
        .unwrap();
    for call in
        ["recorder_event_chunks(0, n)", "recorder_chunks(to_segment_id => 0, to_ordinal => n)"]
    {
        let statement = format!(
            "SELECT (count(*) > 0)::text FROM (SELECT {call} FROM generate_series(1, 1500) AS n OFFSET 0) AS c"
        );
        let mut client = database.connect();
        let (answer, held) = measured(&mut client, &statement);
        assert_eq!(answer.as_deref(), Ok("true"), "{call}");
        assert!(held <= 24 << 10, "{call} holds {held} KiB");
    }
}

/// A constant that a mapping computes is no longer there than the call.
#[test]
fn plans_with_long_constants_are_not_kept() {
    let database = Database::with_tables("memory_constants");
    let mut client = database.connect();
    client
        .batch_execute(
            r#"INSERT INTO memory_turns (id, content_text) VALUES ('00000000-0000-4000-8000-000000000001', 'x');
               SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges',
                   '{"turns": {"role": {"expression": "repeat(''x'', 100000000)"}}}')"#,
        )
        .unwrap();
    let mut client = database.connect();
    let pid = backend_pid(&mut client);
    let before = private_memory(pid);
    let turns =
        "SELECT count(*)::text FROM graph_slice_turns('00000000-0000-4000-8000-000000000001')";
    assert_eq!(answer(&mut client, turns).as_deref(), Ok("1"));
    let kept = private_memory(pid) - before;
    assert!(kept < 50 << 10, "{kept} KiB");
}

/// A payload is hashed as text: nothing is built of the values in it.
#[test]
fn payloads_of_many_values_are_hashed_in_little_memory() {
    let database = Database::with_tables("memory_payloads");
    let anchor = "'00000000-0000-4000-8000-000000000001'";
    let record = format!("SELECT (length(graph_messages_record({anchor})::text) > 0)::text");
    let shown = "SELECT string_agg(state, ' ') FROM kept, graph_messages_show(record)";
    for (kind, payload) in [
        ("jsonb", "(SELECT '[' || string_agg('0', ',') || ']' FROM generate_series(1, 2000000))"),
        ("json", "(SELECT '[' || string_agg('0', ',') || ']' FROM generate_series(1, 8000000))"),
        // Keys that are not in their order.
        (
            "json",
            "(SELECT '{' || string_agg('\"' || -n || '\":0', ',') || '}' FROM generate_series(-500000, -1) AS n)",
        ),
    ] {
        let mut client = database.connect();
        client
            .batch_execute(&format!(
                "TRUNCATE memory_turns CASCADE; DROP TABLE IF EXISTS kept; SELECT graph_kernel.unbind_tables();
                 ALTER TABLE memory_turns DROP payload, ADD payload {kind};
                 INSERT INTO memory_turns (id, payload) SELECT {anchor}, {payload}::{kind};
                 SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges',
                                                 columns => '{{\"turns\": {{\"payload\": \"payload\"}}}}')"
            ))
            .unwrap();
        let keep = format!("CREATE TABLE kept AS SELECT graph_messages_record({anchor}) AS record");
        client.batch_execute(&keep).unwrap();
        // The server itself takes more to make a jsonb of as many values as the json has.
        let shown = (kind == "jsonb").then_some((shown, "unchanged"));
        for (statement, expected) in [(record.as_str(), "true")].into_iter().chain(shown) {
            let mut client = database.connect();
            let (answer, held) = measured(&mut client, statement);
            assert_eq!(answer.as_deref(), Ok(expected), "{statement} of {payload}");
            tell(&format!("{} MiB: {statement} of {kind}", held / 1024));
            assert!(held <= MOST, "{statement} of {payload} holds {held} KiB");
        }
    }
}

/// Whoever may not read the graph is told so before anything is made of what he gives.
#[test]
fn rights_are_asked_for_before_arguments_are_copied() {
    let database = Database::with_tables("memory_rights");
    let mut client = database.connect();
    client
        .batch_execute(
            "DO $$ BEGIN CREATE ROLE memory_nobody; EXCEPTION WHEN duplicate_object OR unique_violation THEN END $$;
             CREATE TABLE given AS SELECT repeat('0123456789abcdef', 10000000) AS t;
             GRANT SELECT ON given TO memory_nobody;",
        )
        .unwrap();
    for (role, session, expected) in
        [("memory_nobody", "t", "42501 "), ("postgres", "t", "02000 SESSION_NOT_FOUND")]
    {
        for call in ["graph_anchor(NULL, {})", "graph_anchors_recent(1, {})"] {
            let mut client = database.connect();
            client.batch_execute(&format!("SET ROLE {role}")).unwrap();
            let call = call.replace("{}", session);
            let statement = format!("SELECT (SELECT count(*) FROM {call})::text FROM given");
            let (answer, held) = measured(&mut client, &statement);
            tell(&format!("{} MiB: {call} of 160 MB by {role}", held / 1024));
            if call.starts_with("graph_anchor(") || role != "postgres" {
                assert_eq!(answer.unwrap_err().trim_end(), expected.trim_end(), "{call}");
            }
            // The value as it is read from the table, once.
            assert!(held <= 200 * 1024, "{call} holds {held} KiB");
        }
    }
}

#[test]
fn a_long_request_is_refused_before_it_is_read() {
    let database = Database::with_tables("memory_request");
    let mut client = database.connect();
    client
        .batch_execute(
            "CREATE TABLE given AS SELECT json_build_object('query_embedding',
                 (SELECT json_agg(0.5) FROM generate_series(1, 5000000))) AS j",
        )
        .unwrap();
    let mut client = database.connect();
    let (answer, held) =
        measured(&mut client, "SELECT graph_api_search_global((SELECT j FROM given))::text");
    assert_eq!(answer, Err("PT413 REQUEST_TOO_LARGE".to_owned()));
    assert!(held <= MOST, "{held} KiB");
}

#[test]
fn a_hub_of_a_million_rows_of_an_application_is_streamed() {
    let database = Database::empty("memory_hub");
    let mut client = database.connect();
    for statement in [
        "CREATE EXTENSION graph_kernel",
        "CREATE TABLE comments (id bigint, parent_id bigint, rating integer, tokens integer)",
        "INSERT INTO comments SELECT n, nullif(1, n), n::bigint * 104729 % 1000,
             CASE WHEN n::bigint * 104729 % 1000 > 990 THEN 600 ELSE 1 + n::bigint * 7919 % 40 END
         FROM generate_series(1, 1000001) AS n",
        "CREATE UNIQUE INDEX ON comments (graph_turn_id(id)) INCLUDE (id, parent_id)",
        "CREATE INDEX ON comments (graph_turn_id(parent_id), graph_turn_id(id)) INCLUDE (id, parent_id)",
        "VACUUM ANALYZE comments",
        r#"SELECT graph_kernel.bind_tables('comments', columns => '{"turns": {
               "id": {"expression": "graph_turn_id(id)"},
               "salience": {"expression": "rating / 1000.0::float8"},
               "token_count": "tokens",
               "parents": [{"parent": {"expression": "graph_turn_id(parent_id)"}, "edge_type": "reply"}]}}')"#,
    ] {
        client.batch_execute(statement).unwrap();
    }
    let mut client = database.connect();
    client.batch_execute("SELECT graph_slice(graph_turn_id(-1))").unwrap_err();
    let best = "SELECT (count(*) = 256 AND min(s.salience) FILTER (WHERE distance = 1)
                        >= (SELECT rating / 1000.0 FROM comments ORDER BY rating DESC OFFSET 254 LIMIT 1)::real)::text
                  FROM graph_slice_turns(graph_turn_id(1)) AS s";
    let (answer, held) = measured(&mut client, best);
    assert_eq!(answer.as_deref(), Ok("true"));
    tell(&format!("{} MiB: a slice of a hub of 1 000 000 rows", held / 1024));
    assert!(held <= 64 * 1024, "{held} KiB");
    // Under a budget of tokens, which most of the best do not fit, it is what taking one after the other gives.
    client.batch_execute(GREEDY).unwrap();
    let mut client = database.connect();
    client.batch_execute("SELECT graph_slice(graph_turn_id(-1))").unwrap_err();
    // None of them takes more than a quarter of it: those would be expanded, and all be held.
    for most in [2400, 100_000] {
        let taken = format!(
            "SELECT string_agg(turn_id::text, ' ' ORDER BY selection_order)
               FROM graph_slice_turns(graph_turn_id(1), '{{\"version\": \"slice_policy_v2\", \"max_tokens\": {most}}}')"
        );
        let (answer, held) = measured(&mut client, &taken);
        let greedy =
            format!("SELECT string_agg(id::text, ' ' ORDER BY place) FROM greedy({most}, 256)");
        let expected: String = client.query_one(&greedy, &[]).unwrap().get(0);
        assert_eq!(answer, Ok(expected), "{most} tokens");
        tell(&format!("{} MiB: the same with {most} tokens", held / 1024));
        assert!(held <= 64 * 1024, "{most} tokens: {held} KiB");
    }
}

/// The hub and the best of its children that fit, one after the other.
const GREEDY: &str =
    "CREATE FUNCTION greedy(most integer, nodes integer) RETURNS TABLE (place integer, id uuid)
    LANGUAGE plpgsql AS $$
    DECLARE
        remaining integer := most - (SELECT tokens FROM comments AS c WHERE c.id = 1);
        child record;
    BEGIN
        place := 0;
        id := graph_turn_id(1);
        RETURN NEXT;
        FOR child IN
            SELECT graph_turn_id(c.id) AS turn, c.tokens FROM comments AS c WHERE parent_id = 1
            ORDER BY (c.rating / 1000.0)::real DESC, graph_turn_id(c.id)
        LOOP
            CONTINUE WHEN child.tokens > remaining;
            remaining := remaining - child.tokens;
            place := place + 1;
            id := child.turn;
            RETURN NEXT;
            EXIT WHEN place = nodes - 1;
        END LOOP;
    END $$";

#[test]
fn a_shortage_of_memory_is_an_error_of_the_call() {
    let database = Database::with_tables("shortage");
    let mut client = database.connect();
    for (table, given, size) in [
        ("ids", IDS, 1_000_000),
        ("event", EVENT, 60_000),
        ("events", EVENTS, 50_000),
        ("export", EXPORT, 10_000),
    ] {
        let given = given.replace("given", table).replace("{}", &size.to_string());
        client.batch_execute(&given).unwrap();
    }
    client.batch_execute(TREE).unwrap();
    client.batch_execute("VACUUM ANALYZE").unwrap();
    let mut shortage = Shortage::default();
    for statement in [
        "SELECT (graph_slices(j)).error_code FROM ids LIMIT 1",
        "SELECT cardinality(graph_filter_admissible('{}', j))::text FROM ids",
        "SELECT graph_atlas(j)::text FROM ids",
        "SELECT count(*)::text FROM event, recorder_chunk_events(j, '{\"max_chunk_chars\": 1}')",
        "SELECT count(*)::text FROM events, recorder_chunk_events(j)",
        "SELECT reason FROM export, graph_verify(j)",
        "SELECT count(*)::text FROM export, graph_slice_diff(j, j)",
        "SELECT length(graph_export_draw(j, 'dot'))::text FROM export",
        "SELECT length(graph_slice(turn(1), '{\"max_nodes\": 10000}')::text)::text",
        "SELECT count(*)::text FROM graph_slice_turns(turn(1), '{\"version\": \"slice_policy_v2\", \"max_nodes\": 10000,
             \"max_tokens\": 100000000, \"keep_tool_results\": true}')",
        "SELECT count(*)::text FROM graph_slice_explain(turn(1), '{\"max_nodes\": 100}')",
        "SELECT sum(length(content))::text FROM graph_messages(turn(20000))",
        "SELECT graph_snapshot() ->> 'snapshot_id'",
        "SELECT detail FROM graph_check() WHERE check_name = 'cycles'",
        "SELECT length(graph_normalize_text(repeat(E'x\\r', 10000000)))::text",
        "SELECT graph_content_hash(repeat(E'x\\r', 10000000))",
        "SELECT length(graph_message_text(to_json(repeat(E'x\\n', 10000000))::text))::text",
        "SELECT graph_message_role('{\"role\": \"user\", \"content\": [' || repeat('{\"type\": \"text\"},', \
        30000) || '1]}')",
        "SELECT count(*)::text FROM graph_overlap(ARRAY(SELECT turn(n) FROM generate_series(1, 1000) AS n), 'focused')",
    ] {
        shortage.call(&database, statement, &[4, 32, 128]);
    }
    tell(&format!("little memory: {shortage:?}"));
    assert!(shortage.errors > 0 && shortage.answers > 0, "{shortage:?}");
}

/// Turns of five levels, one with a long content.
const TREE: &str = "
    CREATE FUNCTION turn(n int) RETURNS uuid IMMUTABLE LANGUAGE sql RETURN md5('turn ' || n)::uuid;
    INSERT INTO memory_turns (id, session_id, role, salience_score, content_text)
    SELECT turn(n), repeat('s', 100), (ARRAY['user', 'assistant', 'tool'])[1 + n % 3], (n % 97) / 97.0,
           CASE WHEN n = 20000 THEN repeat('content ', 2000000) ELSE 'content' END
      FROM generate_series(1, 20000) AS n;
    INSERT INTO memory_turn_edges SELECT turn(greatest(1, n / 10)), turn(n), 'reply' FROM generate_series(2, \
    20000) AS n";
