//! Where requests come from: their rhythm, and the node that each is sent to.

use std::time::Duration;

use tollgate::clock::Moment;
use tollgate::traffic::Class;

/// How much the gap between two requests of a steady source may differ from the mean: 30 %, half of
/// it at each end. The source never drifts, and so it keeps to its rate however long it runs.
const JITTER: f64 = 0.15;

/// When a source sends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rhythm {
    /// One request each gap, give or take.
    Steady,
    /// Gaps as they are where many send a little each.
    Poisson,
    /// Steady for a while, silent for a while; how long is drawn, these are the means.
    OnOff { on: Duration, off: Duration },
    /// So many requests spread over `within`, again and again.
    Volleys { count: u32, within: Duration, each: Duration },
}

/// Which node a request is sent to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    /// Always to this one, or to the next one if it is not there.
    Stays(usize),
    /// To this one more often than not, else to any.
    Leans(usize),
    /// To any.
    Spread,
    /// To the next one each time that so much has passed.
    Hops(Duration),
}

/// One sender of requests.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) merchant: usize,
    pub(crate) bin: usize,
    pub(crate) class: Class,
    pub(crate) per_second: f64,
    pub(crate) rhythm: Rhythm,
    pub(crate) route: Route,
    /// It keeps to all its limits, so that each refusal is a false reject.
    pub(crate) is_good: bool,
    pub(crate) from: Duration,
    pub(crate) until: Duration,
}

/// A source at work.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) source: Source,
    random: fastrand::Rng,
    /// Requests sent, or gaps passed in silence.
    count: u32,
    /// Of what is drawn: when the next request is due.
    drawn: f64,
    /// Of an on-off source: when it falls silent.
    silent_at: f64,
    /// Of a hopper: the node it is at, and the how-manieth stay this is.
    stay: (usize, u128),
}

impl Sender {
    pub(crate) fn new(source: Source, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let (drawn, stay) = (random.f64(), (random.usize(..1_000), 0));
        Self { source, random, count: 0, drawn, silent_at: 0.0, stay }
    }

    /// When it sends its next request, if it does.
    pub(crate) fn next(&mut self) -> Option<Moment> {
        let gap = 1.0 / self.source.per_second;
        let after = match self.source.rhythm {
            Rhythm::Steady => self.steady(gap),
            Rhythm::Poisson => {
                self.drawn += self.exponential(gap);
                self.drawn
            }
            Rhythm::OnOff { on, off } => {
                let at = self.steady(gap);
                if at > self.silent_at {
                    let silence = self.exponential(off.as_secs_f64());
                    self.count += (silence / gap) as u32;
                    self.silent_at = at + silence + self.exponential(on.as_secs_f64());
                }
                at
            }
            Rhythm::Volleys { count, within, each } => {
                let (volley, shot) = (self.count / count, self.count % count);
                self.count += 1;
                let shot = (f64::from(shot) + self.random.f64()) / f64::from(count);
                f64::from(volley) * each.as_secs_f64() + shot * within.as_secs_f64()
            }
        };
        // In whole microseconds a whole rate gives whole micro-tokens: a cell need not round.
        let at = self.source.from + Duration::from_micros((after * 1e6) as u64);
        (at < self.source.until).then(|| Moment::START.after(at))
    }

    /// The place among `open` ones, of `nodes` places in all, that a request goes to.
    pub(crate) fn pick(&mut self, now: Moment, nodes: usize, open: &[usize]) -> Option<usize> {
        let any = self.random.choice(open).copied();
        let at_home = |home: usize| {
            let home = home % nodes;
            open.iter().find(|place| **place >= home).or(open.first()).copied()
        };
        match self.source.route {
            Route::Stays(home) => at_home(home),
            Route::Leans(home) if self.random.f64() < 0.7 => at_home(home),
            Route::Leans(_) | Route::Spread => any,
            Route::Hops(each) => {
                // Each hopper hops at a time of its own.
                let since = now.since(Moment::START) + each.mul_f64(self.drawn.fract());
                let stay = since.as_nanos() / each.as_nanos();
                if stay != self.stay.1 {
                    self.stay = (self.stay.0 + 1, stay);
                }
                at_home(self.stay.0)
            }
        }
    }

    fn steady(&mut self, gap: f64) -> f64 {
        let jitter = (self.random.f64() * 2.0 - 1.0) * JITTER;
        let at = (f64::from(self.count) + JITTER + self.drawn.fract() + jitter) * gap;
        self.count += 1;
        at
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.random.f64()).ln()
    }
}
