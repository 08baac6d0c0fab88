//! What was decoded, for programs: one JSON object a line.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::fits::Search;
use super::reading::{Reading, framing_name};
use super::text::no_header;
use super::{Content, Record, Told};
use crate::iso8583::{DescribedField, Shown};
use crate::wire::HeaderFault;

/// Writes one part of an input.
pub(super) fn write(reading: &Reading, record: &Record, out: &mut impl Write) -> io::Result<()> {
    let mut object = match &record.content {
        Content::Keepalive { bytes } => json!({ "keepalive": true, "bytes": bytes }),
        Content::Message(told) => message(told),
        Content::NoHeader { bytes, fault } => {
            let kind = match fault {
                HeaderFault::Truncated => "header_truncated",
                HeaderFault::Unknown => "header_unknown",
            };
            nothing(*bytes, kind, &no_header(reading, *fault))
        }
        Content::Rest { bytes, why } => {
            let mut rest = nothing(*bytes, why.name(), &why.to_string());
            set(&mut rest, "left_over", Value::Bool(true));
            rest
        }
    };
    set(&mut object, "offset", record.at.into());
    if !matches!(record.content, Content::Keepalive { .. }) {
        set(&mut object, "framing", framing_name(reading.framing).into());
        set(&mut object, "fits", record.search.as_ref().map_or_else(|| json!([]), fits));
        let farthest = record.search.as_ref().and_then(farthest);
        set(&mut object, "farthest", farthest.unwrap_or_default());
    }
    writeln!(out, "{object}")
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

fn message(told: &Told) -> Value {
    let description = &told.description;
    let fault = description.fault.as_ref().map(|fault| {
        json!({
            "field": fault.field,
            "name": fault.name,
            "offset": fault.at,
            "input_offset": told.message_at.map(|at| at.saturating_add(fault.at)),
            "kind": fault.kind,
            "expected": fault.expected,
        })
    });
    json!({
        "bytes": description.bytes,
        "header": told.header,
        "reject": told.rejected.map(|code| code.to_string()),
        "mti": description.mti.map(|mti| mti.to_string()),
        "bitmap": description.bitmap.as_ref().map(|bitmap| bitmap.hex.as_str()),
        "fields": description.fields.iter().map(field).collect::<Vec<_>>(),
        "fault": fault,
    })
}

fn field(field: &DescribedField) -> Value {
    let (value, masked) = match &field.shown {
        Shown::Clear(value) => (Some(value), false),
        Shown::Cut(value) => (Some(value), true),
        Shown::Hidden => (None, true),
    };
    json!({
        "de": field.de,
        "name": field.name,
        "offset": field.at,
        "raw_bytes": field.raw_bytes,
        "value": value,
        "masked": masked,
    })
}

/// What holds no message that could be looked at.
fn nothing(bytes: usize, kind: &str, expected: &str) -> Value {
    json!({
        "bytes": bytes,
        "header": null,
        "reject": null,
        "mti": null,
        "bitmap": null,
        "fields": [],
        "fault": { "field": null, "name": null, "offset": 0, "kind": kind, "expected": expected },
    })
}

fn fits(search: &Search) -> Value {
    search.fits.iter().map(reading_of).collect()
}

fn farthest(search: &Search) -> Option<Value> {
    let farthest = search.farthest.as_ref()?;
    let mut object = reading_of(&farthest.reading);
    set(&mut object, "field", farthest.field.into());
    set(&mut object, "input_offset", farthest.at.into());
    Some(object)
}

fn reading_of(reading: &Reading) -> Value {
    json!({
        "framing": framing_name(reading.framing),
        "header": reading.header.to_string(),
        "dialect": &*reading.dialect.name,
    })
}
