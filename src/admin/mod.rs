//! The operators' door: /metrics, /healthz, /readyz, /status over HTTP.
//!
//! It reads what the workers publish and changes nothing. It runs on the control thread, so a
//! scrape cannot delay a message.

mod key;
mod lease;
mod status;
mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

pub use self::key::beside;
use crate::metrics::Published;

/// Whether this node wants traffic: from the moment all listeners are open until a shutdown begins.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// Says that it does, or no longer does.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Release);
    }

    /// Whether it does.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[derive(Clone)]
struct Door {
    published: Arc<Published>,
    readiness: Readiness,
}

/// Connections that operators may have open at once; one more is closed unread. A scrape is short,
/// and files are wanted for sessions.
const CONNECTIONS_MAX: usize = 64;
/// A connection may last so long, with whatever it is doing: one request is answered on it.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(10);
/// After a failed accept: what is missing (a file descriptor) is not back at once.
const RETRY: Duration = Duration::from_millis(100);

/// Serves until `ended`. What is being answered then is answered.
pub async fn serve(
    listener: TcpListener,
    published: Arc<Published>,
    readiness: Readiness,
    ended: CancellationToken,
) {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/status", get(status))
        .with_state(Door { published, readiness });
    let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            () = ended.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            sleep(RETRY).await;
            continue;
        };
        let Ok(seat) = Arc::clone(&seats).try_acquire_owned() else { continue };
        let service = TowerToHyperService::new(router.clone());
        let mut http = http1::Builder::new();
        let served = http.keep_alive(false).serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            // Whoever hangs up or dawdles is not worth a line.
            let _ = timeout(CONNECTION_TIME_MAX, served).await;
            drop(seat);
        });
    }
}

async fn metrics(State(door): State<Door>) -> impl IntoResponse {
    let page = door.published.render(door.readiness.get());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page)
}

/// The node as JSON, or one key of one limit when the query names them.
async fn status(State(door): State<Door>, RawQuery(query): RawQuery) -> impl IntoResponse {
    let Door { published, readiness } = door;
    let now = published.clock.now();
    let (status, page) = match query.as_deref() {
        None | Some("") => (StatusCode::OK, status::of_node(&published, readiness.get(), now)),
        Some(query) => match key::of_query(&published, query, now) {
            Ok(page) => (StatusCode::OK, page),
            Err(why) => (StatusCode::BAD_REQUEST, json!({ "error": why.to_string() })),
        },
    };
    (status, [(header::CONTENT_TYPE, "application/json")], format!("{page:#}\n"))
}

/// 200 when this node wants traffic, else 503; either way a line for each link, since a host that
/// is down is no reason to take the node away: it answers 91 faster than nobody does.
async fn readyz(State(door): State<Door>) -> impl IntoResponse {
    let ready = door.readiness.get();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut page =
        if ready { "ready\n" } else { "not ready: shutting down or not started\n" }.to_owned();
    for link in &door.published.links {
        let sessions = link.counters.sessions.get();
        let connections = link.counters.connections_up.get();
        page.push_str(&format!(
            "link {}: {sessions} sessions, upstream {}: {connections} connections\n",
            link.name, link.upstream
        ));
    }
    (status, page)
}
