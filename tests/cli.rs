//! The command line: exit codes, and that what is printed goes where a script looks for it. And the
//! configurations that the documents show: an operator copies them, so they have to be sound.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test states its expectations"
)]

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tollgate::config::{self, Config};
use tollgate::iso8583::{Dialect, LengthEncoding};

const USAGE: i32 = 64;
const CONFIGURATION: i32 = 78;
const FAILED: i32 = 1;

/// What a run of the binary said.
struct Said {
    code: i32,
    out: String,
    err: String,
}

/// Runs the real binary from the root of the package until it ends.
#[track_caller]
fn tollgate(arguments: &[&str]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Said {
        code: output.status.code().expect("it ended by itself"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The files of a folder with this ending.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect(folder);
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == ending));
    files.sort();
    files
}

/// A file of this test's own.
fn write(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("cli-{}-{name}.toml", std::process::id()));
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn check_describes_every_link_of_a_sound_configuration() {
    let shipped = files("config", "toml");
    assert!(shipped.len() >= 2, "{shipped:?}");
    for path in shipped {
        let config = Config::load(&path).unwrap();
        let said = tollgate(&["check", "--config", path.to_str().unwrap()]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", path.display());
        for link in &config.links {
            let line =
                said.out.lines().find(|line| line.starts_with(&format!("link {}:", link.name)));
            let line = line.unwrap_or_else(|| panic!("no link {} in:\n{}", link.name, said.out));
            for address in &link.listener.listen {
                assert!(line.contains(&address.to_string()), "{line}");
            }
            assert!(line.contains(&link.upstream.connect[0]), "{line}");
            assert!(line.contains(link.session.framing.name()), "{line}");
        }
        let last = said.out.lines().last().unwrap();
        let counts = format!("{} links, {} limits", config.links.len(), config.limits.len());
        assert!(last.contains("sound") && last.contains(&counts), "{last}");
    }
}

/// The words of one field's line; a name may have several.
#[track_caller]
fn field_line<'a>(shown: &'a str, de: &str) -> &'a str {
    let line = shown.lines().find(|line| line.split_whitespace().next() == Some(de));
    line.unwrap_or_else(|| panic!("no field {de} in:\n{shown}"))
}

