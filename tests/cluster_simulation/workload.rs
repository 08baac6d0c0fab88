//! One workload: who sends what to how many nodes, what goes wrong, and what must come of it.

use std::ops::Range;
use std::time::Duration;

use tollgate::traffic::Class;

use crate::cluster::fault::Fault;
use crate::cluster::limit::{Limit, Of};
use crate::cluster::must::Must;
use crate::cluster::network::Weather;
use crate::cluster::source::{Rhythm, Route, Source};

/// Sources begin when every node listens.
const BEGIN: Duration = Duration::from_millis(300);

/// The rate of a limit that does not say, in tokens per second.
const RATE: f64 = 25.0;
/// The burst of a limit that does not say, in tokens.
const BURST: f64 = 50.0;

/// A workload, as data. What a seed may vary is drawn by [`Workload::sources`].
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// What it is, in one sentence.
    pub(crate) about: &'static str,
    pub(crate) nodes: usize,
    /// Of the store.
    pub(crate) shards: u16,
    pub(crate) lasting: Duration,
    /// The narrowest first.
    pub(crate) limits: Vec<Limit>,
    pub(crate) crowds: Vec<Crowd>,
    pub(crate) weather: Weather,
    pub(crate) faults: Vec<(Duration, Fault)>,
    pub(crate) must: Vec<Must>,
}

impl Workload {
    /// Four nodes, a minute, fair weather, and one limit per merchant.
    pub(crate) fn new(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            about,
            nodes: 4,
            shards: 1,
            lasting: Duration::from_secs(60),
            limits: vec![Limit::new(Of::Merchant, RATE, BURST)],
            crowds: Vec::new(),
            weather: Weather::FAIR,
            faults: Vec::new(),
            must: Vec::new(),
        }
    }

    pub(crate) const fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    pub(crate) const fn shards(mut self, shards: u16) -> Self {
        self.shards = shards;
        self
    }

    /// The shard of the store that is lost at some time, where one is.
    pub(crate) fn lost_shard(&self) -> Option<u16> {
        self.faults.iter().find_map(|(_, fault)| match fault {
            Fault::ShardDown { shard, .. } => Some(*shard),
            _ => None,
        })
    }

    pub(crate) const fn seconds(mut self, seconds: u64) -> Self {
        self.lasting = Duration::from_secs(seconds);
        self
    }

    /// Another rate and burst of the narrowest limit.
    pub(crate) fn rate(mut self, rate: f64, burst: f64) -> Self {
        (self.limits[0].rate, self.limits[0].burst) = (rate, burst);
        self
    }

    /// One more limit, wider than those before.
    pub(crate) fn limit(mut self, of: Of, rate: f64, burst: f64) -> Self {
        self.limits.push(Limit::new(of, rate, burst));
        self
    }

    /// A second bucket beside that of the narrowest limit.
    pub(crate) fn peak(mut self, rate: f64, burst: f64) -> Self {
        self.limits[0].peak = Some((rate, burst));
        self
    }

    /// A floor of the narrowest limit for so many merchants, the first ones.
    pub(crate) fn floors(mut self, merchants: usize, rate: f64, burst: f64) -> Self {
        self.limits[0].floors = Some((merchants, (rate, burst)));
        self
    }

    /// The part of the narrowest limit's bucket that is not for sheddable requests.
    pub(crate) fn reserve(mut self, reserve: f64) -> Self {
        self.limits[0].reserve = reserve;
        self
    }

    pub(crate) fn crowd(mut self, crowd: Crowd) -> Self {
        self.crowds.push(crowd);
        self
    }

    pub(crate) const fn weather(mut self, weather: Weather) -> Self {
        self.weather = weather;
        self
    }

    pub(crate) fn fault(mut self, at: Duration, fault: Fault) -> Self {
        self.faults.push((at, fault));
        self
    }

    pub(crate) fn must(mut self, must: Must) -> Self {
        self.must.push(must);
        self
    }

    /// The sources of one seed.
    pub(crate) fn sources(&self, random: &mut fastrand::Rng) -> Vec<Source> {
        let mut sources = Vec::new();
        let mut merchants = 0;
        for crowd in &self.crowds {
            if crowd.is_beside {
                merchants -= crowd.merchants();
            }
            for member in 0..crowd.count {
                let merchant = merchants + member % crowd.merchants();
                sources.push(self.member(crowd, member, merchant, random));
            }
            merchants += crowd.merchants();
        }
        sources
    }

    fn member(
        &self,
        crowd: &Crowd,
        member: usize,
        merchant: usize,
        random: &mut fastrand::Rng,
    ) -> Source {
        let Range { start, end } = crowd.times;
        let times = (end - start).mul_add(random.f64(), start) * crowd.weight(member);
        let home = random.usize(..self.nodes);
        let from = crowd.from.max(BEGIN);
        let until = crowd.until.unwrap_or(self.lasting).min(self.lasting);
        let (from, until) = match crowd.life {
            Some(life) => {
                let from = from + (until - from).saturating_sub(life).mul_f64(random.f64());
                (from, (from + life).min(until))
            }
            None => (from, until),
        };
        Source {
            merchant,
            bin: merchant % crowd.bins,
            class: crowd.class,
            per_second: times * self.limits[0].rate,
            rhythm: crowd.rhythm,
            route: match crowd.way {
                Way::Each => Route::Stays(member),
                Way::Home => Route::Stays(home),
                Way::Any => Route::Spread,
                Way::Hops(each) => Route::Hops(each),
                Way::Mixed => [Route::Stays(home), Route::Leans(home), Route::Spread][member % 3],
            },
            is_good: crowd.is_good,
            from,
            until,
        }
    }
}

