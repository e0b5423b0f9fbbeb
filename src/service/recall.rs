//! A question answered in one call: what a search finds, and what was said around it.

use std::rc::Rc;

use kernel::graph::turn::{Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::policy::needs::Needs;
use kernel::retrieval::fusion::MIN_LIST;
use kernel::retrieval::search::SearchFilter;
use kernel::slicing::slice::Part;
use pgrx::PgSqlErrorCode;

use super::export::export_text;
use super::reader::GraphReader;
use super::search::{Question, notice_too_long};
use super::slices::ReadSlice;
use crate::pg::access::store::{FittingTexts, Message};
use crate::pg::error::{SqlError, Word};

/// A turn of the answer.
pub struct Recalled {
    /// The turn.
    pub turn: Rc<Turn>,
    /// What it is in the slice for.
    pub part: Part,
    /// What a model is shown of it.
    pub message: Message,
    /// What it takes of a token budget.
    pub tokens: u32,
    /// Hops from the anchor, or from the hit.
    pub distance: u32,
    /// What it was selected by.
    pub score: f32,
    /// The hit that it comes from, or that it is.
    pub seed: Option<TurnId>,
}

/// The turns of an answer in the order in which a model is shown them, and their slice, signed.
pub struct Recall {
    /// The turns.
    pub turns: Vec<Recalled>,
    /// The export.
    pub export: String,
}

/// Answers a question by a policy of version 2: its seeds are what a search finds. The slice begins at `anchor`, else
/// at the best hit; `None` where there is neither.
///
/// # Errors
/// 22023 where the policy has seeds or cannot have any; else as the search, and as the slice.
pub fn recall(
    embedding: Option<Vec<Option<f32>>>,
    text: Option<&str>,
    policy: &SlicePolicy,
    anchor: Option<TurnId>,
    filter: SearchFilter,
) -> Result<Option<Recall>, SqlError> {
    if policy.seeds().next().is_some() {
        return Err(bad_policy("a policy that recalls takes its seeds from the search")
            .hint("Leave seeds out; pins may be given."));
    }
    let reader = GraphReader::for_policy(policy)?;
    let question = Question::new(embedding, text, MIN_LIST as i32, filter)?;
    let mut found = question.hits(&reader)?.found;
    let mut texts = FittingTexts::default();
    loop {
        let seeds = found.iter().map(|hit| (hit.id, hit.strength));
        let seeded = policy.with_seeds(seeds).ok_or_else(|| {
            bad_policy("a policy of version slice_policy_v1 recalls nothing")
                .hint("Give 'recall', 'chat', or a policy with \"version\": \"slice_policy_v2\".")
        })?;
        let Some(at) = anchor.or(found.first().map(|hit| hit.id)) else {
            notice_too_long(texts.left_out.iter());
            reader.check_settled()?;
            return Ok(None);
        };
        let taken = ReadSlice::with_times_by(reader.clone(), at, &seeded)?;
        taken.read_what_fits(&mut texts)?;
        if anchor.is_some_and(|anchor| texts.left_out.contains(&anchor)) {
            // It was not found, but asked for.
            taken.messages()?;
        }
        let before = found.len();
        found.retain(|hit| !texts.left_out.contains(&hit.id));
        if found.len() < before {
            // A hit that cannot be shown recalls nothing. What else cannot is found out at once.
            let ids: Vec<TurnId> =
                anchor.into_iter().chain(found.iter().map(|hit| hit.id)).collect();
            reader.ask(Needs::default(), |store| store.read_what_fits(&ids, &mut texts))?;
            found.retain(|hit| !texts.left_out.contains(&hit.id));
            continue;
        }
        taken.reader.check_settled()?;
        notice_too_long(texts.left_out.iter());
        let turns = taken.messages_of(texts)?.into_iter().map(|(selected, message)| {
            let id = selected.turn.id;
            Recalled {
                turn: Rc::clone(&selected.turn),
                part: selected.part,
                message,
                tokens: selected.tokens,
                distance: selected.distance,
                score: selected.priority,
                seed: selected.seed.or(seeded.seed(id).map(|_| id)),
            }
        });
        let turns = turns.collect();
        let export = taken.export().and_then(|export| export_text(&export))?;
        return Ok(Some(Recall { turns, export }));
    }
}

fn bad_policy(message: &str) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
        .word(Word::InvalidPolicy)
}
