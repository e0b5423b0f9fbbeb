//! Forged records of prompts: what the kernel did not record is refused, and with the reason; so are proofs that are of
//! something else.

use std::cell::Cell;

use base64ct::{Base64, Encoding};
use kernel::export::document::Export;
use kernel::export::parse::MAX_EXPORT_BYTES;
use kernel::graph::turn::{Role, TurnId};
use kernel::policy::SlicePolicy;
use kernel::prompt::record::{self, Hash, Record, RecordedMessage};
use kernel::slicing::slice::Part;
use kernel::trust::attestation::Status;
use kernel::trust::keys::{Secret, SigningKeys};
use kernel::verification::proof::{KeySource, ProofRefusal, proof, verify_proof};
use kernel::verification::verify::{Check, verify_document, verify_export};
use serde_json::{Value, json};

use crate::claim::{Claim, id, ring, selected, turn};
use crate::document::{Document, Json};
use crate::proofs::{changed, envelope_of, key_of};
use crate::rewritten::{JavaScript, Jsonb, Wild, Writer};

/// A record with everything that is signed with it.
#[derive(Clone)]
pub struct Prompt {
    pub claim: Claim,
    pub context: Option<Hash>,
    pub messages: Vec<RecordedMessage>,
}

/// The policy of [`Prompt::genuine`].
fn policy() -> SlicePolicy {
    format!(r#"{{"preset":"chat","pins":["{}"],"seeds":{{"{}":0.5}}}}"#, id(1), id(4))
        .parse()
        .unwrap()
}

type Entries = Vec<(String, Json)>;

fn hash(number: u8) -> Option<Hash> {
    Some([number; 32])
}

impl Prompt {
    /// The five turns of [`Claim::genuine`]: one is pinned, one of the line, one recalled, one beside the anchor. One
    /// has no time, one neither text nor payload.
    pub fn genuine() -> Self {
        let mut claim = Claim { policy: policy(), ..Claim::genuine() };
        claim.turn(4).created_at = 0;
        let messages = [
            (1, Part::Pinned),
            (2, Part::Line),
            (4, Part::Recalled),
            (3, Part::Anchor),
            (5, Part::Anchor),
        ];
        let messages = messages.map(|(number, part)| {
            let turn = claim.turn(number).clone();
            RecordedMessage {
                turn_id: turn.id,
                part,
                role: turn.role,
                created_at: (number != 4).then_some(turn.created_at * 1_000_000 + 250_000),
                tokens: 10 * number as u32,
                content: if number == 5 { None } else { hash(number as u8) },
                payload: if number % 2 == 0 { hash(0x10 + number as u8) } else { None },
            }
        });
        Prompt { claim, context: hash(0xcc), messages: messages.to_vec() }
    }

    /// All turns are of one part but the anchor, and in one order.
    fn by_v1() -> Self {
        let mut prompt = Self::genuine();
        prompt.claim.policy = SlicePolicy::default();
        prompt.messages.sort_by_key(|message| message.turn_id);
        for message in &mut prompt.messages {
            message.part = if message.turn_id == id(3) { Part::Anchor } else { Part::Line };
        }
        prompt
    }

    /// The message of the turn of this number.
    fn message(&mut self, number: u64) -> &mut RecordedMessage {
        self.messages.iter_mut().find(|message| message.turn_id == id(number)).unwrap()
    }

    /// The record that these keys sign.
    fn signed_with(&self, keys: &SigningKeys) -> Document {
        let Claim { slice, policy, circumstances } = &self.claim;
        let mut export = Export::new(slice, policy, &|| {});
        export.attest(policy, keys, &keys.v2, circumstances.clone());
        let attestation = export.attestation.as_ref().unwrap();
        let record = Record::new(self.context, self.messages.clone(), attestation, keys, &|| {});
        Document::parse(&record.to_json(&export.to_json(), &|| {}))
    }

    /// The kernel's record.
    pub fn signed(&self) -> Document {
        self.signed_with(&ring().active())
    }

    /// The best forgery without the key: the digest is computed anew; the slice and the token are those of a genuine
    /// record.
    pub fn with_token_of(&self, genuine: &Document) -> Document {
        let mut forged = self.signed();
        for path in ["slice", "token"] {
            forged.set(path, genuine.get(path));
        }
        forged
    }
}

fn genuine() -> Document {
    Prompt::genuine().signed()
}

pub fn reason(record: &Document) -> &'static str {
    reason_of(&record.text())
}

fn reason_of(text: &str) -> &'static str {
    verify_document(text, &ring()).reason()
}

