//! The script with a wall clock that a test sets, and both stores side by side.

use redis::{Arg, Cmd, Connection, Value, cmd};
use tollgate::quota::protocol::Call;
use tollgate::quota::redis::script::{SOURCE, Script};

/// Where the script reads the wall clock.
const TIME_LINE: &str = "local time = redis.call('TIME')\n";

/// The same of a time that the test has said: whole seconds, and microseconds beyond.
const SAID_LINE: &str = "local time = { ARGV[9], ARGV[10] }\n";

/// The script under test.
pub(crate) struct Timed {
    pub(crate) script: Script,
    sha1: String,
}

impl Timed {
    /// Loads it.
    pub(crate) fn load(connection: &mut Connection) -> Self {
        assert_eq!(SOURCE.matches(TIME_LINE).count(), 1);
        let source = SOURCE.replace(TIME_LINE, SAID_LINE);
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

    pub(crate) fn answer(
        &self,
        connection: &mut Connection,
        shard: u16,
        call: &Call,
        wall_us: u64,
    ) -> tollgate::quota::protocol::Reply {
        let answer: Value = self.call(shard, call, wall_us).query(connection).unwrap();
        self.script.read(&answer, call.reports.len()).unwrap()
    }
}
