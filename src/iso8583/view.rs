//! A borrowed look at one message: what it is, which fields it has, where they lie.
//!
//! A view owns nothing, changes nothing and never shows a message's contents when printed. What it
//! reads of a field's content it checks there; all else is for the host to judge.

use std::fmt;
use std::ops::Range;

use super::dialect::Dialect;
use super::fault::{Fault, Unreadable};
use super::field::DataEncoding;
use super::field_set::FieldSet;
use super::mti::Mti;
use super::reader::Reader;
use super::walk::{Spans, walk};
use crate::pan::{PAN_DIGITS_MAX, Pan};
use crate::traffic::{Mcc, MerchantId, Operation, TerminalId, Text};

/// First digit of the MTI.
const VERSION_1987: u8 = 0;

const CARD_NUMBER: u8 = 2;
const PROCESSING_CODE: u8 = 3;
const MERCHANT_TYPE: u8 = 18;
const BUSINESS_CODE: u8 = 26;
const ACQUIRER: u8 = 32;
const CARD_NUMBER_EXTENDED: u8 = 34;
const TRACK_2: u8 = 35;
const TERMINAL: u8 = 41;
const CARD_ACCEPTOR: u8 = 42;
const TRACK_1: u8 = 45;
const MAC_1: u8 = 64;
const MAC_2: u8 = 128;

/// Shortest run of digits that is taken for a card number: what identifies its issuer.
const PAN_DIGITS_MIN: usize = 8;

/// More characters than a card number, a merchant's name or the head of a track have.
const TRANSLATED_MAX: usize = 64;

/// One message, looked at where it lies.
#[derive(Clone, Copy)]
pub struct View<'a> {
    dialect: &'a Dialect,
    body: &'a [u8],
    spans: &'a Spans,
    /// What the bitmap says.
    announced: FieldSet,
    /// What was read of it.
    fields: FieldSet,
    mti: Mti,
    fault: Option<Fault>,
}

impl<'a> View<'a> {
    /// Walks once over a whole message, MTI first. Fails only if no MTI can be read. A later fault
    /// leaves a view of what was read before it, and [`View::fault`] tells.
    #[inline]
    pub fn parse(
        dialect: &'a Dialect,
        body: &'a [u8],
        spans: &'a mut Spans,
    ) -> Result<Self, Unreadable> {
        if body.len() > usize::from(u16::MAX) {
            return Err(Unreadable::TooLong);
        }
        let mut reader = Reader::new(body);
        let mti = dialect.mti().read(&mut reader)?;
        let (announced, fields, fault) = walk(dialect, &mut reader, spans);
        Ok(Self { dialect, body, spans, announced, fields, mti, fault })
    }

