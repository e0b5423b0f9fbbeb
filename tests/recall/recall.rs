//! Evidence recall: of the turns that answer a question, the share that a selection within a token
//! budget holds. What the extension selects in one call stands beside baselines that are computed in
//! the same run.
//!
//! `make recall DATA=folder` runs it; `corpus` says what the folder has. Arguments: the folder, and
//! the splits. PG* name the server.

mod corpus;
mod report;
mod selections;
mod tables;

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use graph_kernel_tests::machine;
use postgres::Client;

use corpus::{Conversation, Corpus, Question};
use report::{Method, Report};
use selections::{Index, half_and_half, lexemes, reciprocal_ranks};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What a selection may have in tokens.
const BUDGETS: [u32; 4] = [500, 1000, 2000, 4000];

/// The whole of what is called of the extension for a question; `{}` is the budget. Of a conversation
/// among others, and of one that is a graph of its own.
const RECALL_OF_OWNER: &str = "SELECT turn_id
    FROM graph_recall($1, $2, '{\"preset\": \"recall\", \"max_tokens\": {}}',
        filter => jsonb_build_object('owner', $3::text))";
const RECALL: &str = "SELECT turn_id
    FROM graph_recall($1, $2, '{\"preset\": \"recall\", \"max_tokens\": {}}')
    WHERE $3::text IS NOT NULL";
const STATEMENT: &str = include_str!("statement.sql");
const WINDOWS: &str = include_str!("windows.sql");
/// What other functions make of the nearest turn: the conversation up to it by `chat`, and what is
/// around it by `broad`, ranked.
const CHAT: &str = "SELECT m.turn_id
    FROM graph_search($1, NULL, 1, jsonb_build_object('owner', $3::text)) AS a,
         graph_messages(a.turn_id, '{\"preset\": \"chat\", \"max_tokens\": {}}') AS m
    WHERE $2::text IS NOT NULL";
const SLICE: &str = "SELECT s.turn_id
    FROM graph_search($1, NULL, 1, jsonb_build_object('owner', $3::text)) AS a,
         graph_search_slice($1, a.turn_id, 'broad', 1000) AS s
    WHERE $2::text IS NOT NULL ORDER BY s.rank";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, splits @ ..] = &arguments[..] else {
        return Err("usage: graph_kernel_recall FOLDER [SPLIT…]".into());
    };
    let corpus = Corpus::read(Path::new(folder))?;
    let machine = machine::describe(&tables::server()?)?;
    let mut client = tables::load(&corpus)?;
    let indexes: Vec<Index> = corpus
        .conversations
        .iter()
        .map(|conversation| Index::new(conversation, &mut client))
        .collect::<Result<_>>()?;
    println!("# Evidence recall\n");
    machine.iter().for_each(|line| println!("- {line}"));
    let mut splits = splits.to_vec();
    if splits.is_empty() {
        splits = corpus.questions.iter().map(|question| question.split.clone()).collect();
        splits.sort_unstable_by(|a, b| b.cmp(a));
        splits.dedup();
    }
    for split in splits {
        let questions: Vec<&Question> =
            corpus.questions.iter().filter(|question| question.split == split).collect();
        if questions.is_empty() {
            return Err(format!("no question of the split {split}").into());
        }
        let report = measure(&corpus.conversations, &indexes, &questions, &mut client)?;
        print!("\n## {split}\n{}", report.text());
    }
    Ok(())
}

