//! For every preset, messages of every field at every kind of length come from an encoder of the
//! tests' own and are walked to their exact end; and what tollgate answers to them is, byte for
//! byte, what that encoder would have built.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test states its expectations"
)]

#[path = "support/csv.rs"]
mod csv;
#[path = "support/encoder.rs"]
mod encoder;
#[path = "support/fixtures.rs"]
mod fixtures;
#[path = "support/luhn.rs"]
mod luhn;

#[path = "preset_round_trip/answering.rs"]
mod answering;
#[path = "preset_round_trip/walking.rs"]
mod walking;

use encoder::{Fields, Row, Table};
use fastrand::Rng;
use tollgate::iso8583::Dialect;

struct Preset {
    name: &'static str,
    table: Table,
    dialect: Dialect,
}

impl Preset {
    fn all() -> Vec<Self> {
        let presets: Vec<_> = Dialect::PRESETS.iter().map(|name| Self::of(name)).collect();
        assert_eq!(presets.len(), 12);
        presets
    }

    fn of(name: &'static str) -> Self {
        let table = Table::read(&fixtures::preset(name));
        Self { name, table, dialect: Dialect::preset(name).expect("a preset") }
    }

    /// Values for these fields, of these many units each.
    fn fields(
        &self,
        mti: &str,
        fields: &[u8],
        rng: &mut Rng,
        units: impl Fn(&Row, &mut Rng) -> usize,
    ) -> Fields {
        let values = fields.iter().map(|de| {
            let row = self.table.field(*de);
            let units = if row.is_fixed() { row.units_max() } else { units(row, rng) };
            (*de, row.value(units, rng))
        });
        values.chain([(0, mti.to_owned())]).collect()
    }
}
