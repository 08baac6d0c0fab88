//! What a call to Redis may come to, and what follows from it.
//!
//! One table for every error. No error ends the sync, and none has a report said again that may have
//! been taken: it is reported anew with the next tick, as a counter that only grows.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use super::url::Address;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// There is no connection at this moment.
    NotConnected,
    /// The connection broke, or could not be made.
    Io,
    /// No answer came at all.
    Timeout,
    /// The answer came after the sync had given the call up.
    Late,
    /// More calls are under way than one connection is given.
    Full,
    /// The server has not met the script since it started.
    NoScript,
    /// The server is a replica.
    ReadOnly,
    /// The server is a replica that has lost its master.
    MasterDown,
    /// The slot is another server's.
    Moved,
    /// The slot is on its way to another server.
    Ask,
    /// The slot is on its way, and the keys of the call are on both sides.
    TryAgain,
    /// The Cluster has no master for some slot.
    ClusterDown,
    /// The server reads its data from disk.
    Loading,
    /// Another script runs too long.
    Busy,
    /// The server's memory is full.
    OutOfMemory,
    /// Too few replicas are there for the server to take writes.
    NoReplicas,
    /// The server cannot save, and takes no writes for it.
    Misconf,
    /// The keys of a call are of several slots.
    CrossSlot,
    /// Something else stands under a name of ours.
    WrongType,
    /// The user may not do what a call does.
    NoPermission,
    /// The user or the password is wrong.
    Login,
    /// No Sentinel knows a master by the configured name.
    NoMaster,
    /// The script failed.
    Script,
    /// The answer is not one of ours.
    Unreadable,
    /// What nobody thought of.
    Other,
}

/// What is done about it, beyond that the call has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Consequence {
    /// Nothing ran: the script is sent along, once.
    SendScript,
    /// Nothing ran: the shard is at another address. `asking` is for a slot that is on its way there.
    Follow { address: Address, asking: bool },
    /// The connection is of no more use: the master is looked for anew.
    Reconnect,
    /// The connection is good, and the next call is made by it. A server that is short of something is
    /// not helped by being connected to once more.
    Stay,
}

impl Fault {
    /// Every one of them.
    pub const ALL: [Self; 25] = [
        Self::NotConnected,
        Self::Io,
        Self::Timeout,
        Self::Late,
        Self::Full,
        Self::NoScript,
        Self::ReadOnly,
        Self::MasterDown,
        Self::Moved,
        Self::Ask,
        Self::TryAgain,
        Self::ClusterDown,
        Self::Loading,
        Self::Busy,
        Self::OutOfMemory,
        Self::NoReplicas,
        Self::Misconf,
        Self::CrossSlot,
        Self::WrongType,
        Self::NoPermission,
        Self::Login,
        Self::NoMaster,
        Self::Script,
        Self::Unreadable,
        Self::Other,
    ];

    /// The name in metrics and in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotConnected => "not_connected",
            Self::Io => "io",
            Self::Timeout => "timeout",
            Self::Late => "late",
            Self::Full => "full",
            Self::NoScript => "noscript",
            Self::ReadOnly => "readonly",
            Self::MasterDown => "masterdown",
            Self::Moved => "moved",
            Self::Ask => "ask",
            Self::TryAgain => "tryagain",
            Self::ClusterDown => "clusterdown",
            Self::Loading => "loading",
            Self::Busy => "busy",
            Self::OutOfMemory => "oom",
            Self::NoReplicas => "noreplicas",
            Self::Misconf => "misconf",
            Self::CrossSlot => "crossslot",
            Self::WrongType => "wrongtype",
            Self::NoPermission => "noperm",
            Self::Login => "login",
            Self::NoMaster => "nomaster",
            Self::Script => "script",
            Self::Unreadable => "unreadable",
            Self::Other => "other",
        }
    }

    /// What an operator does about it.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::NotConnected | Self::Io => {
                "see that the server runs and that this node reaches it"
            }
            Self::Timeout | Self::Late | Self::Full => {
                "see what slows the server down: SLOWLOG, its processor, its network"
            }
            Self::NoScript => "nothing: the script is sent along",
            Self::ReadOnly | Self::MasterDown => {
                "the server is a replica: see who is the master, and point url at it or at sentinels"
            }
            Self::Moved | Self::Ask | Self::TryAgain => {
                "a slot is being moved: see that the move ends (CLUSTER NODES)"
            }
            Self::ClusterDown => "see which master is missing (CLUSTER NODES)",
            Self::Loading => "nothing: the server reads its data and then answers",
            Self::Busy => "somebody's script runs too long: SCRIPT KILL",
            Self::OutOfMemory => "free memory or raise maxmemory; see docs/operations.md",
            Self::NoReplicas => "see why the replicas are gone (INFO replication)",
            Self::Misconf => "the server cannot write its snapshot: see its disk and log",
            Self::CrossSlot => "this is a bug: please report it",
            Self::WrongType => "another program writes under our namespace: see its keys",
            Self::NoPermission => "give the user the rights that docs/operations.md lists",
            Self::Login => "see quota.redis user and password_file",
            Self::NoMaster => {
                "a failover goes on, or the name of the master in url is wrong (SENTINEL MASTERS)"
            }
            Self::Script | Self::Unreadable | Self::Other => {
                "see the server's version and what stands between; or report a bug"
            }
        }
    }

    /// Whether it may be said by a master that is cut off from those who have chosen another.
    pub(super) const fn is_an_outcasts(self) -> bool {
        matches!(self, Self::ClusterDown | Self::NoReplicas)
    }

    /// Whether the call went nowhere by the Cluster's own order, which is no fault of the store unless it
    /// goes on.
    pub(super) const fn is_redirection(self) -> bool {
        matches!(self, Self::Moved | Self::Ask | Self::TryAgain)
    }
}

