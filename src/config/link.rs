//! `[[link]]`: one way in for one card network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use toml::de::DeValue;

use super::answers;
use super::dialect::Dialects;
use super::fault::{Wrong, quoted};
use super::listening::Listening;
use super::reader::{Placed, Section, Seen};
use super::upstream::{Chosen, Upstreams};
use super::{duration, value};
use crate::iso8583::Dialect;
use crate::net::session::Keepalive;
use crate::net::{listener, session, upstream};
use crate::traffic::{Classes, LinkId};
use crate::wire::{Framing, Header};
use crate::{exchange, gate};

/// One configured way in, with the settings of each module that serves it.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its place in the file.
    pub id: LinkId,
    /// Its name in logs and metric labels.
    pub name: String,
    /// Where it listens, and for whom.
    pub listener: listener::Settings,
    /// How its sessions are read.
    pub session: session::Settings,
    /// How its host is reached.
    pub upstream: upstream::Settings,
    /// What stands before the MTI.
    pub header: Header,
    /// How its messages are laid out.
    pub dialect: Arc<Dialect>,
    /// How it answers for itself.
    pub gate: gate::Settings,
    /// How long it waits, and how much it keeps in mind.
    pub exchange: exchange::Settings,
    /// What it does while its host is away.
    pub host_down: HostDown,
}

/// What a link does while no connection to its host is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostDown {
    /// It answers what it may with reason `unavailable`.
    Answer,
    /// It closes its sessions and its listener, so that the network sees the line down and stands
    /// in by its own rules.
    Close,
}

impl HostDown {
    /// Default of `host_down`.
    pub const DEFAULT: Self = Self::Answer;
}

/// Every link is a label of metrics and has buffers of its own.
const LINKS_MAX: usize = 64;
const LISTEN_REMEDY: &str = "write an IP address and a port, such as \"0.0.0.0:8583\"";
const ALLOW_REMEDY: &str = "write the source networks, such as [\"192.0.2.0/24\", \"::1/128\"]";
const CONNECTIONS_MAX_MAX: usize = 65_536;
/// Shorter than any message with a bitmap and a handful of fields.
const FRAME_BYTES_MIN: usize = 64;
/// A timeout below this closes sessions over an ordinary pause of the network.
const TIMEOUT_MIN: Duration = Duration::from_millis(10);
const FRAME_TIMEOUT_MAX: Duration = Duration::from_secs(600);
const IDLE_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3_600);
const DEADLINE_MIN: Duration = Duration::from_millis(5);
const DEADLINE_MAX: Duration = Duration::from_secs(60);
const ANSWER_TIMEOUT_MAX: Duration = Duration::from_secs(3_600);

/// Keys of the reference that this version does not have.
const LATER: [&str; 2] = ["sessions", "connect"];

/// Reads all links; `None` when one of them has a fault, or there is none.
pub(super) fn read_all(
    root: &Section<'_>,
    upstreams: &Upstreams,
    dialects: &Dialects,
    classes: Option<Classes>,
    listening: &mut Listening,
) -> Option<Vec<Link>> {
    let sections = root.tables("link")?;
    if sections.is_empty() {
        let remedy = "write a [[link]] with name, listen, dialect and framing";
        root.fault(&root.place_of("link"), &Wrong::new("there is none", remedy));
        return None;
    }
    let mut names = Seen::default();
    let mut links = Vec::with_capacity(sections.len());
    for (index, section) in sections.into_iter().enumerate() {
        if index == LINKS_MAX {
            let wrong = Wrong::new(
                format!("there are more than {LINKS_MAX} links"),
                "let networks of one kind share a link, or run a second tollgate",
            );
            section.fault(section.place(), &wrong);
        }
        // LINKS_MAX is far below what an id can count.
        let id = LinkId(u16::try_from(index).unwrap_or(u16::MAX));
        let mut link = read_one(&section, id, &mut names, upstreams, dialects, listening);
        if let (Some(link), Some(classes)) = (&mut link, classes) {
            link.gate.classes = classes;
        }
        links.push(link);
        section.finish(&LATER);
    }
    links.into_iter().collect()
}

