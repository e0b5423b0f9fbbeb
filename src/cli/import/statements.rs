//! The statements that insert a conversation from the temporary tables into those of a graph.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::process;

use postgres::types::Type;

use super::columns::COLUMNS;
use crate::Failure;
use crate::database::{ChosenGraph, Database, server_error, value};

/// How messages get their turn ids.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Ids {
    /// `graph_turn_id` of format, account, conversation and message.
    Derived,
    /// The ids of the file.
    Given,
}

/// The names of the temporary tables. They are an import's own: another client of a pooler may have left tables behind.
pub(super) struct Stages {
    suffix: String,
}

impl Stages {
    pub(super) fn new() -> Self {
        Stages { suffix: format!("{:016x}", RandomState::new().hash_one(process::id())) }
    }

    /// The text with the temporary tables' names: `{rows}`, `{values}`, `{conversations}`, `{turns}` and `{links}`.
    pub(super) fn named(&self, text: &str) -> String {
        let name = |table: &str| format!("graph_kernel_{table}_{}", self.suffix);
        let all = [
            ("{all}", "all"),
            ("{rows}", "rows"),
            ("{values}", "values"),
            ("{conversations}", "conversations"),
            ("{turns}", "turns"),
            ("{links}", "links"),
        ];
        all.iter().fold(text.to_owned(), |text, (key, table)| text.replace(key, &name(table)))
    }
}

/// The temporary tables of a transaction. `{rows}` has what was read, in the order of the files. A row is of the kind
/// `t` for a turn with its parent's edge, `s` for a message that is skipped, `e` for an edge alone. `{values}` has the
/// columns of the turns, apart, as the rows are read many times and these once. `{conversations}` has the ids of those
/// that are stored. `{turns}` has the ids of the turns, and whether they are new. `{links}` has the edges by turn ids,
/// and which of their ends are among the turns. Values are stored as they are, and not sorted for a join: both take
/// long. No timeout counts how long a transaction waits for that of the other connection.
pub(super) fn stages() -> String {
    let columns: String = COLUMNS.iter().map(|column| format!(", {} text", column.name)).collect();
    let external: Vec<String> = COLUMNS
        .iter()
        .map(|column| format!("ALTER COLUMN {} SET STORAGE EXTERNAL", column.name))
        .collect();
    format!(
        "CREATE TEMPORARY TABLE {{rows}} (n bigint, conversation bigint, kind \"char\", message text, parent text, \
           edge_type text) ON COMMIT DROP; \
         CREATE TEMPORARY TABLE {{values}} (n bigint{columns}) WITH (toast_tuple_target = 8160) ON COMMIT DROP; \
         ALTER TABLE pg_temp.{{values}} {}; \
         CREATE TEMPORARY TABLE {{conversations}} (conversation bigint, id text, session_id text) ON COMMIT DROP; \
         CREATE TEMPORARY TABLE {{turns}} (n bigint, conversation bigint, id uuid, is_new boolean) ON COMMIT DROP; \
         CREATE TEMPORARY TABLE {{links}} (conversation bigint, child uuid, parent uuid, edge_type text, n bigint, \
           has_child boolean, has_parent boolean) ON COMMIT DROP; \
         SET LOCAL jit = off; SET LOCAL enable_mergejoin = off; SET LOCAL default_statistics_target = 10; \
         SELECT set_config(name, '0', true) FROM pg_settings \
          WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout'); \
         SELECT set_config(name, 'lz4', true) FROM pg_settings \
          WHERE name = 'default_toast_compression' AND source = 'default' AND 'lz4' = ANY (enumvals)",
        external.join(", "),
    )
}

/// Keeps the rows of all conversations apart, so that each can be stored by itself.
pub(super) const SET_APART: &str = "\
    ALTER TABLE pg_temp.{rows} RENAME TO {all}; \
    CREATE TEMPORARY TABLE {rows} (LIKE pg_temp.{all}) ON COMMIT DROP";

/// Takes the rows of one of these.
pub(super) const TAKE_ONE: &str = "\
    INSERT INTO pg_temp.{rows} SELECT * FROM pg_temp.{all} WHERE conversation = $1";

/// Empties the temporary tables that are filled anew.
pub(super) const EMPTY: &str = "TRUNCATE pg_temp.{conversations}, pg_temp.{turns}, pg_temp.{links}";

