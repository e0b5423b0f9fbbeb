//! The counts of words that searches weigh them by.

use pgrx::PgSqlErrorCode;

use super::reader::GraphReader;
use crate::pg::catalog::names::literal_of;
use crate::pg::catalog::privileges::is_owned;
use crate::pg::catalog::relation::row_security_applies_to;
use crate::pg::error::{SqlError, Word};
use crate::pg::private::word_counts;

/// Counts the words of all turns of the graph that is bound under this name.
///
/// # Errors
/// 42703 where it has no words; 42501 where the role is not the table's owner, or row security hides rows from it.
pub fn refresh(binding: &str) -> Result<(), SqlError> {
    let reader = GraphReader::of(binding)?;
    let graph = reader.graph();
    let table = graph.turns_table();
    let refused = |message: String| {
        SqlError::new(PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE, message)
            .word(Word::GraphTables)
            .hint("Let the table's owner call it.")
    };
    if !is_owned(table) {
        return Err(refused(format!("must be owner of table {}", graph.turns_name())));
    }
    let column = graph.words()?.ok_or_else(|| graph.no_words())?;
    if row_security_applies_to(table) {
        let message =
            format!("row security hides rows of table {} from its owner", graph.turns_name());
        let (table, name) = (graph.turns_name(), literal_of(binding));
        let commands = format!(
            "BEGIN ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY; CALL graph_kernel.refresh_words({name}); \
             ALTER TABLE {table} FORCE ROW LEVEL SECURITY; END"
        );
        return Err(refused(message)
            .hint(format!("Let the owner lift it for the call: DO {};", literal_of(&commands))));
    }
    let counts = reader.searcher().count_words(&column)?;
    reader.check_settled()?;
    word_counts::store(table, column.number, counts.turns, counts.lengths, &counts.with);
    Ok(())
}
