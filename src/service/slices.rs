//! Slices at one anchor and at many.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

use kernel::drawing::Format;
use kernel::drawing::slice::{MAX_FRONTIER, Options, Picture, drawn_turns};
use kernel::explain::explanation::TurnOutcome;
use kernel::export::document::Export;
use kernel::graph::turn::{Turn, TurnId, unix_micros};
use kernel::policy::SlicePolicy;
use kernel::policy::needs::Needs;
use kernel::prompt::messages::messages;
use kernel::prompt::record::{Hash, RecordedMessage, text_hash};
use kernel::slicing::slice::{SelectedTurn, Slice};
use kernel::slicing::slicer::{FetchedGraph, SliceError, Slicer};
use pgrx::{PgLogLevel, PgSqlErrorCode};

use super::explain::explanation;
use super::export::{Signer, export_text};
use super::limits::{limits, slices_ahead};
use super::reader::GraphReader;
#[allow(unused_imports)] // for the documentation
use crate::pg::access::store::PgStore;
use crate::pg::access::store::{FittingTexts, Message};
use crate::pg::error::{SqlError, Word};
use crate::pg::guc;
use crate::pg::interrupts::check_interrupts;
use crate::pg::query::partitions_changed;
use crate::pg::statistics;
use crate::pg::subtransaction;

/// A slice of the bound graph, and how it was read.
pub struct ReadSlice<'a> {
    /// What read it.
    pub reader: GraphReader,
    /// The slice.
    pub slice: Slice,
    policy: &'a SlicePolicy,
}

impl<'a> ReadSlice<'a> {
    /// Takes a slice on the caller's snapshot.
    ///
    /// # Errors
    /// 02000 when there is no such anchor; else as [`GraphReader::for_policy`] and any reading.
    pub fn at(anchor: TurnId, policy: &'a SlicePolicy) -> Result<Self, SqlError> {
        Self::reading(GraphReader::for_policy(policy)?, anchor, policy, policy.needs())
    }

    /// As [`ReadSlice::at`], with the times and tokens of its turns.
    ///
    /// # Errors
    /// As [`ReadSlice::at`]; the caller needs SELECT on the content's column.
    pub fn with_times(anchor: TurnId, policy: &'a SlicePolicy) -> Result<Self, SqlError> {
        Self::with_times_by(GraphReader::for_policy(policy)?, anchor, policy)
    }

    /// As [`ReadSlice::with_times`], by a reader for this policy.
    ///
    /// # Errors
    /// As [`ReadSlice::with_times`].
    pub fn with_times_by(
        reader: GraphReader,
        anchor: TurnId,
        policy: &'a SlicePolicy,
    ) -> Result<Self, SqlError> {
        let needs = Needs { facts: true, tokens: true, ..policy.needs() };
        Self::reading(reader, anchor, policy, needs)
    }

    fn reading(
        reader: GraphReader,
        anchor: TurnId,
        policy: &'a SlicePolicy,
        needs: Needs,
    ) -> Result<Self, SqlError> {
        let slice = reader
            .ask(needs, |store| Slicer::new(store, policy, limits()).slice(anchor))
            .map_err(|error| about_anchor(error, &reader, policy))?;
        reader.check_tables()?;
        statistics::count_selected(slice.turns.len());
        notice_left_out(&slice);
        Ok(ReadSlice { reader, slice, policy })
    }

    /// Its turns in the order in which a model is shown them, with what it is shown. The slice was taken by
    /// [`ReadSlice::with_times`].
    ///
    /// # Errors
    /// As [`PgStore::messages`]; XX000 where a turn is hidden by then.
    pub fn messages(&self) -> Result<Vec<(&SelectedTurn, Message)>, SqlError> {
        let ids: Vec<TurnId> = self.turns().map(|turn| turn.id).collect();
        let mut read = self.reader.ask(Needs::default(), |store| store.messages(&ids))?;
        let order = messages(&self.slice, self.policy, &check_interrupts).into_iter();
        let paired = order.map(|turn| {
            let gone = SliceError::<SqlError>::Inconsistent(turn.turn.id);
            Ok((turn, read.remove(&turn.turn.id).ok_or(gone)?))
        });
        paired.collect()
    }

