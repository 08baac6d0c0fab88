//! One call as Redis is told it, and its answer read back.
//!
//! A call is one run of `script.lua`, which says in Redis what [`Store`] says in process. This is
//! where both are put into words: names of keys, arguments, answers, and what is published. It opens
//! no connection and decides nothing. Whatever a server answers is read within bounds or not at all.
//!
//! [`Store`]: crate::quota::protocol::Store

mod arguments;
mod names;
mod news;
mod packed;
mod reply;

use redis::{Cmd, Value, cmd};

use self::arguments::add_arguments;
pub use self::names::Names;
pub use self::reply::Unreadable;
use crate::quota::protocol::{Call, Low, NodeId, Reply};

/// What Redis runs.
pub const SOURCE: &str = include_str!("script.lua");

/// What a user of Redis who runs the script has to be allowed, beside the keys and channels that
/// [`Script::permissions`] names. For Cluster `+spublish` comes to it.
pub const COMMANDS: &str = "+eval +evalsha +time +hgetall +hmget +hset +hdel +hlen +exists +del \
                            +pexpire +expire +zadd +zcard +zcount +zrange +zrangebyscore +zscore \
                            +zrem +publish";

/// The script with the names of one deployment.
#[derive(Clone, Debug)]
pub struct Script {
    namespace: String,
    /// The command that publishes.
    publish: &'static str,
    sha1: String,
}

impl Script {
    /// The script for keys of this namespace. `sharded` is for Cluster: what is published then stays
    /// with the nodes of the shard's slot.
    pub fn new(namespace: &str, sharded: bool) -> Self {
        Self {
            namespace: namespace.to_owned(),
            publish: if sharded { "SPUBLISH" } else { "PUBLISH" },
            sha1: redis::Script::new(SOURCE).get_hash().to_owned(),
        }
    }

    /// The call, for a server that has the script.
    pub fn call(&self, shard: u16, call: &Call) -> Cmd {
        self.run("EVALSHA", &self.sha1, shard, call)
    }

    /// The call with the script's source, for a server that has answered `NOSCRIPT`, and so has run
    /// nothing. It has the script from then on.
    pub fn load_and_call(&self, shard: u16, call: &Call) -> Cmd {
        self.run("EVAL", SOURCE, shard, call)
    }

    /// What a server answered to a call with so many reports.
    pub fn read(&self, answer: &Value, reports: usize) -> Result<Reply, Unreadable> {
        reply::read(answer, reports)
    }

    /// What the keys of a shard are called.
    pub fn names(&self, shard: u16) -> Names {
        Names::new(&self.namespace, shard)
    }

    /// The command by which what is published is heard.
    pub fn subscribe(&self) -> &'static str {
        if self.is_sharded() { "SSUBSCRIBE" } else { "SUBSCRIBE" }
    }

    /// Where a shard publishes.
    pub fn channel(&self, shard: u16) -> String {
        self.names(shard).channel()
    }

    /// Who published a message, and what it says is low. `None` for what no call has published.
    pub fn read_news(&self, message: &[u8]) -> Option<(NodeId, Vec<Low>)> {
        news::read(message)
    }

    /// The rule of an ACL that allows the script and nothing else.
    pub fn permissions(&self) -> String {
        let spublish = if self.is_sharded() { " +spublish" } else { "" };
        let any = Names::pattern(&self.namespace);
        // Without the reset a user of Redis 6.2 has every channel.
        format!("~{any} resetchannels &{any} {COMMANDS}{spublish}")
    }

    fn is_sharded(&self) -> bool {
        self.publish == "SPUBLISH"
    }

    fn run(&self, command: &str, script: &str, shard: u16, call: &Call) -> Cmd {
        let names = self.names(shard);
        let keys = names.keys_of(call);
        let mut command = cmd(command);
        command.arg(script).arg(keys.len()).arg(&keys);
        add_arguments(&mut command, call, self.publish, &names.channel());
        command
    }
}

#[cfg(test)]
mod tests {
    use redis::Arg;

    use super::*;
    use crate::limits::StoreKey;
    use crate::quota::protocol::{Report, Since};

