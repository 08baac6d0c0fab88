//! Text of a field, held without the heap and printed without harm.

use std::fmt;

/// At most `N` bytes of a field's text, without a heap allocation; what is longer is cut.
///
/// It prints letters, digits and a few marks, and a `.` for every other byte, so that a peer cannot
/// write control characters into a log.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    /// No text.
    pub const fn new() -> Self {
        Self { bytes: [0; N], len: 0 }
    }

    /// The first `N` bytes of `text`.
    pub fn cut(text: &[u8]) -> Self {
        let mut this = Self::new();
        this.push_all(text);
        this
    }

    /// Appends one byte, unless full.
    pub fn push(&mut self, byte: u8) {
        if let Some(free) = self.bytes.get_mut(self.len) {
            *free = byte;
            self.len += 1;
        }
    }

    /// Appends bytes until full.
    pub fn push_all(&mut self, text: &[u8]) {
        let free = self.bytes.get_mut(self.len..).unwrap_or_default();
        let taken = text.len().min(free.len());
        if let (Some(to), Some(from)) = (free.get_mut(..taken), text.get(..taken)) {
            to.copy_from_slice(from);
            self.len += taken;
        }
    }

    /// The bytes, as they came.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.as_bytes() {
            let shown = match byte {
                b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b' ' | b':' | b'-' | b'_' => *byte,
                _ => b'.',
            };
            write!(f, "{}", char::from(shown))?;
        }
        Ok(())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_and_prints_no_control_characters() {
        assert_eq!(Text::<4>::cut(b"12\n456").to_string(), "12.4");
    }
}
