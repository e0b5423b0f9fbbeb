//! Nobody changes what the extension has made.

use crate::graph::{connect_as, database, refusal};

#[test]
fn nobody_puts_anything_into_the_private_schema() {
    let database = database("private_schema");
    let mut admin = database.connect();
    admin.batch_execute(&format!("ALTER DATABASE {} OWNER TO trust_owner", database.name)).unwrap();
    for role in ["trust_owner", "trust_reader"] {
        let mut client = connect_as(&database, role);
        for statement in [
            "CREATE TABLE graph_kernel.binding_of_mine (x int)",
            "CREATE FUNCTION graph_kernel.describe_tables(regclass, regclass, jsonb) RETURNS jsonb
                 LANGUAGE sql AS 'SELECT $3'",
            "CREATE OPERATOR graph_kernel.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = uuid_eq)",
            "ALTER SCHEMA graph_kernel RENAME TO mine",
            "ALTER SCHEMA graph_kernel OWNER TO CURRENT_USER",
            "DROP SCHEMA graph_kernel CASCADE",
            "CREATE OR REPLACE FUNCTION public.graph_verify(json)
                 RETURNS TABLE (valid boolean, reason text, kid text, role text, rls boolean)
                 LANGUAGE sql AS $$ SELECT true, 'ok', '', '', false $$",
            "ALTER FUNCTION public.graph_verify(json) SET search_path = public",
            "ALTER FUNCTION public.graph_slice(uuid, slice_policy) SECURITY DEFINER",
        ] {
            assert_eq!(refusal(&mut client, statement), "42501", "{role}: {statement}");
        }
    }
}