/// Leaves out the rows of conversations that are not stored.
pub(super) const LEAVE_OUT: &str = "DELETE FROM pg_temp.{rows} WHERE conversation = ANY ($1)";

/// The conversations, with the names of their sessions.
pub(super) const CONVERSATIONS: &str = "\
    INSERT INTO pg_temp.{conversations} SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])";

/// Two imports of one conversation wait for each other, so that each sees what the other has stored. All lock in one
/// order.
pub(super) const LOCK: &str = "\
    SELECT graph_kernel.advisory_xact_lock($2::bigint::oid, k.key) \
      FROM (SELECT DISTINCT hashtext(name COLLATE \"C\") AS key FROM unnest($1::text[]) AS name \
             ORDER BY 1 OFFSET 0) AS k";

/// A process that holds such a lock, and its role.
pub(super) const LOCK_HOLDER: &str = "\
    SELECT a.pid, coalesce(a.usename::text, p.owner::text, ''), p.gid \
      FROM unnest($1::text[]) AS name \
     CROSS JOIN LATERAL (SELECT hashtext(name COLLATE \"C\") AS key) AS k \
      JOIN pg_locks AS l ON l.locktype = 'advisory' AND l.granted AND l.objsubid = 3 \
       AND l.classid = $2::bigint::oid AND l.objid::bigint = k.key::bigint & 4294967295 \
      JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database() \
      LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid \
      LEFT JOIN pg_locks AS x ON x.virtualtransaction = l.virtualtransaction AND x.locktype = 'transactionid' \
      LEFT JOIN pg_prepared_xacts AS p ON p.transaction = x.transactionid \
     WHERE l.pid IS DISTINCT FROM pg_backend_pid() \
     LIMIT 1";

/// Whether there are messages with one id.
pub(super) const HAS_DOUBLES: &str = "\
    SELECT EXISTS (SELECT FROM pg_temp.{rows} WHERE kind <> 'e' GROUP BY conversation, message HAVING count(*) > 1)";

/// Of messages with one id the first counts. Returns how many turns with another text are left out.
pub(super) const DEDUPLICATE: &str = "\
    WITH first AS ( \
        SELECT conversation, message, min(n) AS n FROM pg_temp.{rows} WHERE kind <> 'e' \
         GROUP BY conversation, message HAVING count(*) > 1), \
    gone AS ( \
        DELETE FROM pg_temp.{rows} AS s USING first AS f \
         WHERE s.kind <> 'e' AND s.conversation = f.conversation AND s.message = f.message AND s.n > f.n \
        RETURNING s.n, f.n AS first_n) \
    SELECT count(*) FROM gone AS g JOIN pg_temp.{values} AS s ON s.n = g.n \
      LEFT JOIN pg_temp.{values} AS o ON o.n = g.first_n \
     WHERE s.content_text IS DISTINCT FROM o.content_text";

/// How often distances between skipped messages are doubled: what is left then are circles.
pub(super) const MAX_SKIPS: usize = 40;

/// Lets each skipped message follow what its parent follows, if that is skipped as well. Each time the distances
/// double, so that the longest chain takes few of them. To be repeated until it changes nothing, or [`MAX_SKIPS`]
/// times.
pub(super) const SKIP: &str = "\
    UPDATE pg_temp.{rows} AS s SET parent = p.parent FROM pg_temp.{rows} AS p \
     WHERE s.kind = 's' AND p.kind = 's' AND p.conversation = s.conversation AND p.message = s.parent";

/// Lets each end of an edge be looked up.
pub(super) const UNKNOWN_ENDS: &str =
    "UPDATE pg_temp.{links} SET has_child = false, has_parent = false";

