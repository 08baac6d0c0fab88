//! `[quota.redis]`: where a Redis is, and as whom a node speaks to it.
//!
//! A password stands in a file or in the environment, never in the configuration: that is copied, mailed
//! and kept under version control. What is wrong with an address is said without quoting it.

use std::fs::File;
use std::io::Read;

use toml::de::DeValue;

use super::fault::{Wrong, quoted};
use super::reader::{Placed, Section};
use super::value;
use crate::quota::redis::{Login, Password, Said, Settings, Tls, UrlFault, deployment, parse};

/// Default of `url`: a server of this machine.
const URL: &str = "redis://127.0.0.1:6379";
/// Where the passwords are if no file has them.
const PASSWORD: &str = "TOLLGATE_REDIS_PASSWORD";
const SENTINEL_PASSWORD: &str = "TOLLGATE_REDIS_SENTINEL_PASSWORD";
/// Larger than any password or chain of certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads the section. Where no Redis is wanted, no file is opened.
pub(super) fn read(section: Section<'_>, is_wanted: bool, namespace: String) -> Option<Settings> {
    let url = urls(&section);
    let login = login(&section, ("user", "password_file", PASSWORD), is_wanted);
    let keys = ("sentinel_user", "sentinel_password_file", SENTINEL_PASSWORD);
    let sentinel_login = self::login(&section, keys, is_wanted);
    let authorities = file(&section, "tls_ca_file", is_wanted);
    let certificate = file(&section, "tls_cert_file", is_wanted);
    let key = file(&section, "tls_key_file", is_wanted);
    let url = url.and_then(|url| {
        let said: Vec<_> = url.value.iter().flat_map(|said| said.value.clone()).collect();
        let found = deployment(&said).map_err(|fault| section.fault(&url.place, &wrong(fault)));
        Some((found.ok()?, said.first()?.clone()))
    });
    let tls = tls(
        &section,
        url.as_ref().is_some_and(|(_, first)| first.tls),
        [authorities, certificate, key],
    );
    section.finish(&[]);
    let (deployment, first) = url?;
    let (login, sentinel_login, tls) = (login?, sentinel_login?, tls?);
    let database = first.database;
    Some(Settings { deployment, database, login, sentinel_login, tls, namespace })
}

/// Whether it says nothing of where a Redis is.
pub(super) fn is_usual(settings: &Settings) -> bool {
    parse(URL).and_then(|usual| deployment(&usual)).as_ref() == Ok(&settings.deployment)
}

/// What begins the name of every key.
pub(super) fn namespace(value: &DeValue<'_>) -> Result<String, Wrong> {
    const REMEDY: &str = "write letters, digits, \".\", \"_\", \"-\" and \":\", 64 at most";
    let text = value::text(value, "a name", REMEDY)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || ".:_-".contains(c);
    // A brace would choose the slot of its keys.
    if (1..=64).contains(&text.len()) && text.chars().all(fits) {
        Ok(text.to_owned())
    } else {
        Err(Wrong::new(format!("{} is no name of a namespace", quoted(text)), REMEDY))
    }
}

fn urls(section: &Section<'_>) -> Option<Placed<Vec<Placed<Vec<Said>>>>> {
    if !section.has("url") {
        let place = section.place_of("url");
        let said = Placed { value: parse(URL).ok()?, place: place.clone() };
        return Some(Placed { value: vec![said], place });
    }
    section.one_or_more("url", "write an address, or a list of them", |value| {
        let text = value.as_str().ok_or(UrlFault::Malformed);
        text.and_then(parse).map_err(wrong)
    })
}

fn wrong(fault: UrlFault) -> Wrong {
    let remedy = match fault {
        UrlFault::Malformed | UrlFault::Scheme => {
            "write redis://HOST:PORT (rediss:// for TLS), unix:///PATH, redis-sentinel://HOST:PORT/MASTER or redis-cluster://HOST:PORT"
        }
        UrlFault::Login => "write the user as user, and the password into password_file",
        UrlFault::NoMaster => {
            "write redis-sentinel://HOST:PORT/MASTER, by the name the sentinels know"
        }
        UrlFault::Path => "write the number of a database behind the port, or nothing",
        UrlFault::Mixed => "write addresses of one kind, with one master or one database",
        UrlFault::Nothing => "write at least one address",
        UrlFault::ClusterDatabase => "leave the number of the database out",
    };
    Wrong::new(fault.to_string(), remedy)
}

fn login(
    section: &Section<'_>,
    (user, password_file, variable): (&'static str, &'static str, &str),
    is_wanted: bool,
) -> Option<Login> {
    let user = section.or(user, String::new(), name);
    let in_file = file(section, password_file, is_wanted)?;
    let password = match in_file.value {
        Some(bytes) => {
            let Ok(text) = String::from_utf8(bytes) else {
                let wrong = Wrong::new("names a file that is no text", "write the password alone");
                section.fault(&in_file.place, &wrong);
                return None;
            };
            Some(Password::new(&text))
        }
        None if is_wanted => std::env::var(variable).ok().map(|text| Password::new(&text)),
        None => None,
    };
    Some(Login { user: Some(user?.value).filter(|user| !user.is_empty()), password })
}

fn name(value: &DeValue<'_>) -> Result<String, Wrong> {
    Ok(value::text(value, "a name", "write a name, or \"\" for the default user")?.to_owned())
}

/// The bytes of the file that a key names; `None` inside when it names none.
fn file(
    section: &Section<'_>,
    key: &'static str,
    is_wanted: bool,
) -> Option<Placed<Option<Vec<u8>>>> {
    let remedy = "write the path of a file, or \"\" for none";
    let path = section
        .or(key, String::new(), |value| Ok(value::text(value, "a path", remedy)?.to_owned()))?;
    let Placed { value: path, place } = path;
    if path.is_empty() || !is_wanted {
        return Some(Placed { value: None, place });
    }
    let mut bytes = Vec::new();
    let read =
        File::open(&path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes));
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let problem = format!("{} is larger than 1 MiB", quoted(&path));
        section.fault(&place, &Wrong::new(problem, "name the file that was meant"));
        return None;
    }
    match read {
        Ok(_) => Some(Placed { value: Some(bytes), place }),
        Err(error) => {
            let problem = format!("{} cannot be read: {error}", quoted(&path));
            section.fault(&place, &Wrong::new(problem, "name a file that tollgate may read"));
            None
        }
    }
}

fn tls(
    section: &Section<'_>,
    is_asked_for: bool,
    [authorities, certificate, key]: [Option<Placed<Option<Vec<u8>>>>; 3],
) -> Option<Option<Tls>> {
    let (authorities, certificate, key) = (authorities?, certificate?, key?);
    let named = [&authorities, &certificate, &key].into_iter().find(|file| file.value.is_some());
    if let Some(named) = named.filter(|_| !is_asked_for) {
        let wrong = Wrong::new("is not used: url does not ask for TLS", "write rediss:// in url");
        section.fault(&named.place, &wrong);
        return None;
    }
    let own = match (certificate.value, key.value) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        (Some(_), None) => {
            let wrong = Wrong::new("has no key", "name its key in tls_key_file");
            section.fault(&certificate.place, &wrong);
            return None;
        }
        (None, Some(_)) => {
            let wrong = Wrong::new("has no certificate", "name it in tls_cert_file");
            section.fault(&key.place, &wrong);
            return None;
        }
    };
    Some(is_asked_for.then_some(Tls { authorities: authorities.value, own }))
}
