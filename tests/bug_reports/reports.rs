//! The reports as they stand in the fixture, and that every one of them is played.

use std::path::Path;
use std::sync::LazyLock;

use crate::support::framing::Framing;
use crate::support::header::Header;

/// Reports of the fixture, in its order.
const IDS: [&str; 74] = [
    "BR001", "BR003", "BR005", "BR008", "BR010", "BR012", "BR014", "BR016", "BR018", "BR021",
    "BR023", "BR025", "BR027", "BR029", "BR031", "BR033", "BR035", "BR038", "BR040", "BR042",
    "BR044", "BR046", "BR049", "BR051", "BR053", "BR055", "BR057", "BR059", "BR061", "BR063",
    "BR064", "BR067", "BR069", "BR071", "BR072", "BR075", "BR077", "BR079", "BR080", "BR082",
    "BR084", "BR086", "BR087", "BR089", "BR090", "BR092", "BR094", "BR096", "BR098", "BR100",
    "BR102", "BR104", "BR107", "BR109", "BR111", "BR113", "BR115", "BR117", "BR118", "BR120",
    "BR122", "BR124", "BR126", "BR128", "BR130", "BR131", "BR133", "BR135", "BR137", "BR139",
    "BR141", "BR143", "BR145", "BR147",
];

/// How many of them wait, and for what. Who builds it takes its number away, and plays them.
const WAITING: [(&str, usize); 2] = [("replay", 2), ("reload", 3)];

pub static REPORTS: LazyLock<Reports> =
    LazyLock::new(|| Reports::read(include_str!("../../fixtures/bug_reports/reports.toml")));

pub struct Reports {
    all: Vec<Report>,
    good: Vec<Good>,
}

pub struct Report {
    pub id: String,
    pub cases: Vec<Case>,
    /// Tests elsewhere: `file: function`.
    played_by: Vec<String>,
    /// Benches: `file: function`.
    measured_by: Vec<String>,
    /// What has to be there before it can be played.
    waits_for: Option<String>,
}

/// A message of a dialect that has no fault, and its answer; both without header.
pub struct Good {
    dialect: String,
    request: Vec<u8>,
    answer: Vec<u8>,
    stan: Vec<u8>,
}

impl Good {
    /// The same under another STAN, so that none is the repeat of another.
    #[track_caller]
    pub fn numbered(&self, number: u8) -> (Vec<u8>, Vec<u8>) {
        assert!(number < 9, "one digit of the STAN counts");
        let with_number = |message: &[u8]| {
            let mut places = message.windows(self.stan.len()).enumerate();
            let (at, _) = places.find(|(_, bytes)| *bytes == self.stan).expect("its STAN");
            let mut message = message.to_vec();
            message[at + self.stan.len() - 1] += number;
            message
        };
        (with_number(&self.request), with_number(&self.answer))
    }
}

/// What becomes of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Forwarded,
    Answered,
    Closed,
    WaitsThenClosed,
}

/// Who pays for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bin {
    /// It is not shown.
    NotShown,
    NoCard,
    Of(String),
}

/// One input on one link; the comment of the fixture says what each means.
pub struct Case {
    pub what: String,
    pub dialect: String,
    pub framing: Framing,
    pub header: Header,
    pub malformed: Option<String>,
    pub local_answers: Option<String>,
    pub frame_bytes_max: Option<usize>,
    pub input: Vec<u8>,
    pub cuts: Vec<usize>,
    pub outcome: Outcome,
    pub fault: Option<(u8, String)>,
    pub cause: Option<String>,
    pub says: Option<String>,
    pub bin: Bin,
    pub merchant: Option<String>,
    pub answer: Vec<Vec<u8>>,
    pub host_answer: Vec<Vec<u8>>,
    pub again: Vec<Vec<u8>>,
    pub refused: Vec<Vec<u8>>,
}

impl Case {
    /// The whole frames of the input.
    pub fn frames(&self) -> Vec<Vec<u8>> {
        frames(self.framing, &self.input).0
    }

