//! The program through PgBouncer, with one connection to the server that it gives to a client for a transaction: a
//! command leaves nothing there for the next client.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use postgres::{Client, Config, NoTls, SimpleQueryMessage};
use serde_json::json;

use super::{Answer, Folder, export, node};
use crate::cluster::{give_to_server, send_signal};
use crate::common::database::Database;
use crate::common::process::as_owner;
use crate::common::{lack, variable};

/// PgBouncer before the server under test.
pub(crate) struct Pooler {
    process: Child,
    folder: Folder,
    port: u16,
}

const PORT: u16 = 6432;

impl Pooler {
    /// With one connection for a transaction of a client's. None where it is not installed.
    pub(crate) fn start(name: &str) -> Option<Self> {
        Self::start_in(name, "transaction", PORT, "")
    }

    /// With these settings of each database.
    pub(crate) fn start_in(name: &str, mode: &str, port: u16, settings: &str) -> Option<Self> {
        let program = ["/usr/sbin/pgbouncer", "/usr/local/bin/pgbouncer"];
        let program = program.into_iter().find(|path| fs::exists(path).unwrap())?;
        let folder = Folder::new(name);
        let path = |file: &str| folder.0.join(file).display().to_string();
        folder.write("users", format!("\"{}\" \"\"\n", variable("PGUSER")));
        let configuration = folder.write(
            "pgbouncer.ini",
            format!(
                "[databases]\n* = host={} port={} {settings}\n[pgbouncer]\npool_mode = {mode}\n\
                 default_pool_size = 1\nlisten_port = {port}\nunix_socket_dir = {}\n\
                 auth_type = trust\nauth_file = {}\n",
                variable("PGHOST"),
                variable("PGPORT"),
                folder.0.display(),
                path("users"),
            ),
        );
        for file in [".", "users", "pgbouncer.ini"] {
            give_to_server(&folder.0.join(file));
        }
        let log = fs::File::create(folder.0.join("log")).unwrap();
        // It refuses to run as root.
        let mut command = Command::new(program);
        as_owner(&mut command);
        let process = command.arg(configuration).stdin(Stdio::null()).stderr(log).spawn().unwrap();
        let pooler = Pooler { process, folder, port };
        let start = Instant::now();
        while !pooler.folder.0.join(format!(".s.PGSQL.{port}")).exists() {
            let log = || fs::read_to_string(pooler.folder.0.join("log")).unwrap();
            assert!(start.elapsed() < Duration::from_secs(30), "no start:\n{}", log());
            thread::sleep(Duration::from_millis(10));
        }
        Some(pooler)
    }

    /// Another client of the pool.
    fn connect(&self, database: &Database) -> Client {
        Config::new()
            .host_path(&self.folder.0)
            .port(self.port)
            .user(&variable("PGUSER"))
            .dbname(&database.name)
            .connect(NoTls)
            .unwrap()
    }

    pub(crate) fn command(&self, database: &Database, arguments: &[&str]) -> Command {
        let mut command = super::graph_kernel(database);
        command.env("PGHOST", &self.folder.0).env("PGPORT", self.port.to_string()).args(arguments);
        command
    }

    /// What the session of the pool has set.
    pub(crate) fn settings(&self, database: &Database) -> Vec<Vec<Option<String>>> {
        rows(&mut self.connect(database), STATE)
    }

    fn ask(&self, database: &Database, arguments: &[&str]) -> Answer {
        Answer::of(self.command(database, arguments).output().unwrap())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        send_signal("KILL", self.process.id());
        self.process.wait().unwrap();
    }
}

/// Triggers that set for the session what they please: one with the row, one at the end of the transaction, and one
/// that the second defers once more.
pub(crate) const SETTING_TRIGGERS: &str = "
    CREATE FUNCTION public.sets() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM set_config('search_path', TG_NAME, false), set_config('row_security', 'off', false),
            set_config('graph_kernel.graph', 'other', false), set_config('plan_cache_mode', TG_NAME, false);
        RETURN NEW; END $$;
    CREATE FUNCTION public.defers() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        SET CONSTRAINTS ALL DEFERRED;
        INSERT INTO public.deferred DEFAULT VALUES;
        RETURN NEW; END $$;
    CREATE TABLE public.deferred (n integer);
    CREATE TRIGGER force_custom_plan BEFORE INSERT ON public.memory_turns
        FOR EACH ROW EXECUTE FUNCTION public.sets();
    CREATE CONSTRAINT TRIGGER defers AFTER INSERT ON public.memory_turns DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION public.defers();
    CREATE CONSTRAINT TRIGGER force_generic_plan AFTER INSERT ON public.deferred DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION public.sets()";