/// Fills in the edges; `{id:x}` is the turn id of the message x. What follows a skipped message follows its parent
/// instead; skipped messages that follow each other in a circle have none. An edge alone counts where its child has no
/// parent of its own.
const LINK: &str = "\
    INSERT INTO pg_temp.{links} \
    SELECT f.conversation, coalesce(ct.id, {id:f.child}), coalesce(pt.id, {id:f.parent}), f.edge_type, f.n, \
           ct.id IS NOT NULL, pt.id IS NOT NULL \
      FROM (SELECT s.conversation, s.message AS child, s.edge_type, s.n, \
                   CASE WHEN s.kind = 't' THEN s.n ELSE c.n END AS child_n, \
                   CASE WHEN k.message IS NULL THEN s.parent ELSE k.parent END AS parent \
              FROM pg_temp.{rows} AS s \
              LEFT JOIN pg_temp.{rows} AS k \
                     ON k.kind = 's' AND k.conversation = s.conversation AND k.message = s.parent \
              LEFT JOIN pg_temp.{rows} AS c ON s.kind = 'e' AND c.kind = 't' AND c.conversation = s.conversation \
                    AND c.message = s.message \
             WHERE s.kind <> 's' AND c.parent IS NULL) AS f \
      JOIN pg_temp.{conversations} AS v ON v.conversation = f.conversation \
      LEFT JOIN pg_temp.{rows} AS p ON p.kind <> 'e' AND p.conversation = f.conversation AND p.message = f.parent \
      LEFT JOIN pg_temp.{turns} AS ct ON ct.n = f.child_n \
      LEFT JOIN pg_temp.{turns} AS pt ON pt.n = p.n \
     WHERE f.parent <> f.child AND p.kind IS DISTINCT FROM 's'";

/// The statements that depend on the graph, in the order in which they run. The names in them are those of the catalog,
/// quoted by the server.
pub(super) struct InsertStatements {
    /// The schema of the extension's functions, quoted.
    pub(super) schema: String,
    /// The name of the graph.
    pub(super) graph: String,
    /// The OID of the turns table.
    pub(super) turns_oid: i64,
    /// Whether sessions are uuids.
    pub(super) has_uuid_sessions: bool,
    /// Fills in the ids of turns. Its parameters, as those of `link`, are format and account where ids are derived from
    /// them.
    pub(super) identify: String,
    /// Fills in the edges.
    pub(super) link: String,
    /// Returns how many turns were stored, and how many parents with them.
    pub(super) turns: String,
    /// Returns of each conversation how many of its edges are new, and how many were stored of all of them. None where
    /// the table of turns stores the edges.
    pub(super) edges: Option<String>,
    /// Returns how many turns follow one that is not stored.
    pub(super) without_parent: String,
    /// Returns how many edges lead to a turn that is not stored.
    pub(super) without_child: String,
    /// Returns how many turns were there already in a session that is not the conversation's. None where turns have no
    /// session.
    pub(super) elsewhere: Option<String>,
}

