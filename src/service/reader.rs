//! The bound graph as a caller reads it: what nearly every call begins with.

use std::rc::Rc;

use kernel::graph::snapshot::GraphSnapshot;
use kernel::policy::SlicePolicy;
use kernel::policy::needs::Needs;
use kernel::trust::attestation::Circumstances;

use crate::pg::access::caller::Caller;
use crate::pg::access::search::Searcher;
use crate::pg::access::store::PgStore;
use crate::pg::catalog::relation;
use crate::pg::error::{SqlError, Word, with_hints};
use crate::pg::guc;
use crate::pg::private::keys::Keys;
use crate::pg::tables::graph::Graph;

/// The graph of now and whose rights it is read with. Slices and searches read through one of these.
#[derive(Clone)]
pub struct GraphReader {
    graph: Rc<Graph>,
    caller: Caller,
    /// That of the catalog before the graph was looked up.
    generation: u64,
}

impl GraphReader {
    /// The graph that the session has chosen, read by the current role.
    ///
    /// # Errors
    /// As [`Graph::named`].
    pub fn current() -> Result<Self, SqlError> {
        Self::of(&guc::graph())
    }

    /// The graph that is bound under this name, read by the current role.
    ///
    /// # Errors
    /// As [`Graph::named`].
    pub fn of(binding: &str) -> Result<Self, SqlError> {
        // Read first, as of a value that is cached.
        let generation = relation::catalog_generation();
        let graph = Graph::named(binding)?;
        let caller = Caller::current(&graph);
        Ok(GraphReader { graph, caller, generation })
    }

    /// As [`GraphReader::current`], to take slices by this policy.
    ///
    /// # Errors
    /// 54000 when the policy asks for more turns than the server allows.
    pub fn for_policy(policy: &SlicePolicy) -> Result<Self, SqlError> {
        guc::check_budget(policy)?;
        Self::current()
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Whether row security applies: then what one statement read says nothing of the next.
    pub fn row_security(&self) -> bool {
        self.caller.rls
    }

    /// Whether this is the same graph, read with the same rights.
    pub fn same_as(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.graph, &other.graph) && self.caller == other.caller
    }

    /// Checks that all rows were read from the tables that were looked up. A statement that is planned later than
    /// another may read partitions that were attached in between.
    ///
    /// # Errors
    /// 55000.
    pub fn check_tables(&self) -> Result<(), SqlError> {
        relation::accept_invalidations();
        if relation::catalog_generation() == self.generation {
            return Ok(());
        }
        self.graph.check_partitions()
    }

    /// As [`GraphReader::check_tables`], and that the snapshot is not older than what the catalog says of them: what is
    /// not attested says nothing of it otherwise.
    ///
    /// # Errors
    /// 55000, 40001.
    pub fn check_settled(&self) -> Result<(), SqlError> {
        self.check_tables()?;
        self.graph.check_settled()
    }

    /// Whether another reader reads the same tables, of the same graph.
    pub fn has_tables_of(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.graph, &other.graph)
            || (self.graph.name == other.graph.name
                && self.graph.relations() == other.graph.relations())
    }

    /// A store over the graph, for policies that need so much. What asks it goes through [`GraphReader::hinting`].
    pub fn store(&self, needs: Needs) -> PgStore<'_> {
        PgStore::new(&self.graph, &self.caller, needs)
    }

    /// Gives errors that row security policies and bound expressions raise while `read` runs a hint.
    pub fn hinting<T>(&self, read: impl FnOnce() -> T) -> T {
        with_hints(self.caller.reads(&self.graph), read)
    }

    /// Asks a store over the graph, for policies that need so much.
    ///
    /// # Errors
    /// Those of `ask`.
    pub fn ask<T, E: Into<SqlError>>(
        &self,
        needs: Needs,
        ask: impl FnOnce(&mut PgStore<'_>) -> Result<T, E>,
    ) -> Result<T, SqlError> {
        self.hinting(|| ask(&mut self.store(needs))).map_err(|error| self.locate(error.into()))
    }

    /// As [`GraphReader::ask`], for what is not attested: no other word says that the tables are newer.
    ///
    /// # Errors
    /// Those of `ask`; as [`GraphReader::check_settled`].
    pub fn ask_settled<T, E: Into<SqlError>>(
        &self,
        needs: Needs,
        ask: impl FnOnce(&mut PgStore<'_>) -> Result<T, E>,
    ) -> Result<T, SqlError> {
        let answer = self.ask(needs, ask)?;
        self.check_settled()?;
        Ok(answer)
    }

    /// Gives the error for an anchor that is not found a hint that names the graph and the table; where it may be there
    /// for a newer snapshot, the error that says so.
    pub fn locate(&self, error: SqlError) -> SqlError {
        if !error.is(Word::AnchorNotFound) {
            return error;
        }
        match self.check_settled() {
            Ok(()) => error.hint(format!("The {}", self.graph.where_not_found())),
            Err(unsettled) => unsettled,
        }
    }

    /// Searches by embeddings and by time.
    pub fn searcher(&self) -> Searcher<'_> {
        Searcher::new(&self.graph, &self.caller)
    }

    /// The snapshot of the whole graph.
    ///
    /// # Errors
    /// As any reading.
    pub fn snapshot(&self) -> Result<GraphSnapshot, SqlError> {
        self.ask_settled(Needs::default(), |store| store.snapshot())
    }

    /// The circumstances that an attestation states, as they are after reading.
    ///
    /// # Errors
    /// 55000 when the caller's rights or the tables' partitions changed meanwhile.
    pub fn circumstances(&self) -> Result<Circumstances, SqlError> {
        self.check_tables()?;
        self.caller.circumstances(&self.graph)
    }

    /// Says once a transaction why what was read is not attested, where it is not.
    pub fn notice_unattested(&self) {
        self.caller.notice_unattested(&self.graph);
    }

    /// The keys as they are now, for this graph.
    ///
    /// # Errors
    /// As [`Keys::load`].
    pub fn keys(&self) -> Result<Keys, SqlError> {
        Keys::load(self.graph.name.clone())
    }
}
