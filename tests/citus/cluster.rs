//! A database on each of the servers, with the same graph in tables of several layouts.

use std::path::{Path, PathBuf};

use postgres::Client;

use crate::common::database::{Database, load_graph};
use crate::common::{Server, variable};

/// A database of the coordinator, with those of the workers of the same name.
pub struct Cluster {
    pub database: Database,
    workers: Vec<Server>,
}

/// How the tables of a graph are distributed: its name, which is that of their schema and of the binding; the value of
/// a column in front of those of the created tables, if there is one; how turns and edges are distributed.
pub struct Layout {
    pub name: &'static str,
    tenant: Option<&'static str>,
    distribute: [&'static str; 2],
    /// Whether edges are stored a second time, by their child.
    by_child: bool,
}

pub const LAYOUTS: [Layout; 5] = [
    // Turns by id, edges by parent.
    Layout {
        name: "by_id",
        tenant: None,
        distribute: [
            "create_distributed_table('turns', 'id', colocate_with => 'none')",
            "create_distributed_table('edges', 'parent_turn_id', colocate_with => 'none')",
        ],
        by_child: false,
    },
    Layout {
        name: "by_both_ends",
        tenant: None,
        distribute: [
            "create_distributed_table('turns', 'id', colocate_with => 'none')",
            "create_distributed_table('edges', 'parent_turn_id', colocate_with => 'none')",
        ],
        by_child: true,
    },
    Layout {
        name: "by_reference",
        tenant: None,
        distribute: ["create_reference_table('turns')", "create_reference_table('edges')"],
        by_child: false,
    },
    Layout {
        name: "edges_by_reference",
        tenant: None,
        distribute: ["create_distributed_table('turns', 'id')", "create_reference_table('edges')"],
        by_child: false,
    },
    Layout {
        name: "by_tenant",
        tenant: Some("md5(coalesce(session_id, ''))"),
        distribute: [
            "create_distributed_table('turns', 'tenant', colocate_with => 'none')",
            "create_distributed_table('edges', 'tenant', colocate_with => 'turns')",
        ],
        by_child: false,
    },
];

impl Cluster {
    /// With the extension, and Citus on all.
    pub fn new(name: &str) -> Self {
        let primary = Server::primary();
        let workers: Vec<Server> = variable("GRAPH_KERNEL_CITUS_WORKERS")
            .split_whitespace()
            .map(|socket| Server { socket: socket.to_owned(), ..primary.clone() })
            .collect();
        assert_eq!(workers.len(), 2, "GRAPH_KERNEL_CITUS_WORKERS names two");
        let cluster = Cluster { database: Database::empty(name), workers };
        cluster.drop_on_workers();
        let name = &cluster.database.name;
        for worker in &cluster.workers {
            worker.connect_admin().batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
            worker.connect(name).batch_execute("CREATE EXTENSION citus").unwrap();
        }
        let mut client = cluster.database.connect();
        client.batch_execute("CREATE EXTENSION citus").unwrap();
        let host = "SELECT citus_set_coordinator_host($1, $2)";
        client.execute(host, &[&primary.socket, &i32::from(primary.port)]).unwrap();
        for worker in &cluster.workers {
            let add = "SELECT citus_add_node($1, $2)";
            client.execute(add, &[&worker.socket, &i32::from(worker.port)]).unwrap();
        }
        client
            .batch_execute("CREATE EXTENSION graph_kernel; SELECT graph_kernel.create_tables()")
            .unwrap();
        // Citus distributes neither triggers nor foreign keys between tables that are not in the same places.
        client
            .batch_execute(
                "DROP TRIGGER content_hash ON memory_turns;
                 ALTER TABLE memory_turns ADD embedding real[];
                 ALTER TABLE memory_turn_edges DROP CONSTRAINT memory_turn_edges_parent_turn_id_fkey,
                     DROP CONSTRAINT memory_turn_edges_child_turn_id_fkey",
            )
            .unwrap();
        cluster
    }