impl InsertStatements {
    /// Those for the chosen graph, within a transaction.
    pub(super) fn new(database: &mut Database, ids: Ids, stages: &Stages) -> Result<Self, Failure> {
        let schema = database.schema().map_err(|fault| fault.text)?;
        let graph = database.graph().map_err(|fault| fault.text)?;
        let with_ids = |text: &str| with_turn_ids(text, &schema, ids);
        let described = &graph.described;
        let mut target = TargetTables { database, graph: &graph };

        let turns = graph.name_of("turns")?.to_owned();
        let id = target.needed("turns", "id")?.name;
        let (mut names, mut values) = (vec![id.clone()], vec!["i.id".to_owned()]);
        let mut session = None;
        let mut has_uuid_sessions = false;
        for column in &COLUMNS {
            // No file but one of rows has these: the table's defaults say whose the turns are.
            if matches!(ids, Ids::Derived) && matches!(column.key, "owner" | "valid_until") {
                continue;
            }
            let Some(bound) = target.column("turns", column.key)? else { continue };
            let text = match (column.key, ids) {
                ("session_id", Ids::Derived) => {
                    has_uuid_sessions = bound.base_type == "uuid";
                    "v.session_id".to_owned()
                }
                _ => format!("s.{}", column.name),
            };
            if column.key == "session_id" {
                session = Some((bound.name.clone(), text.clone()));
            }
            values.push(bound.assigned(&text));
            names.push(bound.name);
        }
        let is_indexed = target.has_index("turns", &["id"])?;
        let exists = |id_of: &str| found(is_indexed, &turns, "t", &format!("t.{id} = {id_of}"));
        if described["edges_by_child"].is_number() {
            return Err(format!(
                "graph {}: its edges are in two tables, and an import writes one; import into tables without \
                edges_by_child",
                graph.name
            ));
        }
        let has_edges_table = described["resolved"]["edges"].is_object();
        let (mut joins, mut stored_parents) = (String::new(), "0".to_owned());
        if !has_edges_table {
            let parents = target.parent_columns()?;
            for (n, (column, _)) in parents.iter().enumerate() {
                joins.push_str(&parent_join(n, &parents, &exists("l.parent")));
                stored_parents.push_str(&format!(" + count({})", column.name));
                names.push(column.name.clone());
                values.push(column.assigned(&format!("p{n}.parent")));
            }
        }
        // Rights on all columns are asked for only where they are needed.
        let returned = if has_edges_table { "1" } else { "*" };
        let identify_statement = format!(
            "INSERT INTO pg_temp.{{turns}} SELECT s.n, s.conversation, s.id, NOT {} FROM ( \
             SELECT s.n, s.conversation, {} AS id FROM pg_temp.{{rows}} AS s \
             JOIN pg_temp.{{conversations}} AS v ON v.conversation = s.conversation WHERE s.kind = 't' OFFSET 0) AS s",
            exists("s.id"),
            with_ids("{id:s.message}"),
        );
        let turns_statement = format!(
            "WITH stored AS (INSERT INTO {turns} ({}) SELECT {} FROM pg_temp.{{values}} AS s \
             JOIN pg_temp.{{turns}} AS i ON i.n = s.n AND i.is_new \
             JOIN pg_temp.{{conversations}} AS v ON v.conversation = i.conversation{joins} \
             RETURNING {returned}) SELECT count(*), ({stored_parents})::bigint FROM stored",
            names.join(", "),
            values.join(", "),
        );
        let edges_statement =
            if has_edges_table { Some(edges_statement(&mut target, exists)?) } else { None };
        let without_parent = format!(
            "SELECT count(DISTINCT l.child) FROM pg_temp.{{links}} AS l \
             WHERE NOT l.has_parent AND NOT {} AND (l.has_child OR {})",
            exists("l.parent"),
            exists("l.child")
        );
        let without_child = format!(
            "SELECT count(*) FROM (SELECT DISTINCT l.parent, l.child, l.edge_type FROM pg_temp.{{links}} AS l \
             WHERE NOT l.has_child AND NOT {}) AS l",
            exists("l.child")
        );
        let elsewhere = session.map(|(session, expected)| {
            let same = format!("t.{id} = i.id AND t.{session}::text = {expected}");
            let of_rows = if expected.starts_with("s.") {
                " JOIN pg_temp.{values} AS s ON s.n = i.n"
            } else {
                ""
            };
            format!(
                "SELECT count(*) FROM pg_temp.{{turns}} AS i \
                 JOIN pg_temp.{{conversations}} AS v ON v.conversation = i.conversation{of_rows} \
                 WHERE NOT i.is_new AND {expected} IS NOT NULL AND NOT {}",
                found(is_indexed, &turns, "t", &same)
            )
        });
        Ok(InsertStatements {
            has_uuid_sessions,
            identify: stages.named(&identify_statement),
            link: stages.named(&with_ids(LINK)),
            turns: stages.named(&turns_statement),
            edges: edges_statement.map(|edges| stages.named(&edges)),
            without_parent: stages.named(&without_parent),
            without_child: stages.named(&without_child),
            elsewhere: elsewhere.map(|elsewhere| stages.named(&elsewhere)),
            turns_oid: graph.oid_of("turns"),
            schema,
            graph: graph.name,
        })
    }
}

/// Joins the parents that the n-th column takes: the first edge of its type. A type without a column takes the first
/// one.
fn parent_join(n: usize, parents: &[(TargetColumn, String)], is_stored: &str) -> String {
    let types: Vec<String> =
        parents.iter().map(|(_, edge_type)| format!("'{edge_type}'")).collect();
    let is_of_column = match n {
        0 if types.len() == 1 => "true".to_owned(),
        0 => format!("l.edge_type NOT IN ({})", types[1..].join(", ")),
        n => format!("l.edge_type = {}", types[n]),
    };
    format!(
        " LEFT JOIN (SELECT DISTINCT ON (l.child) l.child, l.parent FROM pg_temp.{{links}} AS l \
           WHERE {is_of_column} AND (l.has_parent OR {is_stored}) ORDER BY l.child, l.n) AS p{n} ON p{n}.child = i.id"
    )
}

