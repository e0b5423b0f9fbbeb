//! S14: `graph_recall` beside pgvector alone and beside the SQL that one would write.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::Write;

use fastrand::Rng;
use graph_kernel_tests::data::Graph;
use kernel::graph::turn::Role;
use postgres::Client;
use uuid::Uuid;

use crate::graphs;
use crate::report::{Goal, Report};
use crate::sample::{Contestant, race};
use crate::tables::{Result, connect, load};
use crate::work::Size;

const DATABASE: &str = "recall";
/// As many elements as all-MiniLM-L6-v2 gives.
const DIMENSIONS: usize = 384;
/// Words that occur, the frequent ones first.
const WORDS: usize = 20_000;
const TOPICS: usize = 2_000;

const RECALL: &str = r#"SELECT turn_id, role, content
    FROM graph_recall($1, $2, '{"preset": "recall", "max_tokens": 4000}',
        filter => CASE WHEN $3::text IS NULL THEN '{}' ELSE jsonb_build_object('owner', $3) END)"#;
const NEAREST: &str = "SELECT id FROM memory_turns WHERE owner = $2
    ORDER BY embedding <=> $1::real[]::vector LIMIT 128";
const WINDOWS: &str = include_str!("../../recall/windows.sql");

/// What is asked, and the turns that answer it.
struct Question {
    text: String,
    embedding: Vec<f32>,
    answer: [Uuid; 2],
}

/// Turns with texts and embeddings that are made of the same words. What is said near each other has a topic, which
/// comes up in other sessions as well.
struct Corpus {
    graph: Graph,
    /// The position of each turn in its session.
    positions: Vec<usize>,
    words: Vec<Vec<usize>>,
    vectors: Vec<Vec<f32>>,
    random: Rng,
}

impl Corpus {
    fn new(turns: usize) -> Self {
        let mut random = Rng::with_seed(14);
        let vectors: Vec<Vec<f32>> = (0..WORDS).map(|_| noise(&mut random)).collect();
        let topics: Vec<Vec<usize>> =
            (0..TOPICS).map(|_| (0..30).map(|_| random.usize(500..WORDS)).collect()).collect();
        let mut graph = graphs::sessions(turns);
        // A conversation has no calls with their results, which windows would not keep together either.
        for turn in &mut graph.turns {
            let is_asked = turn.trajectory_depth % 2 == 0;
            turn.role = if is_asked { Role::User } else { Role::Assistant };
        }
        let (mut positions, mut words, mut topic) = (Vec::new(), Vec::new(), 0);
        for (at, turn) in graph.turns.iter().enumerate() {
            let begins = at == 0 || graph.turns[at - 1].session_id != turn.session_id;
            positions.push(if begins { 0 } else { positions[at - 1] + 1 });
            if begins || random.f32() < 0.05 {
                topic = random.usize(..TOPICS);
            }
            // Of the length of a message in a chat.
            let length = random.usize(8..34);
            let of_topic = |random: &mut Rng| topics[topic][random.usize(..30)];
            let any = |random: &mut Rng| (5_000.0 * random.f64().powi(3)) as usize;
            let word =
                |_| if random.f32() < 0.3 { of_topic(&mut random) } else { any(&mut random) };
            words.push((0..length).map(word).collect());
        }
        Corpus { graph, positions, words, vectors, random }
    }

    /// The sum of the words' vectors, of which those of frequent words count less, and noise.
    fn embedding(&mut self, words: &[usize]) -> Vec<f32> {
        let mut sum: Vec<f32> = noise(&mut self.random).iter().map(|value| value * 3.0).collect();
        for word in words {
            let weight = (2.0 + *word as f32).ln() / (WORDS as f32).ln();
            sum.iter_mut()
                .zip(&self.vectors[*word])
                .for_each(|(sum, value)| *sum += weight * value);
        }
        sum
    }

    /// So many questions: each has words of a turn among these, and is answered by it with the turn after it.
    fn questions(&mut self, among: std::ops::Range<usize>, count: usize) -> Vec<Question> {
        let mut questions = Vec::new();
        while questions.len() < count {
            let at = self.random.usize(among.start..among.end - 1);
            if self.positions[at + 1] == 0 {
                continue;
            }
            let mut said = self.words[at].clone();
            self.random.shuffle(&mut said);
            said.truncate(6);
            let embedding = self.embedding(&said);
            let answer = [at, at + 1].map(|at| uuid(&self.graph, at));
            questions.push(Question { text: text(&said), embedding, answer });
        }
        questions
    }
}

fn noise(random: &mut Rng) -> Vec<f32> {
    (0..DIMENSIONS).map(|_| random.f32() - 0.5).collect()
}

fn uuid(graph: &Graph, at: usize) -> Uuid {
    graph.turns[at].id
}

