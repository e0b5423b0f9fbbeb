//! Where a slice begins when no turn is given.

use std::ops::ControlFlow;

use kernel::graph::turn::{TurnId, bounded_name};
use kernel::json::quoted;
use kernel::policy::needs::Needs;
use kernel::retrieval::search::{AnchorStrategy, SearchFilter};
use kernel::slicing::slicer::SliceError;
use kernel::slicing::store::GraphStore;
use pgrx::PgSqlErrorCode;

use super::reader::GraphReader;
use crate::pg::access::search::{DatedTurn, Sought, statement_time};
use crate::pg::error::{SqlError, Word};
use crate::pg::interrupts::check_interrupts;
use crate::pg::private::version::own_name;

/// An anchor and the strategy that chose it.
pub type ChosenAnchor = (TurnId, AnchorStrategy);

/// The anchor that the first argument given decides: the turn itself, the session's latest turn, the turn nearest to
/// the query. The latest turn of all where none is given, if there is one. `embedding` is called where no argument
/// before it is given.
///
/// # Errors
/// 02000 where there is no such turn, no turn of the session, no turn with an embedding; else as any reading.
pub fn find_anchor(
    turn: Option<TurnId>,
    session: Option<&str>,
    embedding: impl FnOnce() -> Result<Option<Vec<Option<f32>>>, SqlError>,
) -> Result<Option<ChosenAnchor>, SqlError> {
    let reader = GraphReader::current()?;
    let found = find_by(&reader, turn, session, embedding);
    // Also where it says that something is missing.
    reader.check_settled()?;
    found
}

fn find_by(
    reader: &GraphReader,
    turn: Option<TurnId>,
    session: Option<&str>,
    embedding: impl FnOnce() -> Result<Option<Vec<Option<f32>>>, SqlError>,
) -> Result<Option<ChosenAnchor>, SqlError> {
    if let Some(turn) = turn {
        return check_exists(reader, turn).map(|()| Some((turn, AnchorStrategy::Explicit)));
    }
    if let Some(session) = session {
        let session = bounded_name(session, &check_interrupts);
        return match reader.searcher().latest(Some(&session), 1)?.first() {
            Some((id, _)) => Ok(Some((*id, AnchorStrategy::Session))),
            None => Err(no_turn(
                format!("session {} has no turn", quoted(&session)),
                Word::SessionNotFound,
                // With all arguments, of their types: who may create in that schema could overload them.
                &format!(
                    "The latest sessions: SELECT DISTINCT s.session_id FROM {}(100, NULL::pg_catalog.text) AS a, \
                     {}(a.anchor_turn_id, '{{\"max_nodes\": 1}}'::{}) AS s;",
                    own_name("graph_anchors_recent"),
                    own_name("graph_slice_turns"),
                    own_name("slice_policy"),
                ),
            )),
        };
    }
    if let Some(embedding) = embedding()? {
        return match nearest(reader, &embedding)? {
            None => Err(no_turn(
                "no turn with an embedding was found".to_owned(),
                Word::EmbeddingNotFound,
                &format!(
                    "Leave query_embedding out for the latest turn of all: SELECT * FROM {}(NULL::pg_catalog.uuid, \
                     NULL::pg_catalog.text, NULL::pg_catalog.float4[]);",
                    own_name("graph_anchor"),
                ),
            )),
            found => Ok(found),
        };
    }
    Ok(reader.searcher().latest(None, 1)?.first().map(|(id, _)| (*id, AnchorStrategy::Temporal)))
}

/// What is hidden by row security reads as what is missing.
fn no_turn(message: String, word: Word, hint: &str) -> SqlError {
    SqlError::new(PgSqlErrorCode::ERRCODE_NO_DATA, message).word(word).hint(hint)
}

/// The latest turns, of a session where one is named: by time downwards, then by id.
///
/// # Errors
/// As any reading.
pub fn latest_turns(session: Option<&str>, limit: u32) -> Result<Vec<DatedTurn>, SqlError> {
    let reader = GraphReader::current()?;
    let session = session.map(|name| bounded_name(name, &check_interrupts));
    let turns = reader.searcher().latest(session.as_deref(), limit)?;
    reader.check_settled()?;
    Ok(turns)
}

fn check_exists(reader: &GraphReader, turn: TurnId) -> Result<(), SqlError> {
    let mut exists = false;
    reader.ask(Needs::default(), |store| {
        store.scored(&[turn], &mut |_| {
            exists = true;
            ControlFlow::Break(())
        })
    })?;
    if exists { Ok(()) } else { Err(reader.locate(SliceError::AnchorNotFound(turn).into())) }
}

fn nearest(
    reader: &GraphReader,
    embedding: &[Option<f32>],
) -> Result<Option<ChosenAnchor>, SqlError> {
    let column = reader.graph().embedding()?;
    let query = column.query(embedding)?;
    let sought = Sought { filter: SearchFilter::default(), at: statement_time() };
    let hits = reader.searcher().nearest(&column, &query, 1, &sought)?;
    let strategy = match column.indexed {
        Some(_) => AnchorStrategy::SemanticApproximate,
        None => AnchorStrategy::Semantic,
    };
    Ok(hits.first().map(|hit| (hit.id, strategy)))
}
