//! The graph that is bound under a name, as its tables are now; kept until an invalidation arrives.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CStr;
use std::rc::Rc;

use kernel::json::quoted;
use pgrx::{PgSqlErrorCode, pg_sys};
use serde_json::Value;

use super::{Graph, GraphTables, MappingReading};
use crate::pg::catalog::names::literal_of;
use crate::pg::catalog::privileges::shown_to_others;
use crate::pg::catalog::relation::{self};
use crate::pg::error::{SqlError, Word};
use crate::pg::guc::DEFAULT_GRAPH;
use crate::pg::private::binding::{Binding, mapping};
use crate::pg::private::session_cache::SessionCache;
use crate::pg::shortage::memory;
use crate::pg::text::replaced;

/// The longest name of a binding, which `bind_tables` enforces.
const MAX_NAME_BYTES: usize = 63;

/// The tables of [`DEFAULT_GRAPH`] while nothing is bound, in the schema public.
const DEFAULT_TABLES: [&std::ffi::CStr; 2] = [c"memory_turns", c"memory_turn_edges"];

thread_local! {
    /// The graphs that were read, by the name of their binding.
    static CURRENT: RefCell<HashMap<String, Rc<SessionCache<Graph>>>> = RefCell::default();
}

impl Graph {
    /// The graph that is bound under this name; under [`DEFAULT_GRAPH`] the default tables while nothing is bound. Its
    /// tables stay locked AccessShare to the transaction's end. Raises 42501 before that where the current role has no
    /// right to one of them.
    ///
    /// # Errors
    /// 42704 when there is none; 42P01, 42703, 42804, 42809 when the tables are not what a graph needs.
    pub fn named(binding: &str) -> Result<Rc<Self>, SqlError> {
        memory::check();
        if binding.len() > MAX_NAME_BYTES {
            return Err(not_found(binding));
        }
        let cache = CURRENT.with_borrow_mut(|graphs| {
            if !graphs.contains_key(binding) {
                graphs.insert(binding.to_owned(), Rc::new(SessionCache::new()));
            }
            Rc::clone(&graphs[binding])
        });
        if let Some(graph) = cache.get() {
            graph.tables().for_each(relation::check_rights);
            graph.tables().for_each(relation::lock_shared);
        }
        // Taking the locks accepts the invalidations of changes that were committed before.
        let graph = cache.get_or_compute(|| Self::resolve_bound(binding));
        match &graph {
            // Roles gain and lose rights without an invalidation of the tables.
            Ok(graph) if let Err(error) = graph.check_binder() => return Err(error),
            Ok(_) => {}
            Err(_) => {
                CURRENT.with_borrow_mut(|graphs| graphs.remove(binding));
            }
        }
        graph
    }

    /// Whether the current role has a right to each table that is bound under this name, as [`Graph::named`] asks for;
    /// also where there is none.
    pub fn has_rights(binding: &str) -> bool {
        let tables = match Binding::named(binding) {
            Some(Binding { turns, edges, edges_by_child, .. }) => {
                [Some(turns), edges, edges_by_child]
            }
            None => {
                let [turns, edges] = DEFAULT_TABLES.map(|name| relation::find(c"public", name));
                [turns, edges, None]
            }
        };
        tables.into_iter().flatten().all(relation::has_rights)
    }

