use std::ops::ControlFlow;
use std::rc::Rc;

use kernel::export::document::Export;
use kernel::export::parse::EXPORT_MAX_BYTES;
use kernel::graph::turn::{Turn, TurnId};
use kernel::policy::SlicePolicy;
use kernel::slicing::slice::{SelectedTurn, Slice};
use kernel::slicing::slicer::{self, FetchedGraph, Limits, SliceError, Slicer};
use kernel::trust::keys::{SigningKey, SigningKeys};
use pgrx::Uuid;
use pgrx::prelude::*;

use crate::pg::error::{OrRaise, SqlError, with_policy_hint};
use crate::pg::graph::Graph;
use crate::pg::guc;
use crate::pg::keys::Keys;
use crate::pg::session::{Caller, check_interrupts};
use crate::pg::store::PgStore;
use crate::pg::table::TableIterator;
use crate::pg::text_type::{JsonText, Policy, from_sql_uuid, to_sql_uuid};

#[pg_extern(stable, parallel_restricted)]
fn graph_slice(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'"),
) -> Option<JsonText> {
    let policy = Policy::required(policy).or_raise();
    let taken = TakenSlice::new(anchor?, &policy).or_raise();
    Some(taken.export(&policy).and_then(|export| export_text(&export)).or_raise())
}

#[pg_extern(stable, parallel_restricted)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn graph_slice_turns(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'"),
) -> TableIterator<
    'static,
    (
        name!(turn_id, Uuid),
        name!(distance, i32),
        name!(priority, f32),
        name!(selection_order, i32),
        name!(session_id, String),
        name!(role, &'static str),
        name!(phase, &'static str),
        name!(salience, f32),
        name!(trajectory_depth, i32),
        name!(trajectory_sibling_order, i32),
        name!(trajectory_homogeneity, f32),
        name!(trajectory_temporal, f32),
        name!(trajectory_complexity, f32),
        name!(created_at, i64),
        name!(content_hash, Option<String>),
        name!(slice_id, String),
        name!(admissibility_token, Option<String>),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let Some(anchor) = anchor else { return TableIterator::new(|_| {}) };
    let taken = TakenSlice::new(anchor, &policy).or_raise();
    let signer = Signer::load(&taken.graph, &taken.caller, &policy).or_raise();
    let export = signer.sign(&taken.slice).or_raise();
    let (slice_id, token) = (export.slice_id, export.admissibility_token);
    TableIterator::new(move |put| {
        for SelectedTurn { turn, distance, priority, selection_order } in taken.slice.turns {
            let turn = Rc::unwrap_or_clone(turn);
            put((
                to_sql_uuid(turn.id),
                distance as i32,
                priority,
                selection_order as i32,
                turn.session_id,
                turn.role.name(),
                turn.phase.name(),
                turn.salience,
                turn.trajectory_depth as i32,
                turn.trajectory_sibling_order as i32,
                turn.trajectory_homogeneity,
                turn.trajectory_temporal,
                turn.trajectory_complexity,
                turn.created_at,
                turn.content_hash,
                slice_id.clone(),
                token.clone(),
            ));
        }
    })
}

#[pg_extern(stable, parallel_restricted)]
fn graph_slice_edges(
    anchor: Option<Uuid>,
    policy: default!(Option<Policy>, "'default'"),
) -> TableIterator<'static, (name!(parent, Uuid), name!(child, Uuid), name!(edge_type, &'static str))>
{
    let policy = Policy::required(policy).or_raise();
    let Some(anchor) = anchor else { return TableIterator::new(|_| {}) };
    let taken = TakenSlice::new(anchor, &policy).or_raise();
    TableIterator::new(move |put| {
        for edge in taken.slice.edges {
            put((to_sql_uuid(edge.parent), to_sql_uuid(edge.child), edge.edge_type.name()));
        }
    })
}

/// A slice of the bound graph, with the graph it was taken from.
pub struct TakenSlice {
    graph: Rc<Graph>,
    caller: Caller,
    slice: Slice,
}

impl TakenSlice {
    /// Takes a slice on the caller's snapshot.
    pub fn new(anchor: Uuid, policy: &SlicePolicy) -> Result<Self, SqlError> {
        guc::check_budget(policy)?;
        let graph = Graph::current()?;
        let caller = Caller::current(&graph);
        let anchor = from_sql_uuid(anchor);
        let slice = with_policy_hint(caller.rls, || {
            slicer::slice(&mut PgStore::new(&graph, &caller), policy, anchor)
        })?;
        Ok(TakenSlice { graph, caller, slice })
    }

    /// The graph it was taken from.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Whose rights it was taken with.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Its turns, by id.
    pub fn turns(&self) -> impl Iterator<Item = &Turn> {
        self.slice.turns.iter().map(|selected| &*selected.turn)
    }

    /// The export, with its tokens.
    pub fn export(&self, policy: &SlicePolicy) -> Result<Export<'_>, SqlError> {
        Signer::load(&self.graph, &self.caller, policy)?.export(&self.slice)
    }
}

