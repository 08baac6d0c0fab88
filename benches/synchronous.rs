//! A decision of tollgate beside a call of a token bucket in Redis for each request, which is the usual
//! way: the same requests at the same time on the same Redis, which is stopped for a second amid the run.
//!
//! `cargo bench --bench synchronous`. It needs a `redis-server`, and ends by itself after some ten
//! seconds. The usual way is given what it is best with: one multiplexed connection, a script, all
//! requests under way at once, and a limit of 50 ms after which it admits.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a bench states its expectations and prints what it measured"
)]

#[allow(dead_code, reason = "others connect to it by what it has for them")]
#[path = "../tests/redis_script/server.rs"]
mod server;

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use redis::Script;
use rustix::process::{Pid, Signal, kill_process};
use server::RedisServer;
use tollgate::clock::{Clock, Moment};
use tollgate::limits::{Burst, Per, Policy, Rate, Rule, Terms};
use tollgate::quota::protocol::NodeId;
use tollgate::quota::redis::{Login, Redis, Settings, deployment, parse};
use tollgate::quota::sync::{self, Sync};
use tollgate::quota::task::Handle;
use tollgate::traffic::{Class, LinkId, MerchantId, Operation, Traffic};

/// Tokens per second of each merchant, and in each bucket.
const RATE: f64 = 25.0;
const BURST: f64 = 50.0;
/// Requests in a second, of which a quarter are one merchant's, at twenty times its rate.
const PER_SECOND: u32 = 2_000;
const OTHERS: usize = 1_000;
const QUIET: Duration = Duration::from_secs(4);
const PAUSE: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(3);
/// The usual way waits so long for its Redis.
const LIMIT: Duration = Duration::from_millis(50);

/// The bucket as it is written everywhere.
const BUCKET: &str = r"
local now = redis.call('TIME'); now = now[1] + now[2] / 1000000
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = math.min(burst, (tonumber(state[1]) or burst) + rate * (now - (tonumber(state[2]) or now)))
local admits = tokens >= 1
if admits then tokens = tokens - 1 end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'at', string.format('%.6f', now))
redis.call('EXPIRE', KEYS[1], 60)
return admits and 1 or 0";

/// One decision.
#[derive(Clone, Copy)]
struct Decided {
    /// Since the run began.
    at: Duration,
    took: Duration,
    is_abuser: bool,
    admitted: bool,
}

/// Whose turn it is: each fourth request is the abuser's.
fn merchant(number: u32) -> usize {
    if number.is_multiple_of(4) { 0 } else { 1 + number as usize % OTHERS }
}

fn run_length() -> u32 {
    ((QUIET + PAUSE + AFTER).as_secs_f64() * f64::from(PER_SECOND)) as u32
}

fn due(number: u32) -> Duration {
    Duration::from_secs(1) * number / PER_SECOND
}

fn traffic(merchant: usize) -> Traffic {
    let acceptor = format!("SHOP{merchant:08}   ");
    let merchant = MerchantId::new(b"123456", acceptor.as_bytes());
    Traffic { merchant, ..Traffic::new(LinkId(0), Class::Standard, Operation::Purchase) }
}

fn tollgate(url: &str, clock: Clock, began: Moment) -> Vec<Decided> {
    let (rate, burst) = (Rate::per_second(RATE).unwrap(), Burst::tokens(BURST).unwrap());
    let rule = Rule::new("merchant", Per::MERCHANT, rate, burst);
    let policy = Policy::leased(&[rule], &[], Terms::default(), 1, 1, clock.now()).unwrap();
    let policy = Arc::new(policy);
    let settings = Settings {
        deployment: deployment(&parse(url).unwrap()).unwrap(),
        database: 0,
        login: Login::default(),
        sentinel_login: Login::default(),
        tls: None,
        namespace: "bench".to_owned(),
    };
    let of_sync = sync::Settings::default();
    let store = Redis::new(settings, &of_sync, NodeId(1), clock);
    let sync = Sync::new(of_sync, NodeId(1), 1, Arc::clone(&policy), clock.now());
    let handle = Handle::new(sync);
    let thread = handle.run(store, clock, Arc::clone(&policy), None).unwrap();
    let bell = handle.bell();

    let asks: Vec<_> = (0..=OTHERS).map(traffic).collect();
    let mut decided = Vec::new();
    for number in 0..run_length() {
        std::thread::sleep(began.after(due(number)).since(clock.now()));
        let who = merchant(number);
        let start = clock.now();
        let decision = policy.decide(&asks[who], start);
        let took = clock.now().since(start);
        if policy.wants_sync() {
            bell.notify_one();
        }
        let (at, admitted) = (start.since(began), decision.refused_by.is_none());
        decided.push(Decided { at, took, is_abuser: who == 0, admitted });
    }
    handle.stop();
    thread.join().unwrap();
    decided
}

