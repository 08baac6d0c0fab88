//! Waiting for sockets: a thin and safe cover over epoll, for peers that serve many connections on
//! one thread and may not cost more than what they measure.
//!
//! It knows tokens, not connections: who is behind a token is its caller's to say. What was dropped
//! is forgotten by itself.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

/// Events that are taken at once; the others come with the next wait.
const EVENTS_MAX: usize = 1_024;

/// What a socket is watched for. A broken connection shows in either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Read,
    Write,
    Both,
}

impl Wish {
    const fn flags(self) -> epoll::EventFlags {
        match self {
            Self::Read => epoll::EventFlags::IN,
            Self::Write => epoll::EventFlags::OUT,
            Self::Both => epoll::EventFlags::IN.union(epoll::EventFlags::OUT),
        }
    }
}

/// A socket with which something can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) token: u64,
    pub(super) readable: bool,
    pub(super) writable: bool,
}

/// Watched sockets.
#[derive(Debug)]
pub(super) struct Poll {
    epoll: OwnedFd,
}

/// What the last wait of a thread has found.
pub(super) struct Events(Vec<epoll::Event>);

impl Poll {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll })
    }

    pub(super) fn watch(&self, socket: impl AsFd, token: u64, wish: Wish) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        Ok(epoll::add(&self.epoll, socket, data, wish.flags())?)
    }

    pub(super) fn change(&self, socket: impl AsFd, token: u64, wish: Wish) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        Ok(epoll::modify(&self.epoll, socket, data, wish.flags())?)
    }

    /// Waits until something can be done, at most for so long; to the nanosecond where
    /// [`wake_promptly`] was asked for.
    pub(super) fn wait(&self, at_most: Duration, events: &mut Events) -> io::Result<()> {
        let waited = self.wait_for(at_most, events);
        match waited {
            // Kernels before 5.11 know whole milliseconds only.
            Err(Errno::NOSYS) => {
                let millis = Duration::from_millis(1).saturating_mul(
                    u32::try_from(at_most.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX),
                );
                self.wait_for(millis, events)
            }
            waited => waited,
        }
        .or_else(|error| if error == Errno::INTR { Ok(()) } else { Err(error.into()) })
    }

    fn wait_for(&self, at_most: Duration, events: &mut Events) -> Result<(), Errno> {
        let timeout = Timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: at_most.subsec_nanos().into(),
        };
        events.0.clear();
        epoll::wait(&self.epoll, spare_capacity(&mut events.0), Some(&timeout))?;
        Ok(())
    }
}

impl Events {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(EVENTS_MAX))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Ready> {
        let broken = epoll::EventFlags::HUP.union(epoll::EventFlags::ERR);
        self.0.iter().map(move |event| {
            let (flags, data) = (event.flags, event.data);
            Ready {
                token: data.u64(),
                readable: flags.intersects(broken.union(epoll::EventFlags::IN)),
                writable: flags.intersects(broken.union(epoll::EventFlags::OUT)),
            }
        })
    }
}

/// Has the waits of this thread end when they are to, and not up to 50 us later.
pub(super) fn wake_promptly() -> io::Result<()> {
    Ok(set_current_timer_slack(NonZeroU64::new(1))?)
}

/// Keeps this thread on one processor.
pub(super) fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no such processor"));
    }
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(sched_setaffinity(None, &only)?)
}
