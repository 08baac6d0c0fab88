//! As much of the protocol as a relay needs: where a value ends, and which command it is.

/// Commands that run a script that may write.
pub(super) const SCRIPTS: [&str; 3] = ["EVALSHA", "EVAL", "FCALL"];
/// Commands after which a connection tells what it hears, in no order with what it is asked.
pub(super) const SUBSCRIPTIONS: [&str; 3] = ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"];

/// Keys of every call of tollgate, beside which there is one for each report.
const SHARD_KEYS: usize = 3;

/// Whether a script with these first words has a key to report.
pub(super) fn reports(words: &[String]) -> bool {
    words.get(2).and_then(|keys| keys.parse().ok()).is_some_and(|keys: usize| keys > SHARD_KEYS)
}

/// Where the first value of these bytes ends; `None` while it is not whole.
pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    let end = line_end(bytes)?;
    let number = || -> i64 {
        let text = std::str::from_utf8(&bytes[1..end - 2]).unwrap();
        text.parse().unwrap_or_else(|_| panic!("no length: {text:?}"))
    };
    let values =
        |count: i64| (0..count).try_fold(end, |at, _| Some(at + length(bytes.get(at..)?)?));
    match bytes[0] {
        b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => Some(end),
        b'$' | b'=' | b'!' => {
            let end = usize::try_from(number()).map_or(end, |length| end + length + 2);
            (bytes.len() >= end).then_some(end)
        }
        b'*' | b'~' | b'>' => values(number()),
        b'%' => values(2 * number()),
        other => panic!("a value does not begin with {:?}", char::from(other)),
    }
}

/// Whether these bytes are a command, and not something that cannot be looked into, such as TLS.
pub(super) fn is_command(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'*')
}

/// The first words of a command, in capitals: its name, and what may tell more of it.
pub(super) fn words(command: &[u8]) -> Vec<String> {
    let mut words = Vec::new();
    let mut at = line_end(command).expect("a whole command");
    while at < command.len() && words.len() < 3 {
        let end = at + length(&command[at..]).expect("a whole command");
        let start = at + line_end(&command[at..]).expect("a whole command");
        words.push(String::from_utf8_lossy(&command[start..end - 2]).to_ascii_uppercase());
        at = end;
    }
    words
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|pair| pair == b"\r\n").map(|at| at + 2)
}