fn read_one(
    section: &Section<'_>,
    id: LinkId,
    names: &mut Seen,
    upstreams: &Upstreams,
    dialects: &Dialects,
    listening: &mut Listening,
) -> Option<Link> {
    let name = section.required("name", "write a name for logs and metrics", value::name);
    if let Some(name) = &name {
        names.check_name(section, name);
    }
    let listener = listener(section, listening);
    let framing = section.required("framing", &value::framing_remedy(), value::framing);
    let framing = framing.map(|framing| framing.value);
    let upstream = section.optional("upstream", value::name);
    let upstream = upstream.and_then(|named| upstreams.choose(section, &named));
    let session = session(section, framing, upstream.as_ref());
    let header = section.or("header", Header::None, header);
    if let (Some(session), Some(header)) = (&session, &header) {
        header_must_fit(section, header, session.frame_bytes_max);
    }
    let dialect = section.required("dialect", &dialects.remedy(), |value| dialects.choose(value));
    let exchange = exchange(section, upstream.as_ref());
    let named = dialect.as_ref().and_then(|named| named.value.as_deref());
    let gate = answers::read(section, named);
    let host_down = value::choice(
        [("answer", HostDown::Answer), ("close", HostDown::Close)],
        value::none_later,
    );
    let host_down = section.or("host_down", HostDown::DEFAULT, host_down);
    Some(Link {
        id,
        name: name?.value,
        listener: listener?,
        session: session?,
        upstream: upstream?.settings(framing?),
        header: header?.value,
        dialect: dialect?.value?,
        gate: gate?,
        exchange: exchange?,
        host_down: host_down?.value,
    })
}

fn listener(section: &Section<'_>, listening: &mut Listening) -> Option<listener::Settings> {
    let listen = section.one_or_more("listen", LISTEN_REMEDY, value::address);
    for address in listen.iter().flat_map(|listen| &listen.value) {
        listening.claim(section, address.value, &address.place);
    }
    let allow = section.list("allow", ALLOW_REMEDY, network);
    let connections_max = section.or(
        "connections_max",
        listener::Settings::CONNECTIONS_MAX,
        value::whole(1..=CONNECTIONS_MAX_MAX),
    );
    let loopback_alone = listen
        .as_ref()
        .map(|listen| listen.value.iter().all(|address| address.value.ip().is_loopback()));
    let allow = allow.and_then(|Placed { value, place }| {
        let problem = match value {
            Some(networks) if !networks.is_empty() => {
                return Some(networks.into_iter().map(|network| network.value).collect());
            }
            Some(_) => "is empty, so that nobody may connect",
            None if loopback_alone? => return Some(loopback()),
            None => "is missing, and listen is not loopback alone",
        };
        section.fault(&place, &Wrong::new(problem, ALLOW_REMEDY));
        None
    });
    Some(listener::Settings {
        listen: listen?.value.into_iter().map(|address| address.value).collect(),
        allow: allow?,
        connections_max: connections_max?.value,
    })
}

/// Default of `allow`, for links that listen on nothing else.
fn loopback() -> Vec<IpNet> {
    let v4 = Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8);
    vec![IpNet::V4(v4), IpNet::V6(Ipv6Net::from(Ipv6Addr::LOCALHOST))]
}

/// Reads a network, which must be written as such: an address with bits beyond its prefix is a slip
/// that would let in more than was meant, or less.
fn network(value: &DeValue<'_>) -> Result<IpNet, Wrong> {
    const WHAT: &str = "a network";
    let text = value::text(value, WHAT, ALLOW_REMEDY)?;
    let Ok(network) = text.parse::<IpNet>() else {
        return Err(match text.parse::<IpAddr>() {
            Ok(address) => {
                let single = format!("write \"{}\" for this one address", IpNet::from(address));
                Wrong::new(format!("{} has no prefix length", quoted(text)), single)
            }
            Err(_) => value::not(value, WHAT, ALLOW_REMEDY),
        });
    };
    if network.trunc() != network {
        let problem = format!("{} has bits set beyond its prefix", quoted(text));
        let address = IpNet::from(network.addr());
        let remedy = format!("write \"{}\" or \"{address}\"", network.trunc());
        return Err(Wrong::new(problem, remedy));
    }
    match network {
        IpNet::V6(v6) if v6.addr().to_ipv4_mapped().is_some() => {
            let problem = format!("{} is an IPv4 network written as IPv6", quoted(text));
            Err(Wrong::new(problem, "write it as IPv4, which holds for its peers on [::] too"))
        }
        _ => Ok(network),
    }
}

