//! The message type indicator: four digits that say what a message is and whether it is answered.

use std::fmt;

use super::ebcdic;
use super::fault::Unreadable;
use super::reader::Reader;

/// Version, class, function and origin of a message: 0100, 1420, 0800 …
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Mti {
    version: u8,
    class: u8,
    function: u8,
    origin: u8,
}

impl Mti {
    /// From four digits (values 0 to 9, not characters); `None` when one is not a digit.
    pub fn from_digits(digits: [u8; 4]) -> Option<Self> {
        let [version, class, function, origin] = digits;
        let all = version <= 9 && class <= 9 && function <= 9 && origin <= 9;
        all.then_some(Self { version, class, function, origin })
    }

    /// First digit: 0 is ISO 8583:1987, 1 is 1993, 2 is 2003.
    pub const fn version(self) -> u8 {
        self.version
    }

    /// Second digit: 1 authorization, 2 financial, 4 reversal, 8 network management.
    pub const fn class(self) -> u8 {
        self.class
    }

    /// Third digit: 0 request, 2 advice, 4 notification, and their answers one higher.
    pub const fn function(self) -> u8 {
        self.function
    }

    /// Fourth digit: 0 acquirer, 2 issuer, 4 other, and their repeats one higher.
    pub const fn origin(self) -> u8 {
        self.origin
    }

    /// All four digits as a number: 100 for 0100.
    pub fn number(self) -> u16 {
        let digits = [self.version, self.class, self.function, self.origin];
        // At most 9999, so nothing saturates.
        digits
            .iter()
            .fold(0u16, |number, digit| number.saturating_mul(10).saturating_add(u16::from(*digit)))
    }

    /// All four digits, to be compared at once.
    #[inline]
    pub(super) const fn word(self) -> u32 {
        u32::from_ne_bytes([self.version, self.class, self.function, self.origin])
    }

    /// The type of the answer to this message: the function goes up by one, and a repeat is
    /// answered as its original is (0101 by 0110). `None` for what is an answer itself, and for
    /// functions that no answer is defined for.
    pub const fn response(self) -> Option<Self> {
        match self.function {
            0 | 2 | 4 | 6 => {
                Some(Self { function: self.function | 1, origin: self.origin & !1, ..self })
            }
            _ => None,
        }
    }

    /// Whether this is an answer to some other message.
    pub const fn is_answer(self) -> bool {
        matches!(self.function, 1 | 3 | 5 | 7)
    }

    /// Whether its sender waits for an answer. A notification may be acknowledged, but nobody waits.
    pub const fn expects_answer(self) -> bool {
        matches!(self.function, 0 | 2 | 6)
    }

    /// Whether tollgate may answer it itself: an authorization or financial request that an
    /// acquirer sent, in a version of which the codes are known. Nothing else, whatever it says.
    pub const fn answerable(self) -> bool {
        self.version <= 2
            && matches!(self.class, 1 | 2)
            && self.function == 0
            && matches!(self.origin, 0 | 1)
    }

    /// The first digit that stands for nothing in the standard: versions after 2003, classes 0 and 9,
    /// functions 8 and 9, origins 6 to 9. Networks use some of them by private agreement.
    pub const fn unknown_part(self) -> Option<MtiPart> {
        match self {
            Self { version: 3.., .. } => Some(MtiPart::Version),
            Self { class: 0 | 9.., .. } => Some(MtiPart::Class),
            Self { function: 8.., .. } => Some(MtiPart::Function),
            Self { origin: 6.., .. } => Some(MtiPart::Origin),
            _ => None,
        }
    }

    /// Whether its sender says that it sent this before.
    pub const fn is_repeat(self) -> bool {
        matches!(self.origin, 1 | 3 | 5)
    }
}

/// A digit of an MTI.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum MtiPart {
    /// The first.
    Version,
    /// The second.
    Class,
    /// The third.
    Function,
    /// The fourth.
    Origin,
}

impl MtiPart {
    /// All four, in order.
    pub const ALL: [Self; 4] = [Self::Version, Self::Class, Self::Function, Self::Origin];

    /// The name in metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Class => "class",
            Self::Function => "function",
            Self::Origin => "origin",
        }
    }
}

/// The four digits.
impl fmt::Display for Mti {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}{}", self.version, self.class, self.function, self.origin)
    }
}

/// How a dialect writes the MTI.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum MtiEncoding {
    /// Four ASCII digits.
    Ascii,
    /// Four EBCDIC digits.
    Ebcdic,
    /// Two bytes of two digits each.
    Bcd,
}