    /// A session that reads the binding of this name.
    pub fn reading(&self, graph: &str) -> Client {
        let mut client = self.database.connect();
        client.batch_execute(&format!("SET graph_kernel.graph = '{graph}'")).unwrap();
        client
    }

    fn drop_on_workers(&self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.database.name);
        self.workers.iter().for_each(|worker| worker.connect_admin().batch_execute(&drop).unwrap());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.drop_on_workers();
        }
    }
}

/// A file that the golden tests have committed.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/data").join(name)
}

/// Loads a folder's graph into the created tables, which stay on the coordinator, and into tables of each layout.
pub fn load(client: &mut Client, folder: &Path, layouts: &[Layout]) {
    load_graph(client, folder);
    client
        .batch_execute(
            "UPDATE memory_turns SET embedding = ARRAY[
                 hashtext(id::text) / 1e9, hashtext(id::text || 'a') / 1e9, hashtext(id::text || 'b') / 1e9]::real[]",
        )
        .unwrap();
    layouts.iter().for_each(|layout| layout.copy(client));
}

impl Layout {
    /// Makes the tables of this layout of what is in the created ones, and binds them.
    pub fn copy(&self, client: &mut Client) {
        let Layout { name, tenant, distribute: [turns, edges], by_child } = self;
        let (column, by_tenant) = match tenant {
            Some(_) => ("tenant text NOT NULL, ", ", tenant"),
            None => ("", ""),
        };
        let (second, mapping) = match by_child {
            true => (
                format!(
                    "CREATE TABLE {name}.by_child (LIKE {name}.edges);
                     CREATE INDEX ON {name}.by_child (child_turn_id, parent_turn_id, edge_type);
                     SELECT create_distributed_table('{name}.by_child', 'child_turn_id', colocate_with => 'none');"
                ),
                format!(r#"'{{"edges_by_child": "{name}.by_child"}}'"#),
            ),
            false => (String::new(), "NULL".to_owned()),
        };
        client
            .batch_execute(&format!(
                "CREATE SCHEMA {name};
                 SET search_path = {name}, public;
                 CREATE TABLE {name}.turns ({column}LIKE memory_turns INCLUDING DEFAULTS);
                 CREATE TABLE {name}.edges ({column}LIKE memory_turn_edges INCLUDING DEFAULTS);
                 ALTER TABLE {name}.turns ADD PRIMARY KEY (id{by_tenant});
                 CREATE INDEX ON {name}.edges (parent_turn_id, child_turn_id, edge_type);
                 CREATE INDEX ON {name}.edges (child_turn_id, parent_turn_id, edge_type);
                 SELECT {turns};
                 SELECT {edges};
                 RESET search_path;
                 {second}"
            ))
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        self.fill(client);
        client
            .batch_execute(&format!(
                "SET client_min_messages = warning;
                 SELECT graph_kernel.bind_tables('{name}.turns', '{name}.edges', {mapping}, '{name}');
                 RESET client_min_messages"
            ))
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
    }

    /// Puts into its tables what is in the created ones.
    pub fn fill(&self, client: &mut Client) {
        let Layout { name, tenant, by_child, .. } = self;
        let own = tenant.map_or(String::new(), |tenant| format!("{tenant}, "));
        let of_child = tenant.map_or(String::new(), |tenant| {
            format!(
                "coalesce((SELECT {tenant} FROM memory_turns WHERE id = child_turn_id), md5('')), "
            )
        });
        let second = match by_child {
            true => format!("INSERT INTO {name}.by_child SELECT * FROM memory_turn_edges"),
            false => String::new(),
        };
        client
            .batch_execute(&format!(
                "INSERT INTO {name}.turns SELECT {own}* FROM memory_turns;
                 INSERT INTO {name}.edges SELECT {of_child}* FROM memory_turn_edges;
                 {second}"
            ))
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
    }
}
