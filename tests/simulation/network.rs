//! What the network says: messages of every kind, from small spaces of STANs, terminals and cards,
//! so that their answers are easily mistaken for each other's.

use std::collections::HashSet;

use crate::message::message;

/// Fields and their values.
pub(crate) type Fields = Vec<(u8, String)>;

/// A message as its sender means it.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) mti: String,
    pub(crate) fields: Fields,
    pub(crate) frame: Vec<u8>,
    pub(crate) damage: Damage,
}

impl std::fmt::Debug for Draft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:?})", String::from_utf8_lossy(&self.frame), self.damage)
    }
}

/// How a message is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// It is not.
    None,
    /// Bytes follow its last field.
    Trailing,
    /// The length of this field is no number, so that nothing from it on can be read.
    Length(u8),
    /// It has no MTI.
    NoMti,
}

impl Draft {
    pub(crate) fn new(mti: &str, fields: Fields) -> Self {
        let frame = message(mti, &fields);
        Self { mti: mti.to_owned(), fields, frame, damage: Damage::None }
    }

    fn damaged(mut self, damage: Damage, id: usize) -> Self {
        self.damage = damage;
        match damage {
            Damage::None => {}
            Damage::Trailing => self.frame.extend_from_slice(format!("#{id}").as_bytes()),
            Damage::Length(_) => {
                let before: Fields = self.readable();
                let at = message(&self.mti, &before).len();
                self.frame[at] = b'X';
            }
            Damage::NoMti => self.frame = format!("NONE{id}").into_bytes(),
        }
        self
    }

    /// The fields that anybody can read.
    pub(crate) fn readable(&self) -> Fields {
        let first_broken = match self.damage {
            Damage::None | Damage::Trailing => 255,
            Damage::Length(broken) => broken,
            Damage::NoMti => 0,
        };
        self.fields.iter().filter(|(de, _)| *de < first_broken).cloned().collect()
    }
}

pub(crate) fn field(fields: &Fields, de: u8) -> Option<&str> {
    fields.iter().find(|(number, _)| *number == de).map(|(_, value)| value.as_str())
}

const KINDS: [(&str, u32); 18] = [
    ("0100", 40),
    ("0200", 16),
    ("0120", 3),
    ("0121", 2),
    ("0220", 3),
    ("0420", 5),
    ("0421", 3),
    ("0400", 4),
    ("0800", 3),
    ("0140", 2),
    ("0500", 1),
    ("0302", 1),
    ("0102", 1),
    ("1100", 2),
    ("0110", 1),
    ("0180", 1),
    ("0620", 1),
    ("0210", 1),
];

/// What makes up the network's next message.
#[derive(Debug)]
pub(crate) struct Network {
    /// Requests without a STAN are among them.
    pub(crate) omits_stans: bool,
    /// What is sent at one moment is told apart by this; a network does not use a STAN twice.
    used: HashSet<[String; 6]>,
}

impl Network {
    pub(crate) fn new(omits_stans: bool) -> Self {
        Self { omits_stans, used: HashSet::new() }
    }

    /// The message of number `id`, which stands in DE48: a field that nobody is recognised by.
    pub(crate) fn next(&mut self, random: &mut fastrand::Rng, second: u64, id: usize) -> Draft {
        if random.u8(..100) < 2 {
            return Draft::new("0100", Vec::new()).damaged(Damage::NoMti, id);
        }
        let mti = drawn(random);
        let damage = match random.u8(..100) {
            0 | 1 => Damage::Trailing,
            2 => Damage::Length(2),
            3 | 4 => Damage::Length(32),
            _ => Damage::None,
        };
        let mut stan_max = 24;
        let fields = loop {
            // When all of a second's are used up, a few more are.
            stan_max += 1;
            let fields = self.fields(random, mti, second, (id, stan_max), damage);
            let part = |de| field(&fields, de).unwrap_or_default().to_owned();
            let key = [mti[..3].to_owned(), part(11), part(7), part(32), part(41), part(42)];
            if self.used.insert(key) {
                break fields;
            }
        };
        Draft::new(mti, fields).damaged(damage, id)
    }

    fn fields(
        &self,
        random: &mut fastrand::Rng,
        mti: &str,
        second: u64,
        (id, stan_max): (usize, usize),
        damage: Damage,
    ) -> Fields {
        let card = format!("41111{}111111{:04}", random.u8(..3), random.u8(..4));
        let mut fields: Fields = vec![
            (3, ["000000", "200000", "310000", "010000"][random.usize(..4)].to_owned()),
            (4, format!("{:012}", random.u32(1..4) * 100)),
            (7, format!("{:010}", 1_201_120_000 + second)),
            (12, format!("{:06}", 120_000 + second)),
            (32, format!("{}", 900_000 + random.u32(..2))),
            (41, format!("TERM{:04}", random.u8(..4))),
            (42, format!("SHOP{:011}", random.u8(..2))),
            (48, format!("M{id}")),
            (49, "978".to_owned()),
        ];
        if random.u8(..10) < 8 {
            fields.push((2, card.clone()));
        }
        if random.bool() {
            fields.push((14, "3012".to_owned()));
            fields.push((35, format!("{card}=30121010000000000000")));
        }
        if random.u8(..4) > 0 {
            fields.push((37, format!("{:012}", random.u32(..1_000_000))));
        }
        if random.u8(..4) == 0 {
            fields.push((45, format!("B{card}^DOE/JOHN^3012")));
            fields.push((52, "0123456789ABCDEF".to_owned()));
            fields.push((53, "1".repeat(16)));
            fields.push((55, "9F2608AAAAAAAAAAAAAAAA".to_owned()));
        }
        if mti.starts_with("04") && random.bool() {
            fields.push((90, "0".repeat(42)));
        }
        if damage == Damage::None && random.u8(..100) < 8 {
            let mac = if random.bool() { 64 } else { 128 };
            fields.push((mac, "FEDCBA9876543210".to_owned()));
        }
        // What cannot be read to its terminal is told apart by a STAN of its own.
        let stan = match damage {
            Damage::Length(_) => Some(900_000 + id),
            _ if self.omits_stans && random.u8(..10) == 0 => None,
            _ => Some(random.usize(1..stan_max)),
        };
        if let Some(stan) = stan {
            fields.push((11, format!("{stan:06}")));
        }
        fields.sort_unstable();
        if matches!(damage, Damage::Length(_)) {
            fields.retain(|(de, _)| *de < 64);
            if field(&fields, 2).is_none() {
                fields.insert(0, (2, card));
            }
        }
        fields
    }

    /// The same transaction once more: only its number differs, and perhaps the MTI says so.
    pub(crate) fn again(random: &mut fastrand::Rng, original: &Draft, id: usize) -> Draft {
        let mut fields = original.fields.clone();
        for (de, value) in &mut fields {
            if *de == 48 {
                *value = format!("M{id}");
            }
        }
        let mut mti = original.mti.clone();
        if random.bool() && mti.ends_with('0') {
            mti.replace_range(3.., "1");
        }
        Draft::new(&mti, fields)
    }
}

fn drawn(random: &mut fastrand::Rng) -> &'static str {
    let total: u32 = KINDS.iter().map(|(_, weight)| weight).sum();
    let mut left = random.u32(..total);
    for (mti, weight) in KINDS {
        if left < weight {
            return mti;
        }
        left -= weight;
    }
    unreachable!("the weights add up")
}
