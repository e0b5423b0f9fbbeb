//! From a document to CBOR. The columns are described in docs/binary.md.

use std::collections::HashMap;
use std::hash::Hash;

use super::cbor::{Writer, malformed};
use super::{BinaryError, Extent, PROMPT_TOKEN, SLICE_TOKEN, token_prefix};
use crate::export::parse::{MAX_EXPORT_BYTES, ParsedExport};
use crate::graph::turn::TurnId;
use crate::hex::from_lower_hex;
use crate::prompt::record::{Document, RECORD_VERSION, Record};
use crate::trust::attestation::Attestation;

pub(super) fn document(
    document: &Document,
    check_interrupts: &dyn Fn(),
) -> Result<Vec<u8>, BinaryError> {
    let Document { export, record } = document;
    let messages = record.as_ref().map_or(&[][..], |record| &record.messages);
    Extent::of(document).expect_within(MAX_EXPORT_BYTES)?;
    let mut writer = Writer::new(check_interrupts);
    let mut places = Places::of(export);
    let anchor = places.of_turn(export.anchor);
    let ends: Vec<[usize; 2]> = export
        .edges
        .iter()
        .map(|edge| [edge.parent, edge.child].map(|end| places.of_turn(end)))
        .collect();
    let shown: Vec<usize> =
        messages.iter().map(|message| places.of_turn(message.turn_id)).collect();
    writer.array(2);
    write_export(&mut writer, export, &places.others, anchor, &ends)?;
    match record {
        Some(record) => write_record(&mut writer, record, export, &shown),
        None => writer.null(),
    }
    Ok(writer.finish())
}

/// The places of turns among those of an export; what is not a turn of it follows them.
struct Places {
    places: HashMap<TurnId, usize>,
    /// How many turns there are.
    turns: usize,
    others: Vec<TurnId>,
}

impl Places {
    fn of(export: &ParsedExport) -> Self {
        let mut places = HashMap::with_capacity(export.turns.len());
        for (place, turn) in export.turns.iter().enumerate() {
            places.entry(turn.id).or_insert(place);
        }
        Places { places, turns: export.turns.len(), others: Vec::new() }
    }

    fn of_turn(&mut self, id: TurnId) -> usize {
        let Places { places, turns, others } = self;
        *places.entry(id).or_insert_with(|| {
            others.push(id);
            *turns + others.len() - 1
        })
    }
}

fn write_export(
    writer: &mut Writer<'_>,
    export: &ParsedExport,
    others: &[TurnId],
    anchor: usize,
    ends: &[[usize; 2]],
) -> Result<(), BinaryError> {
    let ParsedExport { turns, edges, .. } = export;
    writer.array(super::EXPORT_ITEMS);
    writer.bytes(&turns.iter().flat_map(|turn| *turn.id.as_bytes()).collect::<Vec<u8>>());
    writer.bytes(&others.iter().flat_map(|id| *id.as_bytes()).collect::<Vec<u8>>());
    writer.unsigned(anchor as u64);
    column(writer, turns.iter().map(|turn| &*turn.session_id), Writer::text);
    column(writer, turns.iter().map(|turn| turn.role.name()), Writer::text);
    column(writer, turns.iter().map(|turn| turn.phase.name()), Writer::text);
    float_column(writer, turns.iter().map(|turn| turn.salience));
    counts(writer, turns.iter().map(|turn| turn.trajectory_depth));
    counts(writer, turns.iter().map(|turn| turn.trajectory_sibling_order));
    float_column(writer, turns.iter().map(|turn| turn.trajectory_homogeneity));
    float_column(writer, turns.iter().map(|turn| turn.trajectory_temporal));
    float_column(writer, turns.iter().map(|turn| turn.trajectory_complexity));
    let least = turns.iter().map(|turn| turn.created_at).min().unwrap_or(0);
    writer.array(2);
    writer.integer(least);
    writer.array(turns.len());
    turns.iter().for_each(|turn| writer.unsigned(turn.created_at.abs_diff(least)));
    optional(writer, turns.iter().map(|turn| turn.content_hash.as_deref().map(hash_bytes)));
    let mut last = 0;
    writer.array(edges.len());
    for [parent, _] in ends {
        writer.integer(*parent as i64 - last);
        last = *parent as i64;
    }
    counts(writer, ends.iter().map(|[_, child]| *child as u32));
    column(writer, edges.iter().map(|edge| edge.edge_type.name()), Writer::text);
    writer.text(&export.policy_id);
    writer.bytes(&hash_bytes(&export.params_hash));
    writer.text(&export.schema_version);
    writer.bytes(&hash_bytes(&export.slice_id));
    let snapshot = export.graph_snapshot_hash.as_deref();
    let snapshot = snapshot.ok_or_else(|| malformed("the export has no graph_snapshot_hash"))?;
    writer.bytes(&hash_bytes(snapshot));
    match &export.admissibility_token {
        Some(token) => writer.bytes(&hash_bytes(token)),
        None => writer.null(),
    }
    match &export.attestation {
        Some(attestation) => write_attestation(writer, attestation),
        None => writer.null(),
    }
    Ok(())
}