    /// Reads what a model is shown of as many turns as their texts fit, those selected first before others, and what
    /// was read for another slice of the question before these.
    ///
    /// # Errors
    /// As [`PgStore::read_what_fits`].
    pub fn read_what_fits(&self, texts: &mut FittingTexts) -> Result<(), SqlError> {
        let mut selected: Vec<&SelectedTurn> = self.slice.turns.iter().collect();
        selected.sort_unstable_by_key(|turn| turn.selection_order);
        let ids: Vec<TurnId> = selected.iter().map(|turn| turn.turn.id).collect();
        self.reader.ask(Needs::default(), |store| store.read_what_fits(&ids, texts))
    }

    /// As [`ReadSlice::messages`], with what [`ReadSlice::read_what_fits`] has read.
    ///
    /// # Errors
    /// XX000 where a turn was hidden by then.
    pub fn messages_of(
        &self,
        mut texts: FittingTexts,
    ) -> Result<Vec<(&SelectedTurn, Message)>, SqlError> {
        let mut fitting = Vec::with_capacity(self.slice.turns.len());
        for turn in messages(&self.slice, self.policy, &check_interrupts) {
            match texts.take(turn.turn.id) {
                Some(message) => fitting.push((turn, message)),
                None if texts.left_out.contains(&turn.turn.id) => {}
                None => return Err(SliceError::<SqlError>::Inconsistent(turn.turn.id).into()),
            }
        }
        Ok(fitting)
    }

    /// A picture of it.
    ///
    /// # Errors
    /// As [`PgStore::beginnings`], and as the explanation of a slice.
    pub fn picture(&self, format: Format, options: Options) -> Result<String, SqlError> {
        let Options { max_turns, chars, frontier } = options;
        let drawn = drawn_turns(&self.slice, max_turns);
        let explanation = frontier.then(|| explanation(self.slice.anchor, self.policy));
        let explanation = explanation.transpose()?;
        let mut ids: Vec<TurnId> = drawn.iter().map(|selected| selected.turn.id).collect();
        let next = explanation.iter().flat_map(|explanation| &explanation.turns);
        let next = next.filter(|turn| turn.outcome == TurnOutcome::Frontier).take(MAX_FRONTIER);
        ids.extend(next.map(|turn| turn.rank.id));
        let texts = match chars {
            0 => HashMap::new(),
            _ => {
                let chars = chars as i32 + 1;
                self.reader.ask(Needs::default(), |store| store.beginnings(&ids, chars))?
            }
        };
        let beginning = |id: TurnId| {
            let content = texts.get(&id).map_or("", String::as_str);
            match content.char_indices().nth(chars) {
                Some((end, _)) => format!("{}…", &content[..end]),
                None => content.to_owned(),
            }
        };
        let picture =
            Picture::new(&self.slice, self.policy, &drawn, explanation.as_ref(), beginning);
        Ok(picture.text(self.slice.anchor, format))
    }

    /// Its turns, by id.
    pub fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.slice.turns.iter().map(|selected| &*selected.turn)
    }

    /// The export with its attestation.
    ///
    /// # Errors
    /// As [`Signer::export`].
    pub fn export(&self) -> Result<Export<'_>, SqlError> {
        self.signer()?.export(&self.slice)
    }

    /// The export with the published token alone.
    ///
    /// # Errors
    /// As [`Signer::export`].
    pub fn sign(&self) -> Result<Export<'_>, SqlError> {
        self.signer()?.sign(&self.slice)
    }

    /// The export without tokens, to compare it with another one.
    ///
    /// # Errors
    /// 55000 when the caller's rights changed while the slice was taken; as [`GraphReader::check_settled`].
    pub fn unsigned(&self) -> Result<Export<'_>, SqlError> {
        self.reader.circumstances()?;
        self.reader.check_settled()?;
        Ok(Export::new(&self.slice, self.policy, &check_interrupts))
    }

    /// The record of its messages. The slice was taken by [`ReadSlice::with_times`].
    ///
    /// # Errors
    /// As [`ReadSlice::messages`] and [`Signer::record`].
    pub fn record(&self, context: Option<Hash>) -> Result<String, SqlError> {
        let signer = self.signer()?;
        let recorded = self.messages()?.into_iter().map(|(selected, message)| RecordedMessage {
            turn_id: selected.turn.id,
            part: selected.part,
            role: selected.turn.role,
            created_at: message.created_at.map(unix_micros),
            tokens: selected.tokens,
            content: message.content.map(|text| text_hash(&text, &check_interrupts)),
            payload: message.payload.map(|text| text_hash(&text, &check_interrupts)),
        });
        signer.record(&self.slice, recorded.collect(), context)
    }

    fn signer(&self) -> Result<Signer<'_>, SqlError> {
        Signer::new(&self.reader, self.policy)
    }
}

