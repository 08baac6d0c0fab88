//! Other processes, by their number: what they say, standing still and going on.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};

use super::wait_for;

/// Keeps reading lines.
pub fn gather(from: impl Read + Send + 'static) -> (Arc<Mutex<String>>, JoinHandle<()>) {
    let text = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&text);
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let mut text = sink.lock().unwrap();
            text.push_str(&line);
            text.push('\n');
        }
    });
    (text, reader)
}

#[track_caller]
pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).expect("a process has a number");
    kill_process(pid, signal).unwrap();
}

/// Makes a process stand still: after this no thread of it runs any more.
#[track_caller]
pub fn pause(pid: u32) {
    signal(pid, Signal::STOP);
    wait_for("every thread stands still", || stands_still(pid).then_some(()));
}

/// Lets it go on.
#[track_caller]
pub fn resume(pid: u32) {
    signal(pid, Signal::CONT);
}

/// Whether there is such a process, be it one that nobody has waited for.
pub fn exists(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// A stop reaches one thread, and the others only when that one has run.
fn stands_still(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.into_iter().all(|thread| {
        let stat = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
        // The state stands behind the name, which is in parentheses.
        stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T'))
    })
}
