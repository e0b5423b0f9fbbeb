//! Where a slice begins when no turn is given.

use std::ops::ControlFlow;

use kernel::graph::turn::TurnId;
use kernel::retrieval::ranking::{Filters, Ranking};
use kernel::retrieval::search::AnchorStrategy;
use kernel::slicing::slicer::SliceError;
use kernel::slicing::store::{GraphStore, Needs};

use super::reader::GraphReader;
use crate::pg::access::search::DatedTurn;
use crate::pg::error::SqlError;

/// An anchor and the strategy that chose it.
pub type ChosenAnchor = (TurnId, AnchorStrategy);

/// The first strategy that has an answer: the turn given, the session's latest turn, the turn
/// nearest to the query, the latest turn of all. `embedding` is called where the strategies before it find nothing.
///
/// # Errors
/// 02000 when the turn given does not exist; else as any reading.
pub fn find_anchor(
    turn: Option<TurnId>,
    session: Option<&str>,
    embedding: impl FnOnce() -> Result<Option<Vec<Option<f32>>>, SqlError>,
) -> Result<Option<ChosenAnchor>, SqlError> {
    let reader = GraphReader::current()?;
    if let Some(turn) = turn {
        return check_exists(&reader, turn).map(|()| Some((turn, AnchorStrategy::Explicit)));
    }
    if let Some(session) = session
        && let Some((id, _)) = reader.searcher().latest(Some(session), 1)?.first()
    {
        return Ok(Some((*id, AnchorStrategy::Session)));
    }
    if let Some(embedding) = embedding()?
        && let Some(found) = nearest(&reader, &embedding)?
    {
        return Ok(Some(found));
    }
    Ok(reader.searcher().latest(None, 1)?.first().map(|(id, _)| (*id, AnchorStrategy::Temporal)))
}

/// The latest turns, of a session where one is named: by time downwards, then by id.
///
/// # Errors
/// As any reading.
pub fn latest_turns(session: Option<&str>, limit: u32) -> Result<Vec<DatedTurn>, SqlError> {
    GraphReader::current()?.searcher().latest(session, limit)
}

fn check_exists(reader: &GraphReader, turn: TurnId) -> Result<(), SqlError> {
    let mut exists = false;
    reader.ask(Needs::default(), |store| {
        store.scored(&[turn], &mut |_| {
            exists = true;
            ControlFlow::Break(())
        })
    })?;
    if exists { Ok(()) } else { Err(SliceError::AnchorNotFound(turn).into()) }
}

fn nearest(
    reader: &GraphReader,
    embedding: &[Option<f32>],
) -> Result<Option<ChosenAnchor>, SqlError> {
    let column = reader.graph().embedding()?;
    let query = column.query(embedding)?;
    let ranking = Ranking::new(1, Filters::default());
    let hits = reader.searcher().nearest(&column, &query, 1, ranking)?;
    let strategy = match column.indexed {
        Some(_) => AnchorStrategy::SemanticApproximate,
        None => AnchorStrategy::Semantic,
    };
    Ok(hits.first().map(|hit| (hit.id, strategy)))
}