fn write_attestation(writer: &mut Writer<'_>, attestation: &Attestation) {
    writer.array(super::ATTESTATION_ITEMS);
    writer.unsigned(attestation.v.into());
    writer.text(&attestation.kid);
    writer.bytes(&hash_bytes(&attestation.digest));
    writer.text(&attestation.graph);
    writer.text(&attestation.policy.quantized_text());
    writer.text(&attestation.role);
    writer.boolean(attestation.rls);
    writer.text(attestation.status.name());
    write_token(writer, attestation.token.as_deref(), SLICE_TOKEN, Some(attestation));
}

fn write_record(writer: &mut Writer<'_>, record: &Record, export: &ParsedExport, shown: &[usize]) {
    let Record { messages, .. } = record;
    writer.array(super::RECORD_ITEMS);
    writer.unsigned(RECORD_VERSION.into());
    match &record.context {
        Some(context) => writer.bytes(context),
        None => writer.null(),
    }
    counts(writer, shown.iter().map(|place| *place as u32));
    column(writer, messages.iter().map(|message| message.part.name()), Writer::text);
    column(writer, messages.iter().map(|message| message.role.name()), Writer::text);
    let times = messages.iter().zip(shown);
    let times: Vec<Option<i64>> = times
        .map(|(message, place)| {
            Some(message.created_at?.wrapping_sub(super::micros_of_turn(export, *place)))
        })
        .collect();
    writer.array(2);
    runs(writer, times.iter().map(Option::is_some));
    writer.array(times.iter().flatten().count());
    times.iter().flatten().for_each(|time| writer.integer(*time));
    counts(writer, messages.iter().map(|message| message.tokens));
    optional(writer, messages.iter().map(|message| message.content));
    optional(writer, messages.iter().map(|message| message.payload));
    writer.bytes(&record.digest);
    write_token(writer, record.token.as_deref(), PROMPT_TOKEN, export.attestation.as_ref());
}

/// The MAC of a token that names its attestation's key, else the text.
fn write_token(
    writer: &mut Writer<'_>,
    token: Option<&str>,
    kind: &str,
    attestation: Option<&Attestation>,
) {
    let Some(token) = token else { return writer.null() };
    let mac = attestation
        .and_then(|attestation| token.strip_prefix(&*token_prefix(kind, &attestation.kid)))
        .and_then(from_lower_hex)
        .filter(|mac| mac.len() == 32);
    match mac {
        Some(mac) => writer.bytes(&mac),
        None => writer.text(token),
    }
}

/// Hex digits that were read as such.
fn hash_bytes(hex: &str) -> Vec<u8> {
    from_lower_hex(hex).unwrap_or_default()
}

fn counts(writer: &mut Writer<'_>, counts: impl ExactSizeIterator<Item = u32>) {
    writer.array(counts.len());
    counts.for_each(|count| writer.unsigned(count.into()));
}

/// The different values in the order in which they come, and the place of each item among them; no places where there
/// is one value at most.
fn column<'w, T: Copy + Eq + Hash>(
    writer: &mut Writer<'w>,
    items: impl ExactSizeIterator<Item = T>,
    mut write: impl FnMut(&mut Writer<'w>, T),
) {
    let mut values = Vec::new();
    let mut known = HashMap::new();
    let places: Vec<usize> = items
        .map(|item| {
            *known.entry(item).or_insert_with(|| {
                values.push(item);
                values.len() - 1
            })
        })
        .collect();
    writer.array(2);
    writer.array(values.len());
    let different = values.len();
    values.into_iter().for_each(|value| write(writer, value));
    let places = if different > 1 { &places[..] } else { &[] };
    counts(writer, places.iter().map(|place| *place as u32));
}

fn float_column(writer: &mut Writer<'_>, items: impl ExactSizeIterator<Item = f32>) {
    // By its bits: −0.0 is not 0.0.
    column(writer, items.map(f32::to_bits), |writer, bits| writer.float(f32::from_bits(bits)));
}

/// How many items in turn have a value and have none, beginning with those that have one.
fn runs(writer: &mut Writer<'_>, items: impl Iterator<Item = bool>) {
    let mut runs: Vec<u32> = Vec::new();
    for present in items {
        // The first run, of even place, is of those that are there.
        if runs.is_empty() {
            runs.push(0);
        }
        if (runs.len() % 2 == 1) != present {
            runs.push(0);
        }
        if let Some(run) = runs.last_mut() {
            *run += 1;
        }
    }
    counts(writer, runs.iter().copied());
}

/// Which items have a hash, and the hashes.
fn optional<T: AsRef<[u8]>>(writer: &mut Writer<'_>, hashes: impl Iterator<Item = Option<T>>) {
    let mut all = Vec::new();
    let mut present = Vec::new();
    for hash in hashes {
        present.push(hash.is_some());
        all.extend_from_slice(hash.as_ref().map_or(&[], AsRef::as_ref));
    }
    writer.array(2);
    runs(writer, present.into_iter());
    writer.bytes(&all);
}