/// Words that no stemmer shortens.
fn text(words: &[usize]) -> String {
    let word = |word: &usize| -> String {
        let syllable = |at: usize| {
            let consonant = b"bdfgklmnprtvz"[at % 13] as char;
            [consonant, b"aou"[at / 13 % 3] as char]
        };
        [*word, word / 39, word / 1521].iter().flat_map(|at| syllable(*at)).collect()
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// S14: over 100 000 turns with an index of each kind; under row security that leaves an owner of a tenth or a
/// thousandth of the turns; and in eight partitions by time.
pub fn recall(size: &Size, report: &mut Report) -> Result<()> {
    let available = "SELECT FROM pg_available_extensions WHERE name = 'vector'";
    if connect("postgres")?.query_opt(available, &[])?.is_none() {
        report.note("S14: not measured, pgvector is not installed (make pgvector)".to_owned());
        return Ok(());
    }
    let mut corpus = Corpus::new(size.turns);
    let count = size.anchors / 5 + 1;
    // The first half are five owners' with a tenth each, the rest those of owners with a thousandth each.
    let (tenth, thousandth) = (size.turns / 10, (size.turns / 1_000).max(20));
    let questions = [
        (0..size.turns, None),
        (0..tenth, Some("tenth 0")),
        (size.turns / 2..size.turns / 2 + thousandth, Some("thousandth 0")),
    ]
    .map(|(among, owner)| (corpus.questions(among, count), owner));
    let mut client = load(DATABASE, &corpus.graph)?;
    fill(&mut client, &mut corpus, |at| match at / tenth {
        large @ 0..5 => format!("tenth {large}"),
        _ => format!("thousandth {}", (at - size.turns / 2) / thousandth),
    })?;
    let works = ["recall", "recall of an owner of a tenth", "recall of an owner of a thousandth"];
    report.note(found_by_words(&mut client, &questions[0].0)?);
    for (work, (questions, owner)) in works.into_iter().zip(&questions) {
        if let Some(owner) = owner {
            client.batch_execute(&format!("SET ROLE bench_reader; SET bench.owner = '{owner}'"))?;
        }
        client = compare(work, client, questions, *owner, size, report)?;
        client.batch_execute("RESET ROLE")?;
    }
    client.batch_execute(PARTITIONS)?;
    client.batch_execute("VACUUM ANALYZE memory_turns")?;
    client.batch_execute("CALL graph_kernel.refresh_words()")?;
    client = compare("recall in partitions", client, &questions[0].0, None, size, report)?;
    drop(client);
    connect("postgres")?.batch_execute(&format!("DROP DATABASE {DATABASE}"))?;
    Ok(())
}

/// The same turns in eight partitions by time, instead of the created table.
const PARTITIONS: &str = "
    CREATE TABLE turns (LIKE memory_turns INCLUDING DEFAULTS INCLUDING GENERATED) PARTITION BY RANGE (created_at);
    DO $$
    DECLARE
        least timestamptz; most timestamptz; step interval; columns text;
    BEGIN
        SELECT min(created_at), max(created_at) + interval '1 second' INTO least, most FROM memory_turns;
        step := (most - least) / 8;
        FOR n IN 0 .. 7 LOOP
            EXECUTE format('CREATE TABLE turns_%s PARTITION OF turns FOR VALUES FROM (%L) TO (%L)',
                n, least + n * step, CASE n WHEN 7 THEN most ELSE least + (n + 1) * step END);
        END LOOP;
        SELECT string_agg(quote_ident(attname), ', ') INTO columns FROM pg_attribute
         WHERE attrelid = 'memory_turns'::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
        EXECUTE format('INSERT INTO turns (%1$s) SELECT %1$s FROM memory_turns ORDER BY created_at', columns);
    END $$;
    DROP TABLE memory_turns;
    ALTER TABLE turns RENAME TO memory_turns;
    ALTER TABLE memory_turns ADD PRIMARY KEY (id, created_at);
    CREATE INDEX ON memory_turns USING gin (words);
    CREATE INDEX ON memory_turns USING hnsw (embedding vector_cosine_ops);
    CREATE INDEX ON memory_turns (session_id, position);
    SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges')";

/// Texts, embeddings, positions and owners into the created table, with their indexes, and a role that sees the turns
/// of `bench.owner` alone.
fn fill(client: &mut Client, corpus: &mut Corpus, owner: impl Fn(usize) -> String) -> Result<()> {
    client.batch_execute(&format!(
        "CREATE EXTENSION vector;
         SET maintenance_work_mem = '512MB';
         CREATE TEMP TABLE said (id uuid, owner text, position integer, content text, embedding vector({DIMENSIONS}))"
    ))?;
    let mut writer = client.copy_in("COPY said FROM STDIN")?;
    for at in 0..corpus.words.len() {
        let words = corpus.words[at].clone();
        let numbers: Vec<String> =
            corpus.embedding(&words).iter().map(|value| format!("{value:.4}")).collect();
        writeln!(
            writer,
            "{}\t{}\t{}\t{}\t[{}]",
            uuid(&corpus.graph, at),
            owner(at),
            corpus.positions[at],
            text(&words),
            numbers.join(",")
        )?;
    }
    writer.finish()?;
    client.batch_execute(&format!(
        "CREATE TABLE made (LIKE memory_turns INCLUDING ALL);
         ALTER TABLE made ADD COLUMN position integer, ADD COLUMN embedding vector({DIMENSIONS}),
             ADD COLUMN words tsvector
                 GENERATED ALWAYS AS (to_tsvector('english', left(content_text, 100000))) STORED"
    ))?;
    let columns: String = client
        .query_one(
            "SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
              WHERE attrelid = 'memory_turns'::regclass AND attnum > 0 AND NOT attisdropped
                AND attgenerated = '' AND attname NOT IN ('content_text', 'owner')",
            &[],
        )?
        .get(0);
    client.batch_execute(&format!(
        "INSERT INTO made ({columns}, owner, position, content_text, embedding)
             SELECT t.*, s.owner, s.position, s.content, s.embedding
               FROM (SELECT {columns} FROM memory_turns) AS t JOIN said AS s USING (id) ORDER BY t.created_at;
         DROP TABLE said, memory_turns;
         ALTER TABLE made RENAME TO memory_turns;
         SELECT graph_kernel.bind_tables('memory_turns', 'memory_turn_edges');
         CREATE INDEX ON memory_turns USING gin (words);
         CREATE INDEX ON memory_turns USING hnsw (embedding vector_cosine_ops);
         CREATE INDEX ON memory_turns (owner);
         CREATE INDEX ON memory_turns (session_id, position);
         ALTER TABLE memory_turns ENABLE ROW LEVEL SECURITY;
         CREATE POLICY own ON memory_turns USING (owner = current_setting('bench.owner'));
         DROP ROLE IF EXISTS bench_reader;
         CREATE ROLE bench_reader;
         GRANT SELECT ON memory_turns, memory_turn_edges TO bench_reader"
    ))?;
    client.batch_execute("VACUUM ANALYZE memory_turns")?;
    client.batch_execute("CALL graph_kernel.refresh_words()")?;
    Ok(())
}

/// How many turns have any word of a question.
fn found_by_words(client: &mut Client, questions: &[Question]) -> Result<String> {
    let texts: Vec<&str> = questions.iter().map(|question| question.text.as_str()).collect();
    let row = client.query_one(
        "SELECT avg(count)::float8 / (SELECT count(*) FROM memory_turns)
           FROM unnest($1::text[]) AS asked (text),
                LATERAL (SELECT replace(plainto_tsquery('english', text)::text, '&', '|')::tsquery OFFSET 0)
                    AS q (query),
                LATERAL (SELECT count(*) FROM memory_turns WHERE words @@ query) AS found",
        &[&texts],
    )?;
    let share: f64 = row.get(0);
    Ok(format!("recall: {:.0} % of the turns have a word of a question, on average", share * 100.0))
}

/// Asks all questions in each way; then how much of the answers each way has selected.
fn compare(
    work: &'static str,
    mut client: Client,
    questions: &[Question],
    owner: Option<&str>,
    size: &Size,
    report: &mut Report,
) -> Result<Client> {
    // As many as are wanted of the index, as `graph_recall` sets it itself.
    client.batch_execute("SET hnsw.ef_search = 128")?;
    let of_owner = |sql: &str, parameter: usize| match owner {
        Some(_) => sql.to_owned(),
        None => sql
            .replace(&format!("t.owner = ${parameter}"), &format!("${parameter}::text IS NULL"))
            .replace(&format!("owner = ${parameter}"), &format!("${parameter}::text IS NULL")),
    };
    let recall = client.prepare(RECALL)?;
    let windows = client.prepare(&of_owner(WINDOWS, 3).replace("{}", "4000"))?;
    let nearest = client.prepare(&of_owner(NEAREST, 2))?;
    let client = RefCell::new(client);
    let asked = |number: Uuid| &questions[number.as_u128() as usize];
    let whole = |statement, number| -> Result<Vec<Uuid>> {
        let Question { text, embedding, .. } = asked(number);
        let rows = client.borrow_mut().query(statement, &[embedding, text, &owner])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    };
    let numbers: Vec<Uuid> = (0..questions.len() as u128).map(Uuid::from_u128).collect();
    let times = race(
        &mut [
            Contestant::new("graph_recall", |number| whole(&recall, number).map(drop)),
            Contestant::new("pgvector, ts_rank, windows", |number| {
                whole(&windows, number).map(drop)
            }),
            Contestant::new("pgvector's 128 nearest alone", |number| {
                let embedding = &asked(number).embedding;
                client.borrow_mut().query(&nearest, &[embedding, &owner])?;
                Ok(())
            }),
        ],
        &numbers,
        size.rounds,
    )?;
    for (name, statement) in [("graph_recall", &recall), ("pgvector, ts_rank, windows", &windows)] {
        let mut found = 0;
        for number in &numbers {
            let selected: HashSet<Uuid> = whole(statement, *number)?.into_iter().collect();
            found += asked(*number).answer.iter().filter(|id| selected.contains(id)).count();
        }
        let share = found as f64 / (2 * numbers.len()) as f64;
        let what = format!("share of the answers, {name}");
        report.value("S14", work, &what, share, Goal::none());
    }
    report.compare("S14", work, &times[0], &times[1], Goal::at_most(1.0, 1.0));
    report.compare("S14", work, &times[0], &times[2], Goal::none());
    report.times(work, &times);
    Ok(client.into_inner())
}