/// What a session has that another client of it would meet: which it is, its settings, its statements, its temporary
/// tables, its locks. The pooler itself sets `application_name`, each transaction begins with its own
/// `transaction_read_only`, and newer poolers keep statements under their own names.
const STATE: &str = "
    SELECT pg_backend_pid(), current_setting('search_path'), current_setting('plan_cache_mode'),
           coalesce(nullif(current_setting('graph_kernel.graph', true), ''), 'default'),
           current_setting('TimeZone'), current_setting('DateStyle'), current_setting('enable_nestloop'),
           current_setting('client_connection_check_interval'),
           (SELECT string_agg(name || ' = ' || setting, ', ' ORDER BY name) FROM pg_settings
             WHERE source = 'session' AND name NOT IN ('application_name', 'transaction_read_only')),
           (SELECT string_agg(name || ': ' || statement, ', ') FROM pg_prepared_statements
             WHERE name NOT LIKE 'PGBOUNCER@_%' ESCAPE '@'),
           (SELECT string_agg(relname, ', ') FROM pg_class WHERE relpersistence = 't'),
           (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
           (SELECT count(*) FROM pg_cursors), (SELECT count(*) FROM pg_listening_channels())";

fn rows(client: &mut Client, query: &str) -> Vec<Vec<Option<String>>> {
    let messages = client.simple_query(query).unwrap();
    messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|n| row.get(n).map(str::to_owned)).collect())
            }
            _ => None,
        })
        .collect()
}

