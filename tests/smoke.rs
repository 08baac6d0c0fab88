//! The shortest way through the whole: one request there and back, one refused.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test states its expectations")]

mod support;

use support::host::Host;
use support::message::Message;
use support::peer::Framing;
use support::proxy::Proxy;

const CARD: &str = "4111111111111111";

#[test]
fn a_request_is_answered_by_the_host_and_the_next_one_over_the_limit_by_tollgate() {
    let host = Host::listen(Framing::Be16);
    let proxy = Proxy::start(&format!(
        r#"
        [node]
        grace = "100ms"
        [admin]
        listen = "127.0.0.1:0"
        [[link]]
        name = "visa"
        listen = "127.0.0.1:0"
        dialect = "iso87_ascii"
        framing = "be16"
        [[upstream]]
        name = "host"
        connect = "{}"
        connections = 1
        [[limit]]
        name = "bin"
        per = ["bin"]
        rate = 0.001
        burst = 1
        mode = "enforce"
        "#,
        host.address()
    ));
    let mut at_host = host.accept();
    proxy.wait_for_metric("tollgate_upstream_up{link=\"visa\",upstream=\"host\"}", 1.0);
    let mut terminal = proxy.connect("visa", Framing::Be16);

    let sale = Message::sale(CARD, 1);
    terminal.send(&sale.encode());
    assert_eq!(at_host.receive(), sale.encode());
    let approval = sale.answer("00").encode();
    at_host.send(&approval);
    assert_eq!(terminal.receive(), approval);

    terminal.send(&Message::sale(CARD, 2).encode());
    let refusal = Message::decode(&terminal.receive());
    assert_eq!(refusal.get(0), Some("0110"));
    assert_eq!(refusal.get(39), Some("91"));
    assert_eq!(refusal.get(11), Some("000002"));
    at_host.expect_nothing_yet();
    assert!(proxy.page("/readyz").0);
}
