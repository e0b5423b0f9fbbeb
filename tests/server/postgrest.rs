//! What PostgREST sends, sent by a test: the transaction, the settings, the role and the statement of
//! a request, as its versions 12 and 13 make them. HTTP itself is not spoken here.

use std::path::{Path, PathBuf};

use crate::common::database::Database;
use crate::common::process::{program, run};
use crate::common::{Server, shared_roles};
use postgres::{Client, Transaction};
use serde_json::{Value, json};

const ANNA: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const BEN: &str = "bbbbbbbb-0000-4000-8000-000000000002";
/// Of Anna, the first of three; of Ben; of no user.
const ANNAS_FIRST: &str = "00000000-0000-4000-8000-000000000001";
const BENS: &str = "00000000-0000-4000-8000-000000000004";
const MISSING: &str = "00000000-0000-4000-8000-0000000000ff";

/// A database whose roles and rights are those of sql/roles/supabase.sql.
struct Api {
    database: Database,
    /// What `db-schemas` names.
    schema: &'static str,
}

/// Who asks: a role, and the user in the token.
#[derive(Clone, Copy)]
struct Asker {
    role: &'static str,
    user: Option<&'static str>,
}

const ANON: Asker = Asker { role: "anon", user: None };
const AS_ANNA: Asker = Asker { role: "authenticated", user: Some(ANNA) };
const AS_BEN: Asker = Asker { role: "authenticated", user: Some(BEN) };
const SERVICE: Asker = Asker { role: "service_role", user: None };