#[test]
fn a_command_leaves_nothing_to_the_next_client_of_a_pooler() {
    let Some(pooler) = Pooler::start("pooler") else {
        return lack("a_command_leaves_nothing_to_the_next_client_of_a_pooler", "no PgBouncer");
    };
    let database = Database::with_tables("import_pooler");
    database
        .connect()
        .batch_execute("CREATE SCHEMA other; SELECT graph_kernel.create_tables('other');
             SELECT graph_kernel.bind_tables('other.memory_turns', 'other.memory_turn_edges', name => 'other')",
        )
        .unwrap();
    let file = export("chatgpt.json");
    // A session into which the extension's library was not loaded before.
    pooler.ask(&database, &["import", "chatgpt", &file, "--graph", "other"]).expect_success();
    let mut beside = pooler.connect(&database);
    let graph = rows(&mut beside, "SELECT graph_kernel.chosen_graph()");
    assert_eq!(graph, [[Some("default".to_owned())]]);
    let before = rows(&mut beside, STATE);
    let is_nothing = |n: usize| before[0][n].as_deref().is_none_or(|value| value == "0");
    assert!((8..14).all(is_nothing), "{before:?}");

    let sessions = pooler.ask(&database, &["sessions", "--graph", "other"]).expect_success();
    let session = "chatgpt::67c2f6e0-0000-8000-8000-000000000001";
    let line = sessions.out.lines().find(|line| line.ends_with(session)).unwrap();
    let anchor = line.split_whitespace().nth(2).unwrap().to_owned();
    let folder = Folder::new("pooled");
    let broken = folder.write("broken.json", "[{\"id\": \"c\", \"mapping\": {\"m\": ");
    let refused = folder.write(
        "refused.jsonl",
        "{\"id\":\"00000000-0000-4000-8000-000000000001\",\"salience_score\":1e300}\n",
    );
    let rows_file = export("rows.jsonl");
    let missing = "00000000-0000-4000-8000-00000000dead";
    let claude = export("claude.json");
    let commands: [(i32, &[&str]); 13] = [
        (0, &["import", "claude", &claude, "--graph", "other"]),
        (0, &["import", "claude", &claude, "--graph", "other", "--dry-run"]),
        (0, &["import", "jsonl", &rows_file, "--graph", "other"]),
        (1, &["import", "chatgpt", &broken, "--graph", "other"]),
        (1, &["import", "jsonl", &refused, "--graph", "other"]),
        (2, &["import", "chatgpt", &file, "--graph", "none"]),
        (0, &["sessions", "--graph", "other"]),
        (0, &["sessions", session, "--graph", "other"]),
        (0, &["slice", &anchor, "--graph", "other"]),
        (0, &["slice", &anchor, "--policy", "lineage", "--graph", "other"]),
        (0, &["prompt", &anchor, "--policy", "chat", "--graph", "other"]),
        (2, &["prompt", missing, "--graph", "other"]),
        (2, &["slice", &anchor, "--policy", "{", "--graph", "other"]),
    ];
    for (status, arguments) in commands {
        let answer = pooler.ask(&database, arguments);
        assert_eq!(answer.status, status, "{arguments:?}: {}", answer.err);
        // Its transaction has ended: the session is the same, not another one after an abrupt end.
        assert_eq!(rows(&mut beside, STATE), before, "after {arguments:?}");
    }

    // While many conversations are imported the other client has its turn between two of them.
    let count = "SELECT count(DISTINCT session_id) FROM public.memory_turns";
    let conversations: Vec<_> = (0..3_000)
        .map(|n| json!({"id": n.to_string(), "mapping": {"m": node(None, Some("text"))}}))
        .collect();
    let many = folder.write("many.json", serde_json::Value::from(conversations).to_string());
    let mut import = pooler
        .command(&database, &["import", "chatgpt", &many])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut between = 0;
    while import.try_wait().unwrap().is_none() {
        assert_eq!(rows(&mut beside, STATE), before);
        let stored = rows(&mut beside, count)[0][0].clone().unwrap();
        between += usize::from(!["0", "3000"].contains(&stored.as_str()));
    }
    let answer = Answer::of(import.wait_with_output().unwrap()).expect_success();
    assert_eq!(answer.count("turns: "), 3_000);
    assert!(between > 0, "never between two conversations");
    assert_eq!(rows(&mut beside, STATE), before);

    // One that is killed: the pooler may then take another session.
    let mut import =
        pooler.command(&database, &["import", "chatgpt", &many, "--account", "killed"]);
    let mut import = import.stdout(Stdio::null()).spawn().unwrap();
    let killed = "SELECT count(*) > 20 FROM public.memory_turns WHERE session_id LIKE '%:killed:%'";
    while rows(&mut beside, killed)[0][0].as_deref() != Some("t") {
        assert!(import.try_wait().unwrap().is_none(), "it ends before it is killed");
    }
    import.kill().unwrap();
    import.wait().unwrap();
    assert_eq!(rows(&mut beside, STATE)[0][1..], before[0][1..]);
}

/// What the other client has set for itself is not what the program reads.
#[test]
fn a_command_does_not_depend_on_what_another_client_has_left() {
    let Some(pooler) = Pooler::start("pooled_before") else {
        return lack("a_command_does_not_depend_on_what_another_client_has_left", "no PgBouncer");
    };
    let database = Database::with_tables("import_pooled_before");
    let mut beside = pooler.connect(&database);
    beside
        .batch_execute(
            "SET plan_cache_mode = force_generic_plan;
             SET search_path = pg_temp;
             CREATE TEMPORARY TABLE graph_kernel_import (n integer);
             CREATE TEMPORARY TABLE graph_kernel_links (n integer);
             INSERT INTO graph_kernel_links VALUES (1)",
        )
        .unwrap();
    let import = pooler.ask(&database, &["import", "chatgpt", &export("chatgpt.json")]);
    assert_eq!(import.expect_success().count("turns: "), 12);
    assert_eq!(rows(&mut beside, "SELECT n FROM graph_kernel_links"), [[Some("1".to_owned())]]);
    assert_eq!(pooler.ask(&database, &["sessions"]).expect_success().out.lines().count(), 2);
}

#[test]
fn what_triggers_set_ends_with_an_import() {
    let Some(pooler) = Pooler::start("pooled_triggers") else {
        return lack("what_triggers_set_ends_with_an_import", "no PgBouncer");
    };
    let database = Database::with_tables("import_pooled_triggers");
    database.connect().batch_execute(SETTING_TRIGGERS).unwrap();
    let before = pooler.settings(&database);
    let import = pooler.ask(&database, &["import", "chatgpt", &export("chatgpt.json")]);
    assert_eq!(import.expect_success().count("turns: "), 12);
    assert_eq!(pooler.settings(&database), before);
}

