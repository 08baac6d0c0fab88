//! Trouble: the faults of a workload begin and end.

use std::time::Duration;

use tollgate::clock::Moment;

use super::{Event, World};
use crate::cluster::fault::{Fault, Outage, Wakes};
use crate::cluster::node::{Node, Store};
use crate::cluster::process::{Deed, Life};

impl<N: Node> World<'_, N> {
    /// Puts down when the faults begin: a little later than the workload says, so that each seed
    /// meets them in another moment of everybody's timers.
    pub(super) fn plan_faults(&mut self) {
        for (number, (at, fault)) in self.workload.faults.iter().enumerate() {
            let late = Duration::from_micros(self.random.u64(..1_000_000));
            let begins = Moment::START.after(*at + late);
            if let Fault::StoreFailsOver { lost, lasting } = fault {
                // What is lost was told to the store before it went away.
                let behind = (*at + late + *lasting).saturating_sub(*lost);
                self.agenda.put(Moment::START.after(behind), Event::ReplicaFallsBehind);
            }
            self.agenda.put(begins, Event::Begins(number));
        }
    }

    pub(super) fn begins(&mut self, number: usize) {
        let fault = self.workload.faults[number].1;
        self.outcome.count(fault.name());
        let mut whom = None;
        match fault {
            Fault::StoreDown { how, .. } => self.store.outage = Some(how),
            Fault::ShardDown { shard, how, .. } => self.store.shard_outage = Some((shard, how)),
            Fault::StoreFailsOver { .. } => {
                self.store.outage = Some(Outage::CallsLost);
            }
            Fault::StoreStalls { .. } => self.store.is_stalled = true,
            Fault::StoreWiped => self.store.store.wipe(),
            Fault::ClockSteps { by } => self.store.clock_set_us += by.micros(),
            Fault::NodeCrashes { place, .. } => self.crashes(place),
            Fault::AllCrash { .. } => (0..self.places.len()).for_each(|place| self.crashes(place)),
            Fault::NodeJoins { place } => self.starts(place),
            Fault::NodeLeaves { place } => {
                whom = self.life_at(place);
                self.leaves(whom);
            }
            Fault::NodeCutOff { place, .. } => {
                whom = self.life_at(place);
                self.set_cut_off(whom, true);
            }
            Fault::NodePauses { place, .. } => {
                whom = self.life_at(place);
                if let Some(process) = whom.and_then(|who| self.process(who)) {
                    process.backlog = Some(Vec::new());
                }
            }
        }
        self.agenda.put(self.now.after(fault.lasting()), Event::Ends(number, whom));
    }

    pub(super) fn ends(&mut self, number: usize, whom: Option<Life>) {
        match self.workload.faults[number].1 {
            Fault::StoreDown { .. } => self.store.outage = None,
            Fault::ShardDown { .. } => self.store.shard_outage = None,
            Fault::StoreFailsOver { .. } => {
                self.store.outage = None;
                self.store.fail_over();
            }
            Fault::StoreStalls { .. } => {
                self.store.is_stalled = false;
                while let Some((by, number, call)) = self.stalled.pop_front() {
                    self.called(by, number, call);
                }
            }
            Fault::NodeCrashes { place, .. } => self.starts(place),
            Fault::AllCrash { .. } => (0..self.places.len()).for_each(|place| self.starts(place)),
            Fault::NodeLeaves { place } => {
                whom.into_iter().for_each(|who| self.audits(who));
                self.crashes(place);
            }
            Fault::NodeCutOff { .. } => self.set_cut_off(whom, false),
            Fault::NodePauses { wakes, .. } => self.resumes(whom, wakes),
            Fault::StoreWiped | Fault::ClockSteps { .. } | Fault::NodeJoins { .. } => {}
        }
    }

    fn life_at(&self, place: usize) -> Option<Life> {
        let number = self.places.get(place)?.as_ref()?.number;
        Some(Life { place, number })
    }

    fn crashes(&mut self, place: usize) {
        self.places[place] = None;
        self.note_who_is_open();
    }

    fn leaves(&mut self, whom: Option<Life>) {
        let (now, mut out) = (self.now, std::mem::take(&mut self.out));
        let Some((who, process)) = whom.and_then(|who| Some((who, self.process(who)?))) else {
            return;
        };
        (process.is_open, process.has_left) = (false, true);
        process.node.leave(process.clock.shows(now), &mut out);
        self.out = out;
        self.note_who_is_open();
        self.sends_and_sets_its_timer(who);
    }

    fn set_cut_off(&mut self, whom: Option<Life>, is_cut_off: bool) {
        if let Some(process) = whom.and_then(|who| self.process(who)) {
            process.is_cut_off = is_cut_off;
        }
    }

    /// A process goes on. Its workers and its sync are threads of their own: what has come in may be
    /// taken up in its order, or all requests before the sync has even looked.
    fn resumes(&mut self, whom: Option<Life>, wakes: Wakes) {
        let Some((who, process)) = whom.and_then(|who| Some((who, self.process(who)?))) else {
            return;
        };
        let mut backlog = process.backlog.take().unwrap_or_default();
        if wakes == Wakes::WorkersFirst {
            backlog.sort_by_key(|deed| !matches!(deed, Deed::Decide(_)));
        }
        for deed in backlog {
            self.does(who, deed);
        }
    }
}
