//! The same ordinary purchase in every preset: 15 fields, as far as the preset has them.

use crate::encoder::{Fields, Table};

/// A field that is longer in some preset is filled up with zeroes.
const VALUES: [(u8, &str); 15] = [
    (2, "4111111111111111"),
    (3, "000000"),
    (4, "000000012345"),
    (7, "0604123456"),
    (11, "123456"),
    (12, "123456"),
    (13, "0604"),
    (22, "051"),
    (25, "00"),
    (32, "123456"),
    (37, "060456123456"),
    (41, "TERMID01"),
    (42, "MERCHANT0000001"),
    (43, "COFFEE AND CAKE, LONG ROATOWN         GB"),
    (49, "826"),
];

/// The purchase as a preset writes it. `iso8583_rs_sample` has only four of its fields.
pub(crate) fn purchase(preset: &str) -> Vec<u8> {
    let path = format!("{}/src/iso8583/presets/{preset}.csv", env!("CARGO_MANIFEST_DIR"));
    let table = Table::read(&std::fs::read_to_string(path).expect("the preset's table"));
    let known = table.fields();
    let mut fields = Fields::from([(0, "0100".to_owned())]);
    for (de, value) in VALUES.into_iter().filter(|(de, _)| known.contains(de)) {
        let row = table.field(de);
        let width = if row.is_fixed() { row.units_max() } else { value.len() };
        fields.insert(de, format!("{value:0>width$}"));
    }
    assert!(fields.len() > 4, "{preset}");
    table.encode(&fields)
}
