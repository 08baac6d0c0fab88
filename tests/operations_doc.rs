//! `docs/operations.md` and `config/alerts.yml` speak of this program: every metric, label, value, log
//! line, page, exit code and signal that they name exists, and none is left out.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "a test states its expectations"
)]

mod document;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::Path;

use document::{
    code_lines, code_words, documents, labelled_values, log_lines, read, rows, section, sources,
};
use serde_json::Value;
use support::house::{Plan, limit};
use support::message::Message;
use support::proxy::{run_to_its_end, tollgate};
use support::wait_for;
use tollgate::limits::Holder;
use tollgate::metrics::{Kind, Metric, TABLE};

const OPERATIONS: &str = "docs/operations.md";
const ALERTS: &str = "config/alerts.yml";
/// With a Redis a node shows all that it can, also with one that is not there.
const LEASES: &str = "[quota]\nstore = \"redis\"\n[quota.redis]\nurl = \"unix:///no/redis.sock\"\n";

/// The metric of a series' name.
fn metric_of(name: &str) -> Option<&'static Metric> {
    TABLE.iter().find(|metric| match metric.kind {
        Kind::Histogram => ["", "_bucket", "_sum", "_count"]
            .iter()
            .any(|part| name.strip_suffix(part) == Some(metric.name)),
        _ => name == metric.name,
    })
}

/// The values of each label, by metric, as the document has them; none where any name will do.
fn documented_values(text: &str) -> BTreeMap<(String, String), Vec<String>> {
    let mut everywhere = BTreeMap::new();
    for row in rows(section(text, "Metrics")).filter(|row| row.len() == 3) {
        for label in code_words(&row[0]) {
            everywhere.insert(label, code_words(&row[1]));
        }
    }
    let mut values = BTreeMap::new();
    for row in metric_rows(text) {
        let name = code_words(&row[0]).remove(0);
        for (label, own) in labelled_values(&row[2]) {
            let all = if own.is_empty() { everywhere.get(&label).cloned() } else { Some(own) };
            let all = all.unwrap_or_else(|| panic!("the values of {label} of {name}"));
            values.insert((name.clone(), label), all);
        }
    }
    values
}

fn metric_rows(text: &str) -> impl Iterator<Item = Vec<String>> {
    rows(section(text, "Metrics")).filter(|row| row.len() == 6)
}

#[test]
fn every_metric_is_in_the_document_with_its_type_and_its_labels_and_no_other() {
    let text = read(OPERATIONS);
    let documented: Vec<(String, String, Vec<String>)> = metric_rows(&text)
        .map(|row| {
            let labels = labelled_values(&row[2]).into_iter().map(|(label, _)| label);
            assert!(row[3..].iter().all(|cell| !cell.is_empty()), "{row:?}");
            (code_words(&row[0]).remove(0), row[1].clone(), labels.collect())
        })
        .collect();
    let of_table = |metric: &Metric| {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let labels = metric.labels.iter().map(|label| (*label).to_owned());
        (metric.name.to_owned(), kind.to_owned(), labels.collect())
    };
    let documented_once: BTreeSet<_> = documented.iter().cloned().collect();
    assert_eq!(documented.len(), documented_once.len(), "a metric stands there twice");
    assert_eq!(documented_once, TABLE.iter().map(of_table).collect());
}

#[test]
fn every_value_of_a_label_is_in_the_document_and_no_other() {
    let house = Plan::limits(&[LEASES.to_owned(), limit("bin", "bin", 5)]).start();
    let (_, page) = house.proxy.page("/metrics");
    let mut seen: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for line in page.lines().filter(|line| line.starts_with("tollgate_")) {
        let Some((name, labels)) = line.split_once('{') else { continue };
        let name = metric_of(name).unwrap().name;
        for pair in labels.split_once('}').unwrap().0.split(',') {
            let (label, value) = pair.split_once('=').unwrap();
            let values = seen.entry((name.to_owned(), label.to_owned())).or_default();
            values.insert(value.trim_matches('"').to_owned());
        }
    }
    let mut compared = 0;
    for (place, values) in documented_values(&read(OPERATIONS)) {
        if !values.is_empty() {
            assert_eq!(Some(&values.into_iter().collect()), seen.get(&place), "{place:?}");
            compared += 1;
        }
    }
    assert!(compared > 30, "only {compared} labels were compared");
}