/// A record of this prompt is refused for this reason, also where the kernel has signed it.
fn refused(prompt: &Prompt, expected: &str, what: &str) {
    assert_eq!(reason(&prompt.signed()), expected, "{what}");
    assert_eq!(reason(&prompt.with_token_of(&genuine())), expected, "{what}");
}

#[test]
fn genuine_records_verify() {
    for prompt in
        [Prompt::genuine(), Prompt::by_v1(), Prompt { context: None, ..Prompt::genuine() }]
    {
        let record = prompt.signed();
        let verdict = verify_document(&record.text(), &ring());
        assert_eq!(verdict.reason(), "ok", "{:#?}", verdict.checks);
        // A forgery that changes nothing verifies, or others would be refused for another reason.
        assert_eq!(prompt.with_token_of(&record).text(), record.text());
        // The slice that it holds verifies by itself.
        let slice = Document(record.get("slice"));
        assert_eq!(verify_export(&slice.text(), &ring()).reason(), "ok");
        assert_eq!(reason(&slice), "ok");
        assert_eq!(verify_export(&record.text(), &ring()).reason(), "malformed");
    }
}

#[test]
fn no_byte_of_a_record_can_be_changed() {
    let text = genuine().text();
    let canonical =
        |text: &str| record::Document::parse(text, &|| {}).unwrap().canonical_text(&|| {});
    assert_eq!(canonical(&text), text);
    for forged in changed(&text) {
        if reason_of(&forged) == "ok" {
            // Another spelling of the same number.
            assert_eq!(canonical(&forged), text, "{forged}");
        }
    }
}