/// How arguments reach a function.
enum Call<'a> {
    /// POST: the body is the one unnamed argument.
    Body(&'a Value),
    /// POST: the body's keys are the arguments.
    Keys(&'a Value),
    /// GET: the query's parameters are the arguments.
    Query(&'a [(&'a str, &'a str)]),
}

/// An answer as a client gets it.
#[derive(Debug, PartialEq)]
struct Answer {
    status: u16,
    body: Value,
}

impl Answer {
    /// The stable word of an error.
    fn word(&self) -> &str {
        self.body["details"].as_str().unwrap_or_default()
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/roles").join(name)
}

impl Api {
    fn start(name: &str) -> Self {
        let database = Database::empty(&format!("postgrest_{name}"));
        let mut client = database.connect();
        client
            .batch_execute(
                "CREATE SCHEMA kernel;
                 CREATE EXTENSION graph_kernel WITH SCHEMA kernel;
                 SELECT graph_kernel.create_tables()",
            )
            .unwrap();
        let api = Api { database, schema: "kernel" };
        api.run_script("supabase.sql");
        client
            .batch_execute(&format!(
                "INSERT INTO memory_turns (id, owner_id, trajectory_phase, salience_score, content_text)
                 SELECT ('00000000-0000-4000-8000-00000000000' || n)::uuid,
                        CASE WHEN n < 4 THEN '{ANNA}' ELSE '{BEN}' END::uuid,
                        'planning', 0.5, 'turn ' || n
                 FROM generate_series(1, 5) AS n;
                 INSERT INTO memory_turn_edges
                 SELECT ('00000000-0000-4000-8000-00000000000' || n)::uuid,
                        ('00000000-0000-4000-8000-00000000000' || n + 1)::uuid, 'reply'
                 FROM generate_series(1, 4) AS n"
            ))
            .unwrap();
        api
    }

    fn run_script(&self, name: &str) {
        let _roles = shared_roles();
        run(program("psql")
            .args(["-X", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname", &self.database.name])
            .arg("--file")
            .arg(script(name)));
    }

    fn authenticator(&self) -> Client {
        let server = Server { user: "authenticator".to_owned(), ..self.database.server.clone() };
        server.connect(&self.database.name)
    }

    /// The answer to a request on a connection of its own.
    fn ask(&self, asker: Asker, function: &str, call: Call) -> Answer {
        self.ask_through(&mut self.authenticator(), asker, function, call)
    }

    /// The answer to a request on a connection of the pool.
    fn ask_through(&self, pooled: &mut Client, asker: Asker, function: &str, call: Call) -> Answer {
        let routine = self.routine(function);
        // GET always reads; POST writes where the function is volatile.
        let read_only = matches!(call, Call::Query(_)) || !routine.volatile;
        let mut transaction = pooled.build_transaction().read_only(read_only).start().unwrap();
        impersonate(&mut transaction, asker, self.schema);
        match self.call(&mut transaction, function, &routine, &call) {
            Ok(body) => {
                transaction.commit().unwrap();
                Answer { status: 200, body: serde_json::from_str(&body).unwrap() }
            }
            Err(error) => {
                let error = error.as_db_error().unwrap_or_else(|| panic!("{function}: {error}"));
                let body = json!({
                    "code": error.code().code(), "message": error.message(),
                    "details": error.detail(), "hint": error.hint(),
                });
                Answer { status: status(error.code().code(), asker), body }
            }
        }
    }

    /// Runs the statement of a call: the body of the answer.
    fn call(
        &self,
        transaction: &mut Transaction,
        function: &str,
        routine: &Routine,
        call: &Call,
    ) -> Result<String, postgres::Error> {
        let name = format!(r#""{}"."{function}""#, self.schema);
        let (before, arguments) = match call {
            Call::Body(body) => {
                assert!(routine.takes_body, "{function} has no single unnamed json argument");
                (String::new(), format!("{}::json", literal(&body.to_string())))
            }
            Call::Keys(body) => {
                let given = routine.arguments.iter().filter(|(name, _)| body.get(name).is_some());
                let columns: Vec<String> =
                    given.clone().map(|(name, kind)| format!(r#""{name}" {kind}"#)).collect();
                let arguments: Vec<String> =
                    given.map(|(name, _)| format!(r#""{name}" := pgrst_body."{name}""#)).collect();
                let before = format!(
                    "(SELECT \"_\".* FROM json_to_record({}::json) AS _({})) pgrst_body, LATERAL ",
                    literal(&body.to_string()),
                    columns.join(", ")
                );
                (before, arguments.join(", "))
            }
            Call::Query(parameters) => {
                let arguments: Vec<String> = parameters
                    .iter()
                    .map(|(name, value)| {
                        let mut known = routine.arguments.iter();
                        let (_, kind) = known.find(|(known, _)| known == name).unwrap();
                        format!(r#""{name}" := {}::{kind}"#, literal(value))
                    })
                    .collect();
                (String::new(), arguments.join(", "))
            }
        };
        let (select, body) = if routine.returns_rows {
            ("pgrst_call.*", "coalesce(json_agg(_postgrest_t), '[]')")
        } else {
            ("pgrst_call.pgrst_scalar", "coalesce(json_agg(_postgrest_t.pgrst_scalar)->0, 'null')")
        };
        let from = if routine.returns_rows {
            format!("{name}({arguments}) pgrst_call")
        } else {
            format!("(SELECT {name}({arguments}) pgrst_scalar) pgrst_call")
        };
        let statement = format!(
            "WITH pgrst_source AS (SELECT {select} FROM {before}{from})
             SELECT '' AS total_result_set, pg_catalog.count(_postgrest_t) AS page_total,
                    ({body})::text AS body,
                    nullif(current_setting('response.headers', true), '') AS response_headers,
                    nullif(current_setting('response.status', true), '') AS response_status
             FROM (SELECT \"{function}\".* FROM pgrst_source AS \"{function}\") _postgrest_t"
        );
        Ok(transaction.query_one(&statement, &[])?.get("body"))
    }

    /// What PostgREST's schema cache has of a function.
    fn routine(&self, function: &str) -> Routine {
        let mut client = self.database.connect();
        // So that types have their schemas.
        client.batch_execute("SET search_path = ''").unwrap();
        let row = client
            .query_one(
                "SELECT provolatile = 'v', proretset,
                        proargnames IS NULL AND proargtypes::text = 'json'::regtype::oid::text,
                        coalesce(proargnames[:pronargs], '{}'),
                        ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes::oid[]) AS t)
                 FROM pg_proc WHERE proname = $1 AND pronamespace = $2::text::regnamespace",
                &[&function, &self.schema],
            )
            .unwrap_or_else(|error| panic!("{}.{function}: {error}", self.schema));
        let names: Vec<String> = row.get(3);
        let types: Vec<String> = row.get(4);
        Routine {
            volatile: row.get(0),
            returns_rows: row.get(1),
            takes_body: row.get(2),
            arguments: names.into_iter().zip(types).collect(),
        }
    }
}

/// A value of unknown type, as PostgREST's parameters are.
fn literal(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

struct Routine {
    volatile: bool,
    returns_rows: bool,
    takes_body: bool,
    arguments: Vec<(String, String)>,
}

/// The settings of a request's transaction.
fn impersonate(transaction: &mut Transaction, asker: Asker, schema: &str) {
    let mut claims = json!({"role": asker.role});
    if let Some(user) = asker.user {
        claims["sub"] = user.into();
    }
    let search_path = format!(r#""{schema}", "public""#);
    transaction
        .query_one(
            "SELECT set_config('search_path', $1, true), set_config('role', $2, true),
                    set_config('request.jwt.claims', $3, true),
                    set_config('request.method', 'POST', true),
                    set_config('request.path', '/rpc', true),
                    set_config('request.headers', '{}', true),
                    set_config('request.cookies', '{}', true)",
            &[&search_path, &asker.role, &claims.to_string()],
        )
        .unwrap();
}

/// The status that an SQLSTATE is answered with.
fn status(code: &str, asker: Asker) -> u16 {
    if let Some(status) = code.strip_prefix("PT") {
        return status.parse().unwrap();
    }
    match code {
        "42501" if asker.role == "anon" => 401,
        "42501" => 403,
        "23503" | "23505" => 409,
        "25006" => 405,
        "42883" | "42P01" => 404,
        _ if ["53"].iter().any(|class| code.starts_with(class)) => 503,
        _ if ["25", "40", "54", "55", "57", "XX"].iter().any(|class| code.starts_with(class)) => {
            500
        }
        _ => 400,
    }
}

fn anchored(anchor: &str) -> Value {
    json!({"anchor_turn_id": anchor})
}

fn turn_ids(answer: &Answer) -> Vec<&str> {
    let ids = answer.body["slice"]["turn_ids"].as_array().unwrap_or_else(|| panic!("{answer:?}"));
    ids.iter().map(|id| id.as_str().unwrap()).collect()
}

#[test]
fn the_scripts_use_no_function_or_table_that_a_plain_role_has_put_into_their_way() {
    let api = Api::start("planted");
    let mut admin = api.database.connect();
    admin
        .batch_execute(
            "CREATE FUNCTION public.graph_policy(name text) RETURNS kernel.slice_policy
                 LANGUAGE sql AS $$ SELECT 'broad'::kernel.slice_policy $$;
             CREATE FUNCTION public.graph_slice(anchor uuid, policy kernel.slice_policy) RETURNS json
                 LANGUAGE sql AS $$ SELECT '{}'::json $$;
             CREATE FUNCTION public.graph_api_slice(body json) RETURNS json
                 LANGUAGE sql AS $$ SELECT '{}'::json $$",
        )
        .unwrap();
    api.run_script("supabase.sql");
    api.run_script("mediated.sql");
    let uses = "SELECT count(*) FROM pg_depend AS d JOIN pg_proc AS p ON p.oid = d.refobjid
                WHERE d.refclassid = 'pg_proc'::regclass AND p.pronamespace = 'public'::regnamespace
                  AND p.proname LIKE 'graph%'";
    assert_eq!(admin.query_one(uses, &[]).unwrap().get::<_, i64>(0), 0);
}

/// Objects of a plain role in the schema that is first in its turn for names: they raise where a superuser runs them.
const PLANTED_OVERLOADS: &str = "
    GRANT CREATE ON SCHEMA public TO script_planter;
    SET ROLE script_planter;
    CREATE FUNCTION public.caught() RETURNS boolean LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'code of % ran as %', 'script_planter', current_user; END $$;
    CREATE FUNCTION public.format(text, regnamespace) RETURNS text LANGUAGE sql AS 'SELECT public.caught()::text';
    CREATE FUNCTION public.format(text, name, text) RETURNS text LANGUAGE sql AS 'SELECT public.caught()::text';
    CREATE FUNCTION public.format(text, regnamespace, name) RETURNS text LANGUAGE sql AS 'SELECT public.caught()::text';
    CREATE FUNCTION public.format(text, text) RETURNS text LANGUAGE sql AS 'SELECT public.caught()::text';
    CREATE FUNCTION public.set_config(text, text, boolean) RETURNS text LANGUAGE sql AS 'SELECT public.caught()::text';
    CREATE FUNCTION public.has_schema_privilege(name, regnamespace, text) RETURNS boolean LANGUAGE sql AS 'SELECT \
    public.caught()';
    CREATE FUNCTION public.graph_search_slice(real[], uuid, public.slice_policy, integer)
        RETURNS TABLE (rank integer, turn_id uuid, similarity real, role text, content text, provenance jsonb)
        LANGUAGE sql AS 'SELECT NULL::integer, NULL::uuid, NULL::real, NULL::text, NULL::text, NULL::jsonb';
    CREATE DOMAIN public.record AS integer CHECK (public.caught());
    CREATE FUNCTION public.equal(name, text) RETURNS boolean LANGUAGE sql AS 'SELECT public.caught()';
    CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = text, FUNCTION = public.equal);
    CREATE FUNCTION public.differ(oid, regtype) RETURNS boolean LANGUAGE sql AS 'SELECT public.caught()';
    CREATE OPERATOR public.<> (LEFTARG = oid, RIGHTARG = regtype, FUNCTION = public.differ);
    RESET ROLE;";

#[test]
fn the_scripts_run_nothing_that_a_plain_role_has_planted_in_the_extensions_schema() {
    // The roles of the cluster are there.
    let _roles_exist = Api::start("overloads_roles");
    let database = Database::empty("postgrest_overloads");
    let mut admin = database.connect();
    admin
        .batch_execute(
            "DO $$ BEGIN CREATE ROLE script_planter; EXCEPTION WHEN duplicate_object THEN END $$;
             CREATE EXTENSION graph_kernel WITH SCHEMA public; SELECT graph_kernel.create_tables()",
        )
        .unwrap();
    admin.batch_execute(PLANTED_OVERLOADS).unwrap();
    let api = Api { database, schema: "api" };
    for path in ["\"$user\", public", "public, pg_catalog", "pg_catalog, public"] {
        let set = format!("ALTER DATABASE {} SET search_path = {path}", api.database.name);
        admin.batch_execute(&set).unwrap();
        api.run_script("supabase.sql");
        api.run_script("mediated.sql");
    }
    let uses = "SELECT count(*) FROM pg_depend AS d JOIN pg_proc AS p ON p.oid = d.refobjid
                WHERE d.refclassid = 'pg_proc'::regclass AND d.classid = 'pg_proc'::regclass
                  AND p.proowner = 'script_planter'::regrole
                  AND d.objid IN (SELECT f.oid FROM pg_proc AS f WHERE f.pronamespace = 'api'::regnamespace)";
    assert_eq!(admin.query_one(uses, &[]).unwrap().get::<_, i64>(0), 0);
}

#[test]
fn mediated_access_keeps_no_schema_no_function_and_no_role_of_others() {
    let api = Api::start("squatted");
    let mut admin = api.database.connect();
    let roles = "DO $$ BEGIN CREATE ROLE api_squatter; EXCEPTION WHEN duplicate_object THEN END $$";
    admin.batch_execute(roles).unwrap();
    let planted = "CREATE FUNCTION api.slice_content(anchor uuid, policy text DEFAULT 'x')
                       RETURNS TABLE (turn_id uuid, role text, content text) LANGUAGE sql AS
                       $$ SELECT NULL::uuid, '', '' $$;
                   ALTER FUNCTION api.slice_content(uuid, text) OWNER TO api_squatter";
    for (before, message, after) in [
        (
            "CREATE SCHEMA api AUTHORIZATION api_squatter".to_owned(),
            "schema api belongs to api_squatter",
            "DROP SCHEMA api",
        ),
        (
            "CREATE SCHEMA api; GRANT CREATE ON SCHEMA api TO api_squatter, PUBLIC".to_owned(),
            "others may create functions in schema api: PUBLIC, api_squatter",
            "DROP SCHEMA api",
        ),
        (
            format!("CREATE SCHEMA api AUTHORIZATION api_squatter; {planted}"),
            "schema api belongs to api_squatter",
            "DROP SCHEMA api CASCADE",
        ),
        (
            format!("CREATE SCHEMA api; {planted}"),
            "function api.slice_content(uuid,text) belongs to api_squatter",
            "DROP SCHEMA api CASCADE",
        ),
    ] {
        admin.batch_execute(&before).unwrap();
        let errors = refusal(&api.database, &[], "mediated.sql");
        assert!(errors.contains(message), "{errors}");
        let changed = "SELECT EXISTS (SELECT FROM pg_proc WHERE pronamespace = 'api'::regnamespace
                                        AND proowner <> 'api_squatter'::regrole)
                           OR EXISTS (SELECT FROM pg_class AS c CROSS JOIN aclexplode(c.relacl) AS a
                                      WHERE a.grantee = to_regrole('graph_reader'))";
        assert!(!admin.query_one(changed, &[]).unwrap().get::<_, bool>(0), "{message}");
        admin.batch_execute(after).unwrap();
    }
    // Roles are the cluster's: other tests see no change of them before it is committed.
    for (change, message) in [
        ("GRANT graph_reader TO api_squatter", "which reads the tables, has members: api_squatter"),
        ("ALTER ROLE graph_reader LOGIN", "role graph_reader may log in, or passes row security"),
        (
            "CREATE FUNCTION public.leak() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';
             ALTER FUNCTION public.leak() OWNER TO graph_reader",
            "which reads the tables, owns already: function public.leak()",
        ),
        (
            "CREATE SCHEMA api;
             CREATE FUNCTION api.graph_slice(text) RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';
             ALTER FUNCTION api.graph_slice(text) OWNER TO graph_reader",
            "which reads the tables, owns already: function api.graph_slice(text)",
        ),
    ] {
        let change = format!(
            "--command=BEGIN; DO $$ BEGIN IF to_regrole('graph_reader') IS NULL THEN
                 CREATE ROLE graph_reader; END IF; END $$; {change}"
        );
        let errors = refusal(&api.database, &[&change], "mediated.sql");
        assert!(errors.contains(message), "{errors}");
    }
    api.run_script("mediated.sql");
    api.run_script("mediated.sql");
}

/// The errors of a script that is refused, by a psql that goes on after each error and by one that stops.
fn refusal(database: &Database, arguments: &[&str], name: &str) -> String {
    let _roles = shared_roles();
    let run = |settings: &[&str]| {
        let output = program("psql")
            .args(["-X", "--quiet", "--dbname", &database.name])
            .args(settings)
            .args(arguments)
            .arg("--file")
            .arg(script(name))
            .output()
            .unwrap();
        (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // What a command changes first is for a transaction that is never committed.
    if !arguments.iter().any(|argument| argument.starts_with("--command")) {
        let (_, errors) = run(&["--set=ON_ERROR_ROLLBACK=on"]);
        assert_eq!(errors.matches("ERROR:").count(), 1, "{errors}");
    }
    let (status, errors) = run(&["--set=ON_ERROR_STOP=1"]);
    assert!(!status.success(), "{errors}");
    errors
}

#[test]
fn a_role_that_cannot_grant_the_functions_gets_an_error_and_changes_nothing() {
    let _roles_exist = Api::start("grants");
    let database = Database::empty("postgrest_refused");
    let mut client = database.connect();
    client
        .batch_execute(
            "CREATE SCHEMA extensions;
             CREATE EXTENSION graph_kernel WITH SCHEMA extensions;
             SELECT graph_kernel.create_tables();
             CREATE ROLE tables_owner LOGIN;
             GRANT CREATE ON SCHEMA public TO tables_owner;
             GRANT USAGE ON SCHEMA extensions TO tables_owner;
             ALTER TABLE memory_turns OWNER TO tables_owner;
             ALTER TABLE memory_turn_edges OWNER TO tables_owner",
        )
        .unwrap();
    let errors = refusal(&database, &["--username=tables_owner"], "supabase.sql");
    assert!(errors.contains("cannot be given the functions in schema extensions"), "{errors}");
    assert!(errors.contains("GRANT USAGE ON SCHEMA extensions TO anon"), "{errors}");
    let changed = "SELECT relrowsecurity OR has_table_privilege('authenticated', oid, 'SELECT')
                   FROM pg_class WHERE oid = 'memory_turns'::regclass";
    assert!(!client.query_one(changed, &[]).unwrap().get::<_, bool>(0));
    client.batch_execute("DROP OWNED BY tables_owner CASCADE; DROP ROLE tables_owner").unwrap();
}

#[test]
fn mediated_access_needs_a_superuser_and_the_roles_of_supabase_and_else_changes_nothing() {
    let api = Api::start("mediated_refused");
    let mut client = api.database.connect();
    client
        .batch_execute(
            "CREATE ROLE mediated_owner LOGIN CREATEROLE;
             GRANT USAGE ON SCHEMA kernel TO mediated_owner;
             ALTER TABLE memory_turns OWNER TO mediated_owner;
             ALTER TABLE memory_turn_edges OWNER TO mediated_owner",
        )
        .unwrap();
    let errors = refusal(&api.database, &["--username=mediated_owner"], "mediated.sql");
    assert!(errors.contains("mediated.sql needs a superuser"), "{errors}");
    // Roles are the cluster's: other tests see no change of them before it is committed.
    for role in ["anon", "authenticated"] {
        let rename = format!("--command=BEGIN; ALTER ROLE {role} RENAME TO {role}_renamed");
        let errors = refusal(&api.database, &[&rename], "mediated.sql");
        assert!(errors.contains("there are no roles anon and authenticated"), "{errors}");
        assert!(errors.contains("Run sql/roles/supabase.sql first."), "{errors}");
    }
    let open = "--command=BEGIN; ALTER TABLE memory_turn_edges DISABLE ROW LEVEL SECURITY";
    let errors = refusal(&api.database, &[open], "mediated.sql");
    assert!(errors.contains("row security is off on public.memory_turns"), "{errors}");
    let changed = "SELECT to_regnamespace('api') IS NOT NULL OR to_regrole('anon') IS NULL";
    assert!(!client.query_one(changed, &[]).unwrap().get::<_, bool>(0));
    client.batch_execute("DROP OWNED BY mediated_owner CASCADE; DROP ROLE mediated_owner").unwrap();
}

/// Supabase's default privileges give all three roles everything, as GRANT ALL of others may.
#[test]
fn no_role_of_the_scripts_may_plant_a_trigger() {
    let api = Api::start("planted");
    let mut client = api.database.connect();
    client
        .batch_execute(
            "GRANT ALL ON memory_turns, memory_turn_edges TO anon, authenticated, service_role",
        )
        .unwrap();
    api.run_script("supabase.sql");
    api.run_script("mediated.sql");
    let faults = "SELECT check_name, detail FROM kernel.graph_check() WHERE NOT ok";
    let faults: Vec<String> =
        client.query(faults, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn each_role_may_call_what_the_guide_says() {
    let api = Api::start("roles");
    let slice = anchored(ANNAS_FIRST);
    let batch = json!({"anchor_turn_ids": [ANNAS_FIRST]});
    let policy = json!({"policy": {"max_nodes": 9}, "name": "nine"});
    let token = json!({
        "admissibility_token": "", "slice_id": "", "anchor_turn_id": ANNAS_FIRST, "policy_id": "",
        "policy_params_hash": "", "graph_snapshot_hash": "", "schema_version": "",
    });
    let expected = [
        ("graph_api_health", Call::Query(&[]), [200, 200, 200]),
        ("graph_api_policies", Call::Query(&[]), [200, 200, 200]),
        ("graph_api_verify_token", Call::Body(&token), [200, 200, 200]),
        ("graph_api_slice", Call::Body(&slice), [401, 200, 200]),
        ("graph_api_slice_batch", Call::Body(&batch), [401, 200, 200]),
        ("graph_slice", Call::Query(&[("anchor", ANNAS_FIRST)]), [401, 200, 200]),
        ("graph_slice_turns", Call::Query(&[("anchor", ANNAS_FIRST)]), [401, 200, 200]),
        ("graph_api_register_policy", Call::Body(&policy), [401, 403, 200]),
    ];
    for (function, call, statuses) in &expected {
        for (asker, status) in [ANON, AS_ANNA, SERVICE].into_iter().zip(statuses) {
            let call = match call {
                Call::Body(body) => Call::Body(body),
                Call::Keys(body) => Call::Keys(body),
                Call::Query(parameters) => Call::Query(parameters),
            };
            let answer = api.ask(asker, function, call);
            assert_eq!(answer.status, *status, "{} {function}: {answer:?}", asker.role);
        }
    }
    // It is the role of the request that registered, not the one that is connected.
    let mut client = api.database.connect();
    let by = "SELECT registered_by FROM kernel.graph_policies WHERE name = 'nine'";
    assert_eq!(client.query_one(by, &[]).unwrap().get::<_, String>(0), "service_role");
}

#[test]
fn a_request_sees_the_turns_of_its_user() {
    let api = Api::start("users");
    // One connection for all, as in a pool: what it has planned for one user serves the next.
    let mut pooled = api.authenticator();
    for _ in 0..2 {
        for (asker, anchor, turns) in
            [(AS_ANNA, ANNAS_FIRST, 3), (AS_BEN, BENS, 2), (SERVICE, BENS, 5)]
        {
            let body = anchored(anchor);
            let call = Call::Body(&body);
            let answer = api.ask_through(&mut pooled, asker, "graph_api_slice", call);
            assert_eq!(turn_ids(&answer).len(), turns, "{answer:?}");
        }
    }
    // What is hidden looks like what is not there.
    let hidden = api.ask(AS_ANNA, "graph_api_slice", Call::Body(&anchored(BENS)));
    let missing = api.ask(AS_ANNA, "graph_api_slice", Call::Body(&anchored(MISSING)));
    assert_eq!((hidden.status, hidden.word()), (404, "SLICE_FAILED"));
    assert_eq!((missing.status, missing.word()), (404, "SLICE_FAILED"));
    // The export says that row security applied, and to whom.
    let export = api.ask(AS_ANNA, "graph_slice", Call::Query(&[("anchor", ANNAS_FIRST)]));
    assert_eq!(export.body["attestation"]["role"], "authenticated");
    assert_eq!(export.body["attestation"]["rls"], true);
    let export = api.ask(SERVICE, "graph_slice", Call::Query(&[("anchor", ANNAS_FIRST)]));
    assert_eq!(export.body["attestation"]["role"], "service_role");
    assert_eq!(export.body["attestation"]["rls"], false);
}

#[test]
fn arguments_arrive_by_name_from_the_query_and_from_the_body() {
    let api = Api::start("arguments");
    let by_query = |policy| {
        api.ask(SERVICE, "graph_slice_turns", Call::Query(&[("anchor", BENS), ("policy", policy)]))
    };
    let by_keys = |policy: Value| {
        let body = json!({"anchor": BENS, "policy": policy});
        api.ask(SERVICE, "graph_slice_turns", Call::Keys(&body))
    };
    let two = json!({"max_nodes": 2});
    let answers =
        [by_query("{\"max_nodes\": 2}"), by_keys(two.clone()), by_keys(two.to_string().into())];
    for answer in &answers {
        assert_eq!(answer.body.as_array().unwrap().len(), 2, "{answer:?}");
        assert_eq!(answer, &answers[0]);
    }
    assert_eq!(by_query("focused"), by_keys("focused".into()));
    assert_eq!(by_keys(json!({"max_nodes": 0})).status, 400);
    // The default applies where the policy is left out.
    let all = api.ask(SERVICE, "graph_slice_turns", Call::Keys(&json!({"anchor": BENS})));
    assert_eq!(all.body.as_array().unwrap().len(), 5);
}

#[test]
fn an_export_arrives_byte_for_byte_and_verifies() {
    let api = Api::start("bytes");
    let mut pooled = api.authenticator();
    let mut transaction = pooled.build_transaction().read_only(true).start().unwrap();
    impersonate(&mut transaction, SERVICE, api.schema);
    let routine = api.routine("graph_slice");
    let call = Call::Query(&[("anchor", ANNAS_FIRST)]);
    let body = api.call(&mut transaction, "graph_slice", &routine, &call).unwrap();
    let statement =
        "SELECT graph_slice($1)::text, (SELECT reason FROM graph_verify($2::text::json))";
    let anchor: kernel::graph::turn::TurnId = ANNAS_FIRST.parse().unwrap();
    let row = transaction.query_one(statement, &[&anchor, &body]).unwrap();
    assert_eq!(row.get::<_, &str>(0), body);
    assert_eq!(row.get::<_, &str>(1), "ok");
}

#[test]
fn errors_have_a_status_and_a_word() {
    let api = Api::start("errors");
    let nope = json!({"policy_id": "slice_policy_v1", "params_hash": "nope"});
    let many = vec![ANNAS_FIRST; 101];
    let named = |policy: Value, name: &str| json!({"policy": policy, "name": name});
    let slice = "graph_api_slice";
    let batch = "graph_api_slice_batch";
    let register = "graph_api_register_policy";
    let expected = [
        (slice, anchored("zzz"), 400, "INVALID_TURN_ID"),
        (slice, json!({"bogus": 1}), 400, "INVALID_REQUEST"),
        (slice, json!([]), 400, "INVALID_REQUEST"),
        (slice, anchored(MISSING), 404, "SLICE_FAILED"),
        (slice, json!({"anchor_turn_id": BENS, "policy_ref": nope}), 404, "POLICY_NOT_FOUND"),
        (batch, json!({"anchor_turn_ids": many}), 400, "BATCH_TOO_LARGE"),
        (batch, json!({"anchor_turn_ids": [], "policy_ref": nope}), 404, "POLICY_NOT_FOUND"),
        (register, json!({"policy": {"max_nodes": 0}}), 400, "INVALID_POLICY"),
        (register, named(json!({"max_nodes": 1}), "broad"), 409, "POLICY_NAME_TAKEN"),
        ("graph_api_verify_token", json!({}), 400, "INVALID_REQUEST"),
    ];
    // One connection: a failed request leaves it as it was.
    let mut pooled = api.authenticator();
    for (function, body, status, word) in &expected {
        let answer = api.ask_through(&mut pooled, SERVICE, function, Call::Body(body));
        assert_eq!((answer.status, answer.word()), (*status, *word), "{function} {body}");
    }
    let answer = api.ask_through(&mut pooled, SERVICE, slice, Call::Body(&anchored(BENS)));
    assert_eq!(answer.status, 200);
}

#[test]
fn a_request_of_more_than_a_mebibyte_is_refused() {
    let api = Api::start("size");
    let long = "x".repeat(1 << 20);
    let numbers = vec![1.5; 300_000];
    let requests = [
        ("graph_api_slice", anchored(&long)),
        ("graph_api_slice_batch", json!({"anchor_turn_ids": [long]})),
        ("graph_api_register_policy", json!({"policy": {"max_nodes": 1}, "name": long})),
        ("graph_api_verify_token", json!({"admissibility_token": long})),
        ("graph_api_search_slice", json!({"anchor_turn_id": BENS, "query_embedding": numbers})),
        ("graph_api_search_global", json!({"query_embedding": numbers})),
    ];
    let mut pooled = api.authenticator();
    for (function, body) in &requests {
        let answer = api.ask_through(&mut pooled, SERVICE, function, Call::Body(body));
        assert_eq!((answer.status, answer.word()), (413, "REQUEST_TOO_LARGE"), "{function}");
    }
    // One that just fits is looked at: in the shortest text of it, {"anchor_turn_id":"…"}.
    let fitting = anchored(&long[..(1 << 20) - 21]);
    let answer = api.ask_through(&mut pooled, SERVICE, "graph_api_slice", Call::Body(&fitting));
    assert_eq!((answer.status, answer.word()), (400, "INVALID_TURN_ID"));
}

#[test]
fn a_grant_on_all_functions_does_not_let_register() {
    let api = Api::start("grants");
    api.database
        .connect()
        .batch_execute("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA kernel TO authenticated")
        .unwrap();
    let body = json!({"policy": {"max_nodes": 5}});
    let answer = api.ask(AS_ANNA, "graph_api_register_policy", Call::Body(&body));
    assert_eq!(answer.status, 403, "{answer:?}");
    let answer = api.ask(AS_ANNA, "graph_policy_register", Call::Keys(&body));
    assert_eq!(answer.status, 403, "{answer:?}");
}

#[test]
fn registering_takes_a_request_that_writes() {
    let api = Api::start("writing");
    let answer =
        api.ask(SERVICE, "graph_policy_register", Call::Query(&[("policy", "{\"max_nodes\": 3}")]));
    assert_eq!(answer.status, 405);
    let body = json!({"policy": {"max_nodes": 3}});
    let answer = api.ask(SERVICE, "graph_policy_register", Call::Keys(&body));
    assert_eq!(answer.body[0]["params_hash"], "72097b33b768458d");
}

#[test]
fn unusable_keys_and_missing_tables_are_503() {
    let api = Api::start("unavailable");
    let token = json!({
        "admissibility_token": "x", "slice_id": "x", "anchor_turn_id": ANNAS_FIRST, "policy_id": "x",
        "policy_params_hash": "x", "graph_snapshot_hash": "x", "schema_version": "x",
    });
    let mut pooled = api.authenticator();
    // A session that sets it before the library is loaded has no keys.
    pooled.batch_execute("SET graph_kernel.root_key_file = '/nowhere'").unwrap();
    let slice = anchored(ANNAS_FIRST);
    for (function, call) in [
        ("graph_api_slice", Call::Body(&slice)),
        ("graph_api_health", Call::Query(&[])),
        ("graph_api_verify_token", Call::Body(&token)),
    ] {
        let answer = api.ask_through(&mut pooled, SERVICE, function, call);
        assert_eq!((answer.status, answer.word()), (503, "SERVICE_UNAVAILABLE"), "{function}");
    }
    api.database.connect().batch_execute("ALTER TABLE memory_turns RENAME TO elsewhere").unwrap();
    let answer = api.ask(SERVICE, "graph_api_health", Call::Query(&[]));
    assert_eq!((answer.status, answer.word()), (503, "SERVICE_UNAVAILABLE"));
}

#[test]
fn mediated_callers_get_slices_and_nothing_else() {
    let mut api = Api::start("mediated");
    api.run_script("mediated.sql");
    // Both scripts may be run again.
    api.run_script("supabase.sql");
    api.run_script("mediated.sql");
    api.schema = "api";
    let export = api.ask(AS_ANNA, "graph_slice", Call::Query(&[("anchor", ANNAS_FIRST)]));
    assert_eq!(export.status, 200, "{export:?}");
    assert_eq!(export.body["turns"].as_array().unwrap().len(), 3);
    // The reader signs, and row security held for it too.
    assert_eq!(export.body["attestation"]["role"], "graph_reader");
    assert_eq!(export.body["attestation"]["rls"], true);
    let slice = api.ask(AS_ANNA, "graph_api_slice", Call::Body(&anchored(ANNAS_FIRST)));
    assert_eq!(slice.body["slice"]["slice_id"], export.body["slice_id"]);
    let batch = json!({"anchor_turn_ids": [ANNAS_FIRST, BENS]});
    let batch = api.ask(AS_ANNA, "graph_api_slice_batch", Call::Body(&batch));
    assert_eq!(batch.body["success_count"], 1);
    let content = api.ask(AS_ANNA, "slice_content", Call::Query(&[("anchor", ANNAS_FIRST)]));
    let texts: Vec<&str> = content
        .body
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["content"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["turn 1", "turn 2", "turn 3"]);

    // Errors keep their status, and a policy must be registered.
    let answer = api.ask(AS_ANNA, "graph_api_slice", Call::Body(&anchored(BENS)));
    assert_eq!((answer.status, answer.word()), (404, "SLICE_FAILED"));
    let own = [("anchor", ANNAS_FIRST), ("policy", "{\"max_nodes\": 1}")];
    let answer = api.ask(AS_ANNA, "graph_slice", Call::Query(&own));
    assert_eq!((answer.status, answer.word()), (400, "POLICY_NOT_FOUND"));
    let answer = api.ask(ANON, "graph_slice", Call::Query(&[("anchor", ANNAS_FIRST)]));
    assert_eq!(answer.status, 401);

    // Nothing else: no table, no slice of one's own, no reader.
    let mut pooled = api.authenticator();
    for statement in [
        "SELECT id FROM public.memory_turns",
        "SELECT * FROM public.memory_turn_edges",
        "INSERT INTO public.memory_turns (id) VALUES (gen_random_uuid())",
        "SELECT kernel.graph_slice('00000000-0000-4000-8000-000000000001')",
        "SET ROLE graph_reader",
    ] {
        let mut transaction = pooled.transaction().unwrap();
        impersonate(&mut transaction, AS_ANNA, "api");
        let error = transaction.batch_execute(statement).expect_err(statement);
        assert_eq!(error.code().unwrap().code(), "42501", "{statement}");
    }
    // Nor do objects of the caller's own stand in the way.
    let mut transaction = pooled.transaction().unwrap();
    impersonate(&mut transaction, AS_ANNA, "api");
    transaction
        .batch_execute(
            "CREATE TEMP TABLE memory_turns (id uuid, content_text text);
             CREATE FUNCTION pg_temp.graph_slice(uuid, kernel.slice_policy) RETURNS json
                 LANGUAGE sql AS $$ SELECT '{}'::json $$;
             SET LOCAL search_path = pg_temp, api",
        )
        .unwrap();
    let statement =
        "SELECT api.graph_slice($1) ->> 'slice_id', (SELECT count(*) FROM api.slice_content($1))";
    let anchor: kernel::graph::turn::TurnId = ANNAS_FIRST.parse().unwrap();
    let row = transaction.query_one(statement, &[&anchor]).unwrap();
    assert_eq!(row.get::<_, &str>(0), export.body["slice_id"]);
    assert_eq!(row.get::<_, i64>(1), 3);
}