/// With its labels and their values, where a selector names some.
#[test]
fn every_metric_that_is_named_anywhere_exists() {
    let values = documented_values(&read(OPERATIONS));
    let mut named = 0;
    for (path, text) in documents() {
        for (at, _) in text.match_indices("tollgate_") {
            let rest = &text[at..];
            let end = rest.find(|c: char| c != '_' && !c.is_ascii_lowercase());
            let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
            let metric = metric_of(name).unwrap_or_else(|| panic!("{path}: there is no {name}"));
            named += 1;
            let selector = behind.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            for pair in selector.map_or("", |(pairs, _)| pairs).split_terminator(',') {
                let (label, value) = pair.split_once('=').expect(pair);
                let le = label == "le" && name.ends_with("_bucket");
                assert!(le || metric.labels.contains(&label), "{path}: {name} has no {label}");
                let known = values.get(&(metric.name.to_owned(), label.to_owned()));
                let known = known.filter(|known| !known.is_empty());
                for value in value.trim_matches(['~', '"', '\'']).split('|') {
                    let exists = known.is_none_or(|known| known.iter().any(|one| one == value));
                    assert!(exists, "{path}: {label} of {name} is never {value:?}");
                }
            }
        }
    }
    assert!(named > 100, "only {named} were found");
}

#[test]
fn every_alert_names_the_runbook_that_names_it() {
    let (operations, alerts) = (read(OPERATIONS), read(ALERTS));
    let labels: BTreeSet<&str> = TABLE.iter().flat_map(|metric| metric.labels).copied().collect();
    let mut names = BTreeSet::new();
    for rule in alerts.split("- alert: ").skip(1) {
        let name = rule.lines().next().unwrap();
        names.insert(name.to_owned());
        let runbook = rule.split_once("runbook: docs/operations.md#").expect(name).1;
        let runbook = section(&operations, runbook.lines().next().unwrap());
        assert!(runbook.contains(&format!("`{name}`")), "{name} is not in its runbook");
        assert!(rule.contains("severity: ") && rule.contains("summary: "), "{name}");
        for kept in rule.split("by (").skip(1) {
            for label in kept.split_once(')').unwrap().0.split(", ") {
                let known = labels.contains(label) || ["instance", "le"].contains(&label);
                assert!(known, "{name}: there is no label {label}");
            }
        }
    }
    let mentioned: BTreeSet<String> =
        code_words(&operations).into_iter().filter(|word| word.starts_with("Tollgate")).collect();
    assert_eq!(mentioned, names);
    let severities = ["page", "ticket", "info"];
    let used = alerts.lines().filter_map(|line| line.trim().strip_prefix("labels: {severity: "));
    assert_eq!(used.clone().count(), names.len());
    assert!(used.into_iter().all(|word| severities.contains(&word.trim_end_matches('}'))));
}

#[test]
fn every_log_line_is_in_the_document_under_its_level_and_no_other() {
    let text = read(OPERATIONS);
    let levels =
        [("error", "Errors: somebody"), ("warn", "Warnings: look"), ("info", "Information:")];
    let mut lines = 0;
    for (level, heading) in levels {
        let documented = code_words(section(&text, heading));
        for line in log_lines(level) {
            assert!(documented.contains(&line), "{level} {line:?} is not under {heading:?}");
            lines += 1;
        }
    }
    assert!(lines > 45, "only {lines} lines were found");

    let sources: String = sources().into_iter().map(|(_, source)| source).collect();
    for (_, heading) in &levels[..2] {
        for row in rows(section(&text, heading)) {
            for line in code_words(&row[0]) {
                assert!(sources.contains(&format!("\"{line}")), "nothing writes {line:?}");
            }
        }
    }
}

