//! A graph in tables as applications have them, made from the same graph in the created tables.

use postgres::Client;
use serde_json::{Value, json};

/// How a row says which turn it is, or another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ids {
    /// A uuid.
    Uuid,
    /// The uuid's text, in upper case in some rows.
    Text,
    /// The text in two columns.
    Parts,
}

/// The shape of an application's tables.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub ids: Ids,
    /// Whether the turns table stores edges, as many as fit into its columns.
    pub parents: bool,
    /// Whether role, phase, salience, time and the trajectory are expressions.
    pub expressions: bool,
    /// Whether the turns table is partitioned.
    pub partitions: bool,
}

impl Shape {
    /// One of all shapes.
    pub fn numbered(number: u32) -> Self {
        Shape {
            ids: [Ids::Uuid, Ids::Text, Ids::Parts][(number % 3) as usize],
            parents: (number / 3).is_multiple_of(2),
            expressions: (number / 6).is_multiple_of(2),
            partitions: number / 12 % 4 == 3,
        }
    }

    /// The columns of an id with this name, their types, and their values for a uuid.
    fn id_columns(&self, name: &str, value: &str) -> Vec<(String, &str, String)> {
        let text = format!(
            "CASE WHEN right({value}::text, 1) < '8' THEN upper({value}::text) ELSE {value}::text END"
        );
        match self.ids {
            Ids::Uuid => vec![(name.to_owned(), "uuid", value.to_owned())],
            Ids::Text => vec![(name.to_owned(), "text", text)],
            Ids::Parts => vec![
                (format!("{name}_a"), "text", format!("left({text}, 9)")),
                (format!("{name}_b"), "varchar", format!("substr({text}, 10)")),
            ],
        }
    }

    fn mapped_id(&self, name: &str) -> Value {
        match self.ids {
            Ids::Uuid => name.into(),
            Ids::Text => json!({ "expression": format!("graph_turn_id({name})") }),
            Ids::Parts => json!({ "expression": format!("graph_turn_id({name}_a, {name}_b)") }),
        }
    }

    /// Makes the schema app with the graph of the created tables in this shape, and binds it. The indexes are those
    /// that graph_check asks for; the tables are not analyzed.
    pub fn bind(&self, client: &mut Client) {
        let batch = |client: &mut Client, statement: &str| {
            client
                .batch_execute(statement)
                .unwrap_or_else(|error| panic!("{self:?} {statement}: {error}"));
        };
        batch(
            client,
            "SET client_min_messages = warning; DROP SCHEMA IF EXISTS app CASCADE; CREATE SCHEMA app;
             CREATE TABLE app.left_over AS
             SELECT e.*, row_number() OVER (PARTITION BY child_turn_id, edge_type ORDER BY parent_turn_id)
                         * (EXISTS (SELECT FROM memory_turns AS t WHERE t.id = child_turn_id)
                            AND edge_type IN ('reply', 'branch', 'reference', 'default'))::int AS n
             FROM memory_turn_edges AS e;
             CREATE INDEX ON app.left_over (child_turn_id, edge_type, n); ANALYZE app.left_over",
        );
        let mut columns = self.id_columns("key", "t.id");
        let mut turns =
            json!({ "id": self.mapped_id("key"), "session_id": "chat", "content_hash": "digest" });
        columns.push(("chat".to_owned(), "text", "t.session_id".to_owned()));
        columns.push(("digest".to_owned(), "text", "t.content_hash".to_owned()));
        columns.push(("body".to_owned(), "text", "t.content_text".to_owned()));
        columns.push(("counted".to_owned(), "bigint", "t.token_count".to_owned()));
        turns["content_text"] = "body".into();
        turns["token_count"] = "counted".into();
        self.add_values(&mut columns, &mut turns);
        let parents = if self.parents { self.parents(client) } else { Vec::new() };
        for (name, edge_type, n) in &parents {
            let parent = format!(
                "(SELECT parent_turn_id FROM app.left_over WHERE child_turn_id = t.id AND edge_type = '{edge_type}' \
                AND n = {n})"
            );
            columns.extend(self.id_columns(name, &parent));
        }
        turns["parents"] = parents
            .iter()
            .map(|(name, edge_type, _)| json!({ "parent": self.mapped_id(name), "edge_type": edge_type }))
            .collect();

        let list = |part: &dyn Fn(&(String, &str, String)) -> String| {
            columns.iter().map(part).collect::<Vec<_>>().join(", ")
        };
        let definitions = list(&|(name, kind, _)| format!("{name} {kind}"));
        let (names, values) =
            (list(&|(name, _, _)| name.clone()), list(&|(_, _, value)| value.clone()));
        let by_chat = "PARTITION BY LIST (chat); CREATE TABLE app.messages_default PARTITION OF app.messages DEFAULT";
        let storage = if self.partitions { by_chat } else { "" };
        batch(
            client,
            &format!(
                "CREATE TABLE app.messages ({definitions}) {storage};
                 INSERT INTO app.messages ({names}) SELECT {values} FROM memory_turns AS t ORDER BY md5(t.id::text)"
            ),
        );
        for (_, edge_type, n) in &parents {
            let stored =
                format!("DELETE FROM app.left_over WHERE edge_type = '{edge_type}' AND n = {n}");
            batch(client, &stored);
        }
        batch(client, "ALTER TABLE app.left_over DROP n");
        let links: i64 =
            client.query_one("SELECT count(*) FROM app.left_over", &[]).unwrap().get(0);
        let needs_links = links > 0 || parents.is_empty();
        // An id that is a column must have its index before it is bound.
        if self.ids == Ids::Uuid {
            let with_chat = if self.partitions { ", chat" } else { "" };
            batch(client, &format!("CREATE UNIQUE INDEX ON app.messages (key{with_chat})"));
        }
        client
            .query_one(
                "SELECT graph_kernel.bind_tables('app.messages', to_regclass($1), $2::text::jsonb)",
                &[&needs_links.then_some("app.left_over"), &json!({ "turns": turns }).to_string()],
            )
            .unwrap_or_else(|error| panic!("{self:?}: {error}"));
        let hints = "SELECT hint FROM graph_check() WHERE check_name LIKE 'index%' AND NOT ok";
        let hints: Vec<String> =
            client.query(hints, &[]).unwrap().iter().map(|row| row.get(0)).collect();
        hints.iter().for_each(|hint| batch(client, hint));
        let wrong =
            "SELECT count(*) FROM graph_check() WHERE check_name ~ '^(index|raising)' AND NOT ok";
        assert_eq!(client.query_one(wrong, &[]).unwrap().get::<_, i64>(0), 0, "{self:?}");
    }