    pub fn is_forwarded(&self) -> bool {
        self.outcome == Outcome::Forwarded
    }

    pub fn is_closed(&self) -> bool {
        !matches!(self.outcome, Outcome::Forwarded | Outcome::Answered)
    }
}

/// Bytes as frames, and what is left over.
#[track_caller]
fn frames(framing: Framing, mut bytes: &[u8]) -> (Vec<Vec<u8>>, usize) {
    let mut frames = Vec::new();
    while let Some((frame, taken)) = framing.unwrap(bytes) {
        assert_eq!(framing.wrap(&frame), bytes[..taken], "it is written in one way only");
        frames.push(frame);
        bytes = &bytes[taken..];
    }
    (frames, bytes.len())
}

impl Reports {
    fn read(text: &str) -> Self {
        let mut root = Keys(text.parse().unwrap());
        let all = root.tables("report").into_iter().map(report).collect();
        let good = root.tables("good").into_iter().map(|mut keys| {
            let good = Good {
                dialect: keys.text("dialect"),
                request: keys.bytes("request"),
                answer: keys.bytes("answer"),
                stan: keys.bytes("stan"),
            };
            keys.finish();
            good
        });
        let this = Self { all, good: good.collect() };
        root.finish();
        this
    }

    #[track_caller]
    pub fn report(&self, id: &str) -> &Report {
        self.all.iter().find(|report| report.id == id).unwrap_or_else(|| panic!("no report {id}"))
    }

    #[track_caller]
    pub fn good(&self, dialect: &str) -> &Good {
        self.good.iter().find(|good| good.dialect == dialect).unwrap_or_else(|| panic!("{dialect}"))
    }
}

fn report(mut keys: Keys) -> Report {
    let report = Report {
        id: keys.text("id"),
        cases: keys.tables("case").into_iter().map(case).collect(),
        played_by: keys.texts("played_by"),
        measured_by: keys.texts("measured_by"),
        waits_for: keys.may_text("waits_for"),
    };
    for said in ["kind", "one_line", "link"] {
        assert!(!keys.text(said).is_empty(), "{} has no {said}", report.id);
    }
    keys.finish();
    report
}

fn case(mut keys: Keys) -> Case {
    let framing = Framing::from_name(&keys.text("framing"));
    let whole = |bytes: Option<Vec<u8>>| {
        let (frames, left_over) = frames(framing, &bytes.unwrap_or_default());
        assert_eq!(left_over, 0, "whole frames");
        frames
    };
    let case = Case {
        what: keys.text("what"),
        dialect: keys.text("dialect"),
        framing,
        header: Header::from_name(&keys.may_text("header").unwrap_or("none".to_owned())),
        malformed: keys.may_text("malformed"),
        local_answers: keys.may_text("local_answers"),
        frame_bytes_max: keys.take("frame_bytes_max").map(|value| number(&value)),
        input: keys.bytes("input"),
        cuts: keys.numbers("cuts"),
        outcome: match keys.text("outcome").as_str() {
            "forwarded" => Outcome::Forwarded,
            "answered" => Outcome::Answered,
            "closed" => Outcome::Closed,
            "waits then closed" => Outcome::WaitsThenClosed,
            other => panic!("{other} is no outcome"),
        },
        fault: keys.take("fault").map(|fault| {
            let field = u8::try_from(number(&fault["field"])).unwrap();
            (field, fault["kind"].as_str().unwrap().to_owned())
        }),
        cause: keys.may_text("cause"),
        says: keys.may_text("says"),
        bin: match keys.may_text("bin") {
            None => Bin::NotShown,
            Some(none) if none == "none" => Bin::NoCard,
            Some(bin) => Bin::Of(bin),
        },
        merchant: keys.may_text("merchant"),
        answer: whole(keys.may_bytes("answer")),
        host_answer: whole(keys.may_bytes("host_answer")),
        again: whole(keys.may_bytes("again")),
        refused: whole(keys.may_bytes("refused")),
    };
    keys.finish();
    assert_eq!(case.is_closed(), case.cause.is_some(), "{}", case.what);
    assert_eq!(case.outcome == Outcome::Answered, !case.answer.is_empty(), "{}", case.what);
    assert_eq!(case.bin != Bin::NotShown, !case.again.is_empty(), "{}", case.what);
    assert_eq!(matches!(case.bin, Bin::Of(_)), !case.refused.is_empty(), "{}", case.what);
    case
}

