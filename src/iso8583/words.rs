//! The words of dialects, one place for each: tables, configurations and what is printed of a
//! dialect all take them from here.

use super::bitmap::BitmapEncoding;
use super::field::{Content, DataEncoding, Padding, Unit};
use super::length::{LengthEncoding, LengthKind};
use super::mti::MtiEncoding;

/// Gives each choice its word, and further words that mean the same where it is read.
macro_rules! words {
    ($($kind:ident { $($choice:ident = $word:literal $(| $other:literal)*),+ $(,)? })+) => {$(
        impl $kind {
            /// Every choice there is.
            pub const ALL: &[Self] = &[$(Self::$choice),+];

            /// The word for it.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$choice => $word),+
                }
            }

            /// The choice of this word.
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word $(| $other)* => Some(Self::$choice),)+
                    _ => None,
                }
            }
        }
    )+};
}

words! {
    MtiEncoding { Ascii = "ascii", Ebcdic = "ebcdic", Bcd = "bcd" }
    BitmapEncoding { Binary = "bin", HexAscii = "hex_ascii", HexEbcdic = "hex_ebcdic" }
    Content {
        A = "a", N = "n", An = "an", Ns = "ns", Ans = "ans", Z = "z", B = "b", Xn = "x+n",
    }
    LengthKind {
        Fixed = "fixed", L = "L", Ll = "LL", Lll = "LLL", Llll = "LLLL", Lllll = "LLLLL",
        Llllll = "LLLLLL", Bitmap = "bitmap",
    }
    LengthEncoding { Ascii = "ascii", Ebcdic = "ebcdic", Bcd = "bcd", Binary = "bin" }
    DataEncoding {
        Ascii = "ascii", Ebcdic = "ebcdic", Bcd = "bcd", BcdTrack = "bcd_z", Binary = "bin",
        HexAscii = "hex_ascii", HexEbcdic = "hex_ebcdic", SignedBcd = "x_ascii+bcd",
    }
    Unit { Chars = "chars", Digits = "digits", Bytes = "bytes" }
    // Blanks after characters are for whoever builds a field; nothing is to be read past them.
    Padding {
        None = "none" | "rightspace", LeftZero = "left0", RightZero = "right0", RightF = "rightF",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! assert_words {
        ($($kind:ident: $count:literal),+) => {$(
            assert_eq!($kind::ALL.len(), $count);
            for choice in $kind::ALL {
                assert_eq!($kind::from_word(choice.word()), Some(*choice));
            }
            assert_eq!($kind::from_word("ASCII"), None);
            assert_eq!($kind::from_word(""), None);
        )+};
    }

    #[test]
    fn every_choice_has_a_word_of_its_own() {
        assert_words!(MtiEncoding: 3, BitmapEncoding: 3, Content: 8, LengthKind: 8);
        assert_words!(LengthEncoding: 4, DataEncoding: 8, Unit: 3, Padding: 4);
        assert_eq!(Padding::from_word("rightspace"), Some(Padding::None));
    }
}
