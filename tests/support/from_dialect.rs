//! Messages in ASCII 1987 (`iso87_ascii`), built from the values of their fields, for tests of the
//! core that try many fields and care for none: it has every field that the dialect has and fills
//! up short values. What stands on sockets is built by `message`, which knows nothing of tollgate
//! and takes no value that does not fit.

use std::sync::LazyLock;

use tollgate::iso8583::{DataEncoding, Dialect, Length, Padding};

static DIALECT: LazyLock<Dialect> = LazyLock::new(|| Dialect::preset("iso87_ascii").unwrap());

/// A message of these fields, in whatever order they are given. Lengths are written as the dialect
/// has them and short values are filled up; binary fields are given in hexadecimal digits.
pub(crate) fn message<T: AsRef<str>>(mti: &str, fields: &[(u8, T)]) -> Vec<u8> {
    let mut fields: Vec<_> = fields.iter().map(|(de, value)| (*de, value.as_ref())).collect();
    fields.sort_unstable();
    let secondary = fields.iter().any(|(de, _)| *de > 64);
    let mut bits = if secondary { 1_u128 << 127 } else { 0 };
    let mut data = String::new();
    for (de, value) in fields {
        bits |= 1 << (128 - u32::from(de));
        push_field(&mut data, de, value);
    }
    let bitmap = if secondary { format!("{bits:032X}") } else { format!("{:016X}", bits >> 64) };
    format!("{mti}{bitmap}{data}").into_bytes()
}

fn push_field(out: &mut String, de: u8, value: &str) {
    let spec = DIALECT.field(de).unwrap_or_else(|| panic!("no field {de}"));
    let characters = match spec.data {
        DataEncoding::HexAscii => usize::from(spec.max) * 2,
        _ => usize::from(spec.max),
    };
    assert!(value.len() <= characters, "field {de} is too long");
    match (spec.length, spec.padding) {
        (Length::Prefixed(prefix), _) => {
            let digits = usize::from(prefix.digits);
            out.push_str(&format!("{:0digits$}{value}", value.len()));
        }
        (Length::Fixed, Padding::LeftZero) => out.push_str(&format!("{value:0>characters$}")),
        (Length::Fixed, _) => out.push_str(&format!("{value:<characters$}")),
    }
}
