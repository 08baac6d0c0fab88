//! An authorization host that is nothing but a listener: a test accepts its connections and says
//! what they answer, or lets it answer by a function.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::peer::{Framing, Peer};
use super::wait_for;

/// A host on a port of its own.
pub struct Host {
    listener: TcpListener,
    framing: Framing,
}

impl Host {
    /// On a loopback address of its own: a proxy of some other test that still dials a host which is
    /// gone must not find this one in its place.
    pub fn listen(framing: Framing) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let [.., high, low] = std::process::id().to_be_bytes();
        let last = u8::try_from(1 + number % 250).unwrap();
        Self::listen_on(SocketAddr::from(([127, 1 + high % 250, low, last], 0)), framing)
    }

    /// On a port that a host before this one had.
    #[track_caller]
    pub fn listen_on(address: SocketAddr, framing: Framing) -> Self {
        let listener = wait_for("the host's port is free", || TcpListener::bind(address).ok());
        Self { listener, framing }
    }

    /// Connections from now on hold so many bytes unread, and do not grow.
    pub fn with_receive_buffer(self, bytes: usize) -> Self {
        socket2::SockRef::from(&self.listener).set_recv_buffer_size(bytes).unwrap();
        self
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// The next connection that the proxy opens.
    #[track_caller]
    pub fn accept(&self) -> Peer {
        self.listener.set_nonblocking(true).unwrap();
        let (stream, _) = wait_for("the proxy connects", || self.listener.accept().ok());
        stream.set_nonblocking(false).unwrap();
        Peer::new(stream, self.framing)
    }

    /// Answers by a function on every connection from now on, and keeps what came.
    pub fn serve(
        self,
        answer: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Served {
        let served = Served { received: Arc::default(), connections: Arc::default() };
        let (received, connections) = (served.received.clone(), served.connections.clone());
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            self.listener.set_nonblocking(false).unwrap();
            while let Ok((stream, _)) = self.listener.accept() {
                connections.fetch_add(1, Ordering::SeqCst);
                let mut peer = Peer::new(stream, self.framing);
                let (answer, received) = (answer.clone(), received.clone());
                std::thread::spawn(move || {
                    while let Some(Some(frame)) =
                        peer.receive_within(std::time::Duration::from_secs(3_600))
                    {
                        let answered = answer(&frame);
                        received.lock().unwrap().push(frame);
                        if let Some(answer) = answered {
                            peer.send(&answer);
                        }
                    }
                });
            }
        });
        served
    }
}

/// A host that answers by itself.
pub struct Served {
    received: Arc<Mutex<Vec<Vec<u8>>>>,
    connections: Arc<AtomicUsize>,
}

impl Served {
    /// Every frame that came, in order per connection.
    pub fn received(&self) -> Vec<Vec<u8>> {
        self.received.lock().unwrap().clone()
    }

    /// How many connections were ever opened.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}
