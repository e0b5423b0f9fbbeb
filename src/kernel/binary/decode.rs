//! From CBOR to a document. The columns are described in docs/binary.md.
//!
//! Lists are as long as those before them say: nothing is made room for that no document holds.

use super::cbor::{Item, Reader, malformed};
use super::{BinaryError, Extent, PROMPT_TOKEN, SLICE_TOKEN, token_prefix};
use crate::export::parse::{MAX_ATTESTATION_VALUES, MAX_TOKEN_BYTES, ParsedExport};
use crate::graph::edge::{Edge, EdgeType};
use crate::graph::turn::{Phase, Role, Turn, TurnId};
use crate::hex::hex;
use crate::json::canonical::{escaped_bytes, json_text};
use crate::json::{JsonLimits, JsonValue};
use crate::policy::SlicePolicy;
use crate::prompt::record::{Document, Hash, RECORD_VERSION, Record, RecordedMessage};
use crate::slicing::slice::Part;
use crate::trust::attestation::{Attestation, Status};

pub(super) fn document(
    cbor: &[u8],
    most: usize,
    check_interrupts: &dyn Fn(),
) -> Result<Document, BinaryError> {
    let mut reader = Reader::new(cbor, check_interrupts);
    reader.array_of(2)?;
    let mut extent = Extent { turns: 0, edges: 0, messages: 0, names: 0 };
    let (export, others) = read_export(&mut reader, &mut extent, most)?;
    let record = read_record(&mut reader, &mut extent, most, &export, &others)?;
    reader.finish()?;
    Ok(Document { export, record })
}

fn read_export<'a>(
    reader: &mut Reader<'a, '_>,
    extent: &mut Extent,
    most: usize,
) -> Result<(ParsedExport, Ids<'a>), BinaryError> {
    reader.array_of(super::EXPORT_ITEMS)?;
    let (ids, others) = (Ids::read(reader)?, Ids::read(reader)?);
    extent.turns = ids.len();
    extent.expect_within(most)?;
    let count = ids.len();
    let id_at = |place: usize| ids.at(place).or_else(|| others.at(place.checked_sub(count)?));
    let id_at = |place| id_at(place).ok_or_else(|| malformed("a place is beyond the ids"));
    let anchor = id_at(reader.count()?)?;
    let sessions = Column::read(reader, count, |reader| {
        text(reader).map(|name| (escaped_bytes(name.as_bytes()), name))
    })?;
    for place in 0..count {
        let (bytes, _) = sessions.at(place)?;
        extent.names = extent.names.saturating_add(*bytes);
    }
    extent.expect_within(most)?;
    let roles = Column::read(reader, count, named(Role::from_name))?;
    let phases = Column::read(reader, count, named(Phase::from_name))?;
    let salience = Column::read(reader, count, Reader::float)?;
    let depths = counts(reader, count)?;
    let sibling_orders = counts(reader, count)?;
    let homogeneity = Column::read(reader, count, Reader::float)?;
    let temporal = Column::read(reader, count, Reader::float)?;
    let complexity = Column::read(reader, count, Reader::float)?;
    reader.array_of(2)?;
    let least = reader.integer()?;
    reader.array_of(count)?;
    let times = list(count, || {
        least
            .checked_add_unsigned(reader.unsigned()?)
            .ok_or_else(|| malformed("a time is out of range"))
    })?;
    let content_hashes = hashes(reader, count)?;
    let turns = (0..count).map(|place| {
        Ok(Turn {
            id: id_at(place)?,
            session_id: sessions.at(place)?.1.clone(),
            role: *roles.at(place)?,
            phase: *phases.at(place)?,
            salience: *salience.at(place)?,
            trajectory_depth: depths[place],
            trajectory_sibling_order: sibling_orders[place],
            trajectory_homogeneity: *homogeneity.at(place)?,
            trajectory_temporal: *temporal.at(place)?,
            trajectory_complexity: *complexity.at(place)?,
            created_at: times[place],
            content_hash: content_hashes[place].map(|hash| hex(&hash)),
        })
    });
    let turns: Vec<Turn> = turns.collect::<Result<_, BinaryError>>()?;

    extent.edges = reader.array()?;
    extent.expect_within(most)?;
    let mut last: i64 = 0;
    let parents = list(extent.edges, || {
        last = last
            .checked_add(reader.integer()?)
            .ok_or_else(|| malformed("a place is out of range"))?;
        usize::try_from(last).map_err(|_| malformed("a place is out of range"))
    })?;
    let children = counts(reader, extent.edges)?;
    let types = Column::read(reader, extent.edges, named(EdgeType::from_name))?;
    let edges = parents.iter().zip(&children).enumerate().map(|(place, (parent, child))| {
        Ok(Edge {
            parent: id_at(*parent)?,
            child: id_at(*child as usize)?,
            edge_type: *types.at(place)?,
        })
    });
    let edges: Vec<Edge> = edges.collect::<Result<_, BinaryError>>()?;
    let export = ParsedExport {
        anchor,
        turns,
        edges,
        policy_id: text(reader)?,
        params_hash: hex_of(reader, 8)?,
        schema_version: text(reader)?,
        slice_id: hex_of(reader, 8)?,
        graph_snapshot_hash: Some(hex_of(reader, 8)?),
        admissibility_token: match reader.item()? {
            Item::Null => None,
            Item::Bytes(token) if token.len() == 16 => Some(hex(token)),
            _ => return Err(malformed("the admissibility token is not 16 bytes")),
        },
        attestation: read_attestation(reader)?,
    };
    Ok((export, others))
}

