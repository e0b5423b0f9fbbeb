//! The published crate, over its store in memory and its store in PostgreSQL.

use std::sync::Arc;

use admissibility_kernel::store::postgres::{PostgresConfig, PostgresGraphStore};
use admissibility_kernel::store::{GraphStore, InMemoryGraphStore};
use admissibility_kernel::{
    ContextSlicer, Edge, EdgeType, Phase, Role, SlicePolicyV1, TurnId, TurnSnapshot,
};
use graph_kernel_tests::data::Graph;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::tables::{Result, conversation};

/// A slicer of the crate with its default policy, which is ours.
pub struct Peer<S: GraphStore> {
    slicer: ContextSlicer<S>,
    runtime: Arc<Runtime>,
}

impl<S: GraphStore + Send + Sync + 'static> Peer<S> {
    fn new(store: S, runtime: Arc<Runtime>) -> Self {
        let secret = b"a secret of thirty-two characters".to_vec();
        Peer {
            slicer: ContextSlicer::new(Arc::new(store), SlicePolicyV1::default(), secret),
            runtime,
        }
    }

    /// The slice as JSON, with its token.
    pub fn slice(&self, anchor: Uuid) -> Result<String> {
        let bundle = self.runtime.block_on(self.slicer.slice(TurnId::new(anchor)))?;
        Ok(serde_json::to_string(bundle.slice())?)
    }
}

/// Over a copy of the graph in memory.
pub fn in_memory(graph: &Graph, runtime: &Arc<Runtime>) -> Result<Peer<InMemoryGraphStore>> {
    let mut store = InMemoryGraphStore::new();
    for turn in &graph.turns {
        store.add_turn(TurnSnapshot::new(
            TurnId::new(turn.id),
            conversation(&turn.session_id)?.to_string(),
            Role::from_str(turn.role.name()).unwrap_or_default(),
            Phase::from_str(turn.phase.name()).unwrap_or_default(),
            turn.salience,
            turn.trajectory_depth,
            turn.trajectory_sibling_order,
            turn.trajectory_homogeneity,
            turn.trajectory_temporal,
            turn.trajectory_complexity,
            turn.created_at,
        ));
    }
    for edge in &graph.edges {
        store.add_edge(Edge::new(
            TurnId::new(edge.parent),
            TurnId::new(edge.child),
            EdgeType::from_str(edge.edge_type.name()).unwrap_or_default(),
        ));
    }
    Ok(Peer::new(store, Arc::clone(runtime)))
}

/// Over its tables in a database of the server that PG* names.
pub fn in_postgres(database: &str, runtime: &Arc<Runtime>) -> Result<Peer<PostgresGraphStore>> {
    let host = std::env::var("PGHOST")?.replace('/', "%2F");
    let (port, user) = (std::env::var("PGPORT")?, std::env::var("PGUSER")?);
    let config = PostgresConfig {
        database_url: format!("postgres://{user}@{host}:{port}/{database}"),
        max_connections: 1,
        min_connections: 1,
        connect_timeout_secs: 10,
        idle_timeout_secs: 3600,
        max_lifetime_secs: 36_000,
    };
    let store = runtime.block_on(PostgresGraphStore::new(config))?;
    Ok(Peer::new(store, Arc::clone(runtime)))
}