/// What an error is and what follows from it.
pub(super) fn consequence(error: &RedisError) -> (Fault, Consequence) {
    use Consequence::{Follow, Reconnect, SendScript, Stay};
    let fault = fault(error);
    let consequence = match fault {
        Fault::NoScript => SendScript,
        Fault::Moved | Fault::Ask => {
            let address = error.redirect_node().and_then(|(address, _)| Address::of_peer(address));
            let asking = fault == Fault::Ask;
            address.map_or(Reconnect, |address| Follow { address, asking })
        }
        Fault::Io
        | Fault::Timeout
        | Fault::ReadOnly
        | Fault::MasterDown
        | Fault::NotConnected
        | Fault::Login
        | Fault::NoMaster
        | Fault::Other => Reconnect,
        Fault::Late
        | Fault::Full
        | Fault::TryAgain
        | Fault::ClusterDown
        | Fault::Loading
        | Fault::Busy
        | Fault::OutOfMemory
        | Fault::NoReplicas
        | Fault::Misconf
        | Fault::CrossSlot
        | Fault::WrongType
        | Fault::NoPermission
        | Fault::Script
        | Fault::Unreadable => Stay,
    };
    (fault, consequence)
}

fn fault(error: &RedisError) -> Fault {
    match error.kind() {
        ErrorKind::Io if error.is_timeout() => Fault::Timeout,
        ErrorKind::Io => Fault::Io,
        ErrorKind::AuthenticationFailed => Fault::Login,
        ErrorKind::MasterNameNotFoundBySentinel | ErrorKind::NoValidReplicasFoundBySentinel => {
            Fault::NoMaster
        }
        ErrorKind::Server(kind) => of_server(kind, error),
        ErrorKind::Extension => by_code(error.code().unwrap_or_default()).unwrap_or(Fault::Script),
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Fault::Unreadable,
        _ => Fault::Other,
    }
}

fn of_server(kind: ServerErrorKind, error: &RedisError) -> Fault {
    match kind {
        ServerErrorKind::BusyLoading => Fault::Loading,
        ServerErrorKind::NoScript => Fault::NoScript,
        ServerErrorKind::Moved => Fault::Moved,
        ServerErrorKind::Ask => Fault::Ask,
        ServerErrorKind::TryAgain => Fault::TryAgain,
        ServerErrorKind::ClusterDown => Fault::ClusterDown,
        ServerErrorKind::CrossSlot => Fault::CrossSlot,
        ServerErrorKind::MasterDown => Fault::MasterDown,
        ServerErrorKind::ReadOnly => Fault::ReadOnly,
        ServerErrorKind::NoPerm => Fault::NoPermission,
        // Before version 7 an error inside a script is an ERR that quotes it.
        _ => quoted(error.detail().unwrap_or_default()).unwrap_or(Fault::Script),
    }
}

fn by_code(code: &str) -> Option<Fault> {
    Some(match code {
        "OOM" => Fault::OutOfMemory,
        "MISCONF" => Fault::Misconf,
        "NOREPLICAS" => Fault::NoReplicas,
        "BUSY" => Fault::Busy,
        "WRONGTYPE" => Fault::WrongType,
        "READONLY" => Fault::ReadOnly,
        "NOAUTH" | "WRONGPASS" => Fault::Login,
        _ => return None,
    })
}

