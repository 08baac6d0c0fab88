//! What an operator chooses about leases: what is done without one, and how much one node may spend
//! before the others hear of it.

/// What is done while no lease is valid, since the store does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnLoss {
    /// Each node goes on by its own buckets, which its sync keeps to its share of each rate.
    #[default]
    Local,
    /// All that a limit would refuse is admitted, charged and counted.
    Open,
    /// A message that a limit applies to is refused, unless it may not be.
    Closed,
}

impl OnLoss {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Local, Self::Open, Self::Closed];

    /// The name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// How much of a bucket one node may spend before the store hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Hold {
    /// Its part of the level, by the number of nodes.
    #[default]
    Share,
    /// A whole burst: no node is ever held, and nodes together may admit a burst each at once.
    Burst,
}

impl Hold {
    /// Every choice.
    pub const ALL: [Self; 2] = [Self::Share, Self::Burst];

    /// The name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Burst => "burst",
        }
    }
}
