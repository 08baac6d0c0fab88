//! Reaching the authorization host: which address, and how soon to try again.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use thiserror::Error;
use tokio::net::lookup_host;
use tokio::time::timeout;

use super::stream::Socket;
use crate::wire::Framing;

/// A host on a network of one's own answers in milliseconds; one that takes longer is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(2);
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// How a link reaches its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The upstream's name.
    pub name: String,
    /// `host:port`, tried in order, the next when one fails.
    pub connect: Vec<String>,
    /// How frames are cut.
    pub framing: Framing,
    /// Connections per link, 1 or more: one is active, the rest stand by.
    pub connections: usize,
}

impl Settings {
    /// Default of `connections`.
    pub const CONNECTIONS: usize = 2;
}

/// Opens connections to one upstream.
#[derive(Debug)]
pub struct Dialer {
    targets: Vec<Target>,
}

/// One entry of `connect`, with the addresses that its name had when it last had any: a name server
/// that is down must not keep us from a host that is up.
#[derive(Debug)]
struct Target {
    name: String,
    last_good: Vec<SocketAddr>,
}

/// Why no connection was opened: the last failure, of the last address.
#[derive(Debug, Error)]
#[error("{name}: {source}")]
pub struct DialError {
    name: String,
    source: io::Error,
}

impl Dialer {
    /// A dialer that has resolved nothing yet.
    pub fn new(connect: &[String]) -> Self {
        let target = |name: &String| Target { name: name.clone(), last_good: Vec::new() };
        Self { targets: connect.iter().map(target).collect() }
    }

    /// Tries every address in order and opens the first that accepts.
    ///
    /// # Errors
    /// When none does.
    pub async fn dial(&mut self) -> Result<(Socket, SocketAddr), DialError> {
        let mut failure = (String::new(), io::Error::from(io::ErrorKind::AddrNotAvailable));
        for target in &mut self.targets {
            if let Err(error) = target.resolve().await {
                failure = (target.name.clone(), error);
            }
            for address in &target.last_good {
                match Socket::dial(*address, CONNECT_TIMEOUT).await {
                    Ok(socket) => return Ok((socket, *address)),
                    Err(error) => failure = (target.name.clone(), error),
                }
            }
        }
        let (name, source) = failure;
        Err(DialError { name, source })
    }
}

impl Target {
    async fn resolve(&mut self) -> io::Result<()> {
        let resolved = timeout(RESOLVE_TIMEOUT, lookup_host(self.name.as_str()));
        let addresses: Vec<_> = match resolved.await {
            Ok(addresses) => addresses?.collect(),
            Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer to the name")),
        };
        if !addresses.is_empty() {
            self.last_good = addresses;
        }
        Ok(())
    }
}

/// Waits between attempts: exponential, the upper half of each drawn by lot, so that a host that comes
/// back is not met by all its links in one moment, and one that takes every connection up and ends it
/// is not dialled in a burst when the lots are short.
#[derive(Debug, Default)]
pub struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// How long to wait before the next attempt; `random` is uniform over all of `u64`.
    pub fn next(&mut self, random: u64) -> Duration {
        let ceiling = BACKOFF_FIRST.saturating_mul(1 << self.attempts.min(10)).min(BACKOFF_MAX);
        self.attempts = self.attempts.saturating_add(1);
        let half_micros = u64::try_from(ceiling.as_micros() / 2).unwrap_or(u64::MAX / 2);
        Duration::from_micros(half_micros + random % (half_micros + 1))
    }

    /// A connection was of use: the next loss is the first again.
    pub const fn reset(&mut self) {
        self.attempts = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_from_attempt_to_attempt_and_is_the_upper_half_of_its_ceiling_by_lot() {
        let mut ceiling = BACKOFF_FIRST;
        for attempts in 0..40 {
            let waits: Vec<_> = (0..10_000_u64)
                .map(|draw| Backoff { attempts }.next(draw.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
                .collect();
            assert!(waits.iter().all(|wait| (ceiling / 2..=ceiling).contains(wait)), "{attempts}");
            assert!(waits.iter().any(|wait| *wait < ceiling * 11 / 20), "{attempts}");
            assert!(waits.iter().any(|wait| *wait > ceiling * 19 / 20), "{attempts}");
            ceiling = (ceiling * 2).min(BACKOFF_MAX);
        }
    }

    #[test]
    fn a_connection_that_was_of_use_begins_anew() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..20).map(|_| backoff.next(0)).collect();
        assert_eq!(waits.last(), Some(&(BACKOFF_MAX / 2)));
        backoff.reset();
        assert_eq!(backoff.next(0), BACKOFF_FIRST / 2);
    }
}
