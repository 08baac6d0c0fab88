//! `tollgate decode`: a message, or a capture of them, told field by field, and where and why one
//! cannot be read.
//!
//! What is printed of a message is what `iso8583::Description` lets be seen; nothing else of an
//! input is ever repeated, in no error either. All that is found goes to standard output, faults of
//! messages too: they are what was asked for. Standard error has what kept it from looking.

mod fits;
mod json;
mod reading;
mod text;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use super::dialect::NoDialect;
use super::input::Input;
use super::{EXIT_FORCED, EXIT_USAGE};
use crate::wire::{HeaderFault, RejectCode};
use fits::{Search, Subject, search};
use reading::{Message, NamedDialect, Piece, Reading, Uncut, cut};

/// How many messages of an input are searched for a reading that fits: a wrong option breaks all
/// of them alike.
const SEARCHES_MAX: usize = 16;

/// The arguments. They hold messages, so they have no `Debug`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// A configuration whose [dialect.NAME] sections may be named.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The layout of the message: a preset, or a dialect of the configuration.
    #[arg(long, value_name = "NAME")]
    dialect: String,
    /// How frames are told apart; with none the input is one message without a length.
    #[arg(long, value_name = "FRAMING", default_value = "none", hide_default_value = true)]
    framing: String,
    /// What stands before the MTI: none, tpdu, tpdu+N, visa, base24, fixed:N.
    #[arg(long, value_name = "HEADER", default_value = "none", hide_default_value = true)]
    header: String,
    /// One JSON object a line instead of text for people.
    #[arg(long)]
    json: bool,
    /// Hexadecimal digits (blanks allowed), a file of them or of raw bytes, or - for standard input.
    #[arg(value_name = "INPUT", required = true)]
    input: Vec<OsString>,
}

/// One part of the input, as it is told.
struct Record {
    /// Where it begins in the input, its length included.
    at: usize,
    content: Content,
    /// What was found when it does not fit.
    search: Option<Search>,
}

enum Content {
    Keepalive { bytes: usize },
    Message(Told),
    NoHeader { bytes: usize, fault: HeaderFault },
    Rest { bytes: usize, why: Uncut },
}

/// A message, and what only its frame knows.
struct Told {
    header: Option<String>,
    rejected: Option<RejectCode>,
    /// Where its MTI stands in the input; `None` when the frame came in parts.
    message_at: Option<usize>,
    description: crate::iso8583::Description,
}

/// Why nothing is decoded.
struct Refusal {
    exit: u8,
    why: String,
}

impl Refusal {
    fn usage(why: impl ToString) -> Self {
        Self { exit: EXIT_USAGE, why: why.to_string() }
    }
}

/// Decodes what the arguments say: exit 0, 1 when a message has a fault or bytes are left over, 64
/// or 78 when nothing can be decoded.
pub(super) fn decode(arguments: &Arguments) -> ExitCode {
    let decoded = reading(arguments)
        .and_then(|reading| Ok((reading, Input::read(&arguments.input).map_err(Refusal::usage)?)));
    let (reading, input) = match decoded {
        Ok(decoded) => decoded,
        Err(refusal) => {
            let _ = writeln!(io::stderr().lock(), "tollgate decode: {}", refusal.why);
            return refusal.exit.into();
        }
    };
    let bytes = meant(&reading, &input);
    let mut out = BufWriter::new(io::stdout().lock());
    let told = if arguments.json {
        tell(&reading, bytes, |record| json::write(&reading, record, &mut out))
    } else {
        let mut number = 0;
        tell(&reading, bytes, |record| {
            number += usize::from(matches!(record.content, Content::Message(_)));
            text::write(&reading, number, record, &mut out)
        })
    };
    // Whoever closed the pipe has not heard whether the rest is sound.
    match told.and_then(|sound| out.flush().map(|()| sound)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) | Err(_) => EXIT_FORCED.into(),
    }
}

fn reading(arguments: &Arguments) -> Result<Reading, Refusal> {
    let framing = match arguments.framing.as_str() {
        "none" => None,
        name => Some(
            super::wire::framing(name).map_err(|why| Refusal::usage(format!("{why}, or none")))?,
        ),
    };
    let header = super::wire::header(&arguments.header).map_err(Refusal::usage)?;
    Ok(Reading { framing, header, dialect: dialect(arguments)? })
}

