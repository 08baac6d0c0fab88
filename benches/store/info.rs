//! What a server says that it has spent.

use redis::{Connection, cmd};

/// In microseconds, so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    /// In the script.
    pub(crate) script_us: f64,
    /// By the whole process.
    pub(crate) cpu_us: f64,
}

impl Spent {
    pub(crate) fn of(connection: &mut Connection) -> Self {
        let info: String = cmd("INFO").arg("all").query(connection).unwrap();
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name));
            line.map_or(0.0, |value| value.split(',').next().unwrap().parse().unwrap())
        };
        // Calls that came before the first of them have none.
        let script = info.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:"));
        let script_us = script
            .and_then(|line| line.split("usec=").nth(1))
            .map_or(0.0, |rest| rest.split(',').next().unwrap().parse().unwrap());
        let cpu_us = (field("used_cpu_user:") + field("used_cpu_sys:")) * 1e6;
        Self { script_us, cpu_us }
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { script_us: self.script_us - earlier.script_us, cpu_us: self.cpu_us - earlier.cpu_us }
    }
}
