//! What handlers ask of the database: queries in a transaction, whose answers are JSON.

use super::Service;
use super::errors::Refusal;
use crate::database::{Access, Database, Fault, Parameters, QueryError, value};

/// The longest answer to a request, in bytes.
const MAX_ANSWER_BYTES: usize = 32 << 20;

/// A transaction. One that reads sees one snapshot.
pub(crate) struct Transaction<'a> {
    database: &'a mut Database,
    schema: &'a str,
}

impl Service {
    /// Does this in a read-only transaction.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.run(Access::Read, work).await
    }

    /// Does this in a transaction that may write.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.run(Access::Write, work).await
    }

    async fn run<T: Send + 'static>(
        &self,
        access: Access,
        work: impl FnOnce(&mut Transaction) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let done = self.pool.run(move |lease| {
            lease
                .transaction(access, |database, schema| work(&mut Transaction { database, schema }))
        });
        done.await?
    }
}

impl Transaction<'_> {
    /// The one value of a query, as text; none where it is NULL or there is no row. `{schema}` stands for the
    /// extension's schema, and nothing that a client has sent stands in the query.
    pub(crate) fn text(
        &mut self,
        query: &str,
        parameters: Parameters,
    ) -> Result<Option<String>, Refusal> {
        let query = query.replace("{schema}", self.schema);
        // Of an answer that is too long only its length is sent.
        let query = format!(
            "WITH answer (text) AS MATERIALIZED ({query}) SELECT a.is_long, CASE WHEN NOT a.is_long THEN a.text END \
             FROM (SELECT text, coalesce(octet_length(text) > {MAX_ANSWER_BYTES}, false) AS is_long FROM answer) AS a"
        );
        let rows = self.database.rows(&query, parameters).map_err(Fault::from)?;
        let Some(row) = rows.first() else { return Ok(None) };
        if value(row, 0).map_err(Fault::from)? {
            return Err(Fault::from(QueryError::TooLong).into());
        }
        value(row, 1).map_err(|failure| Fault::from(failure).into())
    }

    /// The rows of a query as a JSON array of objects, one for each row, in their order.
    pub(crate) fn rows_as_json(
        &mut self,
        query: &str,
        parameters: Parameters,
    ) -> Result<String, Refusal> {
        let query =
            format!("SELECT coalesce(json_agg(to_json(r)), '[]')::text FROM ({query}) AS r");
        Ok(self.text(&query, parameters)?.unwrap_or_default())
    }
}