#[test]
fn check_shows_every_preset_as_an_aligned_table_of_the_words_of_the_configuration() {
    for name in Dialect::PRESETS {
        let said = tollgate(&["check", "--dialect", name]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{name}");
        let dialect = Dialect::preset(name).unwrap();
        let lines: Vec<&str> = said.out.lines().collect();
        assert_eq!(lines[0], format!("dialect {name}"));
        assert!(lines[1].starts_with(&format!("mti: {}, ", dialect.mti().word())), "{}", lines[1]);
        let encoding = dialect.bitmap().encoding.word();
        assert!(lines[2].starts_with(&format!("bitmap: {encoding}, ")), "{}", lines[2]);
        let heads = [
            "de",
            "name",
            "content",
            "length",
            "length_encoding",
            "encoding",
            "max",
            "unit",
            "pad",
        ];
        assert_eq!(lines[4].split_whitespace().collect::<Vec<_>>(), heads);
        let columns: Vec<usize> =
            heads.iter().map(|head| lines[4].find(&format!("{head:<3}")).unwrap_or(0)).collect();
        assert!(columns.is_sorted(), "{}", lines[4]);
        let fields: Vec<u8> = (2..=192).filter(|de| dialect.field(*de).is_some()).collect();
        assert_eq!(lines.len(), 5 + fields.len(), "{name}");
        for (line, de) in lines[5..].iter().zip(fields) {
            let spec = dialect.field(de).unwrap();
            let length_encoding = spec.length.encoding().map_or("none", LengthEncoding::word);
            let words = [
                spec.content.word(),
                spec.length.kind().word(),
                length_encoding,
                spec.data.word(),
                &spec.max.to_string(),
                spec.unit.word(),
                spec.padding.word(),
            ];
            let (head, tail) = line.split_at(columns[2]);
            assert_eq!(head.split_whitespace().next(), Some(de.to_string().as_str()), "{line}");
            assert!(head.contains(dialect.field_name(de).unwrap()), "{line}");
            assert_eq!(tail.split_whitespace().collect::<Vec<_>>(), words, "{name}: {line}");
        }
    }
}

#[test]
fn check_shows_a_dialect_of_the_configuration_and_its_third_bitmap() {
    let config = write(
        "dialect",
        "[[link]]\nname = \"a\"\nlisten = \"127.0.0.1:0\"\ndialect = \"own\"\nframing = \"be16\"\n\
         [[upstream]]\nname = \"a\"\nconnect = \"127.0.0.1:9\"\n\
         [dialect.own]\nbase = \"iso87_bcd\"\nmti = \"ebcdic\"\n\
         [dialect.own.bitmap]\nalways = true\n\
         [dialect.own.field.65]\nlength = \"bitmap\"\n\
         [dialect.own.field.48]\nmax = 600\nname = \"loyalty\"\n\
         [dialect.own.field.3]\nundefined = true\n",
    );
    let config = config.to_str().unwrap();
    let said = tollgate(&["check", "--config", config, "--dialect", "own"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let head = "dialect own\nmti: ebcdic, four EBCDIC digits\n\
                bitmap: bin, always 16 bytes of bits, written as bytes; a third in place of field 65 \
                (bin)\n";
    assert!(said.out.starts_with(head), "{}", said.out);
    let words: Vec<_> = field_line(&said.out, "65").split_whitespace().rev().take(7).collect();
    assert_eq!(words, ["none", "bytes", "8", "bin", "none", "bitmap", "b"]);
    let words: Vec<_> = field_line(&said.out, "48").split_whitespace().collect();
    assert_eq!(words, ["48", "loyalty", "ans", "LLL", "bcd", "ascii", "600", "chars", "none"]);
    assert!(said.out.lines().all(|line| line.split_whitespace().next() != Some("3")));

    // A preset can be looked up there as well.
    let said = tollgate(&["check", "--config", config, "--dialect", "iso93_bcd"]);
    assert!((said.code, said.out.starts_with("dialect iso93_bcd\n")) == (0, true), "{}", said.out);
    for arguments in [
        &["check", "--config", config, "--dialect", "owm"] as &[&str],
        &["check", "--dialect", "own"],
    ] {
        let said = tollgate(arguments);
        assert_eq!((said.code, said.out.as_str()), (USAGE, ""), "{arguments:?}");
        // Not by its name, which may be anything that strayed into the command line.
        assert!(said.err.starts_with("there is no such dialect; "), "{}", said.err);
        assert_eq!(said.err.contains("own, iso87_ascii"), arguments.len() == 5, "{}", said.err);
        assert_eq!(said.err.contains("--config FILE"), arguments.len() == 3, "{}", said.err);
    }
    let faulty = "fixtures/config/invalid/dialect_name.toml";
    let said = tollgate(&["check", "--config", faulty, "--dialect", "iso87_ascii"]);
    assert_eq!((said.code, said.out.as_str()), (CONFIGURATION, ""));
}

#[test]
fn a_dialect_can_be_looked_at_before_there_is_a_link_for_it() {
    let config = write("alone", "[dialect.own]\nbase = \"iso87_bcd\"\n");
    let config = config.to_str().unwrap();
    let said = tollgate(&["check", "--config", config, "--dialect", "own"]);
    assert!((said.code, said.out.starts_with("dialect own\n")) == (0, true), "{}", said.err);
    let message = "080020000000000000000000 42".replace(' ', "");
    let said = tollgate(&["decode", "--config", config, "--dialect", "own", &message]);
    assert!(said.out.contains("MTI 0800"), "{}{}", said.out, said.err);
}

#[test]
fn check_says_every_fault_with_file_and_line() {
    let path = "fixtures/config/invalid/five_faults.toml";
    let said = tollgate(&["check", "--config", path]);
    assert_eq!((said.code, said.out.as_str()), (CONFIGURATION, ""));
    let faults = fs::read_to_string(root().join(path.replace(".toml", ".err"))).unwrap();
    assert_eq!(said.err.trim_end(), format!("{path}: {}", faults.trim_end()));
    let lines: Vec<_> = said.err.lines().collect();
    assert_eq!(lines.len(), 5, "{}", said.err);
    for (line, number) in lines.iter().zip([2, 4, 9, 12, 21]) {
        assert!(line.contains(&format!("line {number}: ")), "{line}");
    }
}

#[test]
fn what_cannot_be_read_is_a_fault_of_the_configuration() {
    for command in ["check", "run"] {
        for path in ["no/such/file.toml", "src"] {
            let said = tollgate(&[command, "--config", path]);
            assert_eq!((said.code, said.out.as_str()), (CONFIGURATION, ""), "{command} {path}");
            assert!(said.err.starts_with(&format!("{path}: cannot be read: ")), "{}", said.err);
            assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        }
    }
}

#[test]
fn a_command_line_that_cannot_be_understood_is_a_usage_error() {
    for arguments in [
        &["--no-such-flag"] as &[&str],
        &["run", "--no-such-flag"],
        &["check", "--config"],
        &["check"],
        &["run"],
        &["no-such-command"],
        &["demo", "--seconds", "many"],
        &[],
    ] {
        let said = tollgate(arguments);
        assert_eq!((said.code, said.out.as_str()), (USAGE, ""), "{arguments:?}");
        // Whoever mistyped is told where to look.
        assert!(said.err.contains("--help"), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn help_and_version_are_answers_and_no_errors() {
    let version = tollgate(&["--version"]);
    let expected = format!("tollgate {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!((version.code, version.out, version.err.as_str()), (0, expected, ""));
    for (arguments, words) in [
        (
            &["--help"] as &[&str],
            &["Usage: tollgate", "run", "check", "demo", "Field 39 = 91"] as &[&str],
        ),
        (&["run", "--help"], &["--config <FILE>", "SIGTERM"]),
        (&["check", "--help"], &["--config <FILE>", "--dialect <NAME>", "78"]),
    ] {
        let said = tollgate(arguments);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{arguments:?}");
        for word in words {
            assert!(said.out.contains(word), "{arguments:?}: {word} is not in:\n{}", said.out);
        }
    }
}

/// A port that is taken tells whether it was tried: a start that comes so far fails at it.
#[test]
fn run_binds_nothing_for_a_configuration_with_a_fault() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let sound = format!(
        "[admin]\nlisten = \"\"\n\
         [[link]]\nname = \"visa\"\nlisten = \"{address}\"\ndialect = \"iso87_ascii\"\n\
         framing = \"be16\"\n[[upstream]]\nname = \"host\"\nconnect = \"127.0.0.1:9\"\n"
    );

    let path = write("taken", &sound);
    let said = tollgate(&["run", "--config", path.to_str().unwrap()]);
    assert_eq!((said.code, said.out.as_str()), (FAILED, ""), "{}", said.err);
    assert!(said.err.contains(&format!("link visa: cannot listen on {address}")), "{}", said.err);

    let path = write("faulty", &format!("{sound}conections = 2\n"));
    let said = tollgate(&["run", "--config", path.to_str().unwrap()]);
    assert_eq!((said.code, said.out.as_str()), (CONFIGURATION, ""), "{}", said.err);
    let expected = format!("{}: line 11: upstream.conections: ", path.display());
    assert!(said.err.starts_with(&expected), "{}", said.err);
    assert!(said.err.contains("did you mean connections?"), "{}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
}

/// The blocks of a document that are marked as TOML, with the line on which each begins.
fn toml_blocks(document: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut open = None::<(usize, String)>;
    for (number, line) in (1..).zip(document.lines()) {
        match &mut open {
            None if line.trim() == "```toml" => open = Some((number, String::new())),
            None => {}
            Some(_) if line.trim() == "```" => blocks.extend(open.take()),
            Some((_, text)) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    assert!(open.is_none(), "a block without an end");
    blocks
}

/// A document may show a part; what goes without saying is put before it.
fn completed(part: &str) -> String {
    let mut whole = String::new();
    if !part.contains("[[link]]") {
        whole.push_str(
            "[[link]]\nname = \"a\"\nlisten = \"127.0.0.1:0\"\ndialect = \"iso87_ascii\"\n\
             framing = \"be16\"\n",
        );
    }
    let mut whole = vec![whole, part.to_owned()];
    if !part.contains("[[upstream]]") {
        whole.push("[[upstream]]\nname = \"a\"\nconnect = \"127.0.0.1:9\"\n".to_owned());
    }
    whole.join("\n")
}

fn faults_of_blocks(path: &Path, document: &str) -> (usize, Vec<String>) {
    let blocks = toml_blocks(document);
    let count = blocks.len();
    let faulty = blocks.into_iter().filter_map(|(line, block)| {
        let faults = if block.contains("[[phase]]") {
            config::parse_script(&block).err()?
        } else {
            Config::parse(&completed(&block)).err()?
        };
        Some(format!("{}, block at line {line}:\n{faults}", path.display()))
    });
    (count, faulty.collect())
}

#[test]
fn every_configuration_in_the_documents_is_sound() {
    let (mut blocks, mut faulty) = (0, Vec::new());
    for path in files("docs", "md").into_iter().chain([root().join("README.md")]) {
        let (count, faults) = faults_of_blocks(&path, &fs::read_to_string(&path).unwrap());
        blocks += count;
        faulty.extend(faults);
    }
    assert!(blocks >= 3, "the documents show {blocks} configurations");
    assert!(faulty.is_empty(), "{}", faulty.join("\n"));
}

#[test]
fn a_configuration_in_a_document_that_is_not_sound_is_found() {
    let document = "Text.\n```toml\n[[limit]]\nname = \"a\"\nper = []\nrate = 0\nmode = \"enforce\"\n```\n\
                    ```text\nnot = toml = at all\n```\n```toml\n[node]\nworkers = 2\n```\n";
    let (count, faults) = faults_of_blocks(Path::new("a.md"), document);
    assert_eq!((count, faults.len()), (2, 1), "{faults:?}");
    assert!(faults[0].starts_with("a.md, block at line 2:") && faults[0].contains("limit.rate"));
}