/// The second connection would wait for the first, which the pooler has given away.
#[test]
fn an_import_goes_on_while_its_second_connection_waits() {
    let name = "an_import_goes_on_while_its_second_connection_waits";
    let Some(pooler) = Pooler::start_in("pooler_session", "session", PORT + 1, "") else {
        return lack(name, "no PgBouncer");
    };
    let database = Database::with_tables("import_one_connection");
    let folder = Folder::new("one_connection");
    let conversations = super::small_conversations(0..600, "text");
    let file = folder.write("many.json", serde_json::Value::from(conversations).to_string());
    let start = Instant::now();
    let answer = pooler.ask(&database, &["import", "chatgpt", &file]).expect_success();
    assert_eq!(answer.count("turns: "), 600);
    // The pooler's own time for a client that waits is two minutes.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// What the pooler, or another client, has set for the session stays, whatever triggers set.
#[test]
fn what_others_have_set_outlives_an_import() {
    let name = "what_others_have_set_outlives_an_import";
    let settings = "connect_query='SET log_min_messages = log; SET ROLE gk_test_pooled; SET search_path = app; \
                    SET log_min_duration_statement = 4321'";
    let Some(pooler) = Pooler::start_in("pooled_role", "transaction", PORT + 2, settings) else {
        return lack(name, "no PgBouncer");
    };
    let database = Database::with_tables("import_pooled_role");
    database
        .connect()
        .batch_execute(&format!(
            "{SETTING_TRIGGERS};
             DROP ROLE IF EXISTS gk_test_pooled; CREATE ROLE gk_test_pooled;
             GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO gk_test_pooled;
             GRANT SET ON PARAMETER log_min_duration_statement TO gk_test_pooled;
             GRANT CREATE, TEMPORARY ON DATABASE \"{}\" TO gk_test_pooled",
            database.name
        ))
        .unwrap();
    let mut beside = pooler.connect(&database);
    beside
        .batch_execute("SET DateStyle = 'SQL, DMY'; SET search_path = 'it''s', '\\ here'")
        .unwrap();
    let query = "SELECT current_user, current_setting('search_path'), current_setting('log_min_duration_statement'), \
                        current_setting('DateStyle'), current_setting('log_min_messages')";
    let before = rows(&mut beside, query);
    assert_eq!(before[0][0].as_deref(), Some("gk_test_pooled"));
    let state = rows(&mut beside, STATE);
    let import = pooler.ask(&database, &["import", "chatgpt", &export("chatgpt.json")]);
    assert_eq!(import.expect_success().count("turns: "), 12);
    assert_eq!(rows(&mut beside, query), before);
    assert_eq!(rows(&mut beside, STATE), state);
    drop(beside);
    drop(pooler);
    database
        .connect()
        .batch_execute("DROP OWNED BY gk_test_pooled; DROP ROLE gk_test_pooled")
        .unwrap();
}

/// What the session had may be gone by the end of the transaction.
#[test]
fn a_session_that_cannot_be_set_back_is_ended() {
    let name = "a_session_that_cannot_be_set_back_is_ended";
    let settings = "connect_query='SET default_text_search_config = \"public.mine\"'";
    let database = Database::with_tables("import_pooled_gone");
    database
        .connect()
        .batch_execute(
            "CREATE TEXT SEARCH CONFIGURATION public.mine (COPY = simple);
             CREATE FUNCTION public.drops() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                 DROP TEXT SEARCH CONFIGURATION IF EXISTS public.mine; RETURN NULL; END $$;
             CREATE TRIGGER drops AFTER INSERT ON public.memory_turns EXECUTE FUNCTION public.drops()",
        )
        .unwrap();
    let Some(pooler) = Pooler::start_in("pooled_gone", "transaction", PORT + 3, settings) else {
        return lack(name, "no PgBouncer");
    };
    let session = "SELECT pg_backend_pid(), current_setting('default_text_search_config')";
    let before = rows(&mut pooler.connect(&database), session);
    assert_eq!(before[0][1].as_deref(), Some("public.mine"));
    // All of it is one batch.
    let import = pooler.ask(&database, &["import", "chatgpt", &export("chatgpt.json")]);
    assert_eq!(import.expect_success().count("turns: "), 12);
    assert_ne!(rows(&mut pooler.connect(&database), session)[0][0], before[0][0]);
}