impl MtiEncoding {
    #[inline]
    pub(super) fn read(self, reader: &mut Reader<'_>) -> Result<Mti, Unreadable> {
        let digits = match self {
            Self::Ascii | Self::Ebcdic => {
                let zero = if self == Self::Ascii { b'0' } else { ebcdic::ZERO };
                let digits = reader.take_array::<4>().ok_or(Unreadable::Truncated)?;
                digits.map(|digit| digit.wrapping_sub(zero))
            }
            Self::Bcd => {
                let [first, second] = *reader.take_array::<2>().ok_or(Unreadable::Truncated)?;
                [first >> 4, first & 15, second >> 4, second & 15]
            }
        };
        Mti::from_digits(digits).ok_or(Unreadable::Digits)
    }

    pub(crate) fn write(self, mti: Mti, out: &mut Vec<u8>) {
        let digits = [mti.version, mti.class, mti.function, mti.origin];
        match self {
            Self::Ascii => out.extend(digits.map(|digit| digit | b'0')),
            Self::Ebcdic => out.extend(digits.map(|digit| digit | ebcdic::ZERO)),
            Self::Bcd => {
                out.extend([mti.version << 4 | mti.class, mti.function << 4 | mti.origin]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mti(number: u16) -> Mti {
        let digit = |place: u16| u8::try_from(number / place % 10).unwrap();
        Mti::from_digits([digit(1000), digit(100), digit(10), digit(1)]).unwrap()
    }

    #[test]
    fn an_answer_has_the_type_that_the_standard_gives_it() {
        for (request, answer) in [
            (100, 110),
            (101, 110),
            (120, 130),
            (121, 130),
            (200, 210),
            (201, 210),
            (202, 212),
            (203, 212),
            (204, 214),
            (205, 214),
            (400, 410),
            (401, 410),
            (420, 430),
            (421, 430),
            (440, 450),
            (800, 810),
            (801, 810),
            (1100, 1110),
            (1101, 1110),
            (1120, 1130),
            (1121, 1130),
            (1200, 1210),
            (1220, 1230),
            (1221, 1230),
            (1420, 1430),
            (1421, 1430),
            (1804, 1814),
            (2100, 2110),
        ] {
            assert_eq!(mti(request).response(), Some(mti(answer)), "{request:04}");
        }
    }

    #[test]
    fn no_answer_is_ever_answered() {
        for number in 0..10_000 {
            let mti = mti(number);
            assert_eq!(mti.number(), number);
            assert_eq!(mti.to_string(), format!("{number:04}"));
            match mti.response() {
                Some(response) => {
                    assert!(response.is_answer() && !response.is_repeat());
                    assert_eq!(response.response(), None);
                    assert_eq!(response.number() / 10, number / 10 + 1);
                }
                None => assert!(mti.is_answer() || mti.function() >= 8),
            }
        }
    }

    #[test]
    fn a_digit_that_the_standard_does_not_give_is_named() {
        let part = |number| mti(number).unknown_part().map(MtiPart::name);
        for known in [100, 101, 205, 420, 800, 1804, 2100, 670] {
            assert_eq!(part(known), None, "{known:04}");
        }
        let named = [3100, 8100, 0, 900, 180, 290, 106, 9999].map(part).map(Option::unwrap);
        let (version, class) = ("version", "class");
        let function = "function";
        assert_eq!(named, [version, version, class, class, function, function, "origin", version]);
    }

    #[test]
    fn only_acquirers_authorization_and_financial_requests_are_answerable() {
        let answerable: Vec<u16> = (0..10_000).filter(|number| mti(*number).answerable()).collect();
        assert_eq!(
            answerable,
            [100, 101, 200, 201, 1100, 1101, 1200, 1201, 2100, 2101, 2200, 2201]
        );
    }

    #[test]
    fn four_digits_in_the_dialects_encoding_are_an_mti_and_nothing_else_is() {
        for (encoding, bytes) in [
            (MtiEncoding::Ascii, &b"0420"[..]),
            (MtiEncoding::Ebcdic, &[0xf0, 0xf4, 0xf2, 0xf0]),
            (MtiEncoding::Bcd, &[0x04, 0x20]),
        ] {
            assert_eq!(encoding.read(&mut Reader::new(bytes)), Ok(mti(420)));
            let mut written = Vec::new();
            encoding.write(mti(420), &mut written);
            assert_eq!(written, bytes);
            let short = bytes.split_last().unwrap().1;
            assert_eq!(encoding.read(&mut Reader::new(short)), Err(Unreadable::Truncated));
            let mut wrong = bytes.to_vec();
            wrong[1] = 0xfa;
            assert_eq!(encoding.read(&mut Reader::new(&wrong)), Err(Unreadable::Digits));
        }
    }
}
