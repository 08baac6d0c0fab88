//! What is to be decoded: hexadecimal digits of the command line, a file, or standard input.
//!
//! Nothing that was given is repeated in an error: it may be a message.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use thiserror::Error;

/// Largest input: a capture of some ten thousand messages.
pub(super) const INPUT_BYTES_MAX: u64 = 16 << 20;

/// The bytes to decode.
pub(super) struct Input {
    /// As they are most likely meant.
    pub(super) bytes: Vec<u8>,
    /// The same as they came, where they are hexadecimal digits and may just as well be meant as
    /// what they are: a message of ASCII digits alone.
    pub(super) as_it_came: Option<Vec<u8>>,
}

/// Why there is nothing to decode.
#[derive(Debug, Error)]
pub(super) enum InputError {
    /// Half a byte is left.
    #[error("INPUT has {digits} hexadecimal digits: a byte takes two")]
    HalfByte {
        /// How many there are.
        digits: usize,
    },
    /// There is nothing in it.
    #[error("INPUT is empty")]
    Empty,
    /// It is too long to be looked at.
    #[error("INPUT is larger than 16 MiB: nothing was decoded; cut the capture into parts")]
    TooLarge,
    /// It is neither of what it can be.
    #[error("INPUT is neither hexadecimal digits nor a file that can be read: {0}")]
    Unreadable(io::ErrorKind),
}

impl Input {
    /// Reads what the arguments say: several are hexadecimal digits with blanks between them.
    pub(super) fn read(arguments: &[OsString]) -> Result<Self, InputError> {
        let digits: Option<Vec<&str>> = arguments.iter().map(|part| part.to_str()).collect();
        let digits = digits.map(|parts| parts.concat()).filter(|text| is_hex(text.as_bytes()));
        let raw = match (digits, arguments) {
            (Some(digits), _) => {
                let bytes = from_hex(digits.as_bytes())?;
                return Self { bytes, as_it_came: None }.or_empty();
            }
            (None, [path]) if path == "-" => all_of(io::stdin().lock())?,
            (None, [path]) => {
                let file = File::open(Path::new(path));
                all_of(file.map_err(|error| InputError::Unreadable(error.kind()))?)?
            }
            (None, _) => return Err(InputError::Unreadable(io::ErrorKind::NotFound)),
        };
        if !is_hex(&raw) {
            return Self { bytes: raw, as_it_came: None }.or_empty();
        }
        match from_hex(&raw) {
            Ok(bytes) => Self { bytes, as_it_came: Some(raw) }.or_empty(),
            // An odd number of digits is no fault of what stands for itself.
            Err(_) => Self { bytes: raw, as_it_came: None }.or_empty(),
        }
    }

    fn or_empty(self) -> Result<Self, InputError> {
        if self.bytes.is_empty() { Err(InputError::Empty) } else { Ok(self) }
    }
}

fn all_of(from: impl Read) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    let read = from.take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| InputError::Unreadable(error.kind()))?;
    if bytes.len() as u64 > INPUT_BYTES_MAX { Err(InputError::TooLarge) } else { Ok(bytes) }
}

/// Nothing but hexadecimal digits and blanks, line ends among them.
fn is_hex(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace())
}

fn from_hex(text: &[u8]) -> Result<Vec<u8>, InputError> {
    let digits = text.iter().filter_map(|byte| char::from(*byte).to_digit(16));
    let halves: Vec<u8> = digits.filter_map(|digit| u8::try_from(digit).ok()).collect();
    let (pairs, rest) = halves.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(InputError::HalfByte { digits: halves.len() });
    }
    Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Vec<u8>, String> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        Input::read(&arguments).map(|input| input.bytes).map_err(|error| error.to_string())
    }

    #[test]
    fn hexadecimal_digits_may_have_blanks_wherever_they_like() {
        assert_eq!(read(&["30 313\n2"]), Ok(b"012".to_vec()));
        assert_eq!(read(&["aB", "c", "D"]), Ok(vec![0xab, 0xcd]));
        assert!(read(&["30 3"]).unwrap_err().contains("3 hexadecimal digits"));
        assert_eq!(read(&[" "]), Err("INPUT is empty".to_owned()));
    }

    #[test]
    fn what_is_no_file_is_not_repeated() {
        for arguments in [&["41111111x"][..], &["4111", "x"]] {
            let error = read(arguments).unwrap_err();
            assert!(error.contains("neither") && !error.contains("4111"), "{error}");
        }
    }
}
