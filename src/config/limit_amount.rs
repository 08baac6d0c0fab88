//! `peak`, `floor` and `reserve`: what a limit or one of its keys has beside its rate and burst.

use toml::de::DeValue;

use super::fault::Wrong;
use super::limit::{RATE_REMEDY, burst, rate};
use super::reader::{Placed, Section};
use super::value;
use crate::limits::{Amount, Burst, Rate, Reserve, Share, When};
use crate::traffic::Class;

/// What stands beside the rate and the burst.
pub(super) struct Beside {
    pub(super) peak: Option<Amount>,
    pub(super) floor: Option<Amount>,
}

impl Beside {
    /// Reads `peak` and `floor` of a limit or a key with this rate.
    pub(super) fn read(section: &Section<'_>, rate: Option<&Placed<Rate>>) -> Option<Self> {
        let peak = amount(section.table("peak"));
        let floor = section.table("floor");
        let place = floor.place_of("rate");
        let floor = amount(floor);
        if let (Some(Some(floor)), Some(rate)) = (&floor, rate)
            && floor.rate >= rate.value
        {
            let problem = "is not below the rate, so that the limit would refuse nothing";
            section.fault(&place, &Wrong::new(problem, "write less than the rate"));
        }
        Some(Self { peak: peak?, floor: floor? })
    }
}

/// `{ rate, burst }`, if it is there.
fn amount(section: Section<'_>) -> Option<Option<Amount>> {
    if !section.is_there() {
        return Some(None);
    }
    let rate = section.required("rate", RATE_REMEDY, rate);
    let burst = section.optional("burst", burst);
    section.finish(&[]);
    let rate = rate?.value;
    Some(Some(Amount { rate, burst: burst?.value.unwrap_or_else(|| Burst::of_rate(rate)) }))
}

/// `{ standard, sheddable }`. A limit for sheddable requests alone has nobody to keep anything for.
pub(super) fn reserve(section: Section<'_>, when: Option<&When>) -> Option<Reserve> {
    let alone = when.is_some_and(|when| when.classes == [Class::Sheddable]);
    let usual = if alone { Reserve::NONE } else { Reserve::default() };
    let standard = section.or("standard", usual.standard, share);
    let sheddable = section.or("sheddable", usual.sheddable, share);
    section.finish(&[]);
    Some(Reserve { standard: standard?.value, sheddable: sheddable?.value })
}

fn share(value: &DeValue<'_>) -> Result<Share, Wrong> {
    const REMEDY: &str = "write a part of the burst from 0 to 1, such as 0.25";
    let share = value::number(value, REMEDY)?;
    Share::of(share).map_err(|_| Wrong::new(format!("{share} is out of range"), REMEDY))
}
