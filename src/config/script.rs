//! The script of a simulated host: `[[phase]]` and `[[phase.answer]]`, a file of its own.
//!
//! What each key does is `peers`' to say. What is said here is how it is written, within which
//! bounds, and what does not go together.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use toml::de::DeValue;

use super::dialect::truth;
use super::fault::{Faults, Wrong};
use super::reader::Section;
use super::{LoadError, duration, limit_value, read_by, text_of, value};
use crate::iso8583::Mti;
use crate::peers::{AtTheEnd, Behaviour, Closing, Exception, Latency, Match, Phase, Phases};

const PHASES_MAX: usize = 1_000;
/// They are looked through for every message.
const ANSWERS_MAX: usize = 256;
const PHASE_MIN: Duration = Duration::from_millis(10);
const PHASE_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
const DELAY_MAX: Duration = Duration::from_secs(3_600);
/// Above it a reader is not slow.
const SLOW_READ_MAX: u32 = 1 << 30;
/// The largest number of field 4.
const AMOUNT_MAX: u64 = 999_999_999_999;

/// Reads the script of a file.
///
/// # Errors
/// When it cannot be read, or all that is wrong with it.
pub fn load_script(path: &Path) -> Result<Phases, LoadError> {
    Ok(parse_script(&text_of(path)?)?)
}

/// Reads the text of a script.
///
/// # Errors
/// All that is wrong with it.
pub fn parse_script(text: &str) -> Result<Phases, Faults> {
    read_by(text, read)
}

fn read(root: Section<'_>) -> Option<Phases> {
    let choices = [("hold", AtTheEnd::Hold), ("repeat", AtTheEnd::Repeat)];
    let at_the_end =
        root.or("at_the_end", AtTheEnd::default(), value::choice(choices, value::none_later));
    let sections = root.tables("phase");
    if sections.as_ref().is_some_and(Vec::is_empty) {
        let wrong = Wrong::new("there is none", "write a [[phase]] with for and what it does");
        root.fault(&root.place_of("phase"), &wrong);
    }
    root.finish(&[]);
    let sections = sections?;
    let (count, mut phases) = (sections.len(), Vec::new());
    for (index, section) in sections.into_iter().enumerate() {
        if index == PHASES_MAX {
            let problem = format!("there are more than {PHASES_MAX} phases");
            let wrong = Wrong::new(problem, "write at_the_end = \"repeat\" for what comes again");
            section.fault(section.place(), &wrong);
        }
        let goes_on =
            index + 1 == count && at_the_end.as_ref().is_none_or(|end| end.value == AtTheEnd::Hold);
        phases.push(phase(&section, goes_on));
        section.finish(&[]);
    }
    let phases = phases.into_iter().collect::<Option<_>>()?;
    Some(Phases { phases, at_the_end: at_the_end?.value })
}

/// Reads a phase; the last one need not say how long it lasts if it goes on.
fn phase(section: &Section<'_>, goes_on: bool) -> Option<Phase> {
    const REMEDY: &str = "write how long the phase lasts, such as \"60s\"";
    let within = duration::within(PHASE_MIN..=PHASE_MAX);
    let lasts = if goes_on {
        section.or("for", PHASE_MAX, within)
    } else {
        section.required("for", REMEDY, within)
    };
    let close_all = section.or("close_all", false, truth);
    let behaviour = behaviour(section);
    Some(Phase { lasts: lasts?.value, close_all: close_all?.value, behaviour: behaviour? })
}

fn behaviour(section: &Section<'_>) -> Option<Behaviour> {
    let latency = latency(section);
    let late = late(&section.table("late"));
    let dropped_share = section.or("drop", 0.0, share);
    let declined_share = section.or("decline", 0.0, share);
    let closing = closing(section);
    let slow_read = section.optional("slow_read", value::whole(1..=SLOW_READ_MAX));
    let listening = section.or("listen", true, truth);
    let exceptions = exceptions(section);
    let (late_share, late_by) = late?;
    Some(Behaviour {
        latency: latency?.unwrap_or(Latency::NONE),
        late_share,
        late_by: Latency::Exactly(late_by),
        dropped_share: dropped_share?.value,
        declined_share: declined_share?.value,
        closing: closing?,
        slow_read: slow_read?.value,
        listening: listening?.value,
        exceptions: exceptions?,
    })
}

/// Reads `delay`, `jitter` and `tail`; `None` inside when there is none of them.
fn latency(section: &Section<'_>) -> Option<Option<Latency>> {
    let within = || duration::within(Duration::ZERO..=DELAY_MAX);
    let delay = section.optional("delay", within());
    let jitter = section.optional("jitter", within());
    let tail = section.optional("tail", within());
    let (delay, jitter, tail) = (delay?, jitter?, tail?);
    if jitter.value.is_some() && tail.value.is_some() {
        let wrong = Wrong::new("does not go with jitter", "remove one of the two");
        section.fault(&tail.place, &wrong);
        return None;
    }
    let any = delay.value.or(jitter.value).or(tail.value).is_some();
    let least = delay.value.unwrap_or_default();
    Some(any.then(|| Latency::of(least, jitter.value, tail.value)))
}