/// A table of which every key has to be taken.
struct Keys(toml::Table);

impl Keys {
    fn take(&mut self, key: &str) -> Option<toml::Value> {
        self.0.remove(key)
    }

    fn may_text(&mut self, key: &str) -> Option<String> {
        Some(self.take(key)?.as_str().expect("a text").to_owned())
    }

    #[track_caller]
    fn text(&mut self, key: &str) -> String {
        self.may_text(key).unwrap_or_else(|| panic!("no {key} in {:?}", self.0))
    }

    fn may_bytes(&mut self, key: &str) -> Option<Vec<u8>> {
        let text = self.may_text(key)?;
        assert!(text.len().is_multiple_of(2), "half a byte in {key}");
        let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        Some(pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect())
    }

    #[track_caller]
    fn bytes(&mut self, key: &str) -> Vec<u8> {
        self.may_bytes(key).unwrap_or_else(|| panic!("no {key} in {:?}", self.0))
    }

    fn list(&mut self, key: &str) -> Vec<toml::Value> {
        self.take(key).map_or(Vec::new(), |list| list.as_array().expect("a list").clone())
    }

    fn numbers(&mut self, key: &str) -> Vec<usize> {
        self.list(key).iter().map(number).collect()
    }

    fn texts(&mut self, key: &str) -> Vec<String> {
        self.list(key).iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    }

    fn tables(&mut self, key: &str) -> Vec<Self> {
        self.list(key).into_iter().map(|table| Self(table.as_table().unwrap().clone())).collect()
    }

    #[track_caller]
    fn finish(self) {
        assert!(self.0.is_empty(), "unknown keys: {:?}", self.0);
    }
}

fn number(value: &toml::Value) -> usize {
    value.as_integer().unwrap().try_into().unwrap()
}

#[test]
fn every_report_is_there_and_is_played_or_waits() {
    let ids: Vec<&str> = REPORTS.all.iter().map(|report| report.id.as_str()).collect();
    assert_eq!(ids, IDS);
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| {
        std::fs::read_to_string(here.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    };
    let players = ["content", "lengths"].map(|file| read(&format!("tests/bug_reports/{file}.rs")));
    for report in &REPORTS.all {
        let has_cases = !report.cases.is_empty();
        let played = players.iter().any(|player| player.contains(&format!("\"{}\"", report.id)));
        assert_eq!(played, has_cases, "{}", report.id);
        let ways = [has_cases, !report.played_by.is_empty(), report.waits_for.is_some()];
        assert_eq!(ways.iter().filter(|way| **way).count(), 1, "{}: {ways:?}", report.id);
        assert!(report.measured_by.is_empty() || !report.played_by.is_empty(), "{}", report.id);
        for test in &report.played_by {
            let (file, name) = test.split_once(": ").unwrap();
            // A property stands in a macro.
            let forms = [format!("#[test]\nfn {name}()"), format!("#[test]\n    fn {name}(")];
            let text = read(file);
            assert!(forms.iter().any(|form| text.contains(form)), "{test}");
        }
        for bench in &report.measured_by {
            let (file, name) = bench.split_once(": ").unwrap();
            assert!(read(file).contains(&format!("\nfn {name}(bencher: Bencher")), "{bench}");
        }
    }
}

#[test]
fn what_waits_is_counted() {
    let waiting = |what| {
        REPORTS.all.iter().filter(|report| report.waits_for.as_deref() == Some(what)).count()
    };
    assert_eq!(WAITING.map(|(what, _)| (what, waiting(what))), WAITING);
    let all = REPORTS.all.iter().filter(|report| report.waits_for.is_some()).count();
    assert_eq!(all, WAITING.iter().map(|(_, count)| count).sum::<usize>());
}
