//! `jsonl`: rows of the tables of `graph_kernel.create_tables` as JSON, one on each line, with the ids they have.

use std::io::BufRead;

use uuid::Uuid;

use super::columns::{COLUMNS, ColumnKind};
use super::formats::Stop;
use super::json::{LineColumn, whole_value_in};
use super::lines::{Line, each_line};
use super::message::{plain_text, without_null_characters};
use super::store::{Columns, RowKind, StagedRow};
use super::time::is_storable;
use super::value::{Map, Value};

/// Calls `take` with each row, or with what is wrong with it.
pub(super) fn read(
    source: impl BufRead,
    take: &mut dyn FnMut(LineColumn, Result<StagedRow, String>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    each_line(source, &mut |number, line| {
        let row = match line {
            Line::TooLong(why) => Err(why),
            Line::Text(bytes) => match whole_value_in(bytes) {
                Ok(Value::Object(record)) => row(record),
                Ok(_) => Err("the line is not an object".to_owned()),
                Err(why) => Err(why),
            },
        };
        take((number, 0), row)
    })
}

fn row(mut record: Map) -> Result<StagedRow, String> {
    if record.contains_key("parent_turn_id") {
        let mut end = |key| id(record.remove(key), key);
        let (parent, message) = (end("parent_turn_id")?, end("child_turn_id")?);
        if parent == message {
            return Err("an edge from a turn to itself".to_owned());
        }
        let edge_type = match record.remove("edge_type") {
            None | Some(Value::Null) => "default".to_owned(),
            Some(Value::String(name)) => plain_text(name),
            Some(_) => return Err("\"edge_type\" is not text".to_owned()),
        };
        no_other(&record)?;
        return Ok(StagedRow {
            kind: RowKind::Edge,
            message,
            parent: Some(parent),
            edge_type,
            columns: Columns::default(),
        });
    }
    let message = id(record.remove("id"), "id")?;
    let mut columns = Columns::default();
    for (place, column) in columns.iter_mut().zip(&COLUMNS) {
        let Some(value) = record.remove(column.name).filter(|value| !value.is_null()) else {
            continue;
        };
        let fits = match column.kind {
            ColumnKind::Text => value.is_string(),
            ColumnKind::Integer => {
                value.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
            }
            ColumnKind::Real => match &value {
                Value::String(text) => ["NaN", "Infinity", "-Infinity"].contains(&text.as_str()),
                value => value.as_f64().is_some_and(|number| (number as f32).is_finite()),
            },
            ColumnKind::Json => true,
            ColumnKind::Timestamp => match value.as_str() {
                Some(text) if !is_storable(text) => {
                    return Err(format!("\"{}\" is not a time in ISO 8601: {value}", column.name));
                }
                text => text.is_some(),
            },
        };
        if !fits {
            return Err(format!("\"{}\" has a value of another type", column.name));
        }
        *place = Some(match value {
            Value::String(text) if column.kind != ColumnKind::Json => plain_text(text),
            mut value => {
                without_null_characters(&mut value);
                value.to_string()
            }
        });
    }
    no_other(&record)?;
    let (parent, edge_type) = (None, String::new());
    Ok(StagedRow { kind: RowKind::Turn, message, parent, edge_type, columns })
}

fn id(value: Option<Value>, key: &str) -> Result<String, String> {
    let id = value.as_ref().and_then(Value::as_str).and_then(|text| Uuid::try_parse(text).ok());
    id.map(|id| id.to_string()).ok_or_else(|| format!("\"{key}\" is not a uuid"))
}

fn no_other(record: &Map) -> Result<(), String> {
    match record.iter().find(|(_, value)| !value.is_null()) {
        Some((key, _)) => {
            Err(format!("\"{key}\" is not a column of memory_turns or memory_turn_edges"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::position;
    use super::*;

    fn payload_of(payload: &str) -> String {
        let line =
            format!(r#"{{"id": "00000000-0000-4000-8000-000000000001", "payload": {payload}}}"#);
        let mut payload = None;
        let read = read(line.as_bytes(), &mut |_, row| {
            payload = row.unwrap().columns[position("payload")].take();
            Ok(())
        });
        assert!(read.is_ok());
        payload.unwrap()
    }

    #[test]
    fn payloads_are_as_they_were_but_for_null_characters() {
        let file = format!(r#"{{"a":[1.10,1e400],"b":"data:a/b;base64,{}"}}"#, "A".repeat(100));
        assert_eq!(payload_of(&file), file);
        assert_eq!(payload_of(r#"{"\u0000":"a\u0000"}"#), "{\"\u{fffd}\":\"a\u{fffd}\"}");
    }
}