fn dialect(arguments: &Arguments) -> Result<NamedDialect, Refusal> {
    let name = arguments.dialect.as_str();
    let found = super::dialect::find(arguments.config.as_deref(), name);
    let layout = found.map_err(|NoDialect { exit, why }| Refusal { exit, why })?;
    Ok(NamedDialect { name: Arc::from(name), layout })
}

/// A file of ASCII digits may be hexadecimal or what it is: what reads without a fault is meant.
fn meant<'a>(reading: &Reading, input: &'a Input) -> &'a [u8] {
    let Some(as_it_came) = &input.as_it_came else { return &input.bytes };
    if !is_sound(reading, &input.bytes) && is_sound(reading, as_it_came) {
        as_it_came
    } else {
        &input.bytes
    }
}

/// Whether all of an input is read without a fault.
fn is_sound(reading: &Reading, input: &[u8]) -> bool {
    let mut sound = true;
    let seen = cut(input, reading.framing, |piece| -> Result<bool, io::Error> {
        sound = match piece {
            Piece::Keepalive { .. } => true,
            Piece::Frame { frame, .. } => Message::read(reading, frame)
                .is_ok_and(|message| message.description.fault.is_none()),
            Piece::Rest { .. } => false,
        };
        Ok(sound)
    });
    seen.is_ok() && sound
}

/// Tells every part of an input in its order: whether all of it could be read.
fn tell(
    reading: &Reading,
    input: &[u8],
    mut each: impl FnMut(&Record) -> io::Result<()>,
) -> io::Result<bool> {
    let (mut sound, mut searches, mut messages) = (true, 0, 0);
    let mut presets = None;
    cut(input, reading.framing, |piece| -> io::Result<bool> {
        let mut record = record(reading, &piece);
        messages += usize::from(matches!(piece, Piece::Frame { .. }));
        // While no message was read before, the framing may be wrong as well as all else.
        let all = (messages <= 1 && searches == 0).then_some(input);
        if let Some(subject) = subject(all, &piece, &record) {
            if searches < SEARCHES_MAX {
                searches += 1;
                let presets = presets.get_or_insert_with(fits::presets);
                let found = search(&subject, reading, presets);
                if let (Content::Message(told), false) =
                    (&mut record.content, found.fits.is_empty())
                {
                    told.conceal();
                }
                record.search = Some(found);
            }
            sound = false;
        }
        each(&record)?;
        Ok(true)
    })?;
    Ok(sound)
}

fn record(reading: &Reading, piece: &Piece<'_>) -> Record {
    let (at, content) = match *piece {
        Piece::Keepalive { at, bytes } => (at, Content::Keepalive { bytes }),
        Piece::Rest { at, bytes, why } => (at, Content::Rest { bytes, why }),
        Piece::Frame { at, frame_at, frame } => match Message::read(reading, frame) {
            Err(fault) => (at, Content::NoHeader { bytes: frame.len(), fault }),
            Ok(Message { header, rejected, header_bytes, description }) => {
                let message_at = frame_at.map(|at| at.saturating_add(header_bytes));
                (at, Content::Message(Told { header, rejected, message_at, description }))
            }
        },
    };
    Record { at, content, search: None }
}

/// What is to be searched for a reading that fits, if this part has a fault.
fn subject<'a>(all: Option<&'a [u8]>, piece: &Piece<'a>, record: &Record) -> Option<Subject<'a>> {
    let faulty = match &record.content {
        Content::Keepalive { .. } => false,
        Content::Message(told) => told.description.fault.is_some(),
        Content::NoHeader { .. } | Content::Rest { .. } => true,
    };
    let subject = match *piece {
        Piece::Frame { at, frame_at, frame } => {
            Subject { frame: Some(frame), frame_at: frame_at.unwrap_or(at), all }
        }
        _ => Subject { frame: None, frame_at: record.at, all },
    };
    faulty.then_some(subject)
}

impl Told {
    /// Takes back what it says, where another reading has shown that it is wrong.
    fn conceal(&mut self) {
        self.header = None;
        self.rejected = None;
        self.description.conceal();
    }
}