/// Says which pins are not in a slice, though they exist; whether there are any.
fn notice_left_out(slice: &Slice) -> bool {
    let pins: Vec<String> = slice.pins_left_out.iter().map(TurnId::to_string).collect();
    let message = match pins.len() {
        0 => return false,
        1 => format!("the pinned turn {} is not in the slice at {}", pins[0], slice.anchor),
        _ => {
            format!("the pinned turns {} are not in the slice at {}", pins.join(", "), slice.anchor)
        }
    };
    SqlError::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message)
        .word(Word::PinLeftOut)
        .hint("Raise max_tokens or max_nodes, or pin less.")
        .report(PgLogLevel::NOTICE);
    true
}

/// An anchor that was created after `as_of` does not exist by that policy, which its error says.
fn about_anchor(error: SqlError, reader: &GraphReader, policy: &SlicePolicy) -> SqlError {
    if !error.is(Word::AnchorNotFound) || policy.as_of().is_none() {
        return error;
    }
    error.hint(format!(
        "With as_of, turns that were created later are ignored. Or the {}",
        reader.graph().where_not_found()
    ))
}

/// Refuses what is wrong for every anchor: the policy, the graph or the keys.
///
/// # Errors
/// Of the policy, the graph or the keys.
pub fn check_ready(policy: &SlicePolicy) -> Result<(), SqlError> {
    GraphReader::for_policy(policy)?.keys()?.active()?;
    Ok(())
}

/// The graph of a query that takes slices, what earlier ones of them fetched, and how they read it.
pub struct FetchedBefore {
    /// The name of the graph's binding. The session may choose another graph between two rows.
    binding: String,
    fetched: Option<(GraphReader, FetchedGraph)>,
    /// How many subtransactions had been rolled back when the first of it was fetched.
    rolled_back: u64,
    /// What read the first of them.
    first: Option<GraphReader>,
    /// Whether a slice without one of its pins was reported. One is enough for many slices.
    is_noticed: bool,
}

impl FetchedBefore {
    /// Of the graph that the session has chosen: nothing yet.
    pub fn nothing() -> Self {
        FetchedBefore {
            binding: guc::graph(),
            fetched: None,
            rolled_back: 0,
            first: None,
            is_noticed: false,
        }
    }

    /// Takes out what this reader may reuse. Where row security applies that is nothing: its policies may depend on
    /// anything. Nor is it anything after a subtransaction was rolled back: it may have given the rights to read that.
    ///
    /// # Errors
    /// 55000 where this reader reads other tables than the first one: a query sees one state.
    fn take_for(&mut self, reader: &GraphReader) -> Result<FetchedGraph, SqlError> {
        if !self.first.get_or_insert_with(|| reader.clone()).has_tables_of(reader) {
            return Err(partitions_changed());
        }
        let rolled_back = subtransaction::rolled_back();
        let is_later = std::mem::replace(&mut self.rolled_back, rolled_back) != rolled_back;
        let Some((by, mut graph)) = self.fetched.take() else { return Ok(FetchedGraph::default()) };
        if is_later || !by.same_as(reader) || reader.row_security() {
            graph.forget();
        }
        Ok(graph)
    }
}