#[test]
fn every_page_is_in_the_document_with_all_that_it_says() {
    let text = read(OPERATIONS);
    let pages = section(&text, "The admin pages");
    let mut house = Plan::limits(&[LEASES.to_owned(), limit("merchant", "merchant", 1)]).start();
    let mut terminal = house.terminal();
    let sale = |stan| Message::sale("4111111111111111", stan);
    terminal.send(&sale(1).encode());
    house.at_host.receive();
    for stan in 2..6 {
        terminal.send(&sale(stan).encode());
        terminal.receive();
    }
    let node = wait_for("a key that was refused", || {
        let (_, node) = house.proxy.page("/status");
        node.contains("share_at_most").then_some(node)
    });

    let mut bucket = None;
    let paths: Vec<String> = rows(pages)
        .flat_map(|row| code_words(&row[0]))
        .filter(|word| word.starts_with('/'))
        .collect();
    assert_eq!(paths.len(), 5, "{paths:?}");
    for path in &paths {
        let (found, page) = house.proxy.page(path);
        assert!(found, "{path}: {page}");
        bucket = path.contains('?').then_some(page).or(bucket);
    }
    let mut keys = BTreeSet::new();
    gather_keys(&serde_json::from_str(&node).unwrap(), &mut keys);
    gather_keys(&serde_json::from_str(&bucket.unwrap()).unwrap(), &mut keys);
    let documented: BTreeSet<String> = rows(pages)
        .flat_map(|row| code_words(&row[0]))
        .filter(|word| !word.starts_with('/'))
        .collect();
    assert_eq!(documented, keys);
    for holder in Holder::ALL {
        assert!(pages.contains(&format!("`{}`:", holder.name())), "{}", holder.name());
    }
}

fn gather_keys(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                keys.insert(key.clone());
                gather_keys(value, keys);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| gather_keys(value, keys)),
        _ => {}
    }
}

#[test]
fn every_exit_code_is_in_the_document_and_means_what_it_says() {
    let documented: Vec<(String, Vec<String>)> = rows(section(&read(OPERATIONS), "Exit codes"))
        .map(|row| (code_words(&row[0]).remove(0), code_words(&row[1])))
        .collect();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let config = Plan::default().config(address);
    let link = "name = \"visa\"\n            listen = \"127.0.0.1:0\"";
    assert!(config.contains(link));
    let on_taken = config.replace(link, &format!("name = \"visa\"\nlisten = \"{address}\""));
    // A host on the link's own address would be a fault of the configuration.
    let on_taken = on_taken.replacen(&format!("connect = \"{address}\""), "connect = \"h:1\"", 1);
    let faulty = "fixtures/config/invalid/five_faults.toml";
    let demo = "config/demo.toml";
    let seen = [
        ("check", tollgate(&["check", "--config", demo])),
        ("check", tollgate(&["check", "--config", faulty])),
        ("run", tollgate(&["run", "--config", faulty])),
        ("explain", tollgate(&["explain", "--config", faulty, "--link", "visa", "00"])),
        ("explain", tollgate(&["explain", "--config", demo, "--link", "no", "00"])),
        ("decode", tollgate(&["decode", "--dialect", "iso87_ascii", "30313030"])),
        ("run", tollgate(&["run"])),
        ("run", run_to_its_end(&on_taken)),
    ];
    let codes = seen.each_ref().map(|(_, output)| output.status.code().unwrap());
    assert_eq!(codes, [0, 78, 78, 78, 64, 1, 64, 1]);
    for ((command, _), code) in seen.iter().zip(codes) {
        let fits = |(documented, of): &(String, Vec<String>)| {
            *documented == code.to_string() && (of.is_empty() || of.iter().any(|of| of == command))
        };
        assert!(documented.iter().any(fits), "{code} of {command}");
    }
    let documented: BTreeSet<_> = documented.iter().map(|(code, _)| code.as_str()).collect();
    assert_eq!(documented, BTreeSet::from(["0", "1", "64", "78"]));
}