fn read_attestation(reader: &mut Reader<'_, '_>) -> Result<Option<Attestation>, BinaryError> {
    if !reader.array_or_null(super::ATTESTATION_ITEMS)? {
        return Ok(None);
    }
    let v = count32(reader)?;
    let kid = text(reader)?;
    Ok(Some(Attestation {
        v,
        digest: hex_of(reader, 32)?,
        graph: text(reader)?,
        policy: policy(reader)?,
        role: text(reader)?,
        rls: reader.boolean()?,
        status: named(Status::from_name)(reader)?,
        token: token(reader, SLICE_TOKEN, Some(&kid))?,
        kid,
    }))
}

fn policy(reader: &mut Reader<'_, '_>) -> Result<SlicePolicy, BinaryError> {
    let text = reader.text()?;
    let limits = JsonLimits {
        bytes: MAX_TOKEN_BYTES,
        values: MAX_ATTESTATION_VALUES,
        token_bytes: MAX_TOKEN_BYTES,
    };
    let json = JsonValue::read(text, limits, &|| {})
        .map_err(|error| BinaryError::Malformed(format!("policy: {error}")))?;
    SlicePolicy::from_quantized(json)
        .map_err(|error| BinaryError::Malformed(format!("policy: {error}")))
}

fn read_record(
    reader: &mut Reader<'_, '_>,
    extent: &mut Extent,
    most: usize,
    export: &ParsedExport,
    others: &Ids<'_>,
) -> Result<Option<Record>, BinaryError> {
    if !reader.array_or_null(super::RECORD_ITEMS)? {
        return Ok(None);
    }
    if reader.unsigned()? != u64::from(RECORD_VERSION) {
        return Err(malformed("the record has another version"));
    }
    let context = match reader.item()? {
        Item::Null => None,
        Item::Bytes(hash) => Some(hash_of(hash)?),
        _ => return Err(malformed("the context is not a hash")),
    };
    let count = reader.array()?;
    extent.messages = count;
    extent.expect_within(most)?;
    let shown = list(count, || reader.count())?;
    let parts = Column::read(reader, count, named(Part::from_name))?;
    let roles = Column::read(reader, count, named(Role::from_name))?;
    reader.array_of(2)?;
    let present = runs(reader, count)?;
    reader.array_of(present.iter().filter(|present| **present).count())?;
    let mut times = Vec::with_capacity(count);
    for (place, present) in shown.iter().zip(present) {
        times.push(match present {
            true => Some(reader.integer()?.wrapping_add(super::micros_of_turn(export, *place))),
            false => None,
        });
    }
    let tokens = counts(reader, count)?;
    let (contents, payloads) = (hashes(reader, count)?, hashes(reader, count)?);
    let messages = shown.iter().enumerate().map(|(place, turn)| {
        let turns = &export.turns;
        let id = match turns.get(*turn) {
            Some(turn) => Some(turn.id),
            None => others.at(*turn - turns.len()),
        };
        Ok(RecordedMessage {
            turn_id: id.ok_or_else(|| malformed("a place is beyond the ids"))?,
            part: *parts.at(place)?,
            role: *roles.at(place)?,
            created_at: times[place],
            tokens: i32::try_from(tokens[place])
                .map(i32::cast_unsigned)
                .map_err(|_| malformed("a count of tokens is out of range"))?,
            content: contents[place],
            payload: payloads[place],
        })
    });
    let messages = messages.collect::<Result<_, BinaryError>>()?;
    let digest = hash_of(reader.bytes()?)?;
    let kid = export.attestation.as_ref().map(|attestation| &*attestation.kid);
    let token = token(reader, PROMPT_TOKEN, kid)?;
    Ok(Some(Record { context, messages, digest, token }))
}

/// Ids, one after the other.
struct Ids<'a>(&'a [[u8; 16]]);

