//! Content hashes of a large table: the backfill tells how far it is, stops and goes on.

use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::common::database::Database;
use postgres::error::SqlState;
use postgres::{Client, NoTls};

const TURNS: i64 = 20_000;
const BATCH: i64 = 250;

/// What is inserted gets no hash.
const WITHOUT_TRIGGERS: &str = "ALTER TABLE public.memory_turns DISABLE TRIGGER USER";

fn hashed(client: &mut Client) -> i64 {
    let statement = "SELECT count(*) FILTER (WHERE content_hash = graph_content_hash(content_text))
                     FROM public.memory_turns";
    client.query_one(statement, &[]).unwrap().get(0)
}

fn audited(client: &mut Client) -> i64 {
    client.query_one("SELECT count(*) FROM graph_content_audit()", &[]).unwrap().get(0)
}

/// A connection, and what it notes.
fn noting(database: &Database) -> (Client, Receiver<String>) {
    let (sender, notices) = channel();
    let note = move |notice: postgres::error::DbError| {
        let _ = sender.send(notice.message().to_owned());
    };
    (database.server.connect_noting(&database.name, note), notices)
}

/// The numbers in a notice, in order.
fn numbers(notice: &str) -> Vec<i64> {
    let words = notice.split(|c: char| !c.is_ascii_digit());
    words.filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn a_stopped_backfill_keeps_what_it_wrote_and_goes_on_with_the_rest() {
    let database = Database::with_tables("backfill");
    let mut client = database.connect();
    client.batch_execute(WITHOUT_TRIGGERS).unwrap();
    client
        .batch_execute(&format!(
            "INSERT INTO public.memory_turns (id, content_text)
             SELECT gen_random_uuid(), repeat('turn ' || n, 50) FROM generate_series(1, {TURNS}) AS n"
        ))
        .unwrap();
    assert_eq!(audited(&mut client), TURNS);
    let call = format!("CALL graph_kernel.backfill_content_hashes({BATCH})");

    let (mut stopped, notices) = noting(&database);
    let token = stopped.cancel_token();
    let running = {
        let call = call.clone();
        thread::spawn(move || stopped.batch_execute(&call))
    };
    for _ in 0..3 {
        let notice = notices.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(notice.starts_with("content hashes: "), "{notice}");
    }
    token.cancel_query(NoTls).unwrap();
    let error = running.join().unwrap().unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{error:?}");

    // Whole batches.
    let written = hashed(&mut client);
    assert!((3 * BATCH..TURNS).contains(&written), "{written}");
    assert_eq!(written % BATCH, 0, "{written}");
    assert_eq!(audited(&mut client), TURNS - written);

    let (mut resumed, notices) = noting(&database);
    resumed.batch_execute(&call).unwrap();
    assert_eq!(hashed(&mut client), TURNS);
    assert_eq!(audited(&mut client), 0);
    let notices: Vec<String> = notices.try_iter().collect();
    assert_eq!(notices.len() as i64, TURNS / BATCH + 1);
    let told: Vec<Vec<i64>> = notices.iter().map(|notice| numbers(notice)).collect();
    assert!(told.is_sorted_by_key(|numbers| (numbers[0], numbers[2])));
    let [done, total, rewritten, rate, left] = told.last().unwrap()[..] else {
        panic!("{:?}", notices.last());
    };
    assert_eq!((done, total, rewritten, left), (TURNS, TURNS, TURNS - written, 0));
    assert!(rate > 0);
}

#[test]
fn a_backfill_beside_writers_loses_nothing_and_ends_none_of_them() {
    const EDITS: i64 = 400;
    let database = Database::with_tables("backfill_writers");
    let mut client = database.connect();
    client
        .batch_execute(
            "ALTER TABLE public.memory_turns DISABLE TRIGGER USER;
             CREATE FUNCTION public.turn(n bigint) RETURNS uuid IMMUTABLE LANGUAGE sql
                 RETURN lpad(n::text, 32, '0')::uuid;
             INSERT INTO public.memory_turns (id, content_text)
             SELECT turn(n), 'turn ' || n FROM generate_series(1, 2000) AS n;
             ALTER TABLE public.memory_turns ENABLE TRIGGER USER",
        )
        .unwrap();
    thread::scope(|scope| {
        // Rows by descending id, against the backfill's order: did it wait for one while it held
        // another, one of the two would end in a deadlock.
        scope.spawn(|| {
            let mut client = database.connect();
            for edit in 0..EDITS {
                let (first, second) = (2000 - edit % 1000, 1000 - edit % 1000);
                client
                    .batch_execute(&format!(
                        "BEGIN;
                         UPDATE public.memory_turns SET content_text = content_text || '+'
                         WHERE id = turn({first});
                         UPDATE public.memory_turns SET content_text = content_text || '+'
                         WHERE id = turn({second});
                         INSERT INTO public.memory_turns (id, content_text)
                         VALUES (gen_random_uuid(), 'new');
                         COMMIT"
                    ))
                    .unwrap();
            }
        });
        for batch in [2000, 500, 7] {
            client
                .batch_execute(&format!("CALL graph_kernel.backfill_content_hashes({batch})"))
                .unwrap();
        }
    });
    assert_eq!(audited(&mut client), 0);
    let edits = "SELECT sum(length(content_text) - length(rtrim(content_text, '+'))),
                        count(*) FILTER (WHERE content_text = 'new') FROM public.memory_turns";
    let row = client.query_one(edits, &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (2 * EDITS, EDITS));
}
