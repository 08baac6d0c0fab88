//! `tollgate check`: what is wrong with a configuration or what it amounts to, and what a dialect is.

mod connect;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use super::{EXIT_CONFIG, dialect};
use crate::config::Config;
use crate::iso8583::{BitmapEncoding, BitmapLayout, BitmapRule, Dialect, MtiEncoding};

/// Says what is wrong with a configuration, or what it amounts to, or what a dialect is.
pub(super) fn check(path: Option<&Path>, connect: bool, dialect: Option<&str>) -> ExitCode {
    match (dialect, path) {
        (Some(name), config) => match dialect::find(config, name) {
            Ok(dialect) => print(|out| out.write_all(dialect_in_words(name, &dialect).as_bytes())),
            Err(none) => none.tell(),
        },
        (None, Some(path)) => match Config::load(path) {
            Ok(config) => {
                let sound = print(|out| describe(path, &config, out));
                if connect { connect::connect(&config) } else { sound }
            }
            Err(error) => {
                let _ = writeln!(io::stderr().lock(), "{}: {error}", path.display());
                EXIT_CONFIG.into()
            }
        },
        (None, None) => ExitCode::SUCCESS,
    }
}

fn print(write: impl FnOnce(&mut io::StdoutLock<'_>) -> io::Result<()>) -> ExitCode {
    // Whoever closed the pipe does not want to read it.
    let _ = write(&mut io::stdout().lock());
    ExitCode::SUCCESS
}

fn dialect_in_words(name: &str, dialect: &Dialect) -> String {
    let mti = match dialect.mti() {
        MtiEncoding::Ascii => "four ASCII digits",
        MtiEncoding::Ebcdic => "four EBCDIC digits",
        MtiEncoding::Bcd => "two bytes of two digits each",
    };
    let fields = table(dialect);
    format!(
        "dialect {name}\nmti: {}, {mti}\nbitmap: {}\n\n{fields}",
        dialect.mti().word(),
        bitmap_in_words(dialect.bitmap()),
    )
}

fn bitmap_in_words(layout: BitmapLayout) -> String {
    let written = match layout.encoding {
        BitmapEncoding::Binary => "bytes",
        BitmapEncoding::HexAscii => "ASCII hexadecimal digits, two for each byte",
        BitmapEncoding::HexEbcdic => "EBCDIC hexadecimal digits, two for each byte",
    };
    let (word, bytes) = (layout.encoding.word(), layout.bytes_max());
    let words = match (layout.rule, bytes) {
        (BitmapRule::Always, _) => format!("always {bytes} bytes of bits"),
        (BitmapRule::Chained, 8) => "8 bytes of bits".to_owned(),
        (BitmapRule::Chained, _) => {
            format!("8 to {bytes} bytes of bits, each first bit announcing 8 more")
        }
    };
    let third = match layout.third {
        Some(third) => format!("; a third in place of field 65 ({})", third.word()),
        None => String::new(),
    };
    format!("{word}, {words}, written as {written}{third}")
}

/// One line a field, in columns that are as wide as their widest word.
fn table(dialect: &Dialect) -> String {
    const COLUMNS: [&str; 9] =
        ["de", "content", "length", "length_encoding", "encoding", "max", "unit", "pad", "name"];
    /// Column names, MTI and bitmap, which are said above it.
    const LINES_BEFORE_FIELDS: usize = 3;
    let table = dialect.table();
    let fields = table.lines().skip(LINES_BEFORE_FIELDS);
    let mut rows = vec![COLUMNS.to_vec()];
    rows.extend(fields.map(|line| line.splitn(COLUMNS.len(), ',').collect()));
    for row in &mut rows {
        // The name is what a reader looks for.
        if let Some((_, words)) = row.split_first_mut() {
            words.rotate_right(1);
        }
    }
    let width = |column: usize| {
        let words = rows.iter().filter_map(|row| row.get(column));
        words.map(|word| word.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let line = |row: &Vec<&str>| {
        let cells = row.iter().zip(&widths).map(|(word, width)| format!("{word:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

fn describe(path: &Path, config: &Config, out: &mut impl Write) -> std::io::Result<()> {
    for warning in config.warnings() {
        writeln!(out, "warning: {warning}")?;
    }
    for link in &config.links {
        let listen: Vec<_> = link.listener.listen.iter().map(ToString::to_string).collect();
        let (framing, header) = (link.session.framing.name(), link.header);
        writeln!(
            out,
            "link {}: {} ({framing}, header {header}) -> {} at {}, deadline {:?}",
            link.name,
            listen.join(", "),
            link.upstream.name,
            link.upstream.connect.join(", "),
            link.exchange.deadline,
        )?;
    }
    let limits = config.limits.len();
    writeln!(out, "{}: sound, {} links, {limits} limits", path.display(), config.links.len())
}
