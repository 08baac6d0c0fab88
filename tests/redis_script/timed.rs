//! The script with a wall clock that a test sets.

use redis::{Arg, Cmd, Connection, Value, cmd};
use tollgate::quota::protocol::{Call, Reply};
use tollgate::quota::redis::script::{SOURCE, Script};

/// Where the script reads the wall clock.
const TIME_LINE: &str = "local time = redis.call('TIME')\n";

/// The same of a time that the test has said: whole seconds, and microseconds beyond.
const SAID_LINE: &str = "local time = { ARGV[9], ARGV[10] }\n";

/// The script under test.
pub(crate) struct Timed {
    pub(crate) script: Script,
    pub(crate) sha1: String,
}

impl Timed {
    /// Loads it.
    pub(crate) fn load(connection: &mut Connection) -> Self {
        Self::load_but(connection, ("", ""))
    }

    /// Loads it with one place of it changed.
    pub(crate) fn load_but(connection: &mut Connection, (place, other): (&str, &str)) -> Self {
        assert_eq!(SOURCE.matches(TIME_LINE).count(), 1);
        assert!(place.is_empty() || SOURCE.matches(place).count() == 1, "{place}");
        let source = SOURCE.replace(TIME_LINE, SAID_LINE);
        let source = if place.is_empty() { source } else { source.replace(place, other) };
        let sha1 = cmd("SCRIPT").arg("LOAD").arg(source).query(connection).unwrap();
        Self { script: Script::new("test", false), sha1 }
    }

    /// A call that arrives at this wall time.
    pub(crate) fn call(&self, shard: u16, call: &Call, wall_us: u64) -> Cmd {
        let mut timed = Cmd::new();
        for (at, word) in self.script.call(shard, call).args_iter().enumerate() {
            match word {
                _ if at == 1 => timed.arg(&self.sha1),
                Arg::Simple(word) => timed.arg(word),
                _ => panic!("not a word"),
            };
        }
        timed.arg(wall_us / 1_000_000).arg(wall_us % 1_000_000);
        timed
    }

    /// The same, answered.
    pub(crate) fn reply(&self, connection: &mut Connection, call: &Call, wall_us: u64) -> Reply {
        let answer: Value = self.call(0, call, wall_us).query(connection).unwrap();
        self.script.read(&answer, call.reports.len()).unwrap()
    }
}