    fn resolve_bound(binding: &str) -> Result<Self, SqlError> {
        match Self::binding(binding)? {
            Some(bound) => {
                let Binding { graph, turns, edges, edges_by_child, columns, .. } = bound;
                let Binding { resolved, binder, writers, place, .. } = bound;
                let tables = [turns].into_iter().chain(edges).chain(edges_by_child);
                tables.clone().for_each(relation::check_rights);
                tables.for_each(relation::lock_shared);
                // The tables may have been waited for, and others bound meanwhile.
                if Self::binding(binding)?
                    .is_none_or(|now| (now.graph, &now.writers) != (graph, &writers))
                {
                    return Self::resolve_bound(binding);
                }
                let (columns, resolved) = (&mapping(columns.as_ref())?, &mapping(Some(&resolved))?);
                let reading = MappingReading::Resolved(resolved);
                let binder = Some(binder);
                let tables =
                    GraphTables { binding, turns, edges, edges_by_child, columns, reading, binder };
                let graph = Self::resolve(graph.to_string(), &tables).map_err(|error| {
                    let binding = super::binding_query(binding);
                    match binder {
                        Some(binder) => shown_to_others(error, Word::GraphTables, binder, &binding),
                        None => error,
                    }
                })?;
                Ok(Graph { writers, bound_at: place, ..graph })
            }
            None => {
                let turns = default_table(DEFAULT_TABLES[0])?;
                let edges = Some(default_table(DEFAULT_TABLES[1])?);
                if Self::binding(binding)?.is_some() {
                    return Self::resolve_bound(binding);
                }
                let (columns, reading) = (&Value::Null, MappingReading::Default);
                let (binder, edges_by_child) = (None, None);
                let tables =
                    GraphTables { binding, turns, edges, edges_by_child, columns, reading, binder };
                let graph = Self::resolve(DEFAULT_GRAPH.to_owned(), &tables)?;
                // The name may have been another graph's when the snapshot was taken.
                Ok(Graph { writers: Binding::writers_of_former(binding), ..graph })
            }
        }
    }

    /// The binding of this name; `None` for the default tables.
    ///
    /// # Errors
    /// 42704 when there is none; 55000 when it was bound in a database that this one is a copy of.
    fn binding(name: &str) -> Result<Option<Binding>, SqlError> {
        let binding = Binding::named(name);
        match &binding {
            None if name != DEFAULT_GRAPH => Err(not_found(name)),
            Some(copied) if copied.is_copied => Err(bound_elsewhere(name, copied)?),
            _ => Ok(binding),
        }
    }

    /// The name in attestations of the graph that is bound under this name, without looking at its tables.
    ///
    /// # Errors
    /// 42704 when there is none; 55000 when it was bound in a database that this one is a copy of.
    pub fn attested_name(binding: &str) -> Result<String, SqlError> {
        let binding = Self::binding(binding)?;
        Ok(binding.map_or_else(|| DEFAULT_GRAPH.to_owned(), |binding| binding.graph.to_string()))
    }
}

fn not_found(name: &str) -> SqlError {
    SqlError::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT,
        format!("there is no graph {}", quoted(name)),
    )
    .word(Word::GraphNotFound)
    .hint("SELECT name FROM graph_kernel.bindings WHERE is_current; then SET graph_kernel.graph = '...'.")
}

/// The error for a binding that came with a copy of the database: its name is that of the original's graph.
fn bound_elsewhere(name: &str, copied: &Binding) -> Result<SqlError, SqlError> {
    let columns = &mapping(copied.columns.as_ref())?;
    let (turns, edges, binder) = (copied.turns, copied.edges, Some(copied.binder));
    let reading = MappingReading::Default;
    let edges_by_child = copied.edges_by_child;
    let tables =
        GraphTables { binding: name, turns, edges, edges_by_child, columns, reading, binder };
    Ok(SqlError::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!(
            "the graph {} was bound in another database, of which this one is a copy",
            quoted(name)
        ),
    )
    .word(Word::GraphTables)
    .hint(format!("Run {}.", tables.command("turns", None))))
}

fn default_table(name: &'static CStr) -> Result<pg_sys::Oid, SqlError> {
    relation::lock_by_name(c"public", name).ok_or_else(|| {
        SqlError::new(
            PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
            format!("relation \"public.{}\" does not exist", replaced(name.to_bytes())),
        )
        .word(Word::GraphTables)
        .hint(match Binding::names().first() {
            Some(graph) => format!(
                "No tables are bound as {}. For another graph run SET graph_kernel.graph = {};",
                literal_of(DEFAULT_GRAPH),
                literal_of(graph)
            ),
            None => "Run SELECT graph_kernel.create_tables(), or bind tables of your own with \
                     SELECT graph_kernel.bind_tables('<turns table>', '<edges table>')."
                .to_owned(),
        })
    })
}
