//! One connection through a relay. One thread takes what the client asks, one what the server
//! answers, and one gives the answers to the client when it is time.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use tollgate::clock::Moment;

use super::{Shared, resp};

/// What is looked at again after so long though nobody has switched anything.
const LOOK: Duration = Duration::from_secs(3_600);

/// What the three threads share.
struct Lane {
    shared: Arc<Shared>,
    client: TcpStream,
    server: TcpStream,
    state: Mutex<State>,
    changed: Condvar,
    /// Nothing more goes to the client. Looked at while the relay's switches are locked, and so not
    /// a part of the state, under whose lock they are asked.
    is_over: AtomicBool,
}

#[derive(Default)]
struct State {
    /// What the client is to be answered, in order.
    expected: VecDeque<Expected>,
    /// What it is to be given, and since when.
    outgoing: VecDeque<(Moment, Vec<u8>)>,
    /// Pushes are told apart from answers.
    speaks_resp3: bool,
    /// What comes is not looked into any more.
    is_raw: bool,
    /// Nothing more comes from the server.
    has_ended: bool,
}

/// The answer to one command.
enum Expected {
    /// The server's. It may be one that is lost.
    Servers { script: Option<Script> },
    /// The relay's.
    Own(Vec<u8>),
}

/// What is to be known of a script.
struct Script {
    /// It has more keys than those of a shard.
    reports: bool,
}

/// Starts the threads of a connection.
pub(super) fn relay(client: TcpStream, server: TcpStream, shared: &Arc<Shared>) {
    let both = [&client, &server];
    both.iter().for_each(|stream| stream.set_nodelay(true).unwrap());
    shared.streams.lock().unwrap().extend(both.map(|stream| stream.try_clone().unwrap()));
    let (state, changed) = (Mutex::default(), Condvar::new());
    let (shared, is_over) = (Arc::clone(shared), AtomicBool::new(false));
    let lane = Arc::new(Lane { shared, client, server, state, changed, is_over });
    for work in [Lane::ask, Lane::hear, Lane::answer] {
        let lane = Arc::clone(&lane);
        std::thread::spawn(move || work(&lane));
    }
}

impl Lane {
    /// Passes on what the client asks.
    fn ask(&self) {
        let mut bytes = Vec::new();
        while read(&self.client, &mut bytes) {
            self.shared
                .wait_while(|| self.is_over(), |switches| switches.black_hole.then_some(LOOK));
            if !resp::is_command(&bytes) {
                self.state().is_raw = true;
            }
            while let Some(command) = self.next(&mut bytes) {
                if self.expect(&command) && (&self.server).write_all(&command).is_err() {
                    return;
                }
            }
        }
        // The server may have something to say all the same.
        let _ = self.server.shutdown(Shutdown::Write);
    }

    /// Takes note of a command; whether the server is to have it.
    fn expect(&self, command: &[u8]) -> bool {
        let mut state = self.state();
        if state.is_raw {
            return true;
        }
        let words = resp::words(command);
        let name = words.first().cloned().unwrap_or_default();
        let now = self.shared.clock.now();
        self.shared.seen().calls.entry(name.clone()).or_default().push(now);
        let is_script = resp::SCRIPTS.contains(&name.as_str());
        let own = if is_script { self.shared.fault() } else { None };
        if let Some(own) = own {
            state.expected.push_back(Expected::Own(own));
            self.give_own(&mut state);
            return false;
        }
        let subscribes = resp::SUBSCRIPTIONS.contains(&name.as_str());
        match (subscribes, state.speaks_resp3) {
            (true, true) => {}
            (true, false) => state.is_raw = true,
            (false, _) => {
                let script = is_script.then(|| Script { reports: resp::reports(&words) });
                state.expected.push_back(Expected::Servers { script });
            }
        }
        state.speaks_resp3 |= name == "HELLO" && words.get(1).is_some_and(|version| version == "3");
        true
    }

    /// Takes what the server answers.
    fn hear(&self) {
        let mut bytes = Vec::new();
        while read(&self.server, &mut bytes) {
            while let Some(answer) = self.next(&mut bytes) {
                if !self.give(answer) {
                    self.end();
                    return;
                }
            }
        }
        self.state().has_ended = true;
        self.changed.notify_all();
    }

    /// Queues what came from the server; `false` when the connection is to end instead.
    fn give(&self, answer: Vec<u8>) -> bool {
        let mut state = self.state();
        let is_answer = !state.is_raw && answer.first() != Some(&b'>');
        if is_answer
            && let Some(Expected::Servers { script: Some(script) }) = state.expected.pop_front()
            && self.shared.loses(script.reports)
        {
            return false;
        }
        self.queue(&mut state, answer);
        self.give_own(&mut state);
        true
    }

    /// Queues answers of the relay whose turn it is.
    fn give_own(&self, state: &mut State) {
        let is_own = |expected: &mut Expected| matches!(expected, Expected::Own(_));
        while let Some(Expected::Own(answer)) = state.expected.pop_front_if(is_own) {
            self.queue(state, answer);
        }
    }

    fn queue(&self, state: &mut State, answer: Vec<u8>) {
        state.outgoing.push_back((self.shared.clock.now(), answer));
        self.changed.notify_all();
    }

    /// Gives the client its answers when it is time.
    fn answer(&self) {
        while let Some((since, answer)) = self.next_outgoing() {
            let clock = self.shared.clock;
            self.shared.wait_while(
                || self.is_over(),
                |switches| {
                    if switches.black_hole {
                        return Some(LOOK);
                    }
                    let left = switches.delay.saturating_sub(clock.now().since(since));
                    (!left.is_zero()).then_some(left)
                },
            );
            if self.is_over() || (&self.client).write_all(&answer).is_err() {
                break;
            }
        }
        self.end();
    }

    /// Waits for something to give; `None` when there will be nothing.
    fn next_outgoing(&self) -> Option<(Moment, Vec<u8>)> {
        let mut state = self.state();
        loop {
            if self.is_over() {
                return None;
            }
            match state.outgoing.pop_front() {
                Some(next) => return Some(next),
                None if state.has_ended => return None,
                None => state = self.changed.wait(state).unwrap(),
            }
        }
    }

    /// The next value of these bytes; all of them, where they are not looked into.
    fn next(&self, bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
        if bytes.is_empty() {
            return None;
        }
        let is_raw = self.state().is_raw;
        let length = if is_raw { bytes.len() } else { resp::length(bytes)? };
        Some(bytes.drain(..length).collect())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Under the lock, so that nobody is between looking and waiting.
        drop(self.state());
        self.changed.notify_all();
        // Either may be closed.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

/// Adds what comes; `false` at the end.
fn read(mut from: &TcpStream, bytes: &mut Vec<u8>) -> bool {
    let mut chunk = [0; 16_384];
    match from.read(&mut chunk) {
        Ok(0) | Err(_) => false,
        Ok(count) => {
            bytes.extend_from_slice(&chunk[..count]);
            true
        }
    }
}
