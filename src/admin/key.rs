//! One key of one limit, by a query: `limit=merchant&acquirer=123456&merchant=SHOP0001`.
//!
//! The values are those of a message; what a limit is not kept by may be there all the same, so that
//! one query does for several limits.

use serde_json::{Value, json};
use thiserror::Error;

use super::lease;
use crate::clock::Moment;
use crate::limits::{Beside, Bucket, Dimension, LimitIx, Per, Policy, Standing};
use crate::metrics::Published;
use crate::traffic::{Bin, Class, LinkId, Mcc, MerchantId, Operation, TerminalId, Traffic};

/// Why a query has no answer. It never repeats the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum QueryError {
    /// There is no such parameter.
    #[error("the parameters are limit, bin, acquirer, merchant, terminal, mcc, operation and link")]
    Parameter,
    /// A parameter has a value that it cannot have.
    #[error("{0} has a value that it cannot have")]
    Value(&'static str),
    /// No limit has this name, or none was given.
    #[error("limit is missing or is not the name of a limit")]
    Limit,
    /// The limit is kept by something that the query does not name.
    #[error("the limit is kept per {0}, which the query does not name")]
    Lacks(&'static str),
    /// A merchant or a terminal of nobody knows whom.
    #[error("merchants and terminals go by their acquirer; name it too, empty for those without")]
    Acquirer,
    /// Shorter BINs than that have no bucket.
    #[error("the limit is kept per bin of {0} digits, of which the query names fewer")]
    BinDigits(u8),
    /// Nothing is kept of it.
    #[error("the limit is off")]
    Off,
}

/// The bucket that a query names.
pub(super) fn of_query(
    published: &Published,
    query: &str,
    now: Moment,
) -> Result<Value, QueryError> {
    let policy = &published.policy;
    let Asked { limit, traffic, named, bin_digits } = read(policy, query)?;
    let rule = policy.limits().get(usize::from(limit.0)).ok_or(QueryError::Limit)?;
    if let Some(dimension) = rule.per.iter().find(|dimension| !named.has(*dimension)) {
        return Err(QueryError::Lacks(dimension.name()));
    }
    match policy.bucket(limit, &traffic, now).ok_or(QueryError::Limit)? {
        Standing::Applies(_) if rule.per.has(Dimension::Bin) && bin_digits < rule.bin_digits => {
            Err(QueryError::BinDigits(rule.bin_digits))
        }
        Standing::Applies(bucket) => {
            let lease = lease::of_key(published, limit, &traffic, now);
            Ok(shown(&rule.name, &bucket, &lease))
        }
        Standing::Lacks(dimension) => Err(QueryError::Lacks(dimension.name())),
        Standing::Off | Standing::NotFor(_) => Err(QueryError::Off),
    }
}

/// What a query asks for.
struct Asked {
    limit: LimitIx,
    /// A message with the values that are named.
    traffic: Traffic,
    /// The dimensions of these values. Every message has an operation and a link, but not every query
    /// means one.
    named: Per,
    /// How many digits of the BIN are named.
    bin_digits: u8,
}

fn shown(limit: &str, bucket: &Bucket, lease: &Value) -> Value {
    json!({
        "limit": limit,
        "key": bucket.key,
        "held_by": bucket.holder.name(),
        "remaining_tokens": bucket.level as f64 / 1e6,
        "burst_tokens": bucket.burst.micro() as f64 / 1e6,
        "rate_per_second": bucket.rate.pico_per_second() as f64 / 1e12,
        "full_in_seconds": bucket.full_after.as_secs_f64(),
        "peak": bucket.peak.as_ref().map(beside),
        "floor": bucket.floor.as_ref().map(beside),
        "lease": lease,
    })
}

/// A bucket beside that of the rate, for whoever shows one.
pub fn beside(beside: &Beside) -> Value {
    json!({
        "remaining_tokens": beside.level as f64 / 1e6,
        "burst_tokens": beside.amount.burst.micro() as f64 / 1e6,
        "rate_per_second": beside.amount.rate.pico_per_second() as f64 / 1e12,
    })
}

fn read(policy: &Policy, query: &str) -> Result<Asked, QueryError> {
    let mut traffic = Traffic::new(LinkId(0), Class::Standard, Operation::Other);
    let (mut limit, mut acquirer, mut merchant, mut terminal) = (None, None, None, None);
    let (mut named, mut bin_digits) = (Per::NOTHING, 0);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let dimension = Dimension::ALL.into_iter().find(|dimension| dimension.name() == name);
        named = dimension.map_or(named, |dimension| named.and(Per::of(&[dimension])));
        match &*name {
            "limit" => limit = Some(value),
            "acquirer" => acquirer = Some(value),
            "merchant" => merchant = Some(value),
            "terminal" => terminal = Some(value),
            "bin" => {
                let (bin, digits) = bin(&value).ok_or(QueryError::Value("bin"))?;
                (traffic.bin, bin_digits) = (Some(bin), digits);
            }
            "mcc" => {
                let mcc = Mcc::from_ascii(value.as_bytes());
                traffic.mcc = Some(mcc.ok_or(QueryError::Value("mcc"))?);
            }
            "operation" => {
                let of_name = Operation::ALL.into_iter().find(|one| one.name() == value);
                traffic.operation = of_name.ok_or(QueryError::Value("operation"))?;
            }
            "link" => {
                let place = policy.links().iter().position(|link| *link == value);
                let place = place.and_then(|place| u16::try_from(place).ok());
                traffic.link = LinkId(place.ok_or(QueryError::Value("link"))?);
            }
            _ => return Err(QueryError::Parameter),
        }
    }
    if acquirer.is_none() && (merchant.is_some() || terminal.is_some()) {
        return Err(QueryError::Acquirer);
    }
    let acquirer = acquirer.unwrap_or_default();
    let of_acquirer = acquirer.as_bytes();
    traffic.merchant = merchant.and_then(|name| MerchantId::new(of_acquirer, name.as_bytes()));
    traffic.terminal = terminal.and_then(|name| TerminalId::new(of_acquirer, name.as_bytes()));
    let place = limit.and_then(|name| policy.limits().iter().position(|rule| rule.name == name));
    let limit = place.and_then(|place| u8::try_from(place).ok()).ok_or(QueryError::Limit)?;
    Ok(Asked { limit: LimitIx(limit), traffic, named, bin_digits })
}

/// Six to eight leading digits of a card number, and how many they are. Those that are missing do not
/// matter to a limit of so many digits.
fn bin(text: &str) -> Option<(Bin, u8)> {
    let given = u8::try_from(text.len()).ok().filter(|given| (6..=8).contains(given))?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = text.bytes().map(|byte| byte & 15).chain(std::iter::repeat(0));
    let bin = Bin::from_digits(&digits.take(Bin::DIGITS).collect::<Vec<_>>())?;
    Some((bin, given))
}