/// Asks every question in every way.
fn measure(
    conversations: &[Conversation],
    indexes: &[Index],
    questions: &[&Question],
    client: &mut Client,
) -> Result<Report> {
    let mut methods: Vec<Method> = Vec::new();
    let texts: Vec<&str> = questions.iter().map(|question| question.text.as_str()).collect();
    let asked = lexemes(client, &texts)?;
    let mut ranked = |name: &'static str, rank: &dyn Fn(&Index, &Question, usize) -> Vec<usize>| {
        let rankings = questions.iter().enumerate().map(|(n, question)| {
            let index = &indexes[question.conversation];
            let ranking = rank(index, question, n);
            BUDGETS.map(|budget| index.fill(&ranking, budget))
        });
        methods.push(Method::new(name, rankings.collect(), Vec::new()));
    };
    ranked("last turns", &|index, _, _| index.last());
    ranked("cosine, the nearest first", &|index, question, _| {
        selections::ranked(&index.cosine(question))
    });
    ranked("BM25", &|index, _, n| selections::ranked(&index.bm25(&asked[n])));
    ranked("reciprocal rank fusion of cosine and BM25", &|index, question, n| {
        selections::ranked(&reciprocal_ranks(&[&index.cosine(question), &index.bm25(&asked[n])]))
    });
    let both = |index: &Index, question: &Question, n: usize| {
        half_and_half(&index.cosine(question), &index.bm25(&asked[n]))
    };
    ranked("cosine and BM25, half and half", &|index, question, n| {
        selections::ranked(&both(index, question, n))
    });
    ranked("the same, windows of ±2 turns", &|index, question, n| {
        index.windows(&selections::ranked(&both(index, question, n)))
    });
    ranked("the same, each turn with half of its neighbours' scores", &|index, question, n| {
        selections::ranked(&index.with_neighbours(&both(index, question, n)))
    });
    let server = Server { conversations, indexes, questions };
    // What ranks is filled up to each budget; what takes a budget is asked for each.
    methods.push(server.filled("the nearest turn's slice in `broad`, ranked", SLICE, client)?);
    methods.push(server.filled(
        "one long SQL statement over the other functions",
        STATEMENT,
        client,
    )?);
    if tables::has_vectors(client)? {
        methods.push(server.selected(
            "pgvector, `ts_rank`, windows by position",
            WINDOWS,
            Graphs::Shared,
            client,
        )?);
    }
    for (name, sql, graphs) in [
        ("the nearest turn, `chat`", CHAT, Graphs::Shared),
        ("`graph_recall`, one table, by owner", RECALL_OF_OWNER, Graphs::Shared),
        ("`graph_recall`, a graph for each", RECALL, Graphs::Own),
    ] {
        methods.push(server.selected(name, sql, graphs, client)?);
    }
    Ok(Report::new(questions, conversations.len(), methods, indexes))
}

/// Which tables are asked.
#[derive(Clone, Copy, PartialEq)]
enum Graphs {
    /// Those that have all conversations.
    Shared,
    /// Those of the conversation alone.
    Own,
}

/// Questions to the server.
struct Server<'a> {
    conversations: &'a [Conversation],
    indexes: &'a [Index],
    questions: &'a [&'a Question],
}

impl Server<'_> {
    /// A statement that gives turns, the best first: asked once a question.
    fn filled(&self, name: &'static str, sql: &str, client: &mut Client) -> Result<Method> {
        let (rankings, times) = self.ask(sql, Graphs::Shared, client)?;
        let selections = self.questions.iter().zip(rankings).map(|(question, ranking)| {
            BUDGETS.map(|budget| self.indexes[question.conversation].fill(&ranking, budget))
        });
        Ok(Method::new(name, selections.collect(), vec![times]))
    }

    /// A statement that takes the budget itself: asked once a question and budget.
    fn selected(
        &self,
        name: &'static str,
        sql: &str,
        graphs: Graphs,
        client: &mut Client,
    ) -> Result<Method> {
        let mut selections = vec![[const { Vec::new() }; BUDGETS.len()]; self.questions.len()];
        let mut times = Vec::new();
        for (at, budget) in BUDGETS.iter().enumerate() {
            let (found, took) =
                self.ask(&sql.replace("{}", &budget.to_string()), graphs, client)?;
            for ((selection, found), question) in
                selections.iter_mut().zip(found).zip(self.questions)
            {
                let tokens = self.indexes[question.conversation].tokens_of(&found);
                if tokens > *budget && found.len() > 1 {
                    return Err(
                        format!("{name}: {tokens} of {budget} tokens: {}", question.text).into()
                    );
                }
                selection[at] = found;
            }
            times.push(took);
        }
        Ok(Method::new(name, selections, times))
    }

    /// The turns that a statement gives for each question, and how long the client waited for them.
    fn ask(
        &self,
        sql: &str,
        graphs: Graphs,
        client: &mut Client,
    ) -> Result<(Vec<Vec<usize>>, Vec<Duration>)> {
        let statement = client.prepare(sql)?;
        let mut found = Vec::new();
        let mut times = Vec::new();
        let mut asked = None;
        for question in self.questions {
            let of = question.conversation;
            if graphs == Graphs::Own && asked.replace(of) != Some(of) {
                client.batch_execute(&format!("SET graph_kernel.graph = {}", tables::graph(of)))?;
            }
            let owner = &self.conversations[of].name;
            let start = Instant::now();
            let rows = client.query(&statement, &[&question.embedding, &question.text, owner])?;
            times.push(start.elapsed());
            let places = rows.iter().map(|row| self.indexes[of].place(row.get(0)));
            // A turn of another conversation would take tokens, and be no evidence.
            found.push(places.collect::<Option<_>>().ok_or("a turn of another conversation")?);
        }
        client.batch_execute("RESET graph_kernel.graph")?;
        Ok((found, times))
    }
}
