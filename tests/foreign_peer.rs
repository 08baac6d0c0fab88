//! A foreign peer on both sides: the unmodified client of `iso8583_rs` → tollgate → its unmodified
//! server. Framing, fields and answers are somebody else's reading of the standard, so that an error
//! that tollgate and its own tests share would show here.
//!
//! What the foreign code prints goes to the captured output of the test; all cards are test numbers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test states its expectations"
)]

mod support;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use iso8583_rs::iso8583::IsoError;
use iso8583_rs::iso8583::client::ISOTcpClient;
use iso8583_rs::iso8583::iso_spec::{self, IsoMsg, Spec};
use iso8583_rs::iso8583::mli::MLIType;
use iso8583_rs::iso8583::server::{ISOServer, MsgProcessor};

use support::host::Host;
use support::peer::Framing;
use support::proxy::Proxy;
use support::{PATIENCE, wait_for};

const VISA: &str = "4111111111111111";
const MASTERCARD: &str = "5555555555554444";

/// What the foreign host copies from a request to its answer.
const HOST_ECHOES: [u32; 9] = [2, 3, 4, 7, 11, 32, 37, 41, 42];

/// What tollgate copies, of the fields that the peer's specification has.
const TOLLGATE_ECHOES: [u32; 13] = [2, 3, 4, 7, 11, 12, 13, 25, 32, 37, 41, 42, 49];

fn spec() -> &'static Spec {
    iso_spec::spec("")
}

fn mli(framing: Framing) -> MLIType {
    match framing {
        Framing::Be16 => MLIType::MLI2E,
        Framing::Be16Incl => MLIType::MLI2I,
        Framing::Be32 => MLIType::MLI4E,
        Framing::Be32Incl => MLIType::MLI4I,
        other => panic!("iso8583_rs has no {}", other.name()),
    }
}

fn message(mti: &str, fields: &[(u32, &str)]) -> IsoMsg {
    let segment = spec().get_message_from_header(mti).expect("a message type of the peer");
    let mut message = iso_spec::new_msg(spec(), segment);
    message.set("message_type", mti).unwrap();
    for (de, value) in fields {
        message.set_on(*de, value).unwrap();
    }
    message
}

/// A purchase with a PIN block and chip data.
fn sale(mti: &str, pan: &str, stan: u32) -> IsoMsg {
    message(
        mti,
        &[
            (2, pan),
            (3, "000000"),
            (4, "000000012345"),
            (7, "0604123456"),
            (11, &format!("{stan:06}")),
            (12, "123456"),
            (13, "0604"),
            (22, "051"),
            (25, "00"),
            (32, "123456"),
            (35, &format!("{pan}=29122011234567890")),
            (37, &format!("{:012}", 600_000 + stan)),
            (41, "TERMID01"),
            (42, "MERCHANT0000001"),
            (43, "COFFEE AND CAKE          TOWN         GB"),
            (49, "826"),
            (52, "0011223344556677"),
            (55, "9f02060000000123455f340102820239008407a0000000031010"),
        ],
    )
}

/// A field as the foreign parser reads it; `None` when it is absent.
fn value(message: &IsoMsg, de: u32) -> Option<String> {
    message.bmp.is_on(de).then(|| message.bmp_child_value(de).unwrap())
}

fn mti(message: &IsoMsg) -> String {
    message.get_field_value(&"message_type".to_owned()).unwrap()
}

/// Fails unless `answer` is one to `request`, with this code and equal fields.
#[track_caller]
fn assert_answers(
    request: &IsoMsg,
    answer: &IsoMsg,
    mti_expected: &str,
    code: &str,
    equal: &[u32],
) {
    assert_eq!(mti(answer), mti_expected);
    assert_eq!(value(answer, 39).as_deref(), Some(code), "field 39");
    for de in equal {
        assert_eq!(value(answer, *de), value(request, *de), "field {de}");
    }
}

/// Approves everything, and keeps what came.
struct Approve {
    received: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl MsgProcessor for Approve {
    fn process(&self, _: &ISOServer, bytes: &mut Vec<u8>) -> Result<(Vec<u8>, IsoMsg), IsoError> {
        self.received.lock().unwrap().push(bytes.clone());
        let answer = catch_unwind(AssertUnwindSafe(|| {
            let request = spec().parse(bytes).unwrap();
            let mut answer = message(&answer_type(&mti(&request)), &[(39, "00")]);
            let carried = HOST_ECHOES.into_iter().filter(|de| request.bmp.is_on(*de));
            answer.echo_from(&request, &carried.collect::<Vec<_>>()).unwrap();
            (answer.assemble().unwrap(), answer)
        }));
        answer.map_err(|_| IsoError { msg: "the foreign codec panicked".to_owned() })
    }
}

/// 0100 to 0110, 0420 to 0430.
fn answer_type(request: &str) -> String {
    let number: u32 = request.parse().unwrap();
    format!("{:04}", number + 10)
}

/// The foreign server. It ends with the process: there is no other way to stop it.
struct ForeignHost {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl ForeignHost {
    /// It takes a fixed port alone and panics in a thread of its own when somebody else has it, so
    /// a port is looked for that is free and still was when the server came to it.
    #[track_caller]
    fn start(framing: Framing) -> Self {
        let received = Arc::<Mutex<Vec<_>>>::default();
        for _ in 0..16 {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = free.local_addr().unwrap();
            drop(free);
            let approve = Box::new(Approve { received: Arc::clone(&received) });
            let server = ISOServer::new(address.to_string(), spec(), mli(framing), approve);
            let server = server.ok().expect("an address").start();
            let up = wait_for("the foreign host listens or fails", || {
                let failed = server.is_finished().then_some(false);
                failed.or_else(|| TcpStream::connect(address).ok().map(|_| true))
            });
            if up && !server.is_finished() {
                return Self { address, received };
            }
        }
        panic!("no port for the foreign host");
    }

