//! Calls in backends that may take little more memory than they have.

use postgres::Client;

use super::database::Database;
use super::process::{backend_pid, limit_address_space};

/// Loads the library and fills caches. The server's compiler of expressions is a library of its own, and large.
const WARM: &str = "SET jit = off; SELECT graph_kernel_version(); SELECT count(*) FROM graph_overlap('{}'); \
                    SELECT reason FROM graph_verify('{}')";

/// What calls gave.
#[derive(Debug, Default)]
pub struct Shortage {
    pub answers: u32,
    pub errors: u32,
}

impl Shortage {
    /// Calls a statement with each of these numbers of MiB of address space left, in backends of their own. It gives
    /// what it gives with all memory, or an error that there is none; the backend stays, and answers when there is
    /// memory again.
    pub fn call(&mut self, database: &Database, statement: &str, left: &[i64]) {
        let mut client = database.connect();
        client.batch_execute("SET jit = off").unwrap();
        let expected = answer(&mut client, statement);
        for mib in left {
            let mut client = database.connect();
            client.batch_execute(WARM).unwrap();
            let pid = backend_pid(&mut client);
            limit_address_space(pid, Some(mib * 1024));
            let given = answer(&mut client, statement);
            limit_address_space(pid, None);
            let place = format!("{mib} MiB for {statement}");
            assert_eq!(backend_pid(&mut client), pid, "{place}");
            if given == expected {
                self.answers += 1;
                continue;
            }
            let error = given.expect_err(&place);
            assert!(error.starts_with("53"), "{error}: {place}");
            self.errors += 1;
            assert_eq!(answer(&mut client, statement), expected, "after {place}");
        }
    }
}

/// The first value of a statement's first row, or SQLSTATE and DETAIL of its error.
pub fn answer(client: &mut Client, statement: &str) -> Result<String, String> {
    let answer = client.query_one(statement, &[]).map(|row| row.get(0));
    answer.map_err(|error| {
        let Some(server) = error.as_db_error() else { panic!("{error:?}: {statement}") };
        assert_eq!(server.severity(), "ERROR", "{error:?}: {statement}");
        format!("{} {}", server.code().code(), server.detail().unwrap_or_default())
    })
}