/// Refuses what is wrong for every anchor: the policy, the graph or the keys.
pub fn ready(policy: &SlicePolicy) -> Result<(), SqlError> {
    guc::check_budget(policy)?;
    let graph = Graph::current()?;
    Keys::load(graph.name.clone())?.active()?;
    Ok(())
}

/// What earlier slices of a query found, of which graph, and for whom.
#[derive(Default)]
pub struct Found(Option<(Rc<Graph>, Caller, FetchedGraph)>);

impl Found {
    /// Takes out what holds for this caller of this graph. Where row security applies nothing does: its
    /// policies may depend on anything.
    fn take_for(&mut self, graph: &Rc<Graph>, caller: &Caller) -> FetchedGraph {
        let Some((of, by, mut known)) = self.0.take() else { return FetchedGraph::default() };
        if !Rc::ptr_eq(&of, graph) || by != *caller || by.rls {
            known.forget();
        }
        known
    }
}

/// Takes the slices at these anchors and hands over each export, or what went wrong at its anchor, until there is
/// a break. What is around many of them, and of the `next` ones, is read together. `found` is what earlier slices by the
/// same policy on the same snapshot found.
///
/// # Errors
/// As [`ready`], and what else is not a matter of one anchor: a store that cannot be read, rights that changed.
pub fn export_each<A>(
    policy: &SlicePolicy,
    found: &mut Found,
    anchors: &[A],
    next: &[A],
    id: impl Fn(&A) -> Result<TurnId, SqlError>,
    mut each: impl FnMut(&A, Result<Export<'_>, SqlError>) -> ControlFlow<()>,
) -> Result<(), SqlError> {
    guc::check_budget(policy)?;
    let graph = Graph::current()?;
    let caller = Caller::current(&graph);
    let signer = Signer::load(&graph, &caller, policy)?;
    let mut store = PgStore::new(&graph, &caller);
    let known = found.take_for(&graph, &caller);
    let mut slicer = Slicer::reusing(known, &mut store, policy, Limits::default());
    // What is read where row security applies does not hold for the next ones.
    let next = if caller.rls { &[] } else { next };
    let ids: Vec<TurnId> =
        anchors.iter().chain(next).filter_map(|anchor| id(anchor).ok()).collect();
    let mut next = &ids[..];
    for anchor in anchors {
        let slice = id(anchor).map(|id| {
            next = &next[1..];
            with_policy_hint(caller.rls, || slicer.slice_before(id, next))
        });
        let flow = match slice {
            Ok(Ok(slice)) => each(anchor, Ok(signer.export(&slice)?)),
            Ok(Err(SliceError::Store(error))) => return Err(error),
            Ok(Err(error)) => each(anchor, Err(error.into())),
            Err(error) => each(anchor, Err(error)),
        };
        if flow.is_break() {
            break;
        }
    }
    *found = Found(Some((graph.clone(), caller, slicer.into_fetched())));
    Ok(())
}

/// Signs slices of a graph, taken for a caller by a policy, with the keys of now.
struct Signer<'a> {
    graph: &'a Graph,
    caller: &'a Caller,
    policy: &'a SlicePolicy,
    keys: Keys,
    active: Rc<SigningKeys>,
}

impl<'a> Signer<'a> {
    fn load(
        graph: &'a Graph,
        caller: &'a Caller,
        policy: &'a SlicePolicy,
    ) -> Result<Self, SqlError> {
        let keys = Keys::load(graph.name.clone())?;
        let active = keys.active()?;
        Ok(Signer { graph, caller, policy, keys, active })
    }

    fn export<'s>(&self, slice: &'s Slice) -> Result<Export<'s>, SqlError> {
        let mut export = Export::new(slice, self.policy, &check_interrupts);
        let circumstances = self.caller.circumstances(self.graph)?;
        export.attest(self.policy, &self.active, self.v2_key(), circumstances);
        Ok(export)
    }

    /// The export with the published token alone, where the content is not handed out as one.
    fn sign<'s>(&self, slice: &'s Slice) -> Result<Export<'s>, SqlError> {
        let mut export = Export::new(slice, self.policy, &check_interrupts);
        export.sign(self.v2_key(), &self.caller.circumstances(self.graph)?);
        Ok(export)
    }

    fn v2_key(&self) -> &SigningKey {
        self.keys.v2_key(&self.active)
    }
}

/// The export's canonical JSON.
///
/// # Errors
/// 54000 when it is too large.
pub fn export_text(export: &Export<'_>) -> Result<JsonText, SqlError> {
    let text = export.to_json();
    if text.len() > EXPORT_MAX_BYTES {
        let message =
            format!("slice export of {} bytes is larger than {EXPORT_MAX_BYTES}", text.len());
        return Err(SqlError::new(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message)
            .detail("SLICE_TOO_LARGE")
            .hint("Use a policy with fewer max_nodes."));
    }
    Ok(JsonText(text))
}
