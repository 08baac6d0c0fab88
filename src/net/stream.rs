//! A connection, whoever opened it: the only place that names a TCP stream.
//!
//! Accepted or dialled, a stream comes here before a session or an upstream sees it, so that both
//! are set up alike and what is wrapped around TCP later is wrapped in one place.

use std::future::poll_fn;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::buffer::{Inbox, ReadBuffer, Rest};

/// A silent connection is probed after so long, so that a peer that lost its power is noticed.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// No peer is given up sooner for acknowledging nothing: a network may lose a few packets.
const UNACKNOWLEDGED_MIN: Duration = Duration::from_secs(5);

/// A connection on its way from the thread that opened it to the worker that serves it.
#[derive(Debug)]
pub struct Socket(std::net::TcpStream);

impl Socket {
    /// Sets up a stream that was just accepted or dialled and takes it off its runtime.
    ///
    /// # Errors
    /// When the peer is gone already.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        // Small messages that wait for an answer: with Nagle's algorithm on, p50 under open load
        // was 782 us instead of 155 us.
        stream.set_nodelay(true)?;
        let probes =
            TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL);
        SockRef::from(&stream).set_tcp_keepalive(&probes)?;
        Ok(Self(stream.into_std()?))
    }

    /// Connects to `address` within `timeout`.
    ///
    /// # Errors
    /// When nobody accepts there, or not in time.
    pub async fn dial(address: SocketAddr, timeout: Duration) -> io::Result<Self> {
        match tokio::time::timeout(timeout, TcpStream::connect(address)).await {
            Ok(stream) => Self::new(not_ourselves(stream?)?),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer to the connection")),
        }
    }

    /// Has the system give the connection up when its peer takes nothing for `timeout`. Probes are
    /// only sent while nothing is unacknowledged; without this the system repeats what was written
    /// for a quarter of an hour, and for that long every request to a host that lost its power would
    /// be answered at its deadline.
    ///
    /// # Errors
    /// When the connection is gone already.
    pub fn given_up_after(self, timeout: Duration) -> io::Result<Self> {
        let timeout = timeout.max(UNACKNOWLEDGED_MIN);
        SockRef::from(&self.0).set_tcp_user_timeout(Some(timeout))?;
        Ok(self)
    }

    /// Puts the connection on this thread's runtime and parts it.
    ///
    /// # Errors
    /// When the runtime cannot watch it.
    pub fn open(self) -> io::Result<(Reader, Writer)> {
        let (reader, writer) = TcpStream::from_std(self.0)?.into_split();
        Ok((Reader(reader), Writer(writer)))
    }
}

/// Where nobody listens, a system may give a connection the very port that it is to lead to. It then
/// leads to itself, and what is written to it comes back as if the host said it.
fn not_ourselves(stream: TcpStream) -> io::Result<TcpStream> {
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens there"));
    }
    Ok(stream)
}

/// The half that is read.
#[derive(Debug)]
pub struct Reader(OwnedReadHalf);

impl Reader {
    /// Waits for bytes and puts them behind those in `buffer`; 0 at the end of the stream, and when
    /// the buffer is full.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn fill(&mut self, buffer: &mut ReadBuffer) -> io::Result<usize> {
        self.fill_at_most(buffer, usize::MAX).await
    }

    /// The same for at most `bytes_max` bytes, which is above 0.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn fill_at_most(
        &mut self,
        buffer: &mut ReadBuffer,
        bytes_max: usize,
    ) -> io::Result<usize> {
        poll_fn(|context| self.poll_fill(context, buffer, bytes_max)).await
    }

    /// Waits for bytes and lends `inbox` to `turn` with them in it, behind `rest`; `None` at the end
    /// of the stream.
    ///
    /// # Errors
    /// When the connection broke.
    pub async fn take_turn<T>(
        &mut self,
        inbox: &Inbox,
        rest: &mut Rest,
        mut turn: impl FnMut(&mut ReadBuffer) -> T,
    ) -> io::Result<Option<T>> {
        poll_fn(|context| {
            inbox.lend(rest, |buffer| {
                let read = ready!(self.poll_fill(context, buffer, usize::MAX))?;
                Poll::Ready(Ok((read > 0).then(|| turn(buffer))))
            })
        })
        .await
    }

    fn poll_fill(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuffer,
        bytes_max: usize,
    ) -> Poll<io::Result<usize>> {
        // poll_read and not try_read: it knows from a short read that the socket is empty, which
        // saves the second call that would only be told so.
        let free = buffer.free();
        let most = free.len().min(bytes_max);
        let mut free = ReadBuf::new(free.get_mut(..most).unwrap_or_default());
        ready!(Pin::new(&mut self.0).poll_read(context, &mut free))?;
        let read = free.filled().len();
        buffer.filled(read);
        Poll::Ready(Ok(read))
    }
}

/// The half that is written. Dropping it ends the stream in this direction.
#[derive(Debug)]
pub struct Writer(OwnedWriteHalf);

impl Writer {
    /// Writes what the socket takes at once: 0 when it takes nothing now.
    ///
    /// # Errors
    /// When the connection broke.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            other => other,
        }
    }

    /// Ends this direction; the other goes on.
    pub fn finish(&self) {
        // It fails when the connection is broken, and then there is nothing left to end.
        let _ = SockRef::from(self.0.as_ref()).shutdown(Shutdown::Write);
    }

    /// Ends both directions, whoever else still holds the socket.
    pub fn shut_down(&self) {
        // It fails when the connection is broken, and then there is nothing left to end.
        let _ = SockRef::from(self.0.as_ref()).shutdown(Shutdown::Both);
    }

    /// Waits until the socket takes bytes again, or is broken.
    pub async fn writable(&self) {
        // An error shows at the next write, where it is dealt with.
        let _ = self.0.writable().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::listener::Bound;

    #[test]
    fn dialled_and_accepted_connections_are_set_up_alike() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let bound = Bound::take("127.0.0.1:0".parse().unwrap()).unwrap();
            let address = bound.address().unwrap();
            let listener = bound.listen().unwrap();
            let dialled = Socket::dial(address, Duration::from_secs(5)).await.unwrap();
            let (accepted, _) = listener.accept().await.unwrap();
            for socket in [&dialled, &accepted] {
                let socket = SockRef::from(&socket.0);
                assert!(socket.tcp_nodelay().unwrap());
                assert!(socket.keepalive().unwrap());
            }
        });
    }

    #[tokio::test]
    async fn a_connection_that_leads_to_itself_is_none() {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        let stream = socket.connect(address).await.unwrap();
        let refused = not_ourselves(stream).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn a_peer_that_acknowledges_nothing_is_given_up_after_the_timeout_but_not_at_once() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for (timeout, expected) in [(Duration::from_secs(9), 9), (Duration::from_millis(10), 5)] {
            let socket = Socket::dial(address, Duration::from_secs(10)).await.unwrap();
            let socket = socket.given_up_after(timeout).unwrap();
            let set = SockRef::from(&socket.0).tcp_user_timeout().unwrap();
            assert_eq!(set, Some(Duration::from_secs(expected)));
        }
    }
}
