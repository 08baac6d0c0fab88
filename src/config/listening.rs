//! Who listens where: two cannot listen on one address, and none may be its own host.

use std::net::{IpAddr, SocketAddr};

use super::fault::{Place, Wrong};
use super::reader::Section;

/// The addresses that were claimed so far.
#[derive(Default)]
pub(super) struct Listening {
    claims: Vec<Claim>,
}

struct Claim {
    address: SocketAddr,
    /// The key, and its line if it was written.
    whose: String,
}

impl Listening {
    /// Claims `address`, unless it is another's already. Port 0 takes a free one every time.
    pub(super) fn claim(&mut self, section: &Section<'_>, address: SocketAddr, place: &Place) {
        let taken = |claim: &&Claim| address.port() != 0 && same_socket(claim.address, address);
        if let Some(claim) = self.claims.iter().find(taken) {
            let problem = format!("{address} is taken by {}", claim.whose);
            section.fault(place, &Wrong::new(problem, "write another port or another address"));
        }
        let whose = format!("{} of line {}", place.key, place.line);
        self.claims.push(Claim { address, whose });
    }

    /// Claims the default of a key that was not written, before anybody else does.
    pub(super) fn claim_default(&mut self, address: SocketAddr, key: &str) {
        self.claims.push(Claim { address, whose: format!("the default of {key}") });
    }

    /// Whose address it is that tollgate would reach at `target`, if it is one of its own.
    pub(super) fn reached_by(&self, target: &str) -> Option<&str> {
        let target: SocketAddr = match target.strip_prefix("localhost:") {
            Some(port) => SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port.parse().ok()?),
            None => target.parse().ok()?,
        };
        let reaches = |listen: SocketAddr| {
            let any = listen.ip().is_unspecified() && target.ip().is_loopback();
            listen == target || (any && listen.port() == target.port())
        };
        self.claims.iter().find(|claim| reaches(claim.address)).map(|claim| claim.whose.as_str())
    }
}

/// Whether the system would refuse the second of the two. An address of all interfaces is in the way
/// of each one of its family; whether it is in the way of the other family is the system's choice.
fn same_socket(a: SocketAddr, b: SocketAddr) -> bool {
    let family = a.is_ipv4() == b.is_ipv4();
    let any = a.ip().is_unspecified() || b.ip().is_unspecified();
    family && a.port() == b.port() && (any || a.ip() == b.ip())
}