/// Takes the slices at these anchors and passes each export, or the error at its anchor, to `each`, until it returns
/// `Break`. What is around many of them, and of the `next` ones, is read together. `fetched` is what earlier slices by
/// the same policy on the same snapshot fetched.
///
/// # Errors
/// As [`check_ready`], and what else is not a matter of one anchor: a store that cannot be read, rights that changed.
pub fn export_each<A>(
    policy: &SlicePolicy,
    fetched: &mut FetchedBefore,
    anchors: &[A],
    next: &[A],
    id: impl Fn(&A) -> Result<TurnId, SqlError>,
    mut each: impl FnMut(&A, Result<Export<'_>, SqlError>) -> ControlFlow<()>,
) -> Result<(), SqlError> {
    guc::check_budget(policy)?;
    let reader = GraphReader::of(&fetched.binding)?;
    let signer = Signer::new(&reader, policy)?;
    let mut store = reader.store(policy.needs());
    let fetched_graph = fetched.take_for(&reader)?;
    let mut slicer = Slicer::reusing(fetched_graph, &mut store, policy, limits());
    // What is read where row security applies does not hold for the next ones.
    let next = if reader.row_security() { &[] } else { next };
    let ids = anchors.iter().chain(next).filter_map(|anchor| {
        check_interrupts();
        id(anchor).ok()
    });
    let ids: Vec<TurnId> = ids.collect();
    let mut next = &ids[..];
    for anchor in anchors {
        check_interrupts();
        let slice = id(anchor).map(|id| {
            next = &next[1..];
            reader.hinting(|| slicer.slice_before(id, next))
        });
        let flow = match slice {
            Ok(Ok(slice)) => {
                statistics::count_selected(slice.turns.len());
                fetched.is_noticed = fetched.is_noticed || notice_left_out(&slice);
                each(anchor, Ok(signer.export(&slice)?))
            }
            Ok(Err(SliceError::Store(error))) => return Err(error),
            Ok(Err(error)) => each(anchor, Err(reader.locate(error.into()))),
            Err(error) => each(anchor, Err(error)),
        };
        if flow.is_break() {
            break;
        }
    }
    let fetched_graph = slicer.into_fetched();
    fetched.fetched = Some((reader.clone(), fetched_graph));
    Ok(())
}

/// Slices are taken ahead of their rows until their exports have so many bytes.
const AHEAD_BYTES: usize = 1 << 20;

/// The export at an anchor, or what went wrong at it.
pub type ExportResult = (Option<TurnId>, Result<String, SqlError>);

/// The exports at many anchors, made as they are asked for, some of them together.
pub struct ExportStream {
    policy: SlicePolicy,
    anchors: Vec<Option<TurnId>>,
    /// How many anchors have had their slices taken.
    taken: usize,
    /// How many more to take next.
    ahead: usize,
    fetched: FetchedBefore,
    /// Those that were not yet asked for.
    ready: VecDeque<ExportResult>,
}

impl ExportStream {
    /// The exports at these anchors, in their order.
    ///
    /// # Errors
    /// As [`check_ready`].
    pub fn new(policy: SlicePolicy, anchors: Vec<Option<TurnId>>) -> Result<Self, SqlError> {
        check_ready(&policy)?;
        let (fetched, ready) = (FetchedBefore::nothing(), VecDeque::new());
        Ok(ExportStream { policy, anchors, taken: 0, ahead: 1, fetched, ready })
    }

    /// The next one; `None` at the end.
    ///
    /// # Errors
    /// As [`export_each`].
    pub fn next(&mut self) -> Result<Option<ExportResult>, SqlError> {
        if self.ready.is_empty() && self.taken < self.anchors.len() {
            self.take_some()?;
        }
        Ok(self.ready.pop_front())
    }

    fn take_some(&mut self) -> Result<(), SqlError> {
        let left = &self.anchors[self.taken..];
        let (anchors, next) = left.split_at(self.ahead.min(left.len()));
        let next = &next[..next.len().min(limits().anchors)];
        let (ready, mut bytes) = (&mut self.ready, 0);
        let id = |anchor: &Option<TurnId>| anchor.ok_or_else(null_anchor);
        export_each(&self.policy, &mut self.fetched, anchors, next, id, |anchor, export| {
            let text = export.and_then(|export| export_text(&export));
            bytes += text.as_ref().map_or(0, String::len);
            ready.push_back((*anchor, text));
            if bytes < AHEAD_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        self.taken += self.ready.len();
        // Grows gradually, so that an early stop wastes little.
        let fitting = self.ready.len() * AHEAD_BYTES / bytes.max(1);
        self.ahead = fitting.min(2 * self.ahead).clamp(1, slices_ahead());
        Ok(())
    }
}

fn null_anchor() -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED, "anchor is null")
        .word(Word::InvalidTurnId)
}
