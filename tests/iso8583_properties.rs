//! Whatever bytes a peer sends and whatever layout a dialect has: nothing panics, a valid message
//! is read as it was written, and an answer is a valid message that echoes and never tells.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test states its expectations"
)]

#[path = "iso8583_properties/composing.rs"]
mod composing;
#[path = "support/hex.rs"]
mod hex;

use hex::from_hex;
use proptest::prelude::*;
use tollgate::iso8583::{
    BitmapEncoding, BitmapRule, DataEncoding, Dialect, FieldSet, FieldSpec, Length, LengthEncoding,
    LocalCode, MtiEncoding, NEVER_ECHOED, Padding, Prefix, Spans, Unit, View, compose,
};

const COLUMNS: &str = "de,content,len_kind,len_enc,data_enc,max,unit,pad,name\n";

/// Every encoding there is, in fields that are echoed and in fields that never are.
const FIELDS: &str = "\
2,n,LL,bcd,bcd,19,digits,left0,card number\n\
3,n,fixed,none,bcd,6,digits,left0,processing code\n\
4,n,LLL,bin,bcd,300,digits,right0,long binary length\n\
5,ans,LL,bin,ebcdic,200,chars,none,short binary length\n\
7,n,L,ascii,bcd,9,digits,rightF,one digit of length\n\
11,n,fixed,none,ascii,6,chars,left0,trace number\n\
12,an,LLLL,ebcdic,ebcdic,500,chars,none,EBCDIC length\n\
13,b,LLLLLL,ascii,bin,999999,bytes,none,six digits of length\n\
14,n,fixed,none,bcd,4,digits,left0,expiry\n\
15,n,fixed,none,bcd,3,digits,right0,odd and fixed\n\
28,x+n,fixed,none,x_ascii+bcd,9,chars,none,fee\n\
29,x+n,LL,ascii,x_ascii+bcd,9,chars,left0,fee of any length\n\
32,n,LLL,bcd,bcd,6,bytes,none,digits counted in bytes\n\
33,b,LL,ascii,hex_ascii,8,bytes,none,hexadecimal\n\
34,n,LL,ascii,ascii,28,chars,none,card number extended\n\
35,z,LL,bcd,bcd_z,37,digits,left0,track 2\n\
36,z,LLL,bcd,bcd_z,104,digits,right0,track 3\n\
37,b,fixed,none,hex_ebcdic,6,bytes,none,hexadecimal in EBCDIC\n\
41,ans,fixed,none,ebcdic,8,chars,rightspace,terminal\n\
42,ans,fixed,none,ebcdic,15,chars,rightspace,card acceptor\n\
43,b,LLLLL,bcd,hex_ascii,40,chars,none,hexadecimal counted in characters\n\
45,ans,LL,ebcdic,ebcdic,76,chars,none,track 1\n\
52,b,fixed,none,hex_ebcdic,8,bytes,none,PIN block\n\
53,n,fixed,none,bcd,16,digits,left0,security information\n\
55,b,LLL,bcd,bin,255,bytes,none,chip data\n\
64,b,fixed,none,bin,8,bytes,none,MAC 1\n\
90,n,fixed,none,bcd,42,digits,left0,original data\n\
102,ans,LL,ascii,ascii,28,chars,none,account\n\
128,b,fixed,none,hex_ascii,8,bytes,none,MAC 2\n";

const THIRD_IN_65: &str = "65,b,bitmap,none,bin,8,bytes,none,third bitmap\n";

const THIRD_WORD: &str = "\
129,an,fixed,none,ascii,4,chars,none,first of the third word\n\
192,b,LL,bin,bin,99,bytes,none,last of all\n";

