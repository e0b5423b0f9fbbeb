//! The worked cases of `ft.recorder.chunking.v1`.

use graph_kernel_tests::recorder::{ChunkCase, ExpectedChunk, chunk_cases, chunks_of};
use kernel::chunking::event::{JsonEvent, RecorderEvent, events_of_json};
use kernel::chunking::policy::ChunkingPolicy;

fn chunked(case: &ChunkCase) -> Vec<ExpectedChunk> {
    let policy: ChunkingPolicy = case.policy.to_string().parse().unwrap();
    let text = serde_json::to_string(&case.events).unwrap();
    let events = events_of_json(&text, &|| {});
    let events = events.unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let events: Vec<RecorderEvent<'_>> = events.iter().map(JsonEvent::event).collect();
    chunks_of(&policy, &events).into_iter().map(ExpectedChunk::from).collect()
}

#[test]
fn worked_cases_are_chunked_as_the_contract_asks() {
    let cases = chunk_cases();
    assert_eq!(cases.len(), 58);
    let mut wrong = Vec::new();
    for case in &cases {
        let chunks = chunked(case);
        if chunks == case.chunks {
            continue;
        }
        let at = chunks.iter().zip(&case.chunks).position(|(made, wanted)| made != wanted);
        let at = at.unwrap_or(chunks.len().min(case.chunks.len()));
        wrong.push(format!(
            "{} ({} of {} chunks) at {at}:\n  made {:?}\nwanted {:?}",
            case.name,
            chunks.len(),
            case.chunks.len(),
            chunks.get(at),
            case.chunks.get(at)
        ));
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}