impl<'a> Ids<'a> {
    fn read(reader: &mut Reader<'a, '_>) -> Result<Self, BinaryError> {
        match reader.bytes()?.as_chunks() {
            (ids, []) => Ok(Ids(ids)),
            _ => Err(malformed("ids are not 16 bytes each")),
        }
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn at(&self, place: usize) -> Option<TurnId> {
        self.0.get(place).copied().map(TurnId::from_bytes)
    }
}

/// The values of items, by their places.
struct Column<T> {
    values: Vec<T>,
    places: Vec<u32>,
}

impl<T> Column<T> {
    fn read<'a, 'c>(
        reader: &mut Reader<'a, 'c>,
        items: usize,
        mut read: impl FnMut(&mut Reader<'a, 'c>) -> Result<T, BinaryError>,
    ) -> Result<Self, BinaryError> {
        reader.array_of(2)?;
        let different = reader.array()?;
        if different > items {
            return Err(malformed("a column has more values than items"));
        }
        let values = list(different, || read(reader))?;
        let places = counts(reader, if different > 1 { items } else { 0 })?;
        Ok(Column { values, places })
    }

    fn at(&self, item: usize) -> Result<&T, BinaryError> {
        let place = self.places.get(item).copied().unwrap_or(0);
        self.values.get(place as usize).ok_or_else(|| malformed("a place is beyond the values"))
    }
}

fn list<T>(
    items: usize,
    mut read: impl FnMut() -> Result<T, BinaryError>,
) -> Result<Vec<T>, BinaryError> {
    (0..items).map(|_| read()).collect()
}

fn counts(reader: &mut Reader<'_, '_>, items: usize) -> Result<Vec<u32>, BinaryError> {
    reader.array_of(items)?;
    list(items, || count32(reader))
}

fn count32(reader: &mut Reader<'_, '_>) -> Result<u32, BinaryError> {
    u32::try_from(reader.unsigned()?).map_err(|_| malformed("a count is out of range"))
}

/// Which of so many items have a value.
fn runs(reader: &mut Reader<'_, '_>, items: usize) -> Result<Vec<bool>, BinaryError> {
    let mut present = Vec::new();
    for number in 0..reader.array()? {
        let length = reader.count()?;
        if length > items - present.len() {
            return Err(malformed("runs are longer than their list"));
        }
        present.resize(present.len() + length, number % 2 == 0);
    }
    match present.len() == items {
        true => Ok(present),
        false => Err(malformed("runs are shorter than their list")),
    }
}

fn hashes(reader: &mut Reader<'_, '_>, items: usize) -> Result<Vec<Option<Hash>>, BinaryError> {
    reader.array_of(2)?;
    let present = runs(reader, items)?;
    let (hashes, rest) = reader.bytes()?.as_chunks();
    let count = present.iter().filter(|present| **present).count();
    if hashes.len() != count || !rest.is_empty() {
        return Err(malformed("there are more or fewer hashes than items that have one"));
    }
    let mut hashes = hashes.iter().copied();
    Ok(present.into_iter().map(|present| if present { hashes.next() } else { None }).collect())
}

fn hash_of(bytes: &[u8]) -> Result<Hash, BinaryError> {
    bytes.try_into().map_err(|_| malformed("a hash is not 32 bytes"))
}

fn hex_of(reader: &mut Reader<'_, '_>, length: usize) -> Result<String, BinaryError> {
    match reader.bytes()? {
        bytes if bytes.len() == length => Ok(hex(bytes)),
        _ => Err(malformed("a fingerprint has another length")),
    }
}

/// A text that a document may have.
fn text(reader: &mut Reader<'_, '_>) -> Result<String, BinaryError> {
    let text = reader.text()?;
    expect_text(text)?;
    Ok(text.to_owned())
}

fn expect_text(text: &str) -> Result<(), BinaryError> {
    if text.contains('\0') {
        return Err(malformed("a text has a NUL character"));
    }
    // Without its quotation marks.
    if text.len() > MAX_TOKEN_BYTES || json_text(text).len() - 2 > MAX_TOKEN_BYTES {
        return Err(malformed("a text is longer than those of documents"));
    }
    Ok(())
}

fn named<T>(
    from_name: impl Fn(&str) -> Option<T>,
) -> impl for<'a, 'b, 'c> Fn(&'b mut Reader<'a, 'c>) -> Result<T, BinaryError> {
    move |reader| from_name(reader.text()?).ok_or_else(|| malformed("a name is not known"))
}

fn token(
    reader: &mut Reader<'_, '_>,
    kind: &str,
    kid: Option<&str>,
) -> Result<Option<String>, BinaryError> {
    match (reader.item()?, kid) {
        (Item::Null, _) => Ok(None),
        (Item::Text(text), _) => expect_text(text).map(|()| Some(text.to_owned())),
        (Item::Bytes(mac), Some(kid)) if mac.len() == 32 => {
            let token = token_prefix(kind, kid) + &hex(mac);
            expect_text(&token).map(|()| Some(token))
        }
        _ => Err(malformed("a token is neither a text nor 32 bytes")),
    }
}