#[test]
fn a_key_twice_too_many_or_missing_is_found_at_every_level() {
    let record = genuine();
    for path in record.objects() {
        for position in 0..record.clone().entries(&path).len() {
            let (key, value) = record.clone().entries(&path)[position].clone();
            let edited = |edit: &dyn Fn(&mut Entries)| {
                let mut forged = record.clone();
                edit(forged.entries(&path));
                if path.last().is_some_and(|key| key == "seeds") {
                    // Its keys are ids.
                    assert_ne!(reason(&forged), "ok", "{key}");
                } else {
                    assert_eq!(reason(&forged), "malformed", "{path:?} {key}");
                }
            };
            edited(&|entries| drop(entries.remove(position)));
            for again in [value, Json::Null] {
                edited(&|entries| entries.push((key.clone(), again.clone())));
                edited(&|entries| entries.insert(0, (key.clone(), again.clone())));
                // So that the number of keys is right.
                edited(&|entries| {
                    let other = (position + 1) % entries.len();
                    entries[other] =
                        (key.clone(), if other == position { Json::Null } else { again.clone() });
                });
            }
            for other in ["x", "", "N", "content ", "anchor_turn_id"] {
                if other != key {
                    edited(&|entries| entries[position].0 = other.to_owned());
                }
                edited(&|entries| entries.push((other.to_owned(), Json::Null)));
            }
        }
    }
    let twice = record.text().replacen(r#""context":"#, r#""\u0063ontext":null,"context":"#, 1);
    assert_eq!(reason_of(&twice), "malformed");
}

#[test]
fn a_value_of_another_kind_is_found_everywhere() {
    let others = [
        Json::Null,
        Json::Bool(true),
        Json::Integer(0),
        Json::Integer(-1),
        Json::Integer(1),
        Json::Float(0.5),
        Json::Float(1e300),
        Json::String(String::new()),
        Json::String("0".repeat(64)),
        Json::Array(Vec::new()),
        Json::Array(vec![Json::Null]),
        Json::Object(Vec::new()),
    ];
    let record = genuine();
    for path in
        record.values().into_iter().filter(|path| path.first().is_none_or(|key| key != "slice"))
    {
        for other in &others {
            let mut forged = record.clone();
            let value = forged.at(&path);
            if value != other {
                *value = other.clone();
                assert_ne!(reason(&forged), "ok", "{path:?} as {other:?}");
            }
        }
    }
    for (path, written) in [("v", "2"), ("v", "0"), ("v", "4294967297"), ("v", "\"1\"")] {
        let text = record.text().replacen("\"v\":1", &format!("\"{path}\":{written}"), 1);
        assert_eq!(reason_of(&text), "malformed", "{written}");
    }
}

#[test]
fn no_other_order_verifies() {
    let prompt = Prompt::genuine();
    let mut orders = 0;
    permutations(&mut prompt.messages.clone(), 0, &mut |messages| {
        orders += 1;
        if messages != prompt.messages {
            refused(&Prompt { messages: messages.to_vec(), ..prompt.clone() }, "other_order", "");
        }
    });
    assert_eq!(orders, 120);
    // The digest of the genuine order is that of no other.
    let mut forged = genuine();
    forged.array("messages").swap(0, 1);
    let verdict = verify_document(&forged.text(), &ring());
    let failed: Vec<Check> =
        verdict.checks.iter().filter(|check| !check.ok).map(|check| check.check).collect();
    assert_eq!(failed, [Check::MessageOrder, Check::PromptDigest]);
}

fn permutations<T: Clone>(items: &mut Vec<T>, from: usize, visit: &mut impl FnMut(&[T])) {
    if from == items.len() {
        return visit(items);
    }
    for other in from..items.len() {
        items.swap(from, other);
        permutations(items, from + 1, visit);
        items.swap(from, other);
    }
}

#[test]
fn each_turn_is_a_message_once() {
    for place in 0..5 {
        let mut prompt = Prompt::genuine();
        let message = prompt.messages.remove(place);
        refused(&prompt, "other_turns", "left out");
        for again in 0..5 {
            let mut doubled = Prompt::genuine();
            doubled.messages.insert(again, message.clone());
            refused(&doubled, "other_turns", "doubled");
            if again != place {
                let mut replaced = Prompt::genuine();
                replaced.messages[again] = message.clone();
                refused(&replaced, "other_turns", "in place of another");
            }
        }
        let mut foreign = Prompt::genuine();
        foreign.messages[place].turn_id = id(6);
        refused(&foreign, "other_turns", "of no turn");
    }
    refused(&Prompt { messages: Vec::new(), ..Prompt::genuine() }, "other_turns", "none");
}

#[test]
fn a_message_cannot_be_moved_to_another_part() {
    for number in 1..=5 {
        for part in Part::ALL.iter().copied() {
            let mut prompt = Prompt::genuine();
            if std::mem::replace(&mut prompt.message(number).part, part) == part {
                continue;
            }
            let mut forged = prompt.with_token_of(&genuine());
            if number == 3 || forged.get("digest") == genuine().get("digest") {
                refused(&prompt, "other_turns", "the anchor is one");
            }
            // Where the policy has that part, and the order stays, only the token tells.
            let found = reason(&forged);
            let possible = ["other_turns", "other_order", "prompt_token_mismatch"];
            assert!(possible.contains(&found), "{number} {part:?}: {found}");
            forged.set("digest", genuine().get("digest"));
            assert_ne!(reason(&forged), "ok", "{number} {part:?}");
        }
    }
}

#[test]
fn the_policy_says_which_parts_there_are() {
    let by = |policy: String, number, part| {
        let mut prompt = Prompt::genuine();
        prompt.claim.policy = policy.parse().unwrap();
        for message in &mut prompt.messages {
            let is_anchor = message.turn_id == id(3);
            message.part = if is_anchor { Part::Anchor } else { Part::Line };
        }
        prompt.messages.sort_by_key(|message| (message.part == Part::Anchor, message.created_at));
        prompt.message(number).part = part;
        reason(&prompt.signed())
    };
    let with = |keys: &str| format!(r#"{{"preset":"chat",{keys}}}"#);
    let (pins, seeds) =
        (format!(r#""pins":["{}"]"#, id(9)), format!(r#""seeds":{{"{}":0.5}}"#, id(9)));
    assert_eq!(by(with(&pins), 1, Part::Line), "ok");
    for (key, part) in [(&pins, Part::Pinned), (&seeds, Part::Recalled)] {
        assert_ne!(by(with(key), 1, part), "other_turns");
        assert_eq!(by("\"chat\"".to_owned(), 1, part), "other_turns");
        assert_eq!(by("\"default\"".to_owned(), 1, part), "other_turns");
    }
    assert_ne!(by(with(r#""keep_tool_results":true"#), 5, Part::Anchor), "other_turns");
    assert_eq!(by(with(r#""keep_tool_results":false"#), 5, Part::Anchor), "other_turns");
    assert_eq!(by(with(&format!(r#""max_radius":0,{seeds}"#)), 1, Part::Line), "other_turns");
}

#[test]
fn messages_are_those_of_their_own_slice() {
    // Another slice of the same turns, and one of others, each signed.
    let mut edited = Prompt::genuine();
    edited.claim.turn(2).salience = 0.75;
    let mut without = Prompt::genuine();
    without.claim.slice.turns.remove(1);
    without.claim.slice.edges.retain(|edge| edge.parent != id(2) && edge.child != id(2));
    without.messages.remove(1);
    let mut fewer_edges = Prompt::genuine();
    fewer_edges.claim.slice.edges.remove(2);
    let mut of_another_role = Prompt::genuine();
    of_another_role.claim.circumstances.role = "bob".to_owned();
    for (other, expected) in [
        (edited, "prompt_digest_mismatch"),
        (without, "other_turns"),
        (fewer_edges, "prompt_digest_mismatch"),
        // Who has taken the slice is no part of its digest, and is signed beside it.
        (of_another_role, "prompt_token_mismatch"),
    ] {
        let other = other.signed();
        assert_eq!(reason(&other), "ok");
        let mut forged = genuine();
        forged.set("slice", other.get("slice"));
        assert_eq!(reason(&forged), expected);
        // The other way round.
        let mut forged = other.clone();
        forged.set("slice", genuine().get("slice"));
        assert_eq!(reason(&forged), expected);
        // With a digest of them that is right.
        let mut forged = Prompt::genuine().with_token_of(&other);
        if expected != "other_turns" {
            let read = record::Document::parse(&forged.text(), &|| {}).unwrap();
            let attestation = read.export.attestation.unwrap();
            let digest = read.record.unwrap().computed_digest(&attestation, &|| {});
            forged
                .set("digest", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
            forged.set("token", genuine().get("token"));
            assert_eq!(reason(&forged), "prompt_token_mismatch");
        }
    }
}

#[test]
fn hashes_tokens_and_context_of_others_are_found() {
    let edits: [&dyn Fn(&mut Prompt); 9] = [
        &|prompt| prompt.message(1).content = hash(2),
        &|prompt| prompt.message(1).content = None,
        &|prompt| prompt.message(5).content = hash(5),
        &|prompt| prompt.message(2).payload = None,
        &|prompt| prompt.message(3).payload = hash(3),
        &|prompt| {
            let message = prompt.message(2);
            std::mem::swap(&mut message.content, &mut message.payload);
        },
        &|prompt| prompt.message(3).tokens += 1,
        &|prompt| prompt.context = None,
        &|prompt| prompt.context = hash(0xcd),
    ];
    for (place, edit) in edits.iter().enumerate() {
        let mut prompt = Prompt::genuine();
        edit(&mut prompt);
        assert_eq!(reason(&prompt.signed()), "ok", "{place}");
        let mut forged = prompt.with_token_of(&genuine());
        assert_eq!(reason(&forged), "prompt_token_mismatch", "{place}");
        forged.set("digest", genuine().get("digest"));
        assert_eq!(reason(&forged), "prompt_digest_mismatch", "{place}");
        forged = prompt.signed();
        forged.set("digest", genuine().get("digest"));
        assert_eq!(reason(&forged), "prompt_digest_mismatch", "{place}");
    }
    // Without a context that others give.
    let mut forged = Prompt { context: None, ..Prompt::genuine() }.signed();
    forged.set("context", "cc".repeat(32));
    assert_eq!(reason(&forged), "prompt_digest_mismatch");
}

#[test]
fn roles_are_those_of_the_slice() {
    for role in Role::ALL.iter().copied() {
        let mut prompt = Prompt::genuine();
        if std::mem::replace(&mut prompt.message(2).role, role) != role {
            refused(&prompt, "other_turns", role.name());
        }
    }
    for role in ["User", "critic", "tool ", ""] {
        let mut forged = genuine();
        forged.set("messages.1.role", role);
        assert_eq!(reason(&forged), "malformed");
    }
}

#[test]
fn times_are_in_the_seconds_of_the_slice() {
    /// The first second that has no place in 64 bits of microseconds as a whole, and the seconds of infinite times.
    const FAR: i64 = 9_223_372_036_854;
    const INFINITE: i64 = 9_224_318_015_999;
    const MINUS_INFINITE: i64 = -210_866_803_200;
    let with = |second: i64, micros: Option<i64>| {
        let mut prompt = Prompt::genuine();
        // The only recalled turn, so that its time decides no order.
        prompt.claim.turn(4).created_at = second;
        prompt.message(4).created_at = micros;
        prompt.signed()
    };
    let (most, least) = (i64::MAX, i64::MIN);
    for (second, micros) in [
        (0, None),
        (0, Some(0)),
        (0, Some(999_999)),
        (-1, Some(-1)),
        (-1, Some(-1_000_000)),
        (1, Some(1_000_000)),
        (FAR, Some(most)),
        (FAR, Some(most - 1)),
        (FAR + 1, Some(most)),
        (INFINITE, Some(most)),
        (MINUS_INFINITE, Some(least)),
        (MINUS_INFINITE, Some(MINUS_INFINITE * 1_000_000)),
    ] {
        assert_eq!(reason(&with(second, micros)), "ok", "{second} {micros:?}");
    }
    for (second, micros) in [
        (1, None),
        (-1, None),
        (0, Some(1_000_000)),
        (0, Some(-1)),
        (-1, Some(0)),
        (-1, Some(-1_000_001)),
        (FAR - 1, Some(most)),
        (FAR + 1, Some(most - 1)),
        (INFINITE, Some(INFINITE)),
        (INFINITE, Some(least)),
        (MINUS_INFINITE, Some(most)),
        (MINUS_INFINITE - 1, Some(least)),
        (MINUS_INFINITE + 1, Some(least)),
        (0, Some(least)),
    ] {
        assert_eq!(reason(&with(second, micros)), "other_turns", "{second} {micros:?}");
    }
    for spelling in
        ["9223372036854775808", "-9223372036854775809", "1e19", "0.5", "1e400", "\"0\"", "true"]
    {
        let text = with(0, Some(0)).text();
        let text = text.replacen(
            r#""created_at":0,"tokens""#,
            &format!(r#""created_at":{spelling},"tokens""#),
            1,
        );
        assert!(text.contains(spelling));
        assert_eq!(reason_of(&text), "malformed", "{spelling}");
    }
    // Times decide order, to the microsecond.
    let mut prompt = Prompt::genuine();
    prompt.claim.slice.edges.clear();
    let second = prompt.claim.turn(1).created_at;
    prompt.claim.turn(2).created_at = second;
    for (of_first, of_second, expected) in [(1, 2, "ok"), (1, 1, "ok"), (2, 1, "other_order")] {
        prompt.message(1).created_at = Some(second * 1_000_000 + of_first);
        prompt.message(2).created_at = Some(second * 1_000_000 + of_second);
        assert_eq!(reason(&prompt.signed()), expected);
    }
}

#[test]
fn tokens_are_counts_of_31_bits() {
    let mut prompt = Prompt::genuine();
    for tokens in [0, 1, i32::MAX as u32] {
        prompt.message(2).tokens = tokens;
        assert_eq!(reason(&prompt.signed()), "ok", "{tokens}");
    }
    for tokens in [1 << 31, u32::MAX] {
        prompt.message(2).tokens = tokens;
        assert_eq!(reason(&prompt.signed()), "malformed", "{tokens}");
    }
    for spelling in
        ["-1", "20.5", "1e10", "4294967316", "18446744073709551636", "null", "\"20\"", "1e400"]
    {
        let text =
            genuine().text().replacen(r#""tokens":20"#, &format!(r#""tokens":{spelling}"#), 1);
        assert_eq!(reason_of(&text), "malformed", "{spelling}");
    }
    for spelling in ["20.0", "2e1", "200E-1", "0.2e+2"] {
        let text =
            genuine().text().replacen(r#""tokens":20"#, &format!(r#""tokens":{spelling}"#), 1);
        assert_eq!(reason_of(&text), "ok", "{spelling}");
    }
}

#[test]
fn digests_and_tokens_have_one_spelling() {
    let record = genuine();
    let token = crate::claim::string(&record, "token");
    let (head, mac) = token.rsplit_once('.').unwrap();
    let of_slice = crate::claim::string(&record, "slice.attestation.token");
    let other_kid = head.replacen("gkp1.2-", "gkp1.1-", 1);
    for other in [
        String::new(),
        head.to_owned(),
        format!("{head}."),
        format!("{head}.{}", &mac[2..]),
        format!("{head}.{mac}00"),
        format!("{head}.{}", mac.to_uppercase()),
        format!("{token} "),
        token.replacen("gkp1", "gkp2", 1),
        token.replacen("gkp1", "GKP1", 1),
        format!("{other_kid}.{mac}"),
        of_slice.clone(),
        of_slice.replacen("gk3.", "gkp1.", 1),
        format!("{head}.{}", "0".repeat(64)),
    ] {
        let mut forged = record.clone();
        forged.set("token", other.as_str());
        assert_eq!(reason(&forged), "prompt_token_mismatch", "{other}");
    }
    let mut forged = record.clone();
    forged.set("token", Json::Null);
    assert_eq!(reason(&forged), "prompt_token_mismatch");
    for path in ["digest", "context", "messages.0.content", "messages.1.payload"] {
        let given = crate::claim::string(&record, path);
        for other in [
            given.to_uppercase(),
            given[1..].to_owned(),
            format!("{given}0"),
            format!(" {given}"),
            String::new(),
        ] {
            if other != given {
                let mut forged = record.clone();
                forged.set(path, other.as_str());
                assert_eq!(reason(&forged), "malformed", "{path} {other}");
            }
        }
    }
    let mut forged = record.clone();
    forged.set("digest", Json::Null);
    assert_eq!(reason(&forged), "malformed");
}

#[test]
fn a_record_has_the_claim_of_its_slice() {
    for status in [Status::Uncommitted, Status::Distributed] {
        let mut unsigned = Prompt::genuine();
        unsigned.claim.circumstances.status = status;
        let record = unsigned.signed();
        assert_eq!(record.get("token"), Json::Null);
        assert_eq!(reason(&record), status.reason());
        let mut forged = record;
        forged.set("token", genuine().get("token"));
        assert_eq!(reason(&forged), status.reason());
    }
    // Of the slice, all is checked as ever.
    let mut forged = genuine();
    forged.set("slice.turns.1.salience", Json::Float(0.75));
    assert_eq!(reason(&forged), "digest_mismatch");
    let mut other = ring();
    other.graph = "another".to_owned();
    assert_eq!(verify_document(&genuine().text(), &other).reason(), "other_graph");
    other = ring();
    other.epochs.truncate(1);
    assert_eq!(verify_document(&genuine().text(), &other).reason(), "unknown_key");
    other = ring();
    other.revoked.push(other.active().kid);
    assert_eq!(verify_document(&genuine().text(), &other).reason(), "revoked_key");
    // Of an older epoch.
    let mut old = ring();
    old.epochs.pop();
    assert_eq!(reason(&Prompt::genuine().signed_with(&old.active())), "ok");
    // The keys of a slice and of a prompt differ.
    let keys = ring().active();
    assert_ne!(keys.prompt.mac(b"message"), keys.v3.mac(b"message"));
    assert_ne!(keys.prompt.mac(b"message"), keys.retrieval.mac(b"message"));
    assert_ne!(keys.prompt.mac(b"message"), keys.v2.mac(b"message"));
}

#[test]
fn white_space_order_of_keys_and_spelling_are_free() {
    let record = genuine();
    let mut random = fastrand::Rng::with_seed(40);
    for text in [JavaScript.write(&record.0), Jsonb.write(&record.0)] {
        assert_eq!(reason_of(&text), "ok", "{text}");
    }
    for _ in 0..200 {
        let text = Wild(&mut random).write(&record.0);
        assert_eq!(reason_of(&text), "ok", "{text}");
        let read = record::Document::parse(&text, &|| {}).unwrap();
        assert_eq!(read.canonical_text(&|| {}), record.text());
    }
}

#[test]
fn texts_that_are_no_record_are_malformed() {
    let text = genuine().text();
    let deep = |key: &str| format!(r#"{{"{key}":{}"#, "[".repeat(1_000_000));
    let many = format!(r#"{{"messages":[{}]"#, "0,".repeat(3_000_000));
    let wide = format!(r#"{{"context":[{}0]}}"#, "0,".repeat(1000));
    for other in [
        r#"{"messages":[]}"#,
        r#"{"v":1}"#,
        r#"{"slice":null}"#,
        r#"{"messages":{}}"#,
        r#"{"messages":[[]]}"#,
        r#"{"slice":[]}"#,
        &deep("messages"),
        &deep("context"),
        &deep("slice"),
        &deep("v"),
        &many,
        &wide,
        &text[..text.len() - 1],
        &format!("{text}{text}"),
        &format!("[{text}]"),
        &format!("{text}x"),
        &format!("\u{feff}{text}"),
        &text.replacen("gkp1", r"\u0000", 1),
        &text.replacen("gkp1", r"\ud800", 1),
    ] {
        assert_eq!(reason_of(other), "malformed", "{}", &other[..other.len().min(80)]);
    }
    // A record in place of its slice.
    let mut nested = genuine();
    nested.set("slice", genuine().0);
    assert_eq!(reason(&nested), "malformed");
    let padded = |length: usize| text.clone() + &" ".repeat(length - text.len());
    assert_eq!(reason_of(&padded(MAX_EXPORT_BYTES)), "ok");
    assert_eq!(reason_of(&padded(MAX_EXPORT_BYTES + 1)), "malformed");
}

/// The work is measured by the checks for interrupts.
#[test]
fn large_records_take_few_steps() {
    let steps = |turns: u64| {
        let mut prompt = Prompt::genuine();
        prompt.claim.policy = r#"{"preset":"chat","max_nodes":10000}"#.parse().unwrap();
        prompt.claim.slice.turns = (1..=turns).map(turn).map(selected).collect();
        prompt.claim.slice.edges.retain(|edge| edge.child == id(2));
        let template = prompt.messages[0].clone();
        let recorded = prompt.claim.slice.turns.iter().map(|selected| RecordedMessage {
            turn_id: selected.turn.id,
            part: if selected.turn.id == id(3) { Part::Anchor } else { Part::Line },
            role: selected.turn.role,
            created_at: Some(selected.turn.created_at * 1_000_000),
            ..template.clone()
        });
        prompt.messages = recorded.collect();
        let anchor = prompt.messages.remove(2);
        prompt.messages.push(anchor);
        let ring = ring();
        assert_eq!(verify_document(&prompt.signed().text(), &ring).reason(), "ok");
        Cell::take(&ring.interrupt_checks)
    };
    let (some, many) = (steps(1000), steps(8000));
    assert!(some > 0 && many < 10 * some, "{some}, {many}");
}

/// A record, its proof, the statement in it, and the public key.
struct Proven {
    record: String,
    proof: String,
    statement: String,
    pem: String,
}

impl Proven {
    fn genuine() -> Self {
        let key = key_of(2);
        let record = genuine().text();
        let made = proof(&verify_document(&record, &ring()), &key, KeySource::Database, &|| {});
        let proof = made.expect("it is valid");
        let envelope: Value = serde_json::from_str(&proof).unwrap();
        let statement = Base64::decode_vec(envelope["payload"].as_str().unwrap()).unwrap();
        let statement = String::from_utf8(statement).unwrap();
        let proven = Proven { record, proof, statement, pem: key.public_key().to_pem() };
        assert_eq!(proven.check(&proven.proof), Ok(()));
        proven
    }

    fn check(&self, proof: &str) -> Result<(), ProofRefusal> {
        verify_proof(&self.record, proof, &self.pem, &|| {}).map(drop)
    }

    /// Checks a statement that the kernel's key signs, though the kernel did not make it.
    fn check_statement(&self, statement: &str) -> Result<(), ProofRefusal> {
        self.check(&envelope_of(statement))
    }
}

#[test]
fn a_proof_is_of_a_prompt_or_of_a_slice() {
    let proven = Proven::genuine();
    let slice = Document(genuine().get("slice")).text();
    let of_slice =
        proof(&verify_export(&slice, &ring()), &key_of(2), KeySource::Database, &|| {}).unwrap();
    let check =
        |document: &str, proof: &str| verify_proof(document, proof, &proven.pem, &|| {}).map(drop);
    assert_eq!(check(&slice, &of_slice), Ok(()));
    assert_eq!(check(&slice, &proven.proof), Err(ProofRefusal::OtherExport));
    assert_eq!(check(&proven.record, &of_slice), Err(ProofRefusal::OtherExport));
    // With the digest of the other, which no honest signer gives.
    let read = |proof: &str| {
        let envelope: Value = serde_json::from_str(proof).unwrap();
        let payload = Base64::decode_vec(envelope["payload"].as_str().unwrap()).unwrap();
        serde_json::from_slice::<Value>(&payload).unwrap()
    };
    let (prompt, mut of_slice) = (read(&proven.proof), read(&of_slice));
    of_slice["subject"][0]["digest"] = prompt["subject"][0]["digest"].clone();
    assert_eq!(proven.check_statement(&of_slice.to_string()), Err(ProofRefusal::Inconsistent));
    of_slice["subject"][0]["name"] = prompt["subject"][0]["name"].clone();
    assert_eq!(proven.check_statement(&of_slice.to_string()), Err(ProofRefusal::Inconsistent));
    // Its type says which keys it has.
    of_slice["predicateType"] = prompt["predicateType"].clone();
    assert_eq!(proven.check_statement(&of_slice.to_string()), Err(ProofRefusal::MalformedProof));
    let mut as_slice = prompt.clone();
    as_slice["predicateType"] = json!("urn:x-graph-kernel:slice:v1");
    assert_eq!(proven.check_statement(&as_slice.to_string()), Err(ProofRefusal::MalformedProof));
    of_slice["predicate"] = prompt["predicate"].clone();
    assert_eq!(proven.check_statement(&of_slice.to_string()), Ok(()));
}

#[test]
fn no_byte_of_a_record_a_proof_or_a_statement_of_one_can_be_changed() {
    let proven = Proven::genuine();
    for forged in changed(&proven.proof) {
        assert!(proven.check(&forged).is_err(), "{forged}");
    }
    // Each byte of what is long, in one way of several: signatures take their time.
    for statement in changed(&proven.statement).step_by(3) {
        assert!(proven.check_statement(&statement).is_err(), "{statement}");
    }
    for record in changed(&proven.record).step_by(3) {
        match verify_proof(&record, &proven.proof, &proven.pem, &|| {}).map(drop) {
            Err(ProofRefusal::MalformedExport | ProofRefusal::OtherExport) => {}
            // Another spelling of the same number.
            _ => {
                let read = record::Document::parse(&record, &|| {}).unwrap();
                assert_eq!(read.canonical_text(&|| {}), proven.record);
            }
        }
    }
}

#[test]
fn every_field_of_a_predicate_is_compared() {
    let proven = Proven::genuine();
    let statement: Value = serde_json::from_str(&proven.statement).unwrap();
    let predicate = statement["predicate"].as_object().unwrap();
    assert_eq!(predicate.len(), 17);
    for (key, value) in predicate {
        let mut forged = statement.clone();
        let other = match (key.as_str(), value) {
            ("anchor_turn_id", _) => json!(id(1).to_string()),
            ("policy", _) => {
                let mut policy = value.clone();
                policy["max_nodes"] = json!(77);
                policy
            }
            (_, Value::Bool(on)) => json!(!on),
            (_, Value::Number(number)) => json!(number.as_u64().unwrap() + 1),
            ("key_source", _) => json!("file"),
            ("kid", _) => json!("1-0000000000000000"),
            (_, Value::String(text)) if text.chars().all(|c| c.is_ascii_hexdigit()) => {
                json!("0".repeat(text.len()))
            }
            (_, value) => json!(format!("{}x", value.as_str().unwrap())),
        };
        forged["predicate"][key] = other;
        // What the signer says of the key is never believed.
        let expected = if key == "key_source" { Ok(()) } else { Err(ProofRefusal::Inconsistent) };
        assert_eq!(proven.check_statement(&forged.to_string()), expected, "{key}");
        let mut without = statement.clone();
        without["predicate"].as_object_mut().unwrap().remove(key);
        assert_eq!(
            proven.check_statement(&without.to_string()),
            Err(ProofRefusal::MalformedProof),
            "{key}"
        );
        let mut null = statement.clone();
        null["predicate"][key] = Value::Null;
        assert_eq!(
            proven.check_statement(&null.to_string()),
            Err(ProofRefusal::MalformedProof),
            "{key}"
        );
    }
    let edited = |from: &str, to: &str| {
        assert!(proven.statement.contains(from), "{from}");
        proven.check_statement(&proven.statement.replacen(from, to, 1))
    };
    let malformed = Err(ProofRefusal::MalformedProof);
    assert_eq!(edited("\"messages\":5", "\"messages\":5,\"messages\":5"), malformed);
    assert_eq!(edited("\"messages\":5", "\"messages\":5,\"extra\":0"), malformed);
    assert_eq!(edited("\"messages\":5", "\"messages\":-5"), malformed);
    assert_eq!(edited("\"tokens\":150", "\"tokens\":-1"), malformed);
    assert_eq!(edited("\"tokens\":150", "\"tokens\":150.5"), malformed);
    assert_eq!(edited("prompt:v1", "prompt:v2"), malformed);
    assert_eq!(edited("\"name\":\"prompt/", "\"name\":\"slice/"), Err(ProofRefusal::Inconsistent));
}

#[test]
fn only_records_that_verify_are_proven() {
    let made = |record: &Document| {
        proof(&verify_document(&record.text(), &ring()), &key_of(2), KeySource::File, &|| {})
    };
    assert!(made(&genuine()).is_some());
    let mut edited = Prompt::genuine();
    edited.message(2).content = hash(9);
    assert_eq!(made(&edited.with_token_of(&genuine())), None);
    let mut turned = genuine();
    turned.array("messages").swap(0, 1);
    assert_eq!(made(&turned), None);
    for status in [Status::Uncommitted, Status::Distributed] {
        let mut unsigned = Prompt::genuine();
        unsigned.claim.circumstances.status = status;
        assert_eq!(made(&unsigned.signed()), None);
    }
    // A verifier without the key sees what the record says of itself: an order that a key holder has signed.
    let mut prompt = Prompt::genuine();
    prompt.messages.swap(0, 1);
    let forged = prompt.signed().text();
    let honest: Value = serde_json::from_str(&Proven::genuine().statement).unwrap();
    let digest = crate::claim::string(&prompt.signed(), "digest");
    let mut statement = honest;
    statement["subject"][0]["name"] = json!(format!("prompt/{digest}"));
    statement["subject"][0]["digest"]["sha256"] =
        json!(kernel::graph::content::sha256_hex(forged.as_bytes()));
    statement["predicate"]["prompt_digest"] = json!(digest);
    let pem = key_of(2).public_key().to_pem();
    let result =
        verify_proof(&forged, &envelope_of(&statement.to_string()), &pem, &|| {}).map(drop);
    assert_eq!(result, Err(ProofRefusal::Inconsistent));
    // Under another root none of it is.
    let keys = SigningKeys::derive(&Secret::new(vec![0xee; 32]), 2);
    assert_eq!(made(&Prompt::genuine().signed_with(&keys)), None);
    let ids: Vec<TurnId> =
        Prompt::genuine().messages.iter().map(|message| message.turn_id).collect();
    assert_eq!(ids, [1, 2, 4, 3, 5].map(id));
}