    /// The first fault, if the message has one: it is not known what follows it.
    pub const fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// The dialect it was read in.
    pub const fn dialect(&self) -> &'a Dialect {
        self.dialect
    }

    /// The whole message.
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }

    /// What kind of message it is.
    pub const fn mti(&self) -> Mti {
        self.mti
    }

    /// Whether the field is present and was read.
    #[inline]
    pub const fn has(&self, de: u8) -> bool {
        self.fields.contains(de)
    }

    /// The fields that are present and were read. Bits that announce a further bitmap are none.
    pub const fn fields(&self) -> FieldSet {
        self.fields
    }

    /// The fields that the bitmap says the message has, read or not.
    pub(super) const fn announced(&self) -> FieldSet {
        self.announced
    }

    /// A field's data as they are on the wire, without length prefix.
    #[inline]
    pub fn raw(&self, de: u8) -> Option<&'a [u8]> {
        let data = self.has(de).then(|| self.spans.data(de))??;
        self.body.get(data)
    }

    /// A field's bytes with its length prefix, to be spliced into an answer.
    #[inline]
    pub fn whole(&self, de: u8) -> Option<&'a [u8]> {
        self.body.get(self.range(de)?)
    }

    /// Where in the body a field lies with its length prefix.
    #[inline]
    pub(crate) fn range(&self, de: u8) -> Option<Range<usize>> {
        self.has(de).then(|| self.spans.whole(de))?
    }

    /// A field in characters, whatever its encoding, cut to `N`: digits without padding, EBCDIC as
    /// ASCII, bytes as upper-case hexadecimal digits.
    pub fn text<const N: usize>(&self, de: u8) -> Option<Text<N>> {
        Some(self.dialect.field(de)?.text(self.whole(de)?))
    }

    /// The card number: from field 2, else from track 2, else from track 1, else, where a 1987 or
    /// 1993 message has it, from field 34. What is not 8 to 19 digits is not one.
    pub fn pan(&self) -> Option<Pan> {
        self.read_ascii(CARD_NUMBER, card_number)
            .or_else(|| self.read_ascii(TRACK_2, track_2))
            .or_else(|| self.read_ascii(TRACK_1, track_1))
            .or_else(|| {
                // In 2003 messages field 34 holds something else.
                if self.mti.version() > 1 {
                    return None;
                }
                self.read_ascii(CARD_NUMBER_EXTENDED, card_number)
            })
    }

    /// The first two digits of the processing code, which say what the transaction does.
    pub fn processing_code(&self) -> Option<u8> {
        self.read_ascii(PROCESSING_CODE, |code| match code {
            [tens @ b'0'..=b'9', ones @ b'0'..=b'9', ..] => {
                Some((tens & 15).wrapping_mul(10).wrapping_add(ones & 15))
            }
            _ => None,
        })
    }

    /// What the transaction does, on a link that reads processing codes as the standard does.
    pub fn operation(&self) -> Operation {
        self.processing_code().map_or(Operation::Other, Operation::from_processing_code)
    }

    /// The merchant, if field 42 names one.
    pub fn merchant(&self) -> Option<MerchantId> {
        self.of_acquirer(CARD_ACCEPTOR, MerchantId::new)
    }

    /// The terminal, if field 41 names one.
    pub fn terminal(&self) -> Option<TerminalId> {
        self.of_acquirer(TERMINAL, TerminalId::new)
    }

    /// What the merchant sells: field 26 since 1993, field 18 before that and where 26 is missing.
    pub fn mcc(&self) -> Option<Mcc> {
        let business_code =
            if self.mti.version() == VERSION_1987 { None } else { Some(BUSINESS_CODE) };
        let read = |de| self.read_ascii(de, Mcc::from_ascii);
        business_code.and_then(read).or_else(|| read(MERCHANT_TYPE))
    }

    /// What is told apart by the acquirer beside it.
    #[inline]
    fn of_acquirer<T>(&self, de: u8, read: impl FnOnce(&[u8], &[u8]) -> Option<T>) -> Option<T> {
        self.read_ascii(de, |id| {
            if self.has(ACQUIRER) {
                self.read_ascii(ACQUIRER, |acquirer| read(acquirer, id))
            } else {
                read(b"", id)
            }
        })
    }

    /// Whether the message carries a message authentication code, which tollgate cannot make. The
    /// code is last in a message, so that the bitmap's word for it has to do where a fault lies
    /// before it.
    pub const fn has_mac(&self) -> bool {
        self.announced.contains(MAC_1) || self.announced.contains(MAC_2)
    }

    /// Hands a field's characters to `read`: where it lies if it is ASCII, else a translation.
    #[inline]
    fn read_ascii<T>(&self, de: u8, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let raw = self.raw(de)?;
        match self.dialect.field(de)?.data {
            DataEncoding::Ascii => read(raw),
            _ => read(self.text::<TRANSLATED_MAX>(de)?.as_bytes()),
        }
    }
}

/// What the message is and has, and nothing of what it says.
impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("mti", &format_args!("{}", self.mti))
            .field("bytes", &self.body.len())
            .field("fields", &self.fields)
            .field("fault", &self.fault)
            .finish()
    }
}

fn card_number(digits: &[u8]) -> Option<Pan> {
    if !(PAN_DIGITS_MIN..=PAN_DIGITS_MAX).contains(&digits.len()) {
        return None;
    }
    Pan::from_text(digits)
}