    fn call() -> Call {
        let report = |number| Report {
            key: StoreKey { limit: 1, id: [2, number] },
            rate: 25e6,
            cap: 50_000_000,
            boot: 3,
            spent: 4_000_000,
            charged: 1_000_000,
            level: -7,
            local: number == 1,
        };
        let after = Some(StoreKey { limit: 5, id: [6, 7] });
        Call {
            node: NodeId(0xbeef),
            elapsed_us: Some(100_000),
            since: Since { time_us: 1_800_000_000_000_000, after },
            push: true,
            leave: false,
            reports: vec![report(0), report(1)],
        }
    }

    fn words(command: &Cmd) -> Vec<Vec<u8>> {
        let words = command.args_iter().map(|word| match word {
            Arg::Simple(word) => word.to_vec(),
            _ => panic!("no command of words"),
        });
        words.collect()
    }

    fn texts(command: &Cmd, words_of: std::ops::Range<usize>) -> Vec<String> {
        words(command)[words_of]
            .iter()
            .map(|word| String::from_utf8(word.clone()).unwrap())
            .collect()
    }

    #[test]
    fn a_call_names_its_keys_and_says_the_rest_in_order() {
        let script = Script::new("tollgate", false);
        let command = script.call(3, &call());
        assert_eq!(
            texts(&command, 0..15),
            [
                "EVALSHA",
                &script.sha1,
                "5",
                "tollgate:v1:{3}:shard",
                "tollgate:v1:{3}:low",
                "tollgate:v1:{3}:lows",
                "tollgate:v1:{3}:k:0000000000000001:00000000000000020000000000000000",
                "tollgate:v1:{3}:k:0000000000000001:00000000000000020000000000000001",
                "000000000000beef",
                "100000",
                "1800000000000000",
                "0000000000000005:00000000000000060000000000000007",
                "0",
                "PUBLISH",
                "tollgate:v1:{3}:news",
            ]
        );
        let [.., reports] = words(&command).try_into().map(|words: [Vec<u8>; 16]| words).unwrap();
        let first: [f64; 7] = packed::doubles(&reports[..56]).unwrap();
        assert_eq!(first, [25e6, 50e6, 3.0, 4e6, 1e6, -7.0, 0.0]);
        let second: [f64; 7] = packed::doubles(&reports[56..]).unwrap();
        assert_eq!(second[6], 1.0);
    }

    #[test]
    fn what_a_call_does_not_have_is_said_by_nothing() {
        let bare = Call {
            elapsed_us: None,
            since: Since::default(),
            push: false,
            leave: true,
            reports: Vec::new(),
            ..call()
        };
        let command = Script::new("t", true).call(0, &bare);
        let said = ["000000000000beef", "", "0", "", "1", "", "t:v1:{0}:news", ""];
        assert_eq!(texts(&command, 6..14), said);
        let command = Script::new("t", true).call(0, &Call { push: true, ..bare });
        assert_eq!(texts(&command, 11..12), ["SPUBLISH"]);
    }

    #[test]
    fn a_server_without_the_script_is_sent_it_with_the_same_words() {
        let script = Script::new("tollgate", false);
        let (known, new) = (script.call(3, &call()), script.load_and_call(3, &call()));
        assert_eq!(texts(&new, 0..2), ["EVAL", SOURCE]);
        assert_eq!(words(&known)[2..], words(&new)[2..]);
    }

    #[test]
    fn the_script_reads_the_time_in_one_line() {
        assert_eq!(SOURCE.matches("local time = redis.call('TIME')\n").count(), 1);
        assert_eq!(SOURCE.matches("'TIME'").count(), 1);
    }

    #[test]
    fn an_acl_names_every_command_of_the_script() {
        let quoted = SOURCE.split('\'').skip(1).step_by(2);
        let is_command =
            |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase());
        let others = ["WRONGTYPE", "LIMIT"];
        for command in quoted.filter(is_command).filter(|word| !others.contains(word)) {
            let allowed = format!("+{}", command.to_lowercase());
            assert!(COMMANDS.split(' ').any(|word| word == allowed), "{command}");
        }
        let plain = Script::new("t", false).permissions();
        assert!(plain.starts_with("~t:v1:* resetchannels &t:v1:* +eval "), "{plain}");
        assert!(plain.ends_with(" +publish"), "{plain}");
        assert!(Script::new("t", true).permissions().ends_with(" +publish +spublish"));
    }
}