    fn received(&self) -> Vec<Vec<u8>> {
        self.received.lock().unwrap().clone()
    }
}

/// The foreign client in a thread of its own: it blocks for ever when no answer comes.
struct ForeignClient {
    requests: SyncSender<IsoMsg>,
    answers: Receiver<Result<IsoMsg, String>>,
}

impl ForeignClient {
    fn new(address: SocketAddr, framing: Framing) -> Self {
        let (requests, to_send) = sync_channel::<IsoMsg>(1);
        let (to_hand_out, answers) = sync_channel(1);
        std::thread::spawn(move || {
            let mut client = ISOTcpClient::new(&address.to_string(), spec(), mli(framing));
            for request in to_send {
                let answer = catch_unwind(AssertUnwindSafe(|| client.send(&request)));
                let answer = match answer {
                    Ok(answer) => answer.map_err(|error| error.msg),
                    Err(_) => Err("the foreign client panicked".to_owned()),
                };
                if to_hand_out.send(answer).is_err() {
                    return;
                }
            }
        });
        Self { requests, answers }
    }

    /// What the foreign parser makes of the answer to `request`.
    #[track_caller]
    fn ask(&self, request: &IsoMsg) -> IsoMsg {
        // A message cannot be cloned, but taken apart and put together.
        self.requests.send(spec().parse(&mut request.assemble().unwrap()).unwrap()).unwrap();
        self.answers.recv_timeout(PATIENCE).expect("an answer").unwrap()
    }
}

/// A proxy whose only limit lets `burst` messages of a BIN pass, and hardly another one.
#[track_caller]
fn proxy(host: SocketAddr, link: Framing, upstream: Framing, burst: u32) -> Proxy {
    let proxy = Proxy::start(&format!(
        r#"
        [node]
        grace = "100ms"
        [admin]
        listen = "127.0.0.1:0"
        [[link]]
        name = "card"
        listen = "127.0.0.1:0"
        dialect = "iso87_ascii_binbitmap"
        framing = "{}"
        [[upstream]]
        name = "host"
        connect = "{host}"
        framing = "{}"
        [[limit]]
        name = "bin"
        per = ["bin"]
        rate = 0.001
        burst = {burst}
        mode = "enforce"
        "#,
        link.name(),
        upstream.name()
    ));
    proxy.wait_for_metric("tollgate_upstream_up{link=\"card\",upstream=\"host\"}", 1.0);
    proxy
}

/// Two requests reach the host, the third is refused, and what may not be refused still goes through.
#[track_caller]
fn converse(link: Framing, upstream: Framing) {
    let host = ForeignHost::start(upstream);
    let proxy = proxy(host.address, link, upstream, 2);
    let client = ForeignClient::new(proxy.address("card"), link);
    let mut forwarded = Vec::new();

    for (request, expected) in [(sale("0100", VISA, 1), "0110"), (sale("0200", VISA, 2), "0210")] {
        let answer = client.ask(&request);
        assert_answers(&request, &answer, expected, "00", &HOST_ECHOES);
        forwarded.push(request.assemble().unwrap());
    }
    for (request, expected) in [(sale("0100", VISA, 3), "0110"), (sale("0200", VISA, 4), "0210")] {
        let answer = client.ask(&request);
        assert_answers(&request, &answer, expected, "91", &TOLLGATE_ECHOES);
        for de in [22, 35, 43, 52, 55] {
            assert_eq!(value(&answer, de), None, "field {de} is nothing to send back");
        }
    }
    let other_bin = sale("0100", MASTERCARD, 5);
    assert_answers(&other_bin, &client.ask(&other_bin), "0110", "00", &HOST_ECHOES);
    forwarded.push(other_bin.assemble().unwrap());

    // The BIN is empty: the sale that was refused above may still be reversed, and the line tested.
    let mut reversal = sale("0420", VISA, 6);
    reversal.set_on(90, "010000000306041234560000012345600000000000").unwrap();
    assert_answers(&reversal, &client.ask(&reversal), "0430", "00", &HOST_ECHOES);
    forwarded.push(reversal.assemble().unwrap());
    let echo = message("0800", &[(7, "0604161616"), (11, "000007"), (70, "301")]);
    assert_answers(&echo, &client.ask(&echo), "0810", "00", &[7, 11]);
    forwarded.push(echo.assemble().unwrap());

    assert!(host.received() == forwarded, "the host got other bytes than the client sent");
    let refused = ["link=\"card\"", "reason=\"limit\"", "rc=\"91\""];
    assert_eq!(proxy.metric_sum("tollgate_rejects_total", &refused), 2.0);
}

#[test]
fn a_foreign_client_and_a_foreign_host_talk_through_exclusive_lengths() {
    converse(Framing::Be16, Framing::Be16);
}

#[test]
fn a_foreign_client_and_a_foreign_host_talk_through_inclusive_lengths() {
    converse(Framing::Be16Incl, Framing::Be16Incl);
}

#[test]
fn a_link_with_exclusive_lengths_has_a_host_with_inclusive_ones() {
    converse(Framing::Be16, Framing::Be16Incl);
}

#[test]
fn a_link_with_inclusive_lengths_has_a_host_with_exclusive_ones() {
    converse(Framing::Be16Incl, Framing::Be16);
}

/// Fields that a request of the test below may or may not carry, with their lengths as text; the
/// longest one of those of variable length.
const OPTIONAL: [(u32, usize); 22] = [
    (3, 6),
    (4, 12),
    (7, 10),
    (12, 6),
    (13, 4),
    (14, 4),
    (18, 4),
    (22, 3),
    (25, 2),
    (37, 12),
    (38, 6),
    (41, 8),
    (42, 15),
    (43, 40),
    (49, 3),
    (70, 3),
    (90, 42),
    (95, 42),
    (32, 11),
    (48, 99),
    (54, 120),
    (102, 28),
];
const VARIABLE: [u32; 4] = [32, 48, 54, 102];

fn random_request(mti: &str, stan: u32, rng: &mut Rng) -> IsoMsg {
    let mut request = message(mti, &[(11, &format!("{stan:06}"))]);
    if rng.bool() {
        request.set_on(2, if rng.bool() { VISA } else { "378282246310005" }).unwrap();
    }
    if rng.bool() {
        request.set_on(52, "0011223344556677").unwrap();
    }
    for (de, length) in OPTIONAL {
        if rng.bool() {
            let length = if VARIABLE.contains(&de) { rng.usize(1..=length) } else { length };
            let text: String = (0..length).map(|_| char::from(rng.u8(b'0'..=b'9'))).collect();
            request.set_on(de, &text).unwrap();
        }
    }
    request
}

#[test]
fn a_foreign_codec_puts_every_refusal_together_as_tollgate_did() {
    const REQUESTS: u32 = 400;
    let host = Host::listen(Framing::Be16);
    let proxy = Proxy::start(&format!(
        r#"
        [admin]
        listen = "127.0.0.1:0"
        [[link]]
        name = "card"
        listen = "127.0.0.1:0"
        dialect = "iso87_ascii_binbitmap"
        framing = "be16"
        [[upstream]]
        name = "host"
        connect = "{}"
        [[limit]]
        name = "all"
        per = []
        rate = 0.0001
        burst = 1
        mode = "enforce"
        "#,
        host.address()
    ));
    let mut at_host = host.accept();
    proxy.wait_for_metric("tollgate_upstream_up{link=\"card\",upstream=\"host\"}", 1.0);
    let mut network = proxy.connect("card", Framing::Be16);
    let the_one_that_passes = sale("0100", VISA, 0).assemble().unwrap();
    network.send(&the_one_that_passes);
    assert!(at_host.receive() == the_one_that_passes);

    let mut rng = Rng::with_seed(91);
    let mut echoed = 0;
    for stan in 1..=REQUESTS {
        let kind = if stan % 2 == 0 { "0100" } else { "0200" };
        let request =
            if stan <= 2 { sale(kind, VISA, stan) } else { random_request(kind, stan, &mut rng) };
        network.send(&request.assemble().unwrap());
        let refusal = network.receive();
        let read = spec().parse(&mut refusal.clone()).expect("a message to the foreign codec");
        assert!(read.assemble().unwrap() == refusal, "STAN {stan}: other bytes");
        assert_answers(&request, &read, &answer_type(kind), "91", &TOLLGATE_ECHOES);
        // No more than that: message type, bitmap, Field 39, and what the request had to echo.
        let present = TOLLGATE_ECHOES.iter().filter(|de| request.bmp.is_on(**de)).count();
        assert_eq!(read.fd_map.len(), 3 + present, "STAN {stan}");
        echoed += present;
    }
    assert!(echoed > 5 * REQUESTS as usize, "only {echoed} fields were echoed");
    at_host.expect_nothing_yet();
}