fn quoted(text: &str) -> Option<Fault> {
    let quotes = [
        ("OOM command not allowed", Fault::OutOfMemory),
        ("READONLY", Fault::ReadOnly),
        ("MISCONF", Fault::Misconf),
        ("NOREPLICAS", Fault::NoReplicas),
        ("WRONGTYPE", Fault::WrongType),
        ("WRONGPASS", Fault::Login),
        ("NOAUTH", Fault::Login),
        ("invalid password", Fault::Login),
    ];
    quotes.into_iter().find(|(quote, _)| text.contains(quote)).map(|(_, fault)| fault)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// What a client makes of an error line of a server.
    fn answered(line: &str) -> (Fault, Consequence) {
        let answer = format!("-{line}\r\n");
        let value = redis::parse_redis_value(answer.as_bytes()).unwrap();
        consequence(&value.extract_error().unwrap_err())
    }

    #[test]
    fn every_error_of_a_server_has_its_consequence() {
        use Consequence::{Reconnect, SendScript, Stay};
        let table = [
            ("NOSCRIPT No matching script. Please use EVAL.", Fault::NoScript, SendScript),
            ("READONLY You can't write against a read only replica.", Fault::ReadOnly, Reconnect),
            ("MASTERDOWN Link with MASTER is down", Fault::MasterDown, Reconnect),
            ("TRYAGAIN Multiple keys request during rehashing", Fault::TryAgain, Stay),
            ("CLUSTERDOWN The cluster is down", Fault::ClusterDown, Stay),
            ("LOADING Redis is loading the dataset in memory", Fault::Loading, Stay),
            ("BUSY Redis is busy running a script.", Fault::Busy, Stay),
            ("OOM command not allowed when used memory > 'maxmemory'.", Fault::OutOfMemory, Stay),
            ("NOREPLICAS Not enough good replicas to write.", Fault::NoReplicas, Stay),
            ("MISCONF Redis is configured to save RDB snapshots", Fault::Misconf, Stay),
            ("CROSSSLOT Keys in request don't hash to the same slot", Fault::CrossSlot, Stay),
            ("WRONGTYPE Operation against a key", Fault::WrongType, Stay),
            ("NOPERM User gate has no permissions", Fault::NoPermission, Stay),
            ("NOAUTH Authentication required.", Fault::Login, Reconnect),
            ("WRONGPASS invalid username-password pair", Fault::Login, Reconnect),
            ("ERR user_script:12: attempt to index a nil value", Fault::Script, Stay),
            (
                "ERR Error running script: @user_script:3: OOM command not allowed",
                Fault::OutOfMemory,
                Stay,
            ),
            ("SOMETHING nobody has seen", Fault::Script, Stay),
        ];
        for (line, fault, consequence) in table {
            assert_eq!(answered(line), (fault, consequence), "{line}");
        }
    }

    #[test]
    fn a_moved_slot_is_followed_to_where_it_is() {
        let address = Address::Tcp { host: "10.0.0.2".into(), port: 7_002 };
        let follow = |asking| Consequence::Follow { address: address.clone(), asking };
        assert_eq!(answered("MOVED 3999 10.0.0.2:7002"), (Fault::Moved, follow(false)));
        assert_eq!(answered("ASK 3999 10.0.0.2:7002"), (Fault::Ask, follow(true)));
        // A server that does not know its own name gives none: it is the one that was asked.
        let own = Address::Tcp { host: String::new(), port: 7_002 };
        let follow = Consequence::Follow { address: own, asking: false };
        assert_eq!(answered("MOVED 3999 :7002").1, follow);
        assert_eq!(answered("MOVED 3999").1, Consequence::Reconnect);
    }

    #[test]
    fn a_broken_connection_is_made_anew() {
        for kind in [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionRefused] {
            let error = RedisError::from(io::Error::from(kind));
            assert_eq!(consequence(&error), (Fault::Io, Consequence::Reconnect));
        }
        let error = RedisError::from(io::Error::from(io::ErrorKind::TimedOut));
        assert_eq!(consequence(&error).0, Fault::Timeout);
    }

    #[test]
    fn names_are_one_each() {
        let mut names = Fault::ALL.map(Fault::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Fault::ALL.len());
    }
}
