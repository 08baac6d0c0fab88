//! What was decoded, for people.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::fits::{FITS_MAX, Search};
use super::reading::Reading;
use super::{Content, Record, Told};
use crate::iso8583::{DescribedField, Shown};
use crate::wire::HeaderFault;

/// What stands for a value that is not shown.
const HIDDEN: &str = "***";

/// Writes one part of an input; `number` is the message's.
pub(super) fn write(
    reading: &Reading,
    number: usize,
    record: &Record,
    out: &mut impl Write,
) -> io::Result<()> {
    let at = record.at;
    match &record.content {
        Content::Keepalive { bytes } => {
            writeln!(out, "keepalive at offset {at}, {}", counted(*bytes, "byte"))?;
        }
        Content::Message(told) => message(number, at, told, out)?,
        Content::NoHeader { bytes, fault } => {
            writeln!(out, "frame at offset {at}: {}, no message", counted(*bytes, "byte"))?;
            writeln!(out, "  fault: {}", no_header(reading, *fault))?;
        }
        Content::Rest { bytes, why } => {
            let left = if *bytes == 1 { "1 byte is".into() } else { format!("{bytes} bytes are") };
            writeln!(out, "{left} left over at offset {at}: {why}")?;
        }
    }
    match &record.search {
        Some(search) => found(search, out),
        None => Ok(()),
    }
}

fn message(number: usize, at: usize, told: &Told, out: &mut impl Write) -> io::Result<()> {
    let description = &told.description;
    let mut head = format!("message {number} at offset {at}: ");
    match description.mti {
        Some(mti) => write!(head, "MTI {mti}, "),
        None => write!(head, "MTI not shown, "),
    }
    .unwrap_or_default();
    head.push_str(&counted(description.bytes, "byte"));
    if let Some(bitmap) = &description.bitmap {
        head.push_str(", fields");
        for de in bitmap.announced.iter() {
            write!(head, " {de}").unwrap_or_default();
        }
    }
    writeln!(out, "{head}")?;
    match told.header.as_deref() {
        Some("") => {}
        Some(hex) => writeln!(out, "  header {hex}")?,
        None => writeln!(out, "  header {HIDDEN}")?,
    }
    if let Some(code) = told.rejected {
        writeln!(out, "  rejected by the network, reject code {code}: its sender gets it back")?;
    }
    for field in &description.fields {
        line(field, out)?;
    }
    if let Some(fault) = &description.fault {
        let name = if fault.name.is_empty() { String::new() } else { format!(" ({})", fault.name) };
        let in_input = told.message_at.map(|message| message.saturating_add(fault.at));
        let in_input = in_input.map(|at| format!(", {at} in the input")).unwrap_or_default();
        writeln!(
            out,
            "  fault: field {}{name}, offset {} in the message{in_input}: {}",
            fault.field, fault.at, fault.expected
        )?;
    }
    Ok(())
}

fn line(field: &DescribedField, out: &mut impl Write) -> io::Result<()> {
    let value = match &field.shown {
        Shown::Clear(value) | Shown::Cut(value) => value,
        Shown::Hidden => HIDDEN,
    };
    let bytes = counted(field.raw_bytes, "byte");
    writeln!(out, "  {:>3}  {:<40}  {bytes:>9}  {value}", field.de, field.name)
}

/// Why a frame has no message, in words.
pub(super) fn no_header(reading: &Reading, fault: HeaderFault) -> String {
    format!("{fault} ({})", reading.header)
}

fn found(search: &Search, out: &mut impl Write) -> io::Result<()> {
    for fit in &search.fits {
        writeln!(out, "  fits: it reads to its end as {fit}")?;
    }
    if search.more > 0 {
        writeln!(out, "  fits: and {} more, of which the first {FITS_MAX} are said", search.more)?;
    }
    if !search.fits.is_empty() {
        return Ok(());
    }
    match &search.farthest {
        Some(farthest) => writeln!(
            out,
            "  fits: no preset, framing and usual header; farthest goes {}, to field {} at offset {} \
             in the input",
            farthest.reading, farthest.field, farthest.at
        ),
        None => writeln!(out, "  fits: no preset, framing and usual header"),
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
