//! Every workload that the design is held to.

use std::time::Duration;

use tollgate::traffic::Class;

use crate::cluster::fault::{Fault, Outage, Step, Wakes};
use crate::cluster::limit::Of;
use crate::cluster::must::Must;
use crate::cluster::network::Weather;
use crate::cluster::source::Rhythm;
use crate::cluster::workload::{Crowd, Way, Workload};

/// Groups of workloads, by what they are about.
pub(crate) type Group = (&'static str, fn() -> Vec<Workload>);

pub(crate) const GROUPS: [Group; 9] = [
    ("conforming", conforming),
    ("bursts", bursts),
    ("abuse", abuse),
    ("sizes", sizes),
    ("processes", processes),
    ("store", store),
    ("failovers", failovers),
    ("shards", shards),
    ("several limits", several_limits),
];

pub(crate) fn all() -> Vec<Workload> {
    GROUPS.iter().flat_map(|(_, workloads)| workloads()).collect()
}

/// The workload of this name.
pub(crate) fn named(name: &str) -> Option<Workload> {
    all().into_iter().find(|workload| workload.name == name)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// One merchant at twenty times its rate, everywhere.
const ABUSER: Crowd = Crowd::abusers(1, 20.0);

/// Nobody asks for more than the limit gives.
fn conforming() -> Vec<Workload> {
    let steady = |name, nodes| {
        Workload::new(name, "clients at half their rate up to all of it, on one node, some or all")
            .nodes(nodes)
            .crowd(Crowd::good(13))
            .must(Must::RefuseNoGood)
    };
    let hop = |name, about| {
        Workload::new(name, about).crowd(Crowd::hoppers(8, secs(1))).must(Must::RefuseNoGood)
    };
    let about = "clients at exactly their rate that change the node each second";
    let newcomers = |name, nodes, burst| {
        Workload::new(name, "keys that nobody has seen before, each for a second at its full rate")
            .nodes(nodes)
            .rate(25.0, burst)
            .crowd(Crowd::good(1_280).living(secs(1)))
            .must(Must::RefuseNoGood)
    };
    vec![
        steady("steady-4", 4),
        steady("steady-16", 16),
        hop("hop-4", about),
        hop("hop-spiky", "the same, with late messages").weather(Weather::SPIKY),
        hop("hop-16", about).nodes(16),
        hop("hop-small", "the same with half the burst").rate(25.0, 25.0).seconds(40),
        Workload::new("hop-fast", "clients that change the node every 50 ms")
            .crowd(Crowd::hoppers(4, ms(50)))
            .must(Must::RefuseNoGood),
        Workload::new("poisson", "many small clients of one key, in the mean exactly at its rate")
            .crowd(Crowd::abusers(6, 1.0))
            .must(Must::Lose(0.1)),
        newcomers("first-seen", 4, 50.0),
        newcomers("first-seen-small", 4, 5.0),
        newcomers("first-seen-small-16", 16, 5.0),
    ]
}

/// A client at half its rate that bursts for two seconds of every thirty.
fn flash(name: &'static str, about: &'static str, times: u32, way: Way) -> Workload {
    let burst = Rhythm::Volleys { count: times * 25 * 2, within: secs(2), each: secs(30) };
    Workload::new(name, about)
        .crowd(Crowd::new(4, 0.5..0.5).way(way))
        .crowd(Crowd::new(4, 1.0..1.0).beside().way(way).rhythm(burst).during(secs(5), secs(60)))
}

/// More comes at once than the limit gives.
fn bursts() -> Vec<Workload> {
    let on_off = Rhythm::OnOff { on: ms(1_000), off: ms(2_200) };
    let volley = |name, nodes, over| {
        let volley = Rhythm::Volleys { count: 200, within: ms(1), each: secs(60) };
        let shots = Crowd::new(nodes, 1.0..1.0).way(Way::Each).rhythm(volley).one_merchant();
        Workload::new(name, "two hundred requests at each node within one millisecond")
            .nodes(nodes)
            .seconds(10)
            .crowd(shots.during(secs(5), secs(10)))
            .must(Must::Exceed(over))
    };
    let ten = "bursts of ten times the rate";
    vec![
        flash("flash-spread", ten, 10, Way::Any).must(Must::Lose(0.3)).must(Must::Exceed(3.0)),
        flash("flash-one-node", ten, 10, Way::Home).must(Must::Lose(0.3)).must(Must::Exceed(2.0)),
        flash("flash-spiky", "the same, with late messages", 10, Way::Any)
            .weather(Weather::SPIKY)
            .must(Must::Lose(0.4))
            .must(Must::Exceed(8.0)),
        flash("flash-far", "the same, with the store 40 ms away", 10, Way::Any)
            .weather(Weather::FAR)
            .must(Must::Lose(0.4))
            .must(Must::Exceed(15.0)),
        flash("flash-16", ten, 10, Way::Any)
            .nodes(16)
            .must(Must::Lose(0.15))
            .must(Must::Exceed(5.0)),
        flash("flash-100x-16", "bursts of a hundred times the rate", 100, Way::Any)
            .nodes(16)
            .must(Must::Lose(0.15))
            .must(Must::Exceed(14.0)),
        Workload::new("on-off", "bursts at three times the rate, in the mean just below it")
            .crowd(Crowd::new(6, 3.0..3.0).rhythm(on_off))
            .must(Must::Lose(0.6)),
        volley("volley-4", 4, 0.0),
        // Sixteen nodes hold eight tokens each, and the ideal has fifty.
        volley("volley-16", 16, 16.0 * 8.0 - 50.0 + 2.0),
    ]
}

/// Some ask for much more than they have, and nobody else must notice.
fn abuse() -> Vec<Workload> {
    let abuser = |name, nodes, over| {
        Workload::new(name, "a client at twenty times its rate beside good ones")
            .nodes(nodes)
            .seconds(50)
            .crowd(Crowd::good(5))
            .crowd(ABUSER)
            .must(Must::RefuseNoGood)
            .must(Must::Exceed(over))
    };
    let protected = Crowd::new(4, 0.2..0.2).class(Class::Protected);
    vec![
        Workload::new("protected", "messages that may not be refused, beside four times the rate")
            .crowd(protected)
            .crowd(Crowd::abusers(4, 4.0).beside())
            .must(Must::RefuseNoProtected)
            .must(Must::Lose(0.4))
            .must(Must::Exceed(5.0)),
        abuser("abuser-4", 4, 5.0),
        abuser("abuser-16", 16, 9.0),
        Workload::new("abusers-150", "a hundred and fifty clients at four times their rates")
            .seconds(20)
            .crowd(Crowd::good(10))
            .crowd(Crowd::abusers(150, 4.0))
            .must(Must::RefuseNoGood)
            .must(Must::Exceed(4.0)),
    ]
}

/// Buckets that are small or large for their rates, and many of them.
fn sizes() -> Vec<Workload> {
    vec![
        Workload::new("burst-of-6", "bursts of six tokens, one abuser")
            .rate(25.0, 6.0)
            .seconds(50)
            .crowd(Crowd::good(9).way(Way::Any))
            .crowd(ABUSER)
            .must(Must::RefuseNoGood)
            .must(Must::Exceed(4.0)),
        Workload::new("slow-16", "one token a second and a burst of five, one abuser")
            .rate(1.0, 5.0)
            .nodes(16)
            .crowd(Crowd::good(11))
            .crowd(ABUSER)
            .must(Must::RefuseNoGood)
            .must(Must::Exceed(2.0)),
        Workload::new("fast-small", "a burst of 20 ms of the rate, one abuser")
            .rate(1_000.0, 20.0)
            .seconds(14)
            .crowd(Crowd::exact(2))
            .crowd(ABUSER)
            .must(Must::Lose(0.01))
            .must(Must::Exceed(22.0)),
        Workload::new("fast-large-16", "forty thousand requests a second on one large bucket")
            .rate(2_000.0, 4_000.0)
            .nodes(16)
            .seconds(12)
            .crowd(Crowd::good(2))
            .crowd(ABUSER)
            .must(Must::RefuseNoGood)
            .must(Must::Exceed(40.0)),
        Workload::new("keys-10000", "ten thousand keys, some much busier than others")
            .nodes(8)
            .seconds(20)
            // Together 5,000 a second: the sum of 1 / k^0.6 is 99 and a half.
            .crowd(Crowd::abusers(10_000, 2.01).falling(0.6))
            .must(Must::Lose(0.01)),
        Workload::new("alone", "one node, whose store is its own memory")
            .rate(7.0, 3.5)
            .nodes(1)
            .crowd(Crowd::good(10))
            .crowd(Crowd::abusers(20, 20.0))
            .must(Must::AgreeWithIdeal),
    ]
}

/// Processes come and go.
fn processes() -> Vec<Workload> {
    let beside_abuser = |name, about, keys, seconds| {
        Workload::new(name, about).seconds(seconds).crowd(Crowd::good(keys)).crowd(ABUSER)
    };
    let stopped = |wakes| Fault::NodePauses { place: 1, lasting: secs(2), wakes };
    vec![
        beside_abuser("coming-and-going", "nodes join, crash, come back and leave", 7, 60)
            .fault(secs(10), Fault::NodeJoins { place: 4 })
            .fault(secs(20), Fault::NodeCrashes { place: 1, back_after: secs(5) })
            .fault(secs(35), Fault::NodeLeaves { place: 2 })
            .fault(secs(45), Fault::NodeCrashes { place: 0, back_after: ms(300) })
            .must(Must::RefuseNoGood)
            .must(Must::Exceed(6.0)),
        beside_abuser("restart-of-all", "all nodes crash at once and come back", 4, 45)
            .fault(secs(15), Fault::AllCrash { back_after: ms(300) })
            .fault(secs(30), Fault::AllCrash { back_after: secs(2) })
            .must(Must::RefuseNoGood)
            .must(Must::Exceed(10.0)),
        beside_abuser("cut-off", "one node does not hear from the store for 10 s", 10, 60)
            .fault(secs(20), Fault::NodeCutOff { place: 1, lasting: secs(10) })
            .must(Must::RefuseNoGood)
            .must(Must::Exceed(90.0)),
        beside_abuser("message-loss", "one message of twenty is lost", 8, 50)
            .weather(Weather::LOSSY)
            .must(Must::RefuseNoGood)
            .must(Must::Exceed(20.0)),
        beside_abuser("process-stopped", "one process is stopped for 2 s", 6, 45)
            .fault(secs(15), stopped(Wakes::InOrder))
            .must(Must::RefuseNoGood)
            .must(Must::Exceed(20.0)),
        beside_abuser("stopped-rush", "the same, and its requests overtake its sync", 6, 45)
            .fault(secs(15), stopped(Wakes::WorkersFirst))
            .must(Must::RefuseOneGoodIn(5_000))
            // Nobody tells the node in time that its full bucket is another's empty one.
            .must(Must::Exceed(50.0 + 5.0)),
    ]
}

/// The store goes away, forgets, or is set back.
fn store() -> Vec<Workload> {
    let down = |how, seconds| Fault::StoreDown { how, lasting: secs(seconds) };
    let beside_abuser = |name, about, keys, seconds| {
        Workload::new(name, about)
            .seconds(seconds)
            .crowd(Crowd::good(keys))
            .crowd(Crowd::hoppers(2, secs(1)))
            .crowd(ABUSER)
            .must(Must::RefuseNoGood)
    };
    let burst = Rhythm::Volleys { count: 500, within: secs(2), each: secs(60) };
    vec![
        beside_abuser("store-down-5", "calls vanish for 5 s, later answers do", 6, 40)
            .fault(secs(10), down(Outage::CallsLost, 5))
            .fault(secs(25), down(Outage::AnswersLost, 5))
            .must(Must::Exceed(20.0)),
        beside_abuser("store-down-60", "no call is answered for a minute", 8, 100)
            .fault(secs(20), down(Outage::AnswersLost, 60))
            .must(Must::Exceed(28.0)),
        Workload::new("store-refuses-60", "for a minute nobody listens where the store was")
            .seconds(80)
            .nodes(16)
            .crowd(Crowd::hoppers(8, secs(1)))
            .fault(secs(10), down(Outage::Refused, 60))
            .must(Must::RefuseNoGood),
        Workload::new("bursts-in-outage", "calm clients begin to burst while the store is away")
            .seconds(80)
            .crowd(Crowd::new(4, 0.5..0.5))
            .crowd(Crowd::new(4, 1.0..1.0).beside().rhythm(burst).during(secs(20), secs(75)))
            .fault(secs(10), down(Outage::CallsLost, 60))
            .must(Must::Lose(0.1))
            .must(Must::Exceed(200.0)),
        Workload::new("hostile-in-outage", "calm clients turn hostile while the store is away")
            .seconds(80)
            .crowd(Crowd::new(4, 0.5..0.5))
            .crowd(Crowd::abusers(4, 20.0).beside().during(secs(15), secs(80)))
            .fault(secs(10), down(Outage::CallsLost, 60))
            // A bucket at each of four nodes, not one. And each goes on at its share of the rate or at
            // a fourth, whichever is more, and a quarter above that.
            .must(Must::Exceed(3.0 * 50.0 + (1.25 * (2.0 - 0.25) - 1.0) * 25.0 * 60.0)),
        beside_abuser("store-stalls", "the store answers nothing for 400 ms, then all", 6, 40)
            .fault(secs(10), Fault::StoreStalls { lasting: ms(400) })
            .fault(secs(20), Fault::StoreStalls { lasting: ms(100) })
            .must(Must::Exceed(20.0)),
        beside_abuser("store-wiped", "the store forgets everything, twice", 4, 45)
            .fault(secs(15), Fault::StoreWiped)
            .fault(secs(30), Fault::StoreWiped)
            .must(Must::Exceed(8.0)),
        beside_abuser(
            "clock-steps",
            "the store's clock is set an hour on, and an hour back",
            4,
            45,
        )
        .fault(secs(15), Fault::ClockSteps { by: Step::Forward(secs(3_600)) })
        .fault(secs(30), Fault::ClockSteps { by: Step::Back(secs(3_600)) })
        .must(Must::Exceed(8.0)),
    ]
}

/// A replica takes over that has not heard of all, or whose master goes on answering.
fn failovers() -> Vec<Workload> {
    let failover = |lost, lasting| Fault::StoreFailsOver { lost, lasting };
    let fails_over = |name, nodes| {
        Workload::new(name, "a replica that has not heard of all takes over, twice")
            .seconds(50)
            .crowd(Crowd::good(6))
            .crowd(Crowd::hoppers(2, secs(1)))
            .crowd(ABUSER)
            .nodes(nodes)
            .crowd(Crowd::abusers(1, 10.0).during(secs(14), secs(18)))
            .fault(secs(14), failover(ms(500), ms(150)))
            .fault(secs(35), failover(ms(200), ms(0)))
            .must(Must::RefuseNoGood)
            .must(Must::Exceed(50.0))
    };
    // What Sentinel leaves behind that changes the master while it is well.
    let late_failover = |name, nodes| {
        let about = "the old master answers for 2 s and for 5 s after a replica has taken over";
        Workload::new(name, about)
            .nodes(nodes)
            .seconds(50)
            .crowd(Crowd::hoppers(8, ms(200)))
            .crowd(Crowd::abusers(2, 20.0))
            .fault(secs(14), failover(secs(2), ms(0)))
            .fault(secs(32), failover(secs(5), ms(0)))
            .must(Must::RefuseNoGood)
            .must(Must::Exceed(10.0))
    };
    vec![
        fails_over("failover-4", 4),
        fails_over("failover-16", 16),
        late_failover("late-failover-4", 4),
        late_failover("late-failover-16", 16),
    ]
}

/// The store keeps its keys in shards, and loses one of them.
fn shards() -> Vec<Workload> {
    let down = |how| Fault::ShardDown { shard: 3, how, lasting: secs(20) };
    let loses_one = |name, about, nodes| {
        Workload::new(name, about)
            .nodes(nodes)
            .shards(8)
            .crowd(Crowd::hoppers(12, secs(1)))
            .crowd(Crowd::abusers(12, 20.0))
            .must(Must::RefuseNoGood)
            .must(Must::LeaseAllOthers)
    };
    vec![
        Workload::new("steady-shards", "clients at half their rate up to all of it, eight shards")
            .shards(8)
            .crowd(Crowd::good(13))
            .must(Must::RefuseNoGood),
        loses_one("shard-down-4", "one shard of eight does not answer for 20 s", 4)
            .seconds(45)
            .fault(secs(10), down(Outage::CallsLost))
            .must(Must::ExceedElsewhere(5.0))
            .must(Must::Exceed(20.0)),
        loses_one("shard-down-16", "the same on sixteen nodes, and nobody listens there", 16)
            .seconds(45)
            .fault(secs(10), down(Outage::Refused))
            .must(Must::ExceedElsewhere(9.0))
            // What it is on as many nodes when all of the store is away.
            .must(Must::Exceed(45.0)),
    ]
}

/// Several limits apply to one request.
fn several_limits() -> Vec<Workload> {
    let three = |name, nodes, over| {
        Workload::new(name, "limits by merchant, BIN and in all, four merchants at 20x")
            .nodes(nodes)
            .limit(Of::Bin, 600.0, 1_200.0)
            .limit(Of::All, 1_200.0, 2_400.0)
            .crowd(Crowd::good(17).bins(2))
            .crowd(Crowd::abusers(4, 20.0).bins(2))
            .must(Must::RefuseNoGood)
            .must(Must::Exceed(over))
    };
    let floor = |name, nodes| {
        let volleys =
            Rhythm::Volleys { count: 50, within: Duration::from_micros(500), each: ms(2_001) };
        Workload::new(
            name,
            "merchants that use their floors to the full, while another takes the rest",
        )
        .nodes(nodes)
        .rate(1_000.0, 2_000.0)
        .limit(Of::All, 250.0, 500.0)
        .floors(6, 25.0, 50.0)
        .crowd(Crowd::hoppers(3, secs(1)).times(0.025))
        .crowd(Crowd::hoppers(3, secs(2)).times(0.025).rhythm(volleys))
        .crowd(Crowd::abusers(1, 0.5))
        .must(Must::RefuseNoGood)
    };
    let dual = |name, nodes, over| {
        Workload::new(name, "a second bucket of twice the rate and a fifth of the burst")
            .nodes(nodes)
            .rate(25.0, 250.0)
            .peak(50.0, 50.0)
            .crowd(Crowd::good(7))
            .crowd(ABUSER)
            .must(Must::RefuseNoGood)
            .must(Must::Exceed(over))
    };
    let classes = |name, nodes| {
        Workload::new(name, "protected, standard and sheddable requests of one key, together 1.8 r")
            .nodes(nodes)
            .reserve(0.25)
            .crowd(Crowd::new(4, 0.6..0.6))
            .crowd(Crowd::new(4, 1.0..1.0).beside().class(Class::Sheddable))
            .crowd(Crowd::new(4, 0.2..0.2).beside().class(Class::Protected))
            .must(Must::RefuseNoProtected)
            .must(Must::Lose(0.4))
    };
    vec![
        classes("classes-4", 4),
        classes("classes-16", 16),
        floor("floor-4", 4),
        floor("floor-16", 16),
        floor("floor-in-trouble", 4)
            .seconds(90)
            .fault(secs(10), Fault::StoreDown { how: Outage::CallsLost, lasting: secs(20) })
            .fault(secs(45), Fault::StoreWiped)
            .fault(secs(60), Fault::ClockSteps { by: Step::Back(secs(3_600)) }),
        dual("dual-4", 4, 5.0),
        dual("dual-16", 16, 7.0),
        three("three-limits-4", 4, 5.0),
        three("three-limits-16", 16, 10.0),
        Workload::new("bin-overrun", "good merchants that ask a third more than their BIN has")
            .limit(Of::Bin, 250.0, 500.0)
            .crowd(Crowd::new(18, 0.75..0.75))
            .must(Must::Admit("bin", 99.5))
            .must(Must::Exceed(0.0)),
    ]
}
