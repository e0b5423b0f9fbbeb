//! A thousand prompts of stored conversations, in each form of a provider: tests/clients/providers.py has the
//! providers' own packages check the same.

use graph_kernel_tests::providers::check_prompt;
use serde_json::Value;

use crate::common::database::Database;

const CONVERSATIONS: &str = include_str!("../clients/providers.sql");

#[test]
fn a_thousand_prompts_can_be_sent() {
    let database = Database::empty("providers");
    let mut client = database.connect();
    client.batch_execute("CREATE EXTENSION graph_kernel").unwrap();
    client.batch_execute(CONVERSATIONS).unwrap();
    let statement = "SELECT p.n, f.format, graph_messages_json(r.record, f.format)::text, r.tokens, p.budget
        FROM (SELECT n, anchor, policy, (policy::jsonb ->> 'max_tokens')::int AS budget FROM providers.prompts) AS p,
             LATERAL (SELECT graph_messages_record(p.anchor, p.policy::slice_policy) AS record OFFSET 0) AS t,
             LATERAL (SELECT t.record, sum((m ->> 'tokens')::int) FILTER (WHERE m ->> 'part' <> 'anchor') AS tokens
                      FROM json_array_elements(t.record -> 'messages') AS m OFFSET 0) AS r,
             unnest(ARRAY['openai', 'responses', 'anthropic', 'plain']) AS f(format)";
    client.batch_execute("SET graph_kernel.graph = 'providers'").unwrap();
    let rows = client.query(statement, &[]).unwrap();
    assert_eq!(rows.len(), 4000);
    let (mut calls, mut recalled, mut open) = (0, 0, 0);
    for row in rows {
        let (n, format): (i32, &str) = (row.get(0), row.get(1));
        let text: &str = row.get(2);
        let prompt: Value = serde_json::from_str(text).unwrap();
        assert_eq!(check_prompt(format, &prompt), Ok(()), "{n} {format} {prompt:#}");
        // Turns beside the anchor's group take no more than what is left of the budget.
        let (tokens, budget): (Option<i64>, i32) = (row.get(3), row.get(4));
        assert!(tokens.unwrap_or(0) <= i64::from(budget), "{n} {tokens:?}");
        calls += usize::from(text.contains("tool_calls"));
        recalled += usize::from(text.contains("[Earlier messages"));
        open += usize::from(text.contains("[No result of this call"));
    }
    assert!(calls > 300 && recalled > 300 && open > 300, "{calls} {recalled} {open}");
}