/// Each with the MTI version of which its field 39 holds a code.
fn dialects() -> Vec<(Dialect, u8)> {
    let tables = [
        ("ascii", "hex_ascii", "bitmap", 16, "39,an,fixed,none,ascii,2,chars,none,x", 0),
        ("ascii", "bin", "fixed", 16, "39,an,fixed,none,ebcdic,3,chars,none,x", 1),
        ("ebcdic", "hex_ebcdic", "bitmap", 16, "39,n,fixed,none,bcd,3,digits,right0,x", 1),
        ("ebcdic", "hex_ebcdic", "bitmap", 24, "39,n,fixed,none,bcd,3,digits,rightF,x", 1),
        ("bcd", "bin", "bitmap", 24, "39,n,LL,bcd,bcd,4,digits,left0,x", 2),
        ("bcd", "bin", "fixed", 24, "39,b,LL,bin,bin,9,bytes,none,x", 2),
        ("bcd", "hex_ascii", "bitmap", 24, "39,b,LLL,ebcdic,hex_ebcdic,1,bytes,none,x", 0),
        ("bcd", "bin", "fixed", 24, "39,b,LLL,ascii,hex_ascii,4,chars,none,x", 2),
        ("ascii", "bin", "bitmap", 24, "39,an,LLLLLL,bin,ascii,3,chars,none,x", 1),
    ];
    let synthetic = tables.map(|(mti, bitmap, rule, bytes, code, version)| {
        let third = if bytes == 24 { THIRD_WORD } else { "" };
        let table = format!(
            "{COLUMNS}0,n,fixed,none,{mti},4,chars,none,MTI\n\
             1,b,{rule},none,{bitmap},{bytes},bytes,none,bitmap\n{FIELDS}{third}{code}\n"
        );
        (Dialect::from_table(&table).unwrap(), version)
    });
    let in_65 = [("ascii", "hex_ascii", "bitmap", "bin"), ("bcd", "bin", "fixed", "hex_ebcdic")];
    let third_in_65 = in_65.map(|(mti, bitmap, rule, third)| {
        let third = THIRD_IN_65.replace("bin", third);
        let table = format!(
            "{COLUMNS}0,n,fixed,none,{mti},4,chars,none,MTI\n\
             1,b,{rule},none,{bitmap},16,bytes,none,bitmap\n{FIELDS}{third}{THIRD_WORD}\
             39,an,fixed,none,ascii,2,chars,none,x\n"
        );
        (Dialect::from_table(&table).unwrap(), 0)
    });
    let presets = Dialect::PRESETS.iter().map(|name| {
        let dialect = Dialect::preset(name).unwrap();
        let version = u8::try_from(dialect.field(39).unwrap().max - 2).unwrap();
        (dialect, version)
    });
    presets.chain(synthetic).chain(third_in_65).collect()
}

/// One field of a message to be: which, how long, and what its data are made from.
type Draft = (u8, u16, Vec<u8>);

fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let noise = prop::collection::vec(any::<u8>(), 1..40);
    prop::collection::vec((any::<u8>(), any::<u16>(), noise), 0..24)
}

/// A valid message, written by other code than tollgate's, and its fields with their prefixes.
fn build(dialect: &Dialect, mti: [u8; 4], drafts: &[Draft]) -> (Vec<u8>, Vec<(u8, Vec<u8>)>) {
    // With a third word behind the second, the bit of field 65 announces that word.
    let is_field = |de: u8| de != 65 || dialect.bitmap().words_max == 2;
    let is_field = |de: &u8| dialect.field(*de).is_some() && is_field(*de);
    let defined: Vec<u8> = (2..=192).filter(is_field).collect();
    let mut fields: Vec<(u8, Vec<u8>)> = Vec::new();
    for (pick, units, noise) in drafts {
        let de = defined[usize::from(*pick) % defined.len()];
        if fields.iter().all(|(other, _)| *other != de) {
            fields.push((de, field(dialect.field(de).unwrap(), *units, noise)));
        }
    }
    fields.sort();
    let mut body = match dialect.mti() {
        MtiEncoding::Ascii => mti.map(|digit| digit + b'0').to_vec(),
        MtiEncoding::Ebcdic => mti.map(|digit| digit + 0xf0).to_vec(),
        MtiEncoding::Bcd => vec![mti[0] << 4 | mti[1], mti[2] << 4 | mti[3]],
    };
    let (head, third) = bitmap(dialect, &fields);
    body.extend(head);
    let behind = fields.partition_point(|(de, _)| *de < 65);
    let (before, after) = fields.split_at(behind);
    before.iter().for_each(|(_, bytes)| body.extend(bytes));
    body.extend(third);
    after.iter().for_each(|(_, bytes)| body.extend(bytes));
    (body, fields)
}

