//! Conversations with questions whose evidence is known, read from where they lie.
//!
//! A folder has `turns.jsonl.gz` (conversation, id, session, role, created_at, content, in the order of the
//! conversation), `questions.jsonl.gz` (conversation, split, question, category, evidence), and the
//! embeddings of both in their order, as NumPy's arrays of binary16 or binary32: `turns.f16.npy` and
//! `questions.f16.npy`, or `.f32.npy`.

use std::collections::HashMap;
use std::path::Path;

use graph_kernel_tests::data::{read_json_lines, tokens_of};
use serde::Deserialize;
use uuid::Uuid;

use crate::Result;

/// A turn as the file has it.
#[derive(Deserialize)]
pub struct Turn {
    conversation: String,
    pub id: Uuid,
    pub session: String,
    pub role: String,
    pub created_at: String,
    pub content: String,
    #[serde(skip)]
    pub embedding: Vec<f32>,
}

impl Turn {
    /// As the extension counts a turn without a `token_count`.
    pub fn tokens(&self) -> u32 {
        tokens_of(&self.content)
    }
}

/// A conversation: its turns in their order.
pub struct Conversation {
    pub name: String,
    pub turns: Vec<Turn>,
}

#[derive(Deserialize)]
struct QuestionRecord {
    conversation: String,
    split: String,
    question: String,
    category: u8,
    evidence: Vec<Uuid>,
}

pub struct Question {
    /// Its place among the conversations.
    pub conversation: usize,
    pub split: String,
    pub text: String,
    /// 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop, 5 adversarial.
    pub category: u8,
    /// The turns that answer it, each once, by their places in the conversation; at least one.
    pub evidence: Vec<usize>,
    pub embedding: Vec<f32>,
}

pub struct Corpus {
    pub conversations: Vec<Conversation>,
    pub questions: Vec<Question>,
    /// The number of elements of each embedding.
    pub dimensions: usize,
}

impl Corpus {
    /// Reads a folder; evidence that is not in its conversation is an error, so that recall can reach 1.
    pub fn read(folder: &Path) -> Result<Self> {
        let (turn_embeddings, dimensions) = embeddings(folder, "turns")?;
        let (question_embeddings, same) = embeddings(folder, "questions")?;
        if dimensions != same {
            return Err("embeddings of turns and of questions have not the same dimensions".into());
        }
        let turns: Vec<Turn> = read_json_lines(&folder.join("turns.jsonl.gz"));
        let records: Vec<QuestionRecord> = read_json_lines(&folder.join("questions.jsonl.gz"));
        if (turns.len(), records.len()) != (turn_embeddings.len(), question_embeddings.len()) {
            return Err("not as many embeddings as turns or questions".into());
        }
        let mut conversations: Vec<Conversation> = Vec::new();
        let mut places: HashMap<Uuid, (usize, usize)> = HashMap::new();
        let mut names: HashMap<String, usize> = HashMap::new();
        for (mut turn, embedding) in turns.into_iter().zip(turn_embeddings) {
            turn.embedding = embedding;
            let conversation = *names.entry(turn.conversation.clone()).or_insert_with(|| {
                conversations
                    .push(Conversation { name: turn.conversation.clone(), turns: Vec::new() });
                conversations.len() - 1
            });
            let turns = &mut conversations[conversation].turns;
            places.insert(turn.id, (conversation, turns.len()));
            turns.push(turn);
        }
        let mut questions = Vec::new();
        for (record, embedding) in records.into_iter().zip(question_embeddings) {
            let conversation = *names
                .get(&record.conversation)
                .ok_or_else(|| format!("no conversation {}", record.conversation))?;
            let mut evidence = Vec::new();
            for id in &record.evidence {
                match places.get(id) {
                    Some((of, place)) if *of == conversation => evidence.push(*place),
                    _ => return Err(format!("{id} is not in {}", record.conversation).into()),
                }
            }
            evidence.sort_unstable();
            evidence.dedup();
            if evidence.is_empty() {
                return Err(format!("no evidence: {}", record.question).into());
            }
            questions.push(Question {
                conversation,
                split: record.split,
                text: record.question,
                category: record.category,
                evidence,
                embedding,
            });
        }
        Ok(Corpus { conversations, questions, dimensions })
    }
}

/// NAME.f16.npy or NAME.f32.npy: the rows, and how many elements each has.
fn embeddings(folder: &Path, name: &str) -> Result<(Vec<Vec<f32>>, usize)> {
    let half = folder.join(format!("{name}.f16.npy"));
    let single = folder.join(format!("{name}.f32.npy"));
    let (path, width, kind) = if half.exists() { (half, 2, "'<f2'") } else { (single, 4, "'<f4'") };
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let header = bytes.get(10..).filter(|_| bytes.starts_with(b"\x93NUMPY\x01")).map(|rest| {
        rest.split_at(usize::from(u16::from_le_bytes([bytes[8], bytes[9]])).min(rest.len()))
    });
    let Some((header, elements)) = header else {
        return Err(format!("{} is not an array of NumPy's, version 1", path.display()).into());
    };
    let header = String::from_utf8_lossy(header);
    let shape = header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(", "));
    let (rows, columns) = shape
        .and_then(|(rows, rest)| Some((rows, rest.split_once(')')?.0)))
        .ok_or_else(|| format!("{} does not have two dimensions", path.display()))?;
    let (rows, columns): (usize, usize) = (rows.parse()?, columns.parse()?);
    let plain = header.contains(kind) && header.contains("'fortran_order': False");
    if !plain || columns == 0 || elements.len() != rows * columns * width {
        return Err(format!("{}: {header}", path.display()).into());
    }
    let values: Vec<f32> = elements
        .chunks_exact(width)
        .map(|element| match *element {
            [low, high] => half_to_single(u16::from_le_bytes([low, high])),
            [a, b, c, d] => f32::from_le_bytes([a, b, c, d]),
            _ => f32::NAN,
        })
        .collect();
    Ok((values.chunks_exact(columns).map(<[f32]>::to_vec).collect(), columns))
}

/// Binary16 as binary32, exactly.
fn half_to_single(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let fraction = f32::from(bits & 0x3ff);
    let magnitude = match i32::from(bits >> 10 & 0x1f) {
        0 => fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        exponent => (1024.0 + fraction) * 2f32.powi(exponent - 25),
    };
    sign * magnitude
}

#[cfg(test)]
mod tests {
    use super::half_to_single;

    #[test]
    fn binary16_is_read_exactly() {
        let cases = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65504.0),
            (0x0400, 2f32.powi(-14)),
            (0x0001, 2f32.powi(-24)),
            (0x8000, 0.0),
            (0xfc00, f32::NEG_INFINITY),
        ];
        for (bits, value) in cases {
            assert_eq!(half_to_single(bits), value, "{bits:#x}");
        }
        assert!(half_to_single(0x7e00).is_nan());
    }
}