    /// The columns of the other values, and their mappings.
    fn add_values(&self, columns: &mut Vec<(String, &str, String)>, turns: &mut Value) {
        const NUMBERS: [&str; 5] = [
            "trajectory_depth",
            "trajectory_sibling_order",
            "trajectory_homogeneity",
            "trajectory_temporal",
            "trajectory_complexity",
        ];
        let mut add = |name: &str, kind, value: &str, key: &str, mapped: Value| {
            columns.push((name.to_owned(), kind, value.to_owned()));
            turns[key] = mapped;
        };
        let expression = |text: String| json!({ "expression": text });
        let author = "CASE lower(t.role) WHEN 'user' THEN 'Human' WHEN 'assistant' THEN 'ai' ELSE t.role END";
        if !self.expressions {
            add("author", "text", author, "role", "author".into());
            add("stage", "text", "t.trajectory_phase", "phase", "stage".into());
            add("weight", "float8", "t.salience_score", "salience", "weight".into());
            add("sent", "timestamptz", "t.created_at", "created_at", "sent".into());
            for (number, key) in NUMBERS.into_iter().enumerate() {
                let kind = if number < 2 { "bigint" } else { "real" };
                add(
                    &format!("number_{number}"),
                    kind,
                    &format!("t.{key}"),
                    key,
                    format!("number_{number}").into(),
                );
            }
            turns["roles"] = json!({ "human": "user", "ai": "assistant" });
            return;
        }
        add(
            "author",
            "text",
            author,
            "role",
            expression(
                "CASE author WHEN 'Human' THEN 'user' WHEN 'ai' THEN 'assistant' ELSE author END"
                    .to_owned(),
            ),
        );
        let meta = "jsonb_build_object('phase', t.trajectory_phase, 'salience', t.salience_score, \
                    'n', ARRAY[t.trajectory_depth, t.trajectory_sibling_order, t.trajectory_homogeneity, \
                               t.trajectory_temporal, t.trajectory_complexity]::text[])";
        add("meta", "jsonb", meta, "phase", expression("meta ->> 'phase'".to_owned()));
        turns["salience"] = expression("(meta ->> 'salience')::float8".to_owned());
        for (number, key) in NUMBERS.into_iter().enumerate() {
            let kind = if number < 2 { "bigint" } else { "real" };
            turns[key] = expression(format!("(meta -> 'n' ->> {number})::{kind}"));
        }
        columns.push(("sent".to_owned(), "numeric", "extract(epoch FROM t.created_at)".to_owned()));
        turns["created_at"] = expression("to_timestamp(sent::float8)".to_owned());
    }

    /// The columns for parents, each with the type of its edges and which of those of a turn it holds: at most three
    /// a type.
    fn parents(&self, client: &mut Client) -> Vec<(String, String, i64)> {
        let most = "SELECT edge_type, max(n) FROM app.left_over WHERE n > 0 GROUP BY 1 ORDER BY 1";
        let rows = client.query(most, &[]).unwrap();
        let columns = rows.iter().flat_map(|row| {
            let (edge_type, most): (String, i64) = (row.get(0), row.get(1));
            (1..=most.min(3)).map(move |n| (format!("{edge_type}_{n}"), edge_type.clone(), n))
        });
        columns.collect()
    }
}
