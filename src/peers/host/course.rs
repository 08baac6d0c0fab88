//! Where a script is: which behaviour holds at a moment, and until when.

use std::rc::Rc;
use std::time::Duration;

use super::behaviour::{AtTheEnd, Behaviour, Phases, Script};
use crate::clock::Moment;

/// What begins.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) behaviour: Rc<Behaviour>,
    /// Which phase it is, from 1; `None` without phases.
    pub(super) phase: Option<usize>,
    pub(super) close_all: bool,
}

/// A script that is being followed.
pub(super) struct Course {
    script: Script,
    at: usize,
    /// When the next part begins; `None` when no other comes.
    ends: Option<Moment>,
}

impl Part {
    fn of(behaviour: Behaviour) -> Self {
        Self { behaviour: Rc::new(behaviour), phase: None, close_all: false }
    }

    /// Whether connections are accepted.
    pub(super) fn listening(&self) -> bool {
        self.behaviour.listening
    }
}

impl Course {
    /// A script that is followed from `now` on.
    pub(super) fn new(script: Script, now: Moment) -> Self {
        let mut course = Self { script, at: 0, ends: None };
        course.ends = course.end_of(0, now);
        course
    }

    /// What holds now.
    pub(super) fn part(&self) -> Part {
        match &self.script {
            Script::Issuer(behaviour) => Part::of(behaviour.clone()),
            Script::Phases(Phases { phases, .. }) => match phases.get(self.at) {
                Some(phase) => Part {
                    behaviour: Rc::new(phase.behaviour.clone()),
                    phase: Some(self.at + 1),
                    close_all: phase.close_all,
                },
                None => Part::of(Behaviour::PROMPT),
            },
        }
    }

    /// How long it goes on; `None` when it does for ever.
    pub(super) fn left(&self, now: Moment) -> Option<Duration> {
        self.ends.map(|ends| ends.since(now))
    }

    /// The next part, if it has begun. Phases follow each other by the clock: one that is noticed
    /// late is not longer for it.
    pub(super) fn next(&mut self, now: Moment) -> Option<Part> {
        let ended = self.ends.filter(|ends| *ends <= now)?;
        let Script::Phases(Phases { phases, .. }) = &self.script else { return None };
        self.at = (self.at + 1) % phases.len().max(1);
        self.ends = self.end_of(self.at, ended);
        Some(self.part())
    }

    fn end_of(&self, at: usize, begins: Moment) -> Option<Moment> {
        let Script::Phases(Phases { phases, at_the_end }) = &self.script else { return None };
        let is_last = at + 1 >= phases.len();
        if is_last && (*at_the_end == AtTheEnd::Hold || phases.is_empty()) {
            return None;
        }
        Some(begins.after(phases.get(at)?.lasts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::host::behaviour::Phase;

    const fn at_ms(ms: u64) -> Moment {
        Moment::from_nanos(ms * 1_000_000)
    }

    fn course(at_the_end: AtTheEnd) -> Course {
        let phase = |seconds, listening: bool| Phase {
            lasts: Duration::from_secs(seconds),
            close_all: !listening,
            behaviour: Behaviour { listening, ..Behaviour::PROMPT },
        };
        let phases = vec![phase(2, true), phase(1, false), phase(3, true)];
        Course::new(Script::Phases(Phases { phases, at_the_end }), at_ms(500))
    }

    #[test]
    fn phases_follow_each_other_by_the_clock_however_late_that_is_noticed() {
        let mut course = course(AtTheEnd::Repeat);
        assert_eq!((course.part().phase, course.part().listening()), (Some(1), true));
        assert_eq!(course.left(at_ms(1_500)), Some(Duration::from_secs(1)));
        assert!(course.next(at_ms(2_499)).is_none());
        let second = course.next(at_ms(3_000)).unwrap();
        assert_eq!((second.phase, second.listening(), second.close_all), (Some(2), false, true));
        assert_eq!(course.left(at_ms(3_000)), Some(Duration::from_millis(500)));
        assert_eq!(course.next(at_ms(3_500)).and_then(|part| part.phase), Some(3));
        assert_eq!(course.next(at_ms(9_000)).and_then(|part| part.phase), Some(1));
        assert_eq!(course.next(at_ms(9_000)).and_then(|part| part.phase), Some(2));
        assert!(course.next(at_ms(9_000)).is_none());
    }

    #[test]
    fn the_last_phase_goes_on_unless_all_are_repeated() {
        let mut course = course(AtTheEnd::Hold);
        let late = at_ms(1_000_000);
        assert_eq!(course.next(late).and_then(|part| part.phase), Some(2));
        assert_eq!(course.next(late).and_then(|part| part.phase), Some(3));
        assert!(course.next(late).is_none() && course.left(late).is_none());
    }

    #[test]
    fn a_script_without_phases_goes_on_for_ever() {
        let none = Phases { phases: Vec::new(), at_the_end: AtTheEnd::Repeat };
        for script in [Script::Issuer(Behaviour::PROMPT), Script::Phases(none)] {
            let mut course = Course::new(script, Moment::START);
            assert!(course.part().listening() && course.part().phase.is_none());
            assert!(course.left(at_ms(1)).is_none() && course.next(at_ms(1)).is_none());
        }
    }
}
