//! A bounded cursor over a peer's bytes: whoever reads through it cannot read past their end.

/// What is left of a message to read. A read that does not fit takes nothing.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes were read so far.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// All that is left.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Goes back to where it was.
    pub(super) const fn go_back(&mut self, at: usize) {
        self.at = at;
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The next `count` bytes, or `None` when there are fewer.
    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    /// The next `N` bytes as an array, or `None` when there are fewer.
    #[inline]
    pub(super) fn take_array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        self.take(N)?.first_chunk()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_does_not_fit_takes_nothing() {
        let mut reader = Reader::new(b"abc");
        assert_eq!(reader.take(2), Some(&b"ab"[..]));
        assert_eq!(reader.take(2), None);
        assert_eq!(reader.take(usize::MAX), None);
        assert_eq!((reader.at(), reader.is_at_end()), (2, false));
        assert_eq!(reader.take_array::<1>(), Some(b"c"));
        assert_eq!(reader.take_array::<1>(), None);
        assert!(reader.is_at_end());
    }
}