fn usual(url: &str, clock: Clock, began: Moment) -> Vec<Decided> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (decided, all) = channel();
    runtime.block_on(async {
        let client = redis::Client::open(url).unwrap();
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
        let connection =
            client.get_multiplexed_async_connection_with_config(&config).await.unwrap();
        let script = Arc::new(Script::new(BUCKET));
        for number in 0..run_length() {
            let wait = began.after(due(number)).since(clock.now());
            // A timer of whole milliseconds would hold up what is due already.
            if wait > Duration::ZERO {
                tokio::time::sleep(wait).await;
            }
            let (decided, script, mut connection) =
                (decided.clone(), Arc::clone(&script), connection.clone());
            tokio::spawn(async move {
                let who = merchant(number);
                let start = clock.now();
                let mut call = script.key(format!("usual:{who}"));
                let call = call.arg(RATE).arg(BURST).invoke_async::<u8>(&mut connection);
                let answer = tokio::time::timeout(LIMIT, call).await;
                // No answer is let through, or every sale would be declined.
                let admitted = answer.is_err() || answer.is_ok_and(|answer| answer.unwrap() == 1);
                let (at, took) = (start.since(began), clock.now().since(start));
                decided.send(Decided { at, took, is_abuser: who == 0, admitted }).unwrap();
            });
        }
        tokio::time::sleep(LIMIT * 4).await;
    });
    drop(decided);
    all.iter().collect()
}

fn percentile(sorted: &[Duration], share: f64) -> f64 {
    let at = ((sorted.len() as f64 * share) as usize).min(sorted.len() - 1);
    sorted[at].as_secs_f64() * 1e6
}

fn report(who: &str, phase: &str, decided: &[Decided], seconds: f64) {
    let mut took: Vec<_> = decided.iter().map(|decided| decided.took).collect();
    took.sort_unstable();
    let good = decided.iter().filter(|decided| !decided.is_abuser);
    let refused = good.filter(|decided| !decided.admitted).count();
    let abuser = decided.iter().filter(|decided| decided.is_abuser && decided.admitted).count();
    let [p50, p99, p999, most] = [0.5, 0.99, 0.999, 1.0].map(|share| percentile(&took, share));
    println!(
        "| {who} | {phase} | {} | {p50:.1} | {p99:.1} | {p999:.1} | {most:.0} | {refused} | {abuser} | {:.0} |",
        decided.len(),
        RATE * seconds,
    );
}

fn signal(server: &RedisServer, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

fn main() {
    let server = RedisServer::start();
    let url = server.url("");
    // Both begin at once, when both are connected.
    let clock = Clock::start();
    let began = clock.now().after(Duration::from_millis(300));
    let [ours, theirs] = std::thread::scope(|scope| {
        let ours = scope.spawn(|| tollgate(&url, clock, began));
        let theirs = scope.spawn(|| usual(&url, clock, began));
        std::thread::sleep(began.after(QUIET).since(clock.now()));
        signal(&server, Signal::STOP);
        std::thread::sleep(PAUSE);
        signal(&server, Signal::CONT);
        [ours, theirs].map(|thread| thread.join().unwrap())
    });
    println!("decisions in microseconds; the abuser asks for twenty times its rate\n");
    println!(
        "| way | Redis | decisions | p50 | p99 | p99.9 | most | good ones refused | abuser admitted | its rate gives |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let phases = [
        ("answers", Duration::from_secs(1)..QUIET),
        ("stopped 1 s", QUIET..QUIET + PAUSE),
        ("answers again", QUIET + PAUSE..QUIET + PAUSE + AFTER),
    ];
    for (phase, span) in phases {
        for (who, decided) in [("tollgate", &ours), ("a call per request", &theirs)] {
            let of_phase: Vec<_> =
                decided.iter().filter(|decided| span.contains(&decided.at)).copied().collect();
            report(who, phase, &of_phase, (span.end - span.start).as_secs_f64());
        }
    }
}