/// What stands before the fields, and what stands between 64 and 66.
fn bitmap(dialect: &Dialect, fields: &[(u8, Vec<u8>)]) -> (Vec<u8>, Vec<u8>) {
    let layout = dialect.bitmap();
    let mut bits = [0u8; 24];
    let mut set = |de: usize| bits[(de - 1) / 8] |= 0x80 >> ((de - 1) % 8);
    fields.iter().for_each(|(de, _)| set(usize::from(*de)));
    let last = fields.iter().map(|(de, _)| *de).max().unwrap_or(0);
    let mut words = if layout.rule == BitmapRule::Always {
        usize::from(layout.words_max)
    } else {
        usize::from(last.saturating_sub(1) / 64 + 1)
    };
    if last > 64 {
        set(1);
    }
    if last > 128 {
        set(65);
    }
    let mut third = Vec::new();
    if let Some(encoding) = layout.third {
        words = words.min(2);
        if last > 128 {
            third = written(encoding, &bits[16..]);
        }
    }
    (written(layout.encoding, &bits[..words * 8]), third)
}

fn written(encoding: BitmapEncoding, bits: &[u8]) -> Vec<u8> {
    let digits = bits.iter().flat_map(|byte| format!("{byte:02X}").into_bytes());
    match encoding {
        BitmapEncoding::Binary => bits.to_vec(),
        BitmapEncoding::HexAscii => digits.collect(),
        BitmapEncoding::HexEbcdic => digits.map(ebcdic_hex).collect(),
    }
}

fn ebcdic_hex(digit: u8) -> u8 {
    if digit.is_ascii_digit() { digit - b'0' + 0xf0 } else { digit - b'A' + 0xc1 }
}

fn field(spec: &FieldSpec, units: u16, noise: &[u8]) -> Vec<u8> {
    let byte = |at: usize| noise[at % noise.len()].wrapping_add(at as u8);
    let (shortest, step) = match spec.data {
        DataEncoding::SignedBcd => (1, 1),
        DataEncoding::HexAscii | DataEncoding::HexEbcdic if spec.unit == Unit::Chars => (0, 2),
        _ => (0, 1),
    };
    let units = match spec.length {
        Length::Fixed => usize::from(spec.max),
        Length::Prefixed(_) => {
            let units = usize::from(units) % (usize::from(spec.max.min(300)) + 1);
            (units - units % step).max(shortest)
        }
    };
    let digits = |count: usize, base: u8| -> Vec<u8> {
        let digit = |at| byte(at) % base;
        let mut halves: Vec<u8> = (0..count).map(digit).collect();
        if count % 2 == 1 {
            match spec.padding {
                Padding::RightZero => halves.push(0),
                Padding::RightF => halves.push(15),
                Padding::LeftZero | Padding::None => halves.insert(0, 0),
            }
        }
        halves.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    };
    let hex = |count: usize| (0..count).map(|at| b"0123456789ABCDEF"[usize::from(byte(at) % 16)]);
    let counted = if spec.unit == Unit::Bytes { units * 2 } else { units };
    let data: Vec<u8> = match spec.data {
        DataEncoding::Ascii | DataEncoding::Ebcdic | DataEncoding::Binary => {
            (0..units).map(byte).collect()
        }
        DataEncoding::Bcd => digits(counted, 10),
        DataEncoding::BcdTrack => digits(counted, 16),
        DataEncoding::HexAscii => hex(counted).collect(),
        DataEncoding::HexEbcdic => hex(counted).map(ebcdic_hex).collect(),
        DataEncoding::SignedBcd => [vec![b'C'], digits(units - 1, 10)].concat(),
    };
    let mut whole = match spec.length {
        Length::Fixed => Vec::new(),
        Length::Prefixed(prefix) => length(prefix, units),
    };
    whole.extend(data);
    whole
}

fn length(prefix: Prefix, units: usize) -> Vec<u8> {
    let width = usize::from(prefix.digits);
    let decimal = format!("{units:0width$}").into_bytes();
    let even = width.next_multiple_of(2);
    match prefix.encoding {
        LengthEncoding::Ascii => decimal,
        LengthEncoding::Ebcdic => decimal.into_iter().map(ebcdic_hex).collect(),
        LengthEncoding::Bcd => from_hex(&format!("{units:0even$}")),
        LengthEncoding::Binary => from_hex(&format!("{units:0even$x}")),
    }
}

