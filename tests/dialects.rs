//! What docs/dialects.md shows is what is built: its configuration is the file of the fixtures, the
//! dialect in it reads the message beside it, and no preset and no key is left out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test states its expectations"
)]

#[path = "support/hex.rs"]
mod hex;

use std::sync::Arc;

use hex::from_hex;
use tollgate::config::Config;
use tollgate::iso8583::{Dialect, FaultKind, Length, LengthKind, Spans, View};

const DOCUMENT: &str = include_str!("../docs/dialects.md");
const CONFIGURATION: &str = include_str!("../fixtures/config/valid/own_dialect.toml");

fn own(text: &str) -> Config {
    Config::parse(text).unwrap_or_else(|faults| panic!("{faults}"))
}

/// The message that the document decodes: its longest line of hexadecimal digits.
fn sample() -> Vec<u8> {
    let is_hex = |line: &&str| !line.is_empty() && line.bytes().all(|b| b.is_ascii_hexdigit());
    let hex = DOCUMENT.lines().map(str::trim).filter(is_hex).max_by_key(|line| line.len()).unwrap();
    from_hex(hex)
}

/// The dialect of this name in the file.
fn of(config: &Config, name: &str) -> Arc<Dialect> {
    let found = config.dialects.iter().find(|(known, _)| known == name);
    Arc::clone(&found.unwrap().1)
}

#[test]
fn the_document_shows_the_configuration_that_is_tested() {
    assert!(DOCUMENT.contains(&format!("```toml\n{CONFIGURATION}```\n")));
    let config = own(CONFIGURATION);
    assert_eq!(config.links[0].dialect, of(&config, "domestic"));
    assert_eq!(config.warnings(), Vec::<String>::new());
}

#[test]
fn the_example_reads_its_message_and_the_preset_alone_does_not() {
    let config = own(CONFIGURATION);
    let dialect = of(&config, "domestic");
    let body = sample();
    let mut spans = Spans::default();
    let view = View::parse(&dialect, &body, &mut spans).unwrap();
    assert_eq!(view.fault(), None);
    assert!(view.fields().iter().eq([2, 3, 4, 11, 41, 42, 48, 49]));
    let text = |de| String::from_utf8(view.text::<40>(de).unwrap().as_bytes().to_vec()).unwrap();
    for (de, said) in [
        (2, "378282246310005"),
        (4, "000000012345"),
        (41, "TERM0001"),
        (48, "LOYALTY=0042"),
        (49, "826"),
    ] {
        assert_eq!(text(de), said, "field {de}");
    }
    assert_eq!(view.pan().unwrap().to_string(), "378282*****0005");
    assert_eq!(view.merchant().unwrap().name(), b":SHOP0001");

    let preset = Dialect::preset("iso87_bcd").unwrap();
    let view = View::parse(&preset, &body, &mut spans).unwrap();
    assert_eq!(view.fault().unwrap().field, 48);
}

/// What is not written is the base's, to the last key.
#[test]
fn a_section_changes_its_own_keys_and_no_others() {
    let config = own(CONFIGURATION);
    let (dialect, base) = (of(&config, "domestic"), Dialect::preset("iso87_bcd").unwrap());
    let changed = [2, 37, 39, 41, 42, 48, 49, 62];
    for de in 0..=255 {
        let same = dialect.field(de) == base.field(de);
        assert_eq!(same, !changed.contains(&de), "field {de}");
        let renamed = dialect.field_name(de) != base.field_name(de);
        assert_eq!(renamed, [48, 62].contains(&de), "field {de}");
    }
    let (new, old) = (dialect.field(41).unwrap(), base.field(41).unwrap());
    assert_eq!(
        (new.content, new.length, new.max, new.unit),
        (old.content, old.length, old.max, old.unit)
    );
    assert_eq!((dialect.mti(), dialect.bitmap()), (base.mti(), base.bitmap()));
    assert_eq!(dialect.field(62), None);
}

fn with(sections: &str) -> Config {
    own(&format!(
        "[[link]]\nname = \"a\"\nlisten = \"127.0.0.1:0\"\ndialect = \"own\"\nframing = \"be16\"\n\
         [[upstream]]\nname = \"a\"\nconnect = \"127.0.0.1:9\"\n[dialect.own]\n{sections}"
    ))
}

#[test]
fn mti_bitmap_and_a_field_that_the_base_lacks_are_laid_out_as_written() {
    let config = with(
        "base = \"iso87_ascii\"\nmti = \"bcd\"\n\
         [dialect.own.bitmap]\nencoding = \"bin\"\nalways = true\n\
         [dialect.own.field.65]\nlength = \"bitmap\"\nencoding = \"bin\"\n\
         [dialect.own.field.3]\nlength = \"LL\"\nlength_encoding = \"bin\"\n\
         [dialect.own.field.130]\ncontent = \"n\"\nlength = \"fixed\"\nencoding = \"bcd\"\nmax = 3\n\
         unit = \"digits\"\npad = \"left0\"\n",
    );
    let dialect = of(&config, "own");
    let field_3 = dialect.field(3).unwrap();
    assert_eq!((field_3.length.kind(), field_3.max), (LengthKind::Ll, 6));
    assert_eq!(dialect.field(130).unwrap().length, Length::Fixed);
    let mut body =
        b"\x01\x00\x20\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00".to_vec();
    body.extend(b"\x0212\x40\x00\x00\x00\x00\x00\x00\x00\x01\x23");
    let mut spans = Spans::default();
    let view = View::parse(&dialect, &body, &mut spans).unwrap();
    assert_eq!(view.fault(), None);
    assert!(view.fields().iter().eq([3, 130]));
    assert_eq!(view.text::<3>(130).unwrap().as_bytes(), b"123");
    assert_eq!(Dialect::from_table(&dialect.table()).as_ref(), Ok(&*dialect));
}

#[test]
fn a_message_with_a_field_that_its_network_does_not_use_has_a_fault() {
    let config = with("base = \"iso87_ascii\"\n[dialect.own.field.3]\nundefined = true\n");
    let mut spans = Spans::default();
    let body = b"01002000000000000000000000";
    let dialect = of(&config, "own");
    let view = View::parse(&dialect, body, &mut spans).unwrap();
    assert_eq!(view.fault().unwrap().kind, FaultKind::UndefinedField);
}

#[test]
fn a_link_shares_the_dialect_of_the_file_that_it_names() {
    let config = with("base = \"cup_pos_bcd\"\n");
    let own = of(&config, "own");
    assert!(Arc::ptr_eq(&own, &config.links[0].dialect));
    assert_eq!(*own, Dialect::preset("cup_pos_bcd").unwrap());
    assert!(config.dialects.iter().all(|(name, _)| name != "other"));
}

#[test]
fn the_document_names_every_preset_on_a_line_of_its_own_and_every_key() {
    for preset in Dialect::PRESETS {
        let lines = DOCUMENT.lines().filter(|line| line.starts_with(&format!("| `{preset}` | ")));
        assert_eq!(lines.count(), 1, "{preset}");
    }
    for key in [
        "base",
        "mti",
        "bitmap.encoding",
        "bitmap.bytes",
        "always",
        "content",
        "length",
        "length_encoding",
        "encoding",
        "max",
        "unit",
        "pad",
        "name",
        "undefined",
    ] {
        assert!(DOCUMENT.contains(key), "{key}");
    }
}