/// The digits up to the separator.
fn track_2(track: &[u8]) -> Option<Pan> {
    card_number(track.split(|character| matches!(character, b'=' | b'D' | b'd')).next()?)
}

/// The digits up to the first separator, after the format code B if there is one.
fn track_1(track: &[u8]) -> Option<Pan> {
    let track = track.strip_prefix(b"B").unwrap_or(track);
    card_number(track.split(|character| *character == b'^').next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIALECT: &str = "iso87_ascii";

    /// A message of these fields, each with its length prefix.
    fn message(mti: &str, fields: &[(u8, &str)]) -> Vec<u8> {
        let mut body = mti.as_bytes().to_vec();
        let numbers = fields.iter().map(|(de, _)| *de).collect();
        Dialect::preset(DIALECT).unwrap().bitmap().write(&numbers, &mut body);
        fields.iter().for_each(|(_, text)| body.extend(text.as_bytes()));
        body
    }

    fn look<T>(body: &[u8], look: impl FnOnce(View<'_>) -> T) -> T {
        let dialect = Dialect::preset(DIALECT).unwrap();
        let mut spans = Spans::default();
        look(View::parse(&dialect, body, &mut spans).unwrap())
    }

    fn pan(mti: &str, fields: &[(u8, &str)]) -> Option<String> {
        look(&message(mti, fields), |view| {
            assert_eq!(view.fault(), None);
            view.pan().map(|pan| pan.to_string())
        })
    }

    #[test]
    fn the_card_number_is_found_wherever_it_is() {
        let visa = Some("411111******1111".to_owned());
        let other = Some("555555******4444".to_owned());
        let field_2 = (2, "164111111111111111");
        let track_2 = (35, "215555555555554444=2912");
        assert_eq!(pan("0100", &[field_2, track_2]), visa);
        assert_eq!(pan("0100", &[track_2]), other);
        assert_eq!(pan("0100", &[(35, "215555555555554444D2912")]), other);
        assert_eq!(pan("0100", &[(45, "24B5555555555554444^DOE/J^")]), other);
        assert_eq!(pan("0100", &[(45, "235555555555554444^DOE/J^")]), other);
        assert_eq!(pan("0100", &[(34, "165555555555554444")]), other);
        assert_eq!(pan("1100", &[(34, "165555555555554444")]), other);
        assert_eq!(pan("2100", &[(34, "165555555555554444")]), None);
        assert_eq!(pan("0100", &[]), None);
    }

    #[test]
    fn what_is_not_8_to_19_digits_is_no_card_number() {
        let track_2 = (35, "215555555555554444=2912");
        let other = Some("555555******4444".to_owned());
        for no_card in ["00", "071234567", "164111 11111111111", "16411111111111111x"] {
            assert_eq!(pan("0100", &[(2, no_card)]), None, "{no_card}");
            assert_eq!(pan("0100", &[(2, no_card), track_2]), other, "{no_card}");
        }
        assert_eq!(pan("0100", &[(34, "284111111111111111111111111111")]), None);
        assert_eq!(pan("0100", &[(35, "17;4111111111111111")]), None);
    }

    /// The track has 35 or 37 digits, and a filler in either half byte.
    #[test]
    fn the_card_number_of_an_odd_track_is_found_whichever_side_is_padded() {
        const FILLED_LEFT: &str = "3504111111111111111d251210112345678901";
        const FILLED_LEFT_F: &str = "35f4111111111111111d251210112345678901";
        const FILLED_RIGHT: &str = "354111111111111111d2512101123456789010";
        const FILLED_RIGHT_F: &str = "375555555555554444d11110000000000000000f";
        const FILLED_BOTH: &str = "3704111111111111111d251210000000000000f0";
        for pad in ["left0", "right0", "rightF"] {
            let table = format!(
                "de,content,len_kind,len_enc,data_enc,max,unit,pad,name\n\
                 0,n,fixed,none,bcd,4,digits,none,MTI\n\
                 1,b,bitmap,none,bin,16,bytes,none,bitmap\n\
                 2,n,LL,bcd,bcd,19,digits,{pad},card number\n\
                 35,z,LL,bcd,bcd_z,37,digits,{pad},track 2\n"
            );
            let dialect = Dialect::from_table(&table).unwrap();
            let pan = |bits: &str, field: &str| {
                let hex = format!("0100{bits}{field}");
                let (pairs, _) = hex.as_bytes().as_chunks::<2>();
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
                let byte = |[high, low]: &[u8; 2]| digit(*high) << 4 | digit(*low);
                let body: Vec<u8> = pairs.iter().map(byte).collect();
                let mut spans = Spans::default();
                let view = View::parse(&dialect, &body, &mut spans).unwrap();
                assert_eq!(view.fault(), None, "{pad} {field}");
                view.pan().map(|pan| pan.to_string())
            };
            let of_track = |track| pan("0000000020000000", track);
            let visa = Some("411111******1111".to_owned());
            let other = Some("555555******4444".to_owned());
            assert_eq!(of_track(FILLED_LEFT), visa, "{pad}");
            assert_eq!(of_track(FILLED_LEFT_F), visa, "{pad}");
            assert_eq!(of_track(FILLED_RIGHT), visa, "{pad}");
            assert_eq!(of_track(FILLED_RIGHT_F), other, "{pad}");
            assert_eq!(of_track(FILLED_BOTH) == visa, pad == "left0", "the dialect's side, {pad}");
            let number = if pad == "left0" { "411111*****1111" } else { "041111*****1111" };
            assert_eq!(pan("4000000000000000", "150411111111111111").as_deref(), Some(number));
        }
    }

    #[test]
    fn operation_and_merchant_are_read_where_they_are_whole() {
        let operation = |code| look(&message("0100", &[(3, code)]), |view| view.operation());
        assert_eq!(operation("200000"), Operation::Refund);
        assert_eq!(operation("001000"), Operation::Purchase);
        assert_eq!(operation("+10000"), Operation::Other);
        assert_eq!(look(&message("0800", &[]), |view| view.operation()), Operation::Other);

        let merchant = |fields: &[(u8, &str)]| {
            look(&message("0100", fields), |view| view.merchant())
                .map(|merchant| String::from_utf8_lossy(merchant.name()).into_owned())
        };
        let shop = (42, "SHOP0001       ");
        assert_eq!(merchant(&[(32, "06123456"), shop]).unwrap(), "123456:SHOP0001");
        assert_eq!(merchant(&[shop]).unwrap(), ":SHOP0001");
        assert_eq!(merchant(&[(32, "06123456")]), None);
        assert_eq!(merchant(&[(42, "               ")]), None);
    }

    #[test]
    fn printing_a_view_or_a_fault_shows_no_contents() {
        let fields = [(2, "164111111111111111"), (35, "214111111111111111=2912"), (43, "X")];
        look(&message("0100", &fields), |view| {
            let fault = view.fault().unwrap();
            assert_eq!(fault.to_string(), "field 43: truncated");
            let shown = format!("{view:?} {view:#?} {fault:?} {:?}", Spans::default());
            assert!(shown.contains("0100") && shown.contains("Truncated"), "{shown}");
            assert!(!shown.contains("4111") && !shown.contains("52, 49"), "{shown}");
        });
    }

    #[test]
    fn a_mac_is_seen_in_either_place() {
        assert!(look(&message("0100", &[(64, "0011223344556677")]), |view| view.has_mac()));
        assert!(look(&message("0100", &[(128, "0011223344556677")]), |view| view.has_mac()));
        assert!(!look(&message("0100", &[(3, "000000")]), |view| view.has_mac()));
        let mut broken = message("0100", &[(3, "000000"), (64, "0011223344556677")]);
        broken.truncate(broken.len() - 20);
        assert!(look(&broken, |view| view.has_mac()));
    }
}