/// How the members of a crowd choose their nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// One member at each node.
    Each,
    /// Each stays where it is.
    Home,
    /// Each request to any node.
    Any,
    Hops(Duration),
    /// A third stays, a third leans, a third goes anywhere.
    Mixed,
}

/// Sources of one kind, each with a merchant of its own.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    count: usize,
    /// How fast they send, in multiples of the narrowest limit's rate.
    times: Range<f64>,
    /// How much less than the first the later members send: by their number to this power.
    falling: f64,
    rhythm: Rhythm,
    way: Way,
    class: Class,
    is_good: bool,
    /// They send in the names of the merchants of the crowd before.
    is_beside: bool,
    /// They all send in the name of one merchant.
    is_one_merchant: bool,
    bins: usize,
    from: Duration,
    until: Option<Duration>,
    life: Option<Duration>,
}

impl Crowd {
    /// Sources that send steadily, and each at any node.
    pub(crate) const fn new(count: usize, times: Range<f64>) -> Self {
        Self {
            count,
            times,
            falling: 0.0,
            rhythm: Rhythm::Steady,
            way: Way::Any,
            class: Class::Standard,
            is_good: false,
            is_beside: false,
            is_one_merchant: false,
            bins: 1,
            from: Duration::ZERO,
            until: None,
            life: None,
        }
    }

    /// Sources that keep to their limits, at half their rate up to all of it.
    pub(crate) const fn good(count: usize) -> Self {
        Self { is_good: true, way: Way::Mixed, ..Self::new(count, 0.5..1.0) }
    }

    /// Sources that use their rate to the full, everywhere.
    pub(crate) const fn exact(count: usize) -> Self {
        Self { is_good: true, ..Self::new(count, 1.0..1.0) }
    }

    /// Sources that use their rate to the full and change the node again and again.
    pub(crate) const fn hoppers(count: usize, each: Duration) -> Self {
        Self { is_good: true, way: Way::Hops(each), ..Self::new(count, 1.0..1.0) }
    }

    /// Sources that send so many times their rate, everywhere.
    pub(crate) const fn abusers(count: usize, times: f64) -> Self {
        Self::new(count, times..times).rhythm(Rhythm::Poisson)
    }

    /// They send at exactly so many times the narrowest limit's rate.
    pub(crate) const fn times(mut self, times: f64) -> Self {
        self.times = times..times;
        self
    }

    pub(crate) const fn rhythm(mut self, rhythm: Rhythm) -> Self {
        self.rhythm = rhythm;
        self
    }

    pub(crate) const fn way(mut self, way: Way) -> Self {
        self.way = way;
        self
    }

    pub(crate) const fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    pub(crate) const fn beside(mut self) -> Self {
        self.is_beside = true;
        self
    }

    pub(crate) const fn one_merchant(mut self) -> Self {
        self.is_one_merchant = true;
        self
    }

    pub(crate) const fn falling(mut self, power: f64) -> Self {
        self.falling = power;
        self
    }

    pub(crate) const fn bins(mut self, bins: usize) -> Self {
        self.bins = bins;
        self
    }

    /// They send in this time only.
    pub(crate) const fn during(mut self, from: Duration, until: Duration) -> Self {
        (self.from, self.until) = (from, Some(until));
        self
    }

    /// Each is there for so long, beginning at a time of its own.
    pub(crate) const fn living(mut self, life: Duration) -> Self {
        self.life = Some(life);
        self
    }

    const fn merchants(&self) -> usize {
        if self.is_one_merchant { 1 } else { self.count }
    }

    fn weight(&self, member: usize) -> f64 {
        (member as f64 + 1.0).powf(-self.falling)
    }
}
