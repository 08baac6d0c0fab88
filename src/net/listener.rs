//! Listening for one link: who may connect, and how many at once.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;
use socket2::{Domain, Protocol, Type};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::stream::Socket;

/// Connections that the system keeps for us until we accept them.
const BACKLOG: i32 = 1_024;

/// How a link is listened for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Addresses to listen on; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Source networks that may connect; a connection from elsewhere is closed unread.
    pub allow: Vec<IpNet>,
    /// Sessions of this link that may be open at once; one more is closed unread.
    pub connections_max: usize,
}

impl Settings {
    /// Default of `connections_max`.
    pub const CONNECTIONS_MAX: usize = 256;
}

/// An address that is ours, and not yet served: what is wrong with it shows before anything starts.
#[derive(Debug)]
pub struct Bound(std::net::TcpListener);

impl Bound {
    /// Takes an address.
    ///
    /// # Errors
    /// When it is taken or not ours.
    pub fn take(address: SocketAddr) -> io::Result<Self> {
        let socket =
            socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // A restart must not wait for connections of the last run to time out.
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(Self(socket.into()))
    }

    /// The address, with the port that port 0 became.
    ///
    /// # Errors
    /// When the system does not know the socket any more.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Puts it on this thread's runtime.
    ///
    /// # Errors
    /// When the runtime cannot watch it.
    pub fn listen(self) -> io::Result<Listener> {
        Ok(Listener(TcpListener::from_std(self.0)?))
    }
}

/// An address that is listened on.
#[derive(Debug)]
pub struct Listener(TcpListener);

impl Listener {
    /// The next connection whose peer is still there.
    ///
    /// # Errors
    /// When the system is out of something.
    pub async fn accept(&self) -> io::Result<(Socket, SocketAddr)> {
        loop {
            match self.0.accept().await {
                Ok((stream, peer)) => {
                    if let Ok(socket) = Socket::new(stream) {
                        return Ok((socket, peer));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The listener itself, for a server that is not ours.
    pub fn into_inner(self) -> TcpListener {
        self.0
    }
}

/// Who may come in.
#[derive(Clone, Debug)]
pub struct Admittance {
    allow: Arc<[IpNet]>,
    seats: Arc<Semaphore>,
}

/// Why a connection was closed unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its source is in none of the allowed networks.
    #[error("its source is not in allow")]
    NotAllowed,
    /// As many sessions are open as may be.
    #[error("connections_max sessions are open")]
    TooMany,
}

impl Admittance {
    /// By these settings; all listeners of a link share one.
    pub fn new(settings: &Settings) -> Self {
        Self {
            allow: settings.allow.as_slice().into(),
            seats: Arc::new(Semaphore::new(settings.connections_max)),
        }
    }

    /// A seat for a connection from `peer`, to be kept as long as the session is open.
    ///
    /// # Errors
    /// When it may not come in.
    pub fn admit(&self, peer: IpAddr) -> Result<OwnedSemaphorePermit, Refusal> {
        // A listener on [::] sees IPv4 peers as ::ffff:a.b.c.d; operators write a.b.c.d.
        let peer = peer.to_canonical();
        if !self.allow.iter().any(|network| network.contains(&peer)) {
            return Err(Refusal::NotAllowed);
        }
        Arc::clone(&self.seats).try_acquire_owned().map_err(|_| Refusal::TooMany)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admittance(allow: &[&str], connections_max: usize) -> Admittance {
        let allow = allow.iter().map(|network| network.parse().unwrap()).collect();
        Admittance::new(&Settings { listen: Vec::new(), allow, connections_max })
    }

    #[test]
    fn a_source_outside_the_allowed_networks_is_refused() {
        let admittance = admittance(&["10.1.0.0/16", "::1/128"], 8);
        assert!(admittance.admit("10.1.2.3".parse().unwrap()).is_ok());
        assert!(admittance.admit("::ffff:10.1.2.3".parse().unwrap()).is_ok());
        assert!(admittance.admit("::1".parse().unwrap()).is_ok());
        let refused = admittance.admit("10.2.0.1".parse().unwrap());
        assert_eq!(refused.unwrap_err(), Refusal::NotAllowed);
    }

    #[test]
    fn a_seat_is_free_again_when_its_session_is_gone() {
        let admittance = admittance(&["127.0.0.0/8"], 1);
        let peer = "127.0.0.1".parse().unwrap();
        let seat = admittance.admit(peer).unwrap();
        assert_eq!(admittance.admit(peer).unwrap_err(), Refusal::TooMany);
        drop(seat);
        assert!(admittance.admit(peer).is_ok());
    }
}
