//! Why tollgate answered a request itself.
//!
//! One enum feeds the answer's code, the log line and the metric label, so that a new reason cannot
//! be forgotten in one of them.

/// Why tollgate answered a request itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A limit had no token left. The host never saw the request.
    Limit,
    /// Too much is in flight, or the way to the host is nearly full. The host never saw it.
    Overload,
    /// No connection to the host is up, or the process ends. The host never saw it.
    Unavailable,
    /// The connection it was written to was lost and nothing came by the deadline: outcome unknown.
    Lost,
    /// The host did not answer by the deadline: outcome unknown.
    Deadline,
    /// It cannot be forwarded for a fault of tollgate's own or of its configuration.
    Malfunction,
    /// It is not sound: it could not be read to its end where the link answers such requests, or it
    /// came back rejected for its form. No host has acted on it.
    Format,
}

impl Reason {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Limit,
        Self::Overload,
        Self::Unavailable,
        Self::Lost,
        Self::Deadline,
        Self::Malfunction,
        Self::Format,
    ];

    /// The name in `[link.codes]`, logs and metric labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Overload => "overload",
            Self::Unavailable => "unavailable",
            Self::Lost => "lost",
            Self::Deadline => "deadline",
            Self::Malfunction => "malfunction",
            Self::Format => "format",
        }
    }

    /// Whether the host has seen the request, so that its outcome there is unknown.
    pub const fn forwarded(self) -> bool {
        matches!(self, Self::Lost | Self::Deadline)
    }
}
