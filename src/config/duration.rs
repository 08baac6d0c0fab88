//! Durations as operators write them: a whole number and a unit.

use std::ops::RangeInclusive;
use std::time::Duration;

use toml::de::DeValue;

use super::fault::Wrong;
use super::value::not;

const REMEDY: &str = "write a number and a unit, such as \"1600ms\" or \"60s\"";

/// Reads a duration within `range`.
pub(super) fn within(
    range: RangeInclusive<Duration>,
) -> impl Fn(&DeValue<'_>) -> Result<Duration, Wrong> {
    move |value| {
        let duration =
            value.as_str().and_then(from_text).ok_or_else(|| not(value, "a duration", REMEDY))?;
        if range.contains(&duration) {
            return Ok(duration);
        }
        let (least, most) = (to_text(*range.start()), to_text(*range.end()));
        Err(Wrong::new(
            format!("{} is out of range", to_text(duration)),
            format!("write a duration from \"{least}\" to \"{most}\""),
        ))
    }
}

/// Reads a duration within `range`, or "off".
pub(super) fn within_or_off(
    range: RangeInclusive<Duration>,
) -> impl Fn(&DeValue<'_>) -> Result<Option<Duration>, Wrong> {
    let within = within(range);
    move |value| match value.as_str() {
        Some("off") => Ok(None),
        _ => within(value).map(Some),
    }
}

/// Reads one such as `1600ms` or `60s`. `None` when it is not a whole number and one of the units, or
/// too long to count in milliseconds.
pub fn from_text(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit_ms).map(Duration::from_millis)
}

/// In the largest unit that shows it exactly.
pub(super) fn to_text(duration: Duration) -> String {
    let ms = duration.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let exact = units.iter().find(|(unit_ms, _)| ms.is_multiple_of(*unit_ms));
    match exact {
        _ if ms == 0 => "0s".to_owned(),
        Some((unit_ms, unit)) => format!("{}{unit}", ms / unit_ms),
        None => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_whole_number_and_a_unit() {
        assert_eq!(from_text("1600ms"), Some(Duration::from_millis(1_600)));
        assert_eq!(from_text("60s"), Some(Duration::from_secs(60)));
        assert_eq!(from_text("5m"), Some(Duration::from_secs(300)));
        assert_eq!(from_text("2h"), Some(Duration::from_secs(7_200)));
        for text in ["", "60", "ms", "1.5s", "-1s", "+1s", "1 s", "1S", "1d", "１s"] {
            assert_eq!(from_text(text), None, "{text:?}");
        }
        assert_eq!(from_text("18446744073709551615h"), None);
    }

    #[test]
    fn a_duration_is_shown_as_it_would_be_written() {
        for text in ["0s", "5ms", "1s", "1600ms", "90s", "2m", "1h"] {
            assert_eq!(from_text(text).map(to_text).as_deref(), Some(text));
        }
    }
}