/// Whether a row of the table fulfils a condition. Where there is an index, it is looked up for each row of a batch:
/// what the planner may turn into a join reads the whole table for each batch.
fn found(is_indexed: bool, table: &str, alias: &str, condition: &str) -> String {
    let select = format!("FROM {table} AS {alias} WHERE {condition}");
    if is_indexed {
        format!("coalesce((SELECT true {select} LIMIT 1), false)")
    } else {
        format!("EXISTS (SELECT {select})")
    }
}

fn edges_statement(
    target: &mut TargetTables,
    exists: impl Fn(&str) -> String,
) -> Result<String, Failure> {
    let edges = target.graph.name_of("edges")?;
    let parent = target.needed("edges", "parent")?;
    let child = target.needed("edges", "child")?;
    let is_indexed = target.has_index("edges", &["child", "parent"])?;
    let mut same = format!("e.{} = l.parent AND e.{} = l.child", parent.name, child.name);
    let mut values = vec![parent.assigned("l.parent"), child.assigned("l.child")];
    let mut names = vec![parent.name, child.name];
    if let Some(edge_type) = target.column("edges", "edge_type")? {
        same.push_str(&format!(" AND e.{}::text = l.edge_type", edge_type.name));
        values.push(edge_type.assigned("l.edge_type"));
        names.push(edge_type.name);
    }
    Ok(format!(
        "WITH fresh AS MATERIALIZED (SELECT DISTINCT l.conversation, l.parent, l.child, l.edge_type FROM ( \
             SELECT l.*, NOT {} AS is_new FROM pg_temp.{{links}} AS l \
              WHERE (l.has_parent OR {}) AND (l.has_child OR {}) OFFSET 0) AS l WHERE l.is_new), \
         stored AS (INSERT INTO {edges} ({}) SELECT DISTINCT {} FROM fresh AS l RETURNING 1) \
         SELECT l.conversation, count(*), (SELECT count(*) FROM stored) FROM fresh AS l GROUP BY l.conversation",
        found(is_indexed, edges, "e", &same),
        exists("l.parent"),
        exists("l.child"),
        names.join(", "),
        values.join(", "),
    ))
}

/// The text with `{id:x}` replaced by the expression of x's turn id.
fn with_turn_ids(text: &str, schema: &str, ids: Ids) -> String {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{id:") {
        let (message, after) = after.split_once('}').expect("each {id: is closed");
        done.push_str(before);
        done.push_str(&match ids {
            Ids::Derived => format!(
                "{schema}.graph_turn_id(json_build_array($1::text, $2::text, v.id, {message})::text)"
            ),
            Ids::Given => format!("{message}::uuid"),
        });
        rest = after;
    }
    done + rest
}

/// A column of a bound table.
struct TargetColumn {
    /// Its name, quoted.
    name: String,
    /// Its type without a length, and the type below that where it is a domain.
    type_name: String,
    base_type: String,
}

impl TargetColumn {
    /// The expression that makes a value of the column's type of this one. Texts are assigned as they are: a cast would
    /// cut one that is too long, where the assignment is an error.
    fn assigned(&self, value: &str) -> String {
        match self.base_type.as_str() {
            "text" | "character varying" | "character" => value.to_owned(),
            "timestamp without time zone" => {
                format!("({value}::timestamptz AT TIME ZONE 'UTC')::{}", self.type_name)
            }
            _ => format!("{value}::{}", self.type_name),
        }
    }
}

/// A column that may be written.
const COLUMN: &str = "\
    WITH RECURSIVE base (oid, below) AS ( \
        SELECT t.oid, t.typbasetype FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid \
         WHERE a.attrelid = $1::bigint::oid AND a.attname = $2 \
        UNION ALL \
        SELECT t.oid, t.typbasetype FROM base JOIN pg_type AS t ON t.oid = base.below) \
    SELECT quote_ident(a.attname), format_type(a.atttypid, NULL), \
           (SELECT format_type(oid, NULL) FROM base WHERE below = 0) \
      FROM pg_attribute AS a \
     WHERE a.attrelid = $1::bigint::oid AND a.attname = $2 AND NOT a.attisdropped AND a.attgenerated = '' \
       AND a.attidentity <> 'a'";