fn session(
    section: &Section<'_>,
    framing: Option<Framing>,
    upstream: Option<&Chosen<'_>>,
) -> Option<session::Settings> {
    let carried = [framing, framing.and_then(|framing| Some(upstream?.framing(framing)))];
    let carried = carried.into_iter().flatten().map(Framing::frame_bytes_ceiling);
    let default = carried.fold(session::Settings::FRAME_BYTES_MAX, usize::min);
    let frame_bytes_max = section.or(
        "frame_bytes_max",
        default,
        value::whole(FRAME_BYTES_MIN..=session::Settings::FRAME_BYTES_CEILING),
    );
    if let (Some(frame_bytes_max), Some(framing)) = (&frame_bytes_max, framing) {
        frame_must_fit(section, frame_bytes_max, framing, upstream);
    }
    let frame_timeout = section.or(
        "frame_timeout",
        session::Settings::FRAME_TIMEOUT,
        duration::within(TIMEOUT_MIN..=FRAME_TIMEOUT_MAX),
    );
    let idle_timeout = duration::within_or_off(TIMEOUT_MIN..=IDLE_TIMEOUT_MAX);
    let idle_timeout = section.or("idle_timeout", None, idle_timeout);
    let choices = Keepalive::ALL.map(|choice| (choice.name(), choice));
    let keepalive = value::choice(choices, value::none_later);
    let keepalive = section.or("keepalive", Keepalive::default(), keepalive);
    Some(session::Settings {
        framing: framing?,
        keepalive: keepalive?.value,
        frame_bytes_max: frame_bytes_max?.value,
        frame_timeout: frame_timeout?.value,
        idle_timeout: idle_timeout?.value,
    })
}

/// Behind its header a message must have room.
fn header_must_fit(section: &Section<'_>, header: &Placed<Header>, frame_bytes_max: usize) {
    let least = FRAME_BYTES_MIN.saturating_add(header.value.bytes());
    if frame_bytes_max < least {
        let problem = format!(
            "a header of {} bytes leaves no room for a message in {frame_bytes_max}",
            header.value.bytes()
        );
        let remedy = format!("write a frame_bytes_max of {least} or more");
        section.fault(&header.place, &Wrong::new(problem, remedy));
    }
}

/// What came in must be able to go out: to the host in its framing, and back in the link's.
fn frame_must_fit(
    section: &Section<'_>,
    frame_bytes_max: &Placed<usize>,
    framing: Framing,
    upstream: Option<&Chosen<'_>>,
) {
    let upstream = upstream.map(|upstream| (upstream.framing(framing), "the upstream's"));
    for (framing, whose) in [Some((framing, "the link's")), upstream].into_iter().flatten() {
        let ceiling = framing.frame_bytes_ceiling();
        if frame_bytes_max.value > ceiling {
            let name = framing.name();
            let problem = format!("{whose} {name} framing cannot carry {}", frame_bytes_max.value);
            let wrong = Wrong::new(problem, format!("write at most {ceiling}"));
            section.fault(&frame_bytes_max.place, &wrong);
            return;
        }
    }
}

fn exchange(section: &Section<'_>, upstream: Option<&Chosen<'_>>) -> Option<exchange::Settings> {
    let deadline = section.or(
        "deadline",
        exchange::Settings::DEADLINE,
        duration::within(DEADLINE_MIN..=DEADLINE_MAX),
    );
    let answer_timeout = section.or(
        "answer_timeout",
        exchange::Settings::ANSWER_TIMEOUT,
        duration::within(DEADLINE_MIN..=ANSWER_TIMEOUT_MAX),
    );
    if let (Some(deadline), Some(timeout)) = (&deadline, &answer_timeout)
        && deadline.value >= timeout.value
    {
        // A default has the line of the section, so the lower of the two was written.
        let below = deadline.place.line > timeout.place.line;
        let written = if below { deadline } else { timeout };
        let problem = format!(
            "a deadline of {} is not below an answer_timeout of {}",
            duration::to_text(deadline.value),
            duration::to_text(timeout.value)
        );
        let remedy = "shorten deadline or lengthen answer_timeout";
        section.fault(&written.place, &Wrong::new(problem, remedy));
    }
    let match_fields = answers::match_fields(section);
    Some(exchange::Settings {
        deadline: deadline?.value,
        answer_timeout: answer_timeout?.value,
        match_fields: match_fields?,
        inflight_max: upstream?.inflight_max(),
    })
}

fn header(value: &DeValue<'_>) -> Result<Header, Wrong> {
    let names = value::one_of(Header::NAMES.map(quoted));
    let remedy = format!("write {names}, N from 1 to 64");
    let name = value::text(value, "a name in quotes", remedy.as_str())?;
    Header::from_name(name)
        .ok_or_else(|| Wrong::new(format!("{} is not known", quoted(name)), remedy))
}
