//! The one table of metrics: names, kinds, labels and what each is read for.

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts by upper bound, in seconds.
    Histogram,
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, with unit and `_total` where it has one.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its labels, in order.
    pub labels: &'static [&'static str],
    /// What an operator is to read in it.
    pub help: &'static str,
}

macro_rules! table {
    ($($constant:ident = $name:literal $kind:ident [$($label:literal),*] $help:literal;)*) => {
        $(pub(super) const $constant: Metric = Metric {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*

        /// Every metric there is.
        pub const TABLE: &[Metric] = &[$($constant),*];
    };
}

table! {
    MESSAGES = "tollgate_messages_total" Counter ["link", "class", "direction"]
        "Messages of the network (direction request) and answers to it (direction answer)";
    DECISIONS = "tollgate_decisions_total" Counter ["link", "class", "outcome"]
        "What was decided on messages of the network: forward, pass_protected, unenforceable (would be refused but may not be answered), pass_unread (no MTI), reject";
    REJECTS = "tollgate_rejects_total" Counter ["link", "class", "reason", "rc"]
        "Requests answered here that the host never saw, by reason and 1987 response code";
    DEADLINE_ANSWERS = "tollgate_deadline_answers_total" Counter ["link", "class", "reason"]
        "Requests answered here after they were forwarded: the outcome at the host is unknown";
    LIMITS = "tollgate_limit_decisions_total" Counter ["link", "limit", "outcome"]
        "Per limit: reject, shadow_reject (would have been refused), forgiven (debt of protected traffic at its bound)";
    BUDGET = "tollgate_budget_remaining_ratio" Histogram ["limit"]
        "Share of its bucket (0 to 1) that a message left; one message in sixteen is looked at";
    LIMIT_KEYS = "tollgate_limit_keys" Gauge ["limit"]
        "Keys that have a bucket of their own without being configured";
    LIMIT_OVERFLOWS = "tollgate_limit_overflow_total" Counter ["limit"]
        "Messages whose key found no free bucket and shared one; raise keys_max";
    LATE = "tollgate_late_responses_total" Counter ["link", "kind"]
        "Host answers after the deadline answer; kind approval is money on hold that nobody will release";
    STRAYS = "tollgate_stray_messages_total" Counter ["link", "kind", "approves"]
        "Host messages that reached nobody: undeliverable, unmatched, ambiguous, no_session";
    UNHEARD = "tollgate_unheard_answers_total" Counter ["link", "reason"]
        "Local answers whose session was gone or took no more bytes";
    UNANSWERED = "tollgate_advices_unanswered_total" Counter ["link", "class"]
        "Messages that are never answered here and that the host did not answer within answer_timeout";
    UNSENT = "tollgate_unsent_total" Counter ["link", "class"]
        "Messages that are never answered here and met no connection to the host: silence, their senders repeat them";
    UNCARRIED = "tollgate_uncarried_total" Counter ["link", "class"]
        "Messages that are never answered here and cannot be written in the framing of the host; they never get through";
    FORGOTTEN = "tollgate_forgotten_total" Counter ["link"]
        "Protected messages in flight that were forgotten for newer ones; raise inflight_max";
    HOST_MESSAGES = "tollgate_host_messages_total" Counter ["link", "direction"]
        "Messages that the host originated (request) and the network's answers to them (answer)";
    PARSE_ERRORS = "tollgate_parse_errors_total" Counter ["link", "from", "kind"]
        "Messages that could not be read to their end, by sender and first fault";
    UNKNOWN_TYPES = "tollgate_unknown_types_total" Counter ["link", "from", "part"]
        "Messages with a digit in their MTI that the standard does not give, by the first such part; they are sent on";
    REJECTED = "tollgate_rejected_messages_total" Counter ["link", "from"]
        "Messages that came back with a reject header, by who sent them back";
    CARD_NUMBERS = "tollgate_card_numbers_total" Counter ["link", "digits", "luhn"]
        "Card numbers in messages of the network, by whether their digits are even or odd in number and whether the last one checks the others";
    LUHN_FAILURES = "tollgate_luhn_failure_ratio" Gauge ["link", "digits"]
        "Share of the last 128 card numbers, or so, that fail the Luhn check; near 1 for odd digits alone, the dialect pads them on the wrong side";
    KEEPALIVES = "tollgate_keepalives_total" Counter ["link", "from"]
        "Frames that carry no message, by sender; they are never forwarded";
    DECISION_SECONDS = "tollgate_decision_seconds" Histogram ["link"]
        "Parse, decision and queueing of one message; one batch in sixteen is timed";
    RESPONSE_SECONDS = "tollgate_response_seconds" Histogram ["link", "source"]
        "From a message's arrival to its answer, by who answered: host or proxy";
    INFLIGHT = "tollgate_inflight" Gauge ["link", "kind"]
        "Forwarded and not answered: answerable requests, and all other messages";
    QUEUE_BYTES = "tollgate_host_queue_bytes" Gauge ["link"]
        "Bytes queued for the host";
    LINK_STATE = "tollgate_link_state" Gauge ["link", "state"]
        "1 for the state that the link is in: up with at least one session, else down";
    LINK_SOCKETS = "tollgate_link_sockets" Gauge ["link"]
        "Sessions that are open";
    UPSTREAM_UP = "tollgate_upstream_up" Gauge ["link", "upstream"]
        "1 while at least one connection to the host is up";
    UPSTREAM_SOCKETS = "tollgate_upstream_sockets" Gauge ["link", "upstream"]
        "Connections to the host that are up; fewer than configured is degraded";
    RECONNECTS = "tollgate_reconnects_total" Counter ["link"]
        "Connections to the host that were opened again";
    SESSIONS_CLOSED = "tollgate_sessions_closed_total" Counter ["link", "cause"]
        "Sessions that tollgate closed: framing, malformed, frame_timeout, write_stall, idle, host_down";
    CONNECTIONS_REFUSED = "tollgate_connections_refused_total" Counter ["link", "cause"]
        "Connections closed unread: not_allowed by source, or too_many for connections_max";
    LEASE_VALID = "tollgate_lease_valid" Gauge []
        "1 while every shard of the store was heard recently enough for leases to count; at 0 see on_loss";
    LEASE_SHARDS_LOST = "tollgate_lease_shards_lost" Gauge []
        "Shards of the store that were not heard recently enough: the leases of their keys do not count";
    LEASE_AGE = "tollgate_lease_age_seconds" Gauge []
        "Since the newest call that the store answered had left, of the shard that was not heard for longest; beyond lease_ttl its leases do not count";
    LEASE_NODES = "tollgate_lease_nodes" Gauge []
        "Live nodes as the store counts them, this one included";
    LEASE_LEVEL = "tollgate_lease_level_tokens" Gauge ["limit"]
        "Lowest level that the store told of a key of the limit since the last tick; the burst when it told of none";
    LEASE_UNREPORTED = "tollgate_lease_unreported_tokens" Gauge ["limit"]
        "Tokens spent that the store had not heard of, over all keys of the limit reported since the last tick";
    LEASE_KEYS = "tollgate_lease_keys" Gauge []
        "Keys that this node has reported or heard of and that have not rested since";
    LEASE_LATE_KEYS = "tollgate_lease_late_keys" Gauge []
        "Keys that wait for the next tick, since more of them have spent than one tick reports";
    LEASE_LOCAL_KEYS = "tollgate_lease_local_keys" Gauge []
        "Keys that this node answers itself, since the store is lost";
    LEASE_HELD = "tollgate_lease_held_total" Counter []
        "Requests that found a token and were refused all the same, as this node has to hear from the store first";
    LEASE_UNDO = "tollgate_lease_undo_total" Counter []
        "Tokens given back since a later limit refused the message";
    LEASE_FAIL_OPEN = "tollgate_lease_fail_open_total" Counter ["cause"]
        "Cause on_loss: messages admitted without a look at their level, as the store is lost and on_loss is open; cause restart: times that a bug ended the lease sync, and buckets filled by themselves until it began again";
    LEASE_SYNCS = "tollgate_lease_sync_total" Counter ["result"]
        "Calls to the store: answered in time, or failed";
    LEASE_REPORTS = "tollgate_lease_reports_total" Counter ["to"]
        "Reports of a key: to the store, or answered by this node itself while it is lost";
    LEASE_UNKEPT = "tollgate_lease_unkept_total" Counter []
        "Reports of a key that the store cannot keep, since something that is no bucket stands under its name; the node answers it itself";
    LEASE_HEARD = "tollgate_lease_heard_total" Counter ["placed"]
        "Keys that the store told of as low; placed false: their limit is not configured here, or its table is full";
    STORE_UP = "tollgate_store_up" Gauge []
        "1 while the last calls to every shard of the store were answered in time; at 0 the log says what fails";
    STORE_SECONDS = "tollgate_store_seconds" Histogram []
        "From the sending of a call to its answer; no message waits for it";
    STORE_ERRORS = "tollgate_store_errors_total" Counter ["kind"]
        "Calls and connections to a Redis that failed, by what failed; noscript, moved, ask and tryagain are the store's own way of going on unless they do not end";
    STORE_CONNECTS = "tollgate_store_connects_total" Counter []
        "Connections to a Redis that were made, the first ones included";
    STORE_IN_FLIGHT = "tollgate_store_in_flight" Gauge []
        "Calls to a Redis that are under way";
    STORE_SUBSCRIBED = "tollgate_store_subscribed" Gauge []
        "Shards of a Redis whose pushes are heard; what is not pushed comes a tick later, with the next answer";
    STORE_SUBSCRIPTION_LOSSES = "tollgate_store_subscription_losses_total" Counter []
        "Subscriptions to a Redis that were lost; they are made again";
    STORE_PUSHES_LOST = "tollgate_store_pushes_lost_total" Counter []
        "Keys that were pushed and dropped, as too many waited to be read; the next answer tells them";
    READY = "tollgate_ready" Gauge []
        "1 while every listener is open and no shutdown has begun";
    LOST_LINES = "tollgate_log_lines_lost_total" Counter []
        "Log lines that were dropped because nobody read them fast enough";
    BUILD_INFO = "tollgate_build_info" Gauge ["version", "node"]
        "Always 1";
}
