//! `[[upstream]]`: the hosts that links may name.

use std::cell::Cell;
use std::net::Ipv6Addr;

use toml::de::DeValue;

use super::fault::{Wrong, quoted};
use super::reader::{Placed, Section, Seen};
use super::value::{self, not, one_of};
use crate::exchange;
use crate::net::upstream::Settings;
use crate::wire::Framing;

/// Standbys beyond a few only cost the host connections.
const CONNECTIONS_MAX: usize = 8;
const INFLIGHT_MAX_MAX: usize = 1_000_000;

/// A host as the file gives it; what it becomes depends on the link that names it.
struct Upstream {
    connect: Vec<Placed<String>>,
    framing: Option<Framing>,
    connections: usize,
    inflight_max: usize,
}

/// All hosts of the file.
pub(super) struct Upstreams {
    known: Vec<Named>,
    /// Whether there may be hosts whose names could not be read.
    unnamed: bool,
}

struct Named {
    name: String,
    used: Cell<bool>,
    upstream: Option<Upstream>,
}

/// The host that a link has chosen.
pub(super) struct Chosen<'a> {
    name: &'a str,
    upstream: &'a Upstream,
}

impl Chosen<'_> {
    /// The framing between tollgate and this host, for a link with `framing`.
    pub(super) fn framing(&self, link: Framing) -> Framing {
        self.upstream.framing.unwrap_or(link)
    }

    /// Answerable requests in flight.
    pub(super) fn inflight_max(&self) -> usize {
        self.upstream.inflight_max
    }

    /// What a link with `framing` connects by.
    pub(super) fn settings(&self, framing: Framing) -> Settings {
        Settings {
            name: self.name.to_owned(),
            connect: self.upstream.connect.iter().map(|target| target.value.clone()).collect(),
            framing: self.framing(framing),
            connections: self.upstream.connections,
        }
    }
}

impl Upstreams {
    pub(super) fn read(root: &Section<'_>) -> Self {
        let Some(sections) = root.tables("upstream") else {
            return Self { known: Vec::new(), unnamed: true };
        };
        if sections.is_empty() {
            let wrong = Wrong::new("there is none", "write an [[upstream]] with name and connect");
            root.fault(&root.place_of("upstream"), &wrong);
            return Self { known: Vec::new(), unnamed: true };
        }
        let mut seen = Seen::default();
        let mut upstreams = Self { known: Vec::new(), unnamed: false };
        for section in sections {
            let (name, upstream) = read_one(&section);
            section.finish(&[]);
            let Some(name) = name else {
                upstreams.unnamed = true;
                continue;
            };
            seen.check_name(root, &name);
            let used = Cell::new(false);
            upstreams.known.push(Named { name: name.value, used, upstream });
        }
        upstreams
    }

    /// The host that a link names, or the only one there is; `None` when there is no such host, or
    /// when it has a fault.
    pub(super) fn choose<'a>(
        &'a self,
        link: &Section<'_>,
        named: &Placed<Option<String>>,
    ) -> Option<Chosen<'a>> {
        let name = named.value.as_deref();
        let found = match (name, self.known.as_slice()) {
            (Some(name), known) => known.iter().find(|known| known.name == name),
            (None, [only]) if !self.unnamed => Some(only),
            (None, _) => None,
        };
        let Some(found) = found else {
            if !self.unnamed {
                let problem = match name {
                    Some(name) => format!("there is no upstream {}", quoted(name)),
                    None => "is missing, and there are several upstreams".to_owned(),
                };
                link.fault(&named.place, &Wrong::new(problem, format!("write {}", self.names())));
            }
            return None;
        };
        found.used.set(true);
        let upstream = found.upstream.as_ref()?;
        Some(Chosen { name: &found.name, upstream })
    }

    fn names(&self) -> String {
        one_of(self.known.iter().map(|known| quoted(&known.name)))
    }

    /// The names of hosts that no link has chosen.
    pub(super) fn unused(&self) -> Vec<String> {
        let unused = self.known.iter().filter(|known| !known.used.get());
        unused.map(|known| known.name.clone()).collect()
    }

    /// Everything that is connected to.
    pub(super) fn targets(&self) -> impl Iterator<Item = &Placed<String>> {
        self.known.iter().filter_map(|known| known.upstream.as_ref()).flat_map(|up| &up.connect)
    }
}

fn read_one(section: &Section<'_>) -> (Option<Placed<String>>, Option<Upstream>) {
    let name = section.required("name", "write a name for links to use", value::name);
    let connect = section.one_or_more("connect", CONNECT_REMEDY, target);
    let framing = section.optional("framing", value::framing);
    let connections =
        section.or("connections", Settings::CONNECTIONS, value::whole(1..=CONNECTIONS_MAX));
    let inflight_max = section.or(
        "inflight_max",
        exchange::Settings::INFLIGHT_MAX,
        value::whole(1..=INFLIGHT_MAX_MAX),
    );
    if let Some(connect) = &connect {
        let mut seen = Seen::default();
        for target in &connect.value {
            seen.check(section, target, quoted(&target.value), "remove one of the two");
        }
    }
    let upstream = || {
        Some(Upstream {
            connect: connect?.value,
            framing: framing?.value,
            connections: connections?.value,
            inflight_max: inflight_max?.value,
        })
    };
    (name, upstream())
}

const CONNECT_REMEDY: &str = "write \"host:port\", such as \"127.0.0.1:9000\" or \"[::1]:9000\"";

/// Reads a host name or an IP address, and a port. Names are resolved when connecting.
fn target(value: &DeValue<'_>) -> Result<String, Wrong> {
    const WHAT: &str = "a host and a port";
    let text = value::text(value, WHAT, CONNECT_REMEDY)?;
    let wrong = || not(value, WHAT, CONNECT_REMEDY);
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let sound_host = match bracketed {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => is_host_name(host),
    };
    match port.parse::<u16>() {
        Ok(1..) if sound_host && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(text.to_owned())
        }
        _ => Err(wrong()),
    }
}

fn is_host_name(host: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=253).contains(&host.len()) && host.bytes().all(safe)
}
