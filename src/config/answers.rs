//! How a link answers for itself (`echo`, `local_answers`, `[link.codes]`), and by which fields it
//! knows the host's answers again (`match`).

use toml::de::DeValue;

use super::fault::{Wrong, quoted};
use super::operations;
use super::reader::{Placed, Section, Seen};
use super::value::{self, one_of};
use crate::exchange;
use crate::gate::{Codes, LocalAnswers, Malformed, Settings};
use crate::iso8583::{Dialect, FieldSet, LocalCode, NEVER_ECHOED, approves, can_say};
use crate::reason::Reason;
use crate::traffic::Classes;

/// The trace number, by which whoever asked knows the answer again.
pub(super) const STAN: u8 = 11;
const FIELDS_REMEDY: &str = "write field numbers, such as [7, 11, 37]";

/// Reads how a link answers; `None` for the dialect is one with a fault.
pub(super) fn read(section: &Section<'_>, dialect: Option<&Dialect>) -> Option<Settings> {
    let echo = fields(section, "echo", &Settings::ECHO, why_not_echoed);
    if let Some(fields) = &echo
        && !fields.value.contains(&STAN)
    {
        let problem = "leaves out 11, without which an answer is not matched to its request";
        section.fault(&fields.place, &Wrong::new(problem, "add 11"));
    }
    let choices = LocalAnswers::ALL.map(|choice| (choice.name(), choice));
    let local_answers = value::choice(choices, value::none_later);
    let local_answers = section.or("local_answers", LocalAnswers::default(), local_answers);
    let choices = Malformed::ALL.map(|choice| (choice.name(), choice));
    let malformed = value::choice(choices, value::none_later);
    let malformed = section.or("malformed", Malformed::default(), malformed);
    let codes = codes(section.table("codes"), dialect);
    let operations = operations::operations(section.table("operations"));
    Some(Settings {
        echo: FieldSet::of(&echo?.value),
        codes: codes?,
        local_answers: local_answers?.value,
        malformed: malformed?.value,
        operations: operations?,
        classes: Classes::default(),
    })
}

/// Fields in which a request and its answer must agree.
pub(super) fn match_fields(section: &Section<'_>) -> Option<Vec<u8>> {
    let fields = fields(section, "match", &exchange::Settings::MATCH_FIELDS, why_not_matched)?;
    let most = exchange::Settings::MATCH_FIELDS_MAX;
    if fields.value.len() > most {
        let problem = format!("names {} fields", fields.value.len());
        let wrong = Wrong::new(problem, format!("name at most {most}"));
        section.fault(&fields.place, &wrong);
    }
    Some(fields.value)
}

/// The fields listed at `key`. `why_not` says of one that may not be there why.
fn fields(
    section: &Section<'_>,
    key: &'static str,
    default: &[u8],
    why_not: fn(u8) -> Option<&'static str>,
) -> Option<Placed<Vec<u8>>> {
    let Placed { value: listed, place } =
        section.list(key, FIELDS_REMEDY, value::whole(2..=128u8))?;
    let Some(listed) = listed else { return Some(Placed { value: default.to_vec(), place }) };
    let mut seen = Seen::default();
    for field in &listed {
        seen.check(section, field, field.value, "remove one of the two");
        if let Some(why) = why_not(field.value) {
            let problem = format!("{} cannot be used here: {why}", field.value);
            section.fault(&field.place, &Wrong::new(problem, "remove it"));
        }
    }
    let fields = listed.into_iter().map(|field| field.value).collect();
    Some(Placed { value: fields, place })
}

fn why_not_matched(field: u8) -> Option<&'static str> {
    match field {
        39 => Some("only an answer has it"),
        34 | 35 | 36 | 45 | 52 | 55 => Some("it is secret card data, which is not kept"),
        64 | 128 => Some("the MAC of an answer is another than its request's"),
        65 => Some("it is a bitmap, not a field"),
        _ => None,
    }
}

fn why_not_echoed(field: u8) -> Option<&'static str> {
    match field {
        _ if !NEVER_ECHOED.contains(field) => None,
        38 => Some("an authorization code is the issuer's to give"),
        39 => Some("it is the code that tollgate answers with"),
        64 | 128 => Some("the MAC of a request is wrong over its answer"),
        65 => Some("it is a bitmap, not a field"),
        90 => Some("it belongs to reversals, which are never answered here"),
        _ => Some("it is secret card data, which no answer needs"),
    }
}

fn codes(section: Section<'_>, dialect: Option<&Dialect>) -> Option<Codes> {
    let mut codes = Codes::default();
    let mut sound = true;
    for reason in Reason::ALL {
        let Some(Placed { value, place }) = section.optional(reason.name(), code) else {
            sound = false;
            continue;
        };
        let Some(code) = value else { continue };
        if dialect.is_some_and(|dialect| cannot_say(dialect, code)) {
            let problem =
                format!("field 39 of the dialect holds digits, not {}", quoted(code.in_1987()));
            section.fault(&place, &Wrong::new(problem, "write a code of digits"));
        }
        codes = codes.with(reason, code);
    }
    section.finish(&["velocity"]);
    sound.then_some(codes)
}

/// Whether a code cannot be written where others can: whom it is meant for would get no answer.
fn cannot_say(dialect: &Dialect, code: LocalCode) -> bool {
    (0..=2).any(|version| can_say(dialect, version, code) == Some(false))
}

fn code(value: &DeValue<'_>) -> Result<LocalCode, Wrong> {
    let remedy = format!("write {}", one_of(LocalCode::ALL.map(|code| quoted(code.in_1987()))));
    let text = value::text(value, "a code in quotes", remedy.as_str())?;
    if let Some(code) = LocalCode::parse_1987(text) {
        return Ok(code);
    }
    let why = match text {
        "05" => "is never sent by a limiter: to the cardholder it is the issuer's own refusal",
        _ if approves(0, text.as_bytes()) => {
            "is never sent by a limiter: it approves, and the issuer knows nothing of it"
        }
        "04" | "07" | "41" | "43" => {
            "is never sent by a limiter: it tells the till to keep the card"
        }
        _ => "is not among the codes that say \"not now\" or \"not like this\"",
    };
    Err(Wrong::new(format!("{} {why}", quoted(text)), remedy))
}
