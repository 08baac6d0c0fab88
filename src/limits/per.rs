//! What has a bucket of its own: the dimensions of a limit.

use std::fmt;

/// Something that messages differ by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dimension {
    /// The terminal of an acquirer.
    Terminal,
    /// The card acceptor of an acquirer.
    Merchant,
    /// The issuer's number.
    Bin,
    /// What the merchant sells.
    Mcc,
    /// What the transaction does.
    Operation,
    /// The link that the message came in on.
    Link,
}

impl Dimension {
    /// Every dimension, the narrowest first.
    pub const ALL: [Self; 6] =
        [Self::Terminal, Self::Merchant, Self::Bin, Self::Mcc, Self::Operation, Self::Link];

    /// The name in configuration and in the names of keys.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Merchant => "merchant",
            Self::Bin => "bin",
            Self::Mcc => "mcc",
            Self::Operation => "operation",
            Self::Link => "link",
        }
    }
}

/// Some dimensions: a limit has a bucket for each combination of their values.
///
/// They are ordered by how narrow they are, the widest, none at all, first: a terminal is narrower
/// than a merchant, a merchant than a BIN, and more dimensions than fewer of the same.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Per(u8);

impl Per {
    /// No dimension: one bucket for everything.
    pub const NOTHING: Self = Self(0);
    /// Each terminal.
    pub const TERMINAL: Self = Self::of(&[Dimension::Terminal]);
    /// Each merchant.
    pub const MERCHANT: Self = Self::of(&[Dimension::Merchant]);
    /// Each issuer's number.
    pub const BIN: Self = Self::of(&[Dimension::Bin]);
    /// Each merchant category.
    pub const MCC: Self = Self::of(&[Dimension::Mcc]);
    /// Each operation.
    pub const OPERATION: Self = Self::of(&[Dimension::Operation]);
    /// Each link.
    pub const LINK: Self = Self::of(&[Dimension::Link]);

    /// These dimensions.
    pub const fn of(dimensions: &[Dimension]) -> Self {
        let mut bits = 0;
        let mut rest = dimensions;
        while let [first, others @ ..] = rest {
            bits |= Self::bit(*first);
            rest = others;
        }
        Self(bits)
    }

    /// Whether `dimension` is among them.
    #[inline]
    pub const fn has(self, dimension: Dimension) -> bool {
        self.0 & Self::bit(dimension) != 0
    }

    /// Whether all of these are also in `other`.
    #[inline]
    pub const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// These and those of `other`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These without `dimension`.
    #[must_use]
    pub const fn without(self, dimension: Dimension) -> Self {
        Self(self.0 & !Self::bit(dimension))
    }

    /// Whether there is none.
    pub const fn is_nothing(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Each of them, the narrowest first.
    pub fn iter(self) -> impl Iterator<Item = Dimension> {
        Dimension::ALL.into_iter().filter(move |dimension| self.has(*dimension))
    }

    /// The narrowest has the highest bit, so that the numbers are in the order of narrowness.
    const fn bit(dimension: Dimension) -> u8 {
        0x20 >> (dimension as u8)
    }
}

/// `bin+operation`, or `everything`.
impl fmt::Display for Per {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nothing() {
            return f.write_str("everything");
        }
        for (at, dimension) in self.iter().enumerate() {
            let mark = if at == 0 { "" } else { "+" };
            write!(f, "{mark}{}", dimension.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Per {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrower_dimensions_are_greater_and_more_are_greater_than_fewer_of_them() {
        use Dimension::{Bin, Link, Merchant};
        let ascending = [
            Per::NOTHING,
            Per::LINK,
            Per::OPERATION,
            Per::MCC,
            Per::BIN,
            Per::of(&[Link, Bin]),
            Per::MERCHANT,
            Per::of(&[Bin, Merchant]),
            Per::TERMINAL,
        ];
        assert!(ascending.is_sorted() && !ascending.iter().any(|per| *per > Per::TERMINAL));
        assert_eq!(Per::of(&[Link, Bin]).to_string(), "bin+link");
        assert_eq!(Per::NOTHING.to_string(), "everything");
        assert!(Per::BIN.is_within(Per::of(&[Link, Bin])) && !Per::MCC.is_within(Per::BIN));
    }
}
