use pgrx::prelude::*;

use crate::pg::error::{OrRaise, SqlError};
use crate::pg::interrupts::check_interrupts;
use crate::pg::shortage::memory;
// `pg_extern` finds the columns of a result by the name `TableIterator`.
use crate::pg::sql::rows::MaterializedRows as TableIterator;
use crate::pg::sql::types::{JsonText, Policy, Text, expect_few_ids};
use crate::pg::text::TextArg;
use crate::service::summaries::summarise_each;

type SummaryRow = (Option<Text>, Option<JsonText>, Option<&'static str>, Option<Text>);

// Declared in sql/api.sql, in the private schema. An error that concerns every anchor is one row
// without an anchor: only PL/pgSQL can raise the SQLSTATEs that PostgREST turns into a status.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)] // the columns are the SQL signature
fn slice_summaries(
    anchors: Option<Array<'_, TextArg>>,
    policy: Option<Policy>,
) -> TableIterator<
    'static,
    (
        name!(anchor_turn_id, Option<Text>),
        name!(summary, Option<JsonText>),
        name!(error_code, Option<&'static str>),
        name!(error, Option<Text>),
    ),
> {
    let policy = Policy::required(policy).or_raise();
    let anchors: Vec<Option<String>> = anchors.map_or_else(Vec::new, |anchors| {
        expect_few_ids(anchors.len()).or_raise();
        memory::assure(size_of::<Option<String>>() * anchors.len());
        let owned = |anchor: TextArg<'_>| {
            memory::assure(anchor.len());
            check_interrupts();
            anchor.0.to_owned()
        };
        anchors.iter().map(|anchor| anchor.map(owned)).collect()
    });
    TableIterator::new(move |put| {
        let ended = summarise_each(&anchors, &policy, |anchor, summary| {
            put(match summary {
                Ok(summary) => (anchor.clone().map(Text), Some(JsonText(summary)), None, None),
                Err(error) => failed(anchor.clone(), &error),
            });
        });
        if let Err(error) = ended {
            put(failed(None, &error));
        }
    })
}

fn failed(anchor: Option<String>, error: &SqlError) -> SummaryRow {
    (anchor.map(Text), None, Some(error.word_name()), Some(Text(error.message().to_owned())))
}
