//! All that the catalog says of a database's objects, as text that is the same for the same objects.

use std::fmt::Write;

use postgres::Client;

use crate::cluster::Cluster;

/// What `pg_dump` writes for pg_upgrade: every object, also those of extensions, with owners, rights and comments.
pub fn schema(cluster: &Cluster, database: &str) -> String {
    let mut command = cluster.program("pg_dump", "postgres");
    let output =
        command.args(["--schema-only", "--binary-upgrade", "--dbname", database]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // OIDs and transactions differ from database to database, and the key of \restrict from dump to dump.
    let mut kept = String::new();
    for line in text.lines() {
        let own = [
            "binary_upgrade_set_next",
            "-- For binary upgrade",
            // Where a column was added to rows that are there.
            "-- set missing value",
            "binary_upgrade_set_missing_value",
            "SET relfrozenxid",
            "WHERE oid = '",
            "\\restrict",
            "\\unrestrict",
        ];
        if !line.is_empty() && !own.iter().any(|part| line.contains(part)) {
            writeln!(kept, "{}", without_oids(line)).unwrap();
        }
    }
    kept + &dependencies(&mut cluster.client_of("postgres", database))
}

/// The line that makes an extension names its configuration tables by OID: `dependencies` has their names.
fn without_oids(line: &str) -> String {
    if line.contains("binary_upgrade_create_empty_extension") || line.trim_start().starts_with("'{")
    {
        line.replace(|c: char| c.is_ascii_digit(), "")
    } else {
        line.to_owned()
    }
}

/// What `pg_dump` does not write: what depends on what, the configuration tables, rights at creation.
fn dependencies(client: &mut Client) -> String {
    let statement = "
        SELECT string_agg(line, E'\\n' ORDER BY line COLLATE \"C\") FROM (
            SELECT format('%s %s on %s', d.deptype,
                          pg_describe_object(d.classid, d.objid, d.objsubid),
                          pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid))
              FROM pg_depend AS d
             GROUP BY 1
            UNION ALL
            SELECT format('configuration %s where %s', c.tableoid::regclass, c.condition)
              FROM pg_extension AS x, unnest(x.extconfig, x.extcondition) AS c (tableoid, condition)
            UNION ALL
            SELECT format('initial %s %s', pg_describe_object(p.classoid, p.objoid, p.objsubid),
                          (SELECT string_agg(format('%s/%s:%s %s', a.grantor::regrole, a.grantee::regrole, \
                          a.privilege_type,
                                                    a.is_grantable), ' '
                                             ORDER BY a.grantee::regrole::text, a.privilege_type, \
                                             a.grantor::regrole::text)
                             FROM aclexplode(p.initprivs) AS a))
              FROM pg_init_privs AS p WHERE p.privtype = 'e'
            UNION ALL
            SELECT format('function %s: %s', p.oid::regprocedure, md5(pg_get_functiondef(p.oid)))
              FROM pg_proc AS p WHERE p.prokind IN ('f', 'p') AND p.oid >= 16384
        ) AS lines (line)
        -- Named by OID.
        WHERE line !~ 'pg_toast_|RI_ConstraintTrigger_'";
    client.query_one(statement, &[]).unwrap().get(0)
}

/// The first lines in which two texts differ.
pub fn difference(one: &str, other: &str) -> Option<String> {
    let mut pairs = one.lines().zip(other.lines());
    let first = pairs.find(|(one, other)| one != other);
    match first {
        Some((one, other)) => Some(format!("{one}\nand\n{other}")),
        None if one.len() == other.len() => None,
        None => Some(format!("{} bytes and {} bytes", one.len(), other.len())),
    }
}

/// That two databases have the same objects.
pub fn assert_same(one: &str, other: &str) {
    if let Some(difference) = difference(one, other) {
        panic!("the catalogs differ:\n{difference}");
    }
}
