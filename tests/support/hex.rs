//! Bytes as hexadecimal digits, two each.

#![allow(dead_code, reason = "each test binary uses its own part of this")]

/// The bytes of digits of either case. Fails where they are none, or half a byte is left.
#[track_caller]
pub(crate) fn from_hex(digits: &str) -> Vec<u8> {
    assert!(digits.len().is_multiple_of(2), "half a byte");
    let pair = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(pair).collect()
}

/// In capitals.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}