#[test]
fn every_signal_is_in_the_document_and_does_what_it_says() {
    let text = read(OPERATIONS);
    let signals = rows(section(&text, "Signals")).flat_map(|row| code_words(&row[0]));
    assert_eq!(signals.collect::<Vec<_>>(), ["SIGTERM", "SIGINT", "SIGHUP"]);
    let mut by_term = Plan::default().start();
    by_term.proxy.signal("HUP");
    by_term.proxy.wait_for_log("SIGHUP: nothing to reload");
    assert!(by_term.proxy.page("/readyz").0);
    by_term.proxy.signal("TERM");
    assert_eq!(by_term.proxy.wait().code(), Some(0));

    let plan = Plan::default();
    let host = support::host::Host::listen(plan.host_framing);
    let config = plan.config(host.address()).replace("grace = \"100ms\"", "grace = \"60s\"");
    let mut proxy = support::proxy::Proxy::start(&config);
    let _session = proxy.connect("visa", plan.link_framing);
    proxy.wait_for_gauge("tollgate_link_sockets{link=\"visa\"}", 1.0);
    proxy.signal("INT");
    proxy.wait_for_log("serving open sessions for the grace");
    assert!(!proxy.page("/readyz").0);
    proxy.signal("TERM");
    assert_eq!(proxy.wait().code(), Some(1));
    assert_eq!(proxy.log_lines(&["stopping at once"]), 1);
}

/// Every command of the binary that a document shows has the subcommands and options that it is shown
/// with.
#[test]
fn every_command_that_is_shown_exists() {
    let mut helps: BTreeMap<Vec<String>, String> = BTreeMap::new();
    let mut shown = 0;
    for (path, text) in documents() {
        let text = text.replace("\\\n", " ");
        let lines = code_lines(&text).into_iter().chain(code_words(&text));
        for line in lines.filter(|line| line.starts_with("tollgate ")) {
            let command = line.split(['|', '#', '>']).next().unwrap();
            let mut words = command.split_whitespace().skip(1).peekable();
            let is_name = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
            let mut names: Vec<String> =
                words.next_if(is_name).map(str::to_owned).into_iter().collect();
            if names == ["simulate"] {
                names.extend(words.next_if(is_name).map(str::to_owned));
            }
            if names.is_empty() {
                continue;
            }
            let help = helps.entry(names).or_insert_with_key(|names| {
                let arguments = names.iter().map(String::as_str).chain(["--help"]);
                let output = tollgate(&arguments.collect::<Vec<_>>());
                assert!(output.status.success(), "{path}: {command}");
                String::from_utf8(output.stdout).unwrap()
            });
            for option in words.map(|word| word.trim_matches(['[', ']'])) {
                if !option.starts_with("--") {
                    continue;
                }
                let option = option.split('=').next().unwrap();
                let known = help.split_whitespace().any(|word| word.trim_matches(',') == option);
                assert!(known, "{path}: {command} has no {option}");
            }
            shown += 1;
        }
    }
    assert!(shown > 30 && helps.len() > 7, "only {shown} of {} were found", helps.len());
}

/// Links between documents, and to their headings.
#[test]
fn every_link_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut followed = 0;
    for (path, text) in documents() {
        for target in text.split("](").skip(1).map(|rest| rest.split_once(')').unwrap().0) {
            if target.starts_with("http") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let from = Path::new(&path).parent().unwrap();
            let to = if file.is_empty() { path.clone().into() } else { from.join(file) };
            assert!(root.join(&to).exists(), "{path}: there is no {target}");
            if !heading.is_empty() {
                section(&read(to.to_str().unwrap()), heading);
            }
            followed += 1;
        }
    }
    assert!(followed > 40, "only {followed} links were followed");
}