fn late(section: &Section<'_>) -> Option<(f64, Duration)> {
    let late_share = section.optional("share", share);
    let by = section.optional("by", duration::within(Duration::ZERO..=DELAY_MAX));
    section.report_unknown(&[]);
    let (late_share, by) = (late_share?, by?);
    let (missing, remedy) = match (late_share.value, by.value) {
        (Some(share), Some(by)) => return Some((share, by)),
        (None, None) => return Some((0.0, Duration::ZERO)),
        (None, Some(_)) => (&late_share.place, "write the share of answers that are late"),
        (Some(_), None) => (&by.place, "write how much later they are, such as \"2s\""),
    };
    section.fault(missing, &Wrong::new("is missing", remedy));
    None
}

fn closing(section: &Section<'_>) -> Option<Closing> {
    let after = section.optional("close_after", value::whole(1..=u32::MAX));
    let close_share = section.optional("close_share", share);
    let mid_frame = section.or("mid_frame", false, truth);
    let (after, close_share, mid_frame) = (after?, close_share?, mid_frame?);
    if mid_frame.value && after.value.is_none() && close_share.value.is_none() {
        let problem = "means nothing without close_after or close_share";
        section.fault(&mid_frame.place, &Wrong::new(problem, "remove it, or write one of the two"));
        return None;
    }
    Some(Closing {
        after: after.value,
        share: close_share.value.unwrap_or(0.0),
        mid_frame: mid_frame.value,
    })
}

fn exceptions(phase: &Section<'_>) -> Option<Vec<Exception>> {
    let mut exceptions = Vec::new();
    for (index, section) in phase.tables("answer")?.into_iter().enumerate() {
        if index == ANSWERS_MAX {
            let problem = format!("there are more than {ANSWERS_MAX} in this phase");
            section.fault(section.place(), &Wrong::new(problem, "keep those that matter"));
        }
        exceptions.push(exception(&section));
        section.finish(&[]);
    }
    exceptions.into_iter().collect()
}

fn exception(section: &Section<'_>) -> Option<Exception> {
    let mti = section.optional("mti", mti);
    let bin = section.optional("bin", limit_value::bin);
    let merchant = section.optional("merchant", limit_value::merchant);
    let operation = section.optional("operation", limit_value::operation);
    let amount = amount(section);
    let code = section.optional("code", code);
    let latency = latency(section);
    let dropped_share = section.optional("drop", share);
    let (mti, code, latency, dropped_share) = (mti?, code?, latency?, dropped_share?);
    if let (Some(mti), Some(_)) = (mti.value, &code.value)
        && !mti.answerable()
    {
        let problem = format!("{mti} is never declined, nor given another code than an approval");
        let remedy = "remove it; drop = 1 leaves the message without an answer";
        section.fault(&code.place, &Wrong::new(problem, remedy));
    }
    if code.value.is_none() && latency.is_none() && dropped_share.value.is_none() {
        let wrong = Wrong::new("changes nothing", "write code, delay or drop");
        section.fault(section.place(), &wrong);
    }
    let of = Match {
        mti: mti.value,
        bin: bin?.value.map(|(range, _)| range.first..=range.last),
        merchant: merchant?.value.map(|name| name.trim_end().to_owned()),
        operation: operation?.value,
        amount: amount?,
    };
    Some(Exception { of, code: code.value, latency, dropped_share: dropped_share.value })
}

/// Reads `amount_min` and `amount_max`; `None` inside when there is neither.
fn amount(section: &Section<'_>) -> Option<Option<RangeInclusive<u64>>> {
    let least = section.optional("amount_min", value::whole(0..=AMOUNT_MAX));
    let most = section.optional("amount_max", value::whole(0..=AMOUNT_MAX));
    let (least, most) = (least?, most?);
    let any = least.value.or(most.value).is_some();
    let range = least.value.unwrap_or(0)..=most.value.unwrap_or(AMOUNT_MAX);
    if range.is_empty() {
        let wrong = Wrong::new("is below amount_min", "write the larger of the two here");
        section.fault(&most.place, &wrong);
        return None;
    }
    Some(any.then_some(range))
}

/// Reads a share, 0 to 1.
fn share(value: &DeValue<'_>) -> Result<f64, Wrong> {
    const REMEDY: &str = "write a share from 0 to 1, such as 0.05";
    let share = value::number(value, REMEDY)?;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(Wrong::new(format!("{share} is out of range"), REMEDY))
    }
}

fn mti(value: &DeValue<'_>) -> Result<Mti, Wrong> {
    const WHAT: &str = "a message type";
    const REMEDY: &str = "write four digits in quotes, such as \"0200\"";
    let text = value::text(value, WHAT, REMEDY)?;
    let digits: Option<[u8; 4]> = text.as_bytes().try_into().ok();
    digits
        .and_then(|digits| Mti::from_digits(digits.map(|digit| digit.wrapping_sub(b'0'))))
        .ok_or_else(|| value::not(value, WHAT, REMEDY))
}

/// Reads a response code: how many characters field 39 takes is the dialect's to say.
fn code(value: &DeValue<'_>) -> Result<String, Wrong> {
    const WHAT: &str = "a response code";
    const REMEDY: &str = "write what field 39 is to hold, such as \"05\"";
    let text = value::text(value, WHAT, REMEDY)?;
    let is_code = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_code && (2..=4).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err(value::not(value, WHAT, REMEDY))
    }
}
