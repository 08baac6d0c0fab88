//! Field 39 by reason.

use crate::iso8583::LocalCode;
use crate::reason::Reason;

/// Which code a link answers with for each reason (`[link.codes]`), in 1987 codes; an answer is
/// written in the code of its own version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Codes {
    by_reason: [LocalCode; Reason::ALL.len()],
}

impl Codes {
    /// The code for `reason`.
    pub fn get(&self, reason: Reason) -> LocalCode {
        self.by_reason.get(reason as usize).copied().unwrap_or(LocalCode::IssuerInoperative)
    }

    /// Chooses another code for `reason`.
    #[must_use]
    pub fn with(mut self, reason: Reason, code: LocalCode) -> Self {
        if let Some(chosen) = self.by_reason.get_mut(reason as usize) {
            *chosen = code;
        }
        self
    }
}

/// 91 for every reason but a malfunction, which is 96, and a wrong format, which is 30.
impl Default for Codes {
    fn default() -> Self {
        Self { by_reason: [LocalCode::IssuerInoperative; Reason::ALL.len()] }
            .with(Reason::Malfunction, LocalCode::SystemMalfunction)
            .with(Reason::Format, LocalCode::FormatError)
    }
}