/// Calls everything that looks at a message's contents.
fn look_at_all(view: &View<'_>) {
    for de in 0..=255 {
        let present = view.has(de);
        assert_eq!(view.fields().contains(de), present);
        assert_eq!(view.raw(de).is_some(), present);
        assert_eq!(view.whole(de).is_some(), present);
        assert_eq!(view.text::<16>(de).is_some(), present);
    }
    let _ = (view.pan(), view.operation(), view.merchant(), view.has_mac());
    let _ = format!("{view:?} {:?}", view.fault().map(|fault| fault.to_string()));
    let mut out = Vec::new();
    let everything: FieldSet = (0..=255).collect();
    if let Ok(slot) = compose(view, &everything, &mut out) {
        slot.write(&mut out, LocalCode::IssuerInoperative);
        slot.write(&mut [], LocalCode::IssuerInoperative);
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_view_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        mti in 0..10_000u16,
    ) {
        let mut spans = Spans::default();
        for (dialect, _) in dialects() {
            if let Ok(view) = View::parse(&dialect, &bytes, &mut spans) {
                look_at_all(&view);
            }
            // Random bytes seldom begin with an MTI, so that one is put before them as well.
            let (mut body, _) = build(&dialect, mti.to_string().bytes().fold([0; 4], shift), &[]);
            let bitmap_end = body.len();
            body.truncate(if dialect.mti() == MtiEncoding::Bcd { 2 } else { 4 }.min(bitmap_end));
            body.extend(&bytes);
            look_at_all(&View::parse(&dialect, &body, &mut spans).unwrap());
        }
    }

    #[test]
    fn a_valid_message_is_read_as_it_was_written_and_a_damaged_one_never_panics(
        drafts in drafts(),
        damage in prop::collection::vec((any::<u16>(), any::<u8>()), 1..6),
        cut in any::<u16>(),
    ) {
        let mut spans = Spans::default();
        for (dialect, version) in dialects() {
            let (mut body, fields) = build(&dialect, [version, 1, 0, 0], &drafts);
            let view = View::parse(&dialect, &body, &mut spans).unwrap();
            prop_assert_eq!(view.fault(), None);
            prop_assert!(view.fields().iter().eq(fields.iter().map(|(de, _)| *de)));
            for (de, whole) in &fields {
                prop_assert_eq!(view.whole(*de), Some(&whole[..]));
                prop_assert!(whole.ends_with(view.raw(*de).unwrap()));
            }
            look_at_all(&view);

            let truncated = &body[..usize::from(cut) % body.len()];
            if let Ok(view) = View::parse(&dialect, truncated, &mut spans) {
                prop_assert!(view.fault().is_some(), "a message cut short has a fault");
                look_at_all(&view);
            }
            for (at, with) in &damage {
                let at = usize::from(*at) % body.len();
                body[at] ^= with;
            }
            if let Ok(view) = View::parse(&dialect, &body, &mut spans) {
                look_at_all(&view);
            }
        }
    }

    #[test]
    fn an_answer_is_valid_echoes_byte_for_byte_and_never_tells(
        drafts in drafts(),
        echo in prop::collection::vec(any::<u8>(), 0..64),
        everything in any::<bool>(),
        code in prop::sample::select(LocalCode::ALL.to_vec()),
    ) {
        let echo: FieldSet = if everything { (0..=255).collect() } else { echo.into_iter().collect() };
        let (mut spans, mut answer_spans) = (Spans::default(), Spans::default());
        for (dialect, version) in dialects() {
            let (body, fields) = build(&dialect, [version, 2, 0, 1], &drafts);
            let view = View::parse(&dialect, &body, &mut spans).unwrap();
            let mut out = b"header".to_vec();
            let slot = compose(&view, &echo, &mut out).unwrap();
            let written = slot.write(&mut out, code);
            let text = code.in_version(version).unwrap();
            prop_assert!(written || text == "N0", "every code of digits can be written");
            let expected = if written { text } else { "96" };

            prop_assert!(out.starts_with(b"header"));
            let answer = View::parse(&dialect, &out[6..], &mut answer_spans).unwrap();
            prop_assert_eq!(answer.fault(), None);
            prop_assert_eq!(answer.mti().number(), u16::from(version) * 1_000 + 210);
            let said = answer.text::<9>(39).unwrap();
            prop_assert_eq!(said.as_bytes(), expected.as_bytes());
            for (de, whole) in &fields {
                let echoed = echo.contains(*de) && !NEVER_ECHOED.contains(*de);
                let kept = echoed.then_some(&whole[..]);
                prop_assert!(*de == 39 || answer.whole(*de) == kept, "field {}", de);
            }
            for secret in [14, 34, 35, 36, 38, 45, 52, 53, 55, 64, 90, 128] {
                prop_assert!(!answer.has(secret));
            }
        }
    }
}

fn shift([_, a, b, c]: [u8; 4], digit: u8) -> [u8; 4] {
    [a, b, c, digit - b'0']
}
