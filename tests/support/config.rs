//! Configurations, put together from parts. Every listener takes a free port.

use std::net::SocketAddr;

/// One worker for all links, so that a link that is in trouble shares its thread with all others.
pub fn node(grace: &str) -> String {
    format!(
        r#"
        [node]
        workers = 1
        grace = "{grace}"
        [admin]
        listen = "127.0.0.1:0"
        "#
    )
}

/// A link and its host, both be16, with more keys of each.
pub fn link(name: &str, host: SocketAddr, link_keys: &str, upstream_keys: &str) -> String {
    format!(
        r#"
        [[link]]
        name = "{name}"
        listen = "127.0.0.1:0"
        dialect = "iso87_ascii"
        framing = "be16"
        upstream = "{name}-host"
        {link_keys}
        [[upstream]]
        name = "{name}-host"
        connect = "{host}"
        {upstream_keys}
        "#
    )
}
