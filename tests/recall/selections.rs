//! Baselines: the turns of a conversation in the order in which they are taken.
//!
//! None of this is used for what the extension itself selects.

use std::collections::HashMap;

use postgres::Client;
use uuid::Uuid;

use crate::Result;
use crate::corpus::{Conversation, Question};

/// The lexemes of a text by PostgreSQL's configuration `english`, with how often each occurs.
type Lexemes = HashMap<String, u32>;

/// What the baselines know of a conversation.
pub struct Index {
    /// Embeddings with a norm of 1.
    embeddings: Vec<Vec<f32>>,
    lexemes: Vec<Lexemes>,
    /// How many turns have a lexeme.
    turns_with: HashMap<String, u32>,
    mean_length: f64,
    /// Where a turn's session begins and ends, in places.
    sessions: Vec<(usize, usize)>,
    tokens: Vec<u32>,
    places: HashMap<Uuid, usize>,
}

impl Index {
    pub fn new(conversation: &Conversation, client: &mut Client) -> Result<Self> {
        let turns = &conversation.turns;
        let texts: Vec<&str> = turns.iter().map(|turn| turn.content.as_str()).collect();
        let lexemes = lexemes(client, &texts)?;
        let mut turns_with: HashMap<String, u32> = HashMap::new();
        for lexeme in lexemes.iter().flat_map(HashMap::keys) {
            *turns_with.entry(lexeme.clone()).or_default() += 1;
        }
        let lengths: usize = lexemes.iter().map(HashMap::len).sum();
        let sessions = turns.iter().map(|turn| {
            let same = |other: &crate::corpus::Turn| other.session == turn.session;
            let begin = turns.iter().position(same).unwrap_or_default();
            let end = turns.iter().rposition(same).unwrap_or_default() + 1;
            (begin, end)
        });
        Ok(Index {
            embeddings: turns.iter().map(|turn| unit(&turn.embedding)).collect(),
            mean_length: lengths as f64 / turns.len() as f64,
            turns_with,
            sessions: sessions.collect(),
            tokens: turns.iter().map(crate::corpus::Turn::tokens).collect(),
            places: turns.iter().enumerate().map(|(place, turn)| (turn.id, place)).collect(),
            lexemes,
        })
    }

    /// The place of a turn of the conversation.
    pub fn place(&self, id: Uuid) -> Option<usize> {
        self.places.get(&id).copied()
    }

    /// Takes turns in this order while they fit, and passes over those that do not.
    pub fn fill(&self, ranking: &[usize], budget: u32) -> Vec<usize> {
        let mut left = budget;
        let mut taken = vec![false; self.tokens.len()];
        let mut selected = Vec::new();
        for place in ranking {
            if !taken[*place] && self.tokens[*place] <= left {
                taken[*place] = true;
                left -= self.tokens[*place];
                selected.push(*place);
            }
        }
        selected
    }

    pub fn tokens_of(&self, selection: &[usize]) -> u32 {
        selection.iter().map(|place| self.tokens[*place]).sum()
    }

    /// The last turns first.
    pub fn last(&self) -> Vec<usize> {
        (0..self.tokens.len()).rev().collect()
    }

    /// The cosine of the embeddings of each turn and the question.
    pub fn cosine(&self, question: &Question) -> Vec<f64> {
        let asked = unit(&question.embedding);
        let dot = |turn: &Vec<f32>| turn.iter().zip(&asked).map(|(a, b)| f64::from(a * b)).sum();
        self.embeddings.iter().map(dot).collect()
    }

    /// BM25 over the turns of the conversation: idf = ln(1 + (N − n + ½) / (n + ½)), k1 1.2, b 0.75,
    /// length in distinct lexemes.
    pub fn bm25(&self, asked: &Lexemes) -> Vec<f64> {
        let total = self.lexemes.len() as f64;
        let score = |turn: &Lexemes| {
            let length = 1.2 * (1.0 - 0.75 + 0.75 * turn.len() as f64 / self.mean_length);
            let of = |lexeme: &String| {
                let frequency = f64::from(*turn.get(lexeme)?);
                let with = f64::from(*self.turns_with.get(lexeme)?);
                let idf = (1.0 + (total - with + 0.5) / (with + 0.5)).ln();
                Some(idf * frequency * 2.2 / (frequency + length))
            };
            asked.keys().filter_map(of).sum()
        };
        self.lexemes.iter().map(score).collect()
    }

    /// Each score with half of those of the turns before and after, and a quarter of the ones beyond;
    /// across sessions.
    pub fn with_neighbours(&self, scores: &[f64]) -> Vec<f64> {
        let at = |place: Option<usize>| {
            place.and_then(|place| scores.get(place)).copied().unwrap_or(0.0)
        };
        let sum = |place: usize| {
            let [one, two] =
                [1, 2].map(|hops| at(place.checked_sub(hops)) + at(Some(place + hops)));
            scores[place] + one / 2.0 + two / 4.0
        };
        (0..scores.len()).map(sum).collect()
    }

    /// Each turn with the two before it and the two after it, in its session; the nearer ones first.
    pub fn windows(&self, ranking: &[usize]) -> Vec<usize> {
        let around = |place: &usize| {
            let place = *place;
            let (begin, end) = self.sessions[place];
            let near = [
                Some(place),
                place.checked_sub(1),
                Some(place + 1),
                place.checked_sub(2),
                Some(place + 2),
            ];
            near.into_iter().flatten().filter(move |near| (begin..end).contains(near))
        };
        ranking.iter().flat_map(around).collect()
    }
}

/// Reciprocal rank fusion: of each list the turns whose score is above 0.
pub fn reciprocal_ranks(lists: &[&[f64]]) -> Vec<f64> {
    let mut sums = vec![0.0; lists.first().map_or(0, |list| list.len())];
    for list in lists {
        for (rank, place) in ranked(list).into_iter().filter(|place| list[*place] > 0.0).enumerate()
        {
            sums[place] += 1.0 / (61.0 + rank as f64);
        }
    }
    sums
}

/// Each list divided by its best, half and half.
pub fn half_and_half(a: &[f64], b: &[f64]) -> Vec<f64> {
    let best = |list: &[f64]| list.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let (of_a, of_b) = (best(a), best(b));
    a.iter().zip(b).map(|(a, b)| a.max(0.0) / of_a / 2.0 + b / of_b / 2.0).collect()
}

/// The lexemes of texts, as the server finds them.
pub fn lexemes(client: &mut Client, texts: &[&str]) -> Result<Vec<Lexemes>> {
    let mut found = vec![Lexemes::new(); texts.len()];
    let rows = client.query(
        "SELECT t.n::int, w.lexeme, cardinality(w.positions)
           FROM unnest($1::text[]) WITH ORDINALITY AS t (content, n),
                unnest(to_tsvector('english', t.content)) AS w",
        &[&texts],
    )?;
    for row in rows {
        let (n, lexeme, count): (i32, String, i32) = (row.get(0), row.get(1), row.get(2));
        found[usize::try_from(n)? - 1].insert(lexeme, u32::try_from(count)?);
    }
    Ok(found)
}

/// Places by descending score, equal ones in their order.
pub fn ranked(scores: &[f64]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..scores.len()).collect();
    places.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
    places
}

fn unit(embedding: &[f32]) -> Vec<f32> {
    let norm = embedding.iter().map(|value| value * value).sum::<f32>().sqrt();
    embedding.iter().map(|value| value / norm).collect()
}