/// Whether an index of all rows begins with these columns, in any order.
const INDEX: &str = "\
    SELECT EXISTS ( \
        SELECT FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_am AS m ON m.oid = c.relam \
         WHERE i.indrelid = $1::bigint::oid AND m.amname = 'btree' AND i.indisvalid AND i.indpred IS NULL \
           AND cardinality($2::text[]) = ( \
               SELECT count(*) FROM pg_attribute AS a \
                WHERE a.attrelid = i.indrelid AND a.attname = ANY ($2::text[]) \
                  AND a.attnum = ANY ((i.indkey::int2[])[0:cardinality($2::text[]) - 1])))";

/// The tables of a graph.
struct TargetTables<'a> {
    database: &'a mut Database,
    graph: &'a ChosenGraph,
}

impl TargetTables<'_> {
    fn lookup(&mut self, part: &str, name: &str) -> Result<Option<TargetColumn>, Failure> {
        let oid = self.graph.oid_of(part);
        let rows = self.database.query(COLUMN, &[(&oid, Type::INT8), (&name, Type::TEXT)])?;
        let Some(row) = rows.first() else { return Ok(None) };
        let (name, type_name, base_type) = (value(row, 0)?, value(row, 1)?, value(row, 2)?);
        Ok(Some(TargetColumn { name, type_name, base_type }))
    }

    /// Whether an index of the table begins with the columns of these keys, so that it finds few rows.
    fn has_index(&mut self, part: &str, keys: &[&str]) -> Result<bool, Failure> {
        let oid = self.graph.oid_of(part);
        let columns = &self.graph.described[part]["columns"];
        let names: Vec<&str> =
            keys.iter().map(|key| columns[key].as_str().unwrap_or_default()).collect();
        self.database
            .query_one(INDEX, &[(&oid, Type::INT8), (&names, Type::TEXT_ARRAY)])
            .map_err(|error| server_error(&error))
            .and_then(|row| value(&row, 0))
    }

    /// The column of a key; None when it is not stored.
    fn column(&mut self, part: &str, key: &str) -> Result<Option<TargetColumn>, Failure> {
        let resolved = &self.graph.described["resolved"][part][key];
        if resolved["expression"].is_string() {
            return match key {
                // What can be computed, or is not part of a conversation, need not be written.
                "content_hash" | "phase" | "salience" | "token_count" | "payload"
                | "valid_until" => Ok(None),
                _ if key.starts_with("trajectory_") => Ok(None),
                _ => Err(self.refused(key)),
            };
        }
        match self.graph.described[part]["columns"][key].as_str() {
            Some(name) if !resolved.is_null() => self.lookup(part, name),
            _ => Ok(None),
        }
    }

    fn needed(&mut self, part: &str, key: &str) -> Result<TargetColumn, Failure> {
        self.column(part, key)?.ok_or_else(|| self.refused(key))
    }

    fn refused(&self, key: &str) -> Failure {
        format!(
            "graph {}: \"{key}\" is bound to an expression, so rows cannot be written; import into tables that store \
            it in a column, such as those of graph_kernel.create_tables",
            self.graph.name
        )
    }

    /// The columns of the turns table that name a parent, with the type of the edge.
    fn parent_columns(&mut self) -> Result<Vec<(TargetColumn, String)>, Failure> {
        let mut columns = Vec::new();
        for parent in
            self.graph.described["resolved"]["turns"]["parents"].as_array().into_iter().flatten()
        {
            let name = parent["parent"].as_str().ok_or_else(|| self.refused("parents"))?;
            let column = self.lookup("turns", name)?.ok_or_else(|| self.refused("parents"))?;
            let edge_type = parent["edge_type"].as_str().unwrap_or("default").to_owned();
            // A column may be bound for two types; the first one is written.
            if columns.iter().all(|(other, _): &(TargetColumn, String)| other.name != column.name) {
                columns.push((column, edge_type));
            }
        }
        if columns.is_empty() {
            return Err(format!(
                "graph {}: its edges follow from the order of its turns, \
                so those of a conversation cannot be written; import into tables that store them, \
                such as those of graph_kernel.create_tables",
                self.graph.name
            ));
        }
        Ok(columns)
    }
}
