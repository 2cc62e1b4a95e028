//! Metrics for Prometheus: what is counted, by HTTP.
//!
//! One answer to one request in the daemon's own loop; [`Clients`] bounds what that may cost. The
//! text is OpenMetrics 1.0.

mod reloads;

use super::clients::{Clients, Heard, Stream};
use super::config::Endpoint;
use super::control::listen;
use super::listening::{self, Door};
use super::outages::Outage;
use super::status::{Agents, Kernel, Status, indicator, state};
use anyhow::Context;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{LinkEvent, LinkState};
use outlast_linux::poller::{Poller, Token};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
pub(super) use reloads::Reloads;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::{Shutdown, listen as listen_again, shutdown};
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

/// The longest request in bytes, headers and all.
const LONGEST: usize = 8192;
/// What `outlast_resume_seconds` tells apart, in seconds: a round trip on a local link, on the
/// Internet, on a satellite's; then what a person notices.
const RESUME_SECONDS: [f64; 12] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
];
/// Bounds of `outlast_outage_seconds`, in seconds: less than a retransmission timeout, a tunnel, a journey underground.
const OUTAGE_SECONDS: [f64; 9] = [0.2, 1.0, 3.0, 10.0, 30.0, 60.0, 180.0, 600.0, 3600.0];
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) type Labels = Vec<(&'static str, String)>;

/// Clients that may wait to be accepted.
const BACKLOG: i32 = 128;

/// What is counted for the metrics alone.
#[derive(Debug)]
pub(super) struct Tally {
    resumes: Histogram,
    link_changes: Family<Labels, Counter>,
    outages: Histogram,
    saved: Counter<f64, AtomicU64>,
    not_helped: Counter,
    reloads: Reloads,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            resumes: Histogram::new(RESUME_SECONDS),
            link_changes: Family::default(),
            outages: Histogram::new(OUTAGE_SECONDS),
            saved: Counter::default(),
            not_helped: Counter::default(),
            reloads: Reloads::new(),
        }
    }

    pub(super) fn note_resume(&self, after: Duration) {
        self.resumes.observe(after.as_secs_f64());
    }

    pub(super) fn note_link(&self, event: &LinkEvent) {
        let labels = vec![
            (
                "scope",
                if event.link.peer.is_some() {
                    "peer"
                } else {
                    "interface"
                }
                .into(),
            ),
            ("state", state(event.state).into()),
            ("indicator", indicator(event.indicator).into()),
        ];
        self.link_changes.get_or_create(&labels).inc();
    }

    /// Counts an outage whose record is closed.
    pub(super) fn note_outage(&self, outage: &Outage) {
        if let Some(length) = outage.length() {
            self.outages.observe(length.as_secs_f64());
        }
        self.saved.inc_by(outage.saved.as_secs_f64());
        self.not_helped.inc_by(outage.not_helped);
    }

    pub(super) fn note_reload(&mut self, is_good: bool) {
        self.reloads.note(is_good);
    }
}

/// Everything, as text.
pub(super) fn exposition(status: &Status, tally: &Tally) -> String {
    let mut registry = Registry::with_prefix("outlast");
    let data_path = status.kernel.map_or("nfqueue", |_| "ebpf");
    let info = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("interface", status.interface.clone()),
        ("mechanism", status.mechanism.clone()),
        ("data_path", data_path.to_owned()),
    ];
    registry.register("build", "What runs, and where", Info::new(info.to_vec()));
    for (name, help, value) in gauges(status, tally) {
        registry.register(name, help, ConstGauge::new(value));
    }
    registry.register("held_bytes", "Memory for what is kept", held(status));
    for (name, help, value) in status.counters.each() {
        registry.register(name, help, ConstCounter::new(value));
    }
    if let Some(agents) = &status.agents {
        register_agents(&mut registry, agents);
    }
    for (name, help, value) in status.kernel.iter().flat_map(Kernel::each) {
        let name = format!("kernel_{name}");
        if name == "kernel_flows" {
            registry.register(name, help, ConstGauge::new(value));
        } else {
            registry.register(name, help, ConstCounter::new(value));
        }
    }
    registry.register(
        "link_changes",
        "Changes of a link's state, and which indicator told them",
        tally.link_changes.clone(),
    );
    register_outages(&mut registry, tally);
    tally.reloads.register_count(&mut registry);
    registry.register(
        "resume_seconds",
        "Time from link-up until the data's receiver acknowledged new bytes, or the next that it lacked crossed towards it",
        tally.resumes.clone(),
    );
    let mut text = String::new();
    encode(&mut text, &registry).expect("a string takes everything written to it");
    text
}

/// Counts of outages whose records are closed, two seconds after link-up.
fn register_outages(registry: &mut Registry, tally: &Tally) {
    registry.register(
        "outage_seconds",
        "How long links were away",
        tally.outages.clone(),
    );
    registry.register(
        "saved_seconds",
        "Time that connections resumed sooner than by their own timers, about, of all connections together",
        tally.saved.clone(),
    );
    registry.register(
        "not_helped",
        "Connections that had not resumed two seconds after link-up, or that only the other end could help",
        tally.not_helped.clone(),
    );
}

/// What is counted of neighbours, and of what is frozen.
fn register_agents(registry: &mut Registry, agents: &Agents) {
    for (name, help, value) in agents.counters() {
        registry.register(name, help, ConstCounter::new(value));
    }
    let up = Family::<Labels, Gauge>::default();
    for neighbour in &agents.neighbours {
        let labels = vec![("neighbour", neighbour.address.to_string())];
        let is_up = neighbour.session == state(LinkState::Up);
        up.get_or_create(&labels).set(i64::from(is_up));
    }
    registry.register(
        "neighbour_up",
        "Whether there is a session with a neighbour",
        up,
    );
    registry.register(
        "journal_sound",
        "Whether all that is frozen is on the disk",
        ConstGauge::new(i64::from(agents.is_journal_sound)),
    );
    let frozen = i64::try_from(agents.frozen).unwrap_or(i64::MAX);
    registry.register(
        "frozen",
        "Connections that are frozen here",
        ConstGauge::new(frozen),
    );
}

type Measured = (&'static str, &'static str, f64);

/// What is now, each with its name and what it says.
fn gauges(status: &Status, tally: &Tally) -> [Measured; 10] {
    let is = |condition: bool| f64::from(u8::from(condition));
    let is_up = is(status.link.state == state(LinkState::Up));
    let is_as_read = is(tally.reloads.last_was_good());
    let peers_down = status.peers_down.len() as f64;
    let held_limit = status.limits.held_in_all_bytes as f64;
    [
        (
            "up_seconds",
            "Time since the daemon began",
            status.running_s,
        ),
        ("link_up", "Whether the link of the interface is up", is_up),
        (
            "link_state_seconds",
            "Time since the link's last change",
            status.link.for_s,
        ),
        (
            "peers_down",
            "Peers that are down while the link is up",
            peers_down,
        ),
        (
            "links_silent",
            "Links that owe an answer",
            status.silent.len() as f64,
        ),
        (
            "links_damped",
            "Links whose indicators flap, and are not believed at once",
            status.damped.len() as f64,
        ),
        ("flows", "Connections that are tracked", status.flows as f64),
        (
            "flows_limit",
            "Connections that may be tracked",
            status.limits.flows as f64,
        ),
        (
            "held_limit_bytes",
            "Memory that kept TCP segments may take",
            held_limit,
        ),
        (reloads::LAST, reloads::ABOUT_LAST, is_as_read),
    ]
}

fn held(status: &Status) -> Family<Labels, Gauge> {
    let held = Family::<Labels, Gauge>::default();
    for (kind, bytes) in [
        ("tcp", status.held_bytes),
        ("other", status.held_other_bytes),
    ] {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        held.get_or_create(&vec![("kind", kind.into())]).set(bytes);
    }
    held
}

/// Where Prometheus asks.
#[derive(Debug)]
pub(super) struct MetricsSocket {
    door: Door<Listener>,
    clients: Clients<()>,
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl listening::Listener for Listener {
    type Client = Stream;

    fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
            Self::Unix(listener, _) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
        }
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Asked {
    /// The metrics.
    Metrics,
    /// How many bytes they have.
    Length,
}

impl MetricsSocket {
    /// Listens; `listening` and clients' tokens from `first_token` on are how `poller` calls them.
    pub(super) fn open(
        endpoint: &Endpoint,
        poller: &Poller,
        listening: Token,
        first_token: u64,
    ) -> Result<Self, anyhow::Error> {
        let failed = || format!("cannot serve metrics at {endpoint}");
        let listener = match endpoint {
            Endpoint::Tcp(address) => {
                Listener::Tcp(listening::listen("metrics", *address, 0).with_context(failed)?)
            }
            Endpoint::Unix(path) => {
                use std::os::unix::fs::PermissionsExt;
                let listener = listen(path).with_context(failed)?;
                // As with an address: whoever reaches it may read.
                fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
                Listener::Unix(listener, path.clone())
            }
        };
        let clients = Clients::new(first_token, LONGEST);
        Ok(Self {
            door: Door::open(listener, listening, poller).with_context(failed)?,
            clients,
        })
    }

    /// Listens there and no longer where `place` does; if that cannot be, all stays as it was.
    pub(super) fn move_to(
        place: &mut Option<Self>,
        endpoint: &Endpoint,
        poller: &Poller,
        listening: Token,
        first_token: u64,
    ) -> Result<(), anyhow::Error> {
        let open = || Self::open(endpoint, poller, listening, first_token);
        let in_the_way = place
            .as_ref()
            .and_then(|socket| socket.is_in_the_way_of(endpoint));
        let Some(former) = in_the_way else {
            *place = Some(open()?);
            return Ok(());
        };
        // It stops listening, and keeps its place: nobody else can be there meanwhile who does not
        // expressly share it.
        shutdown(former, Shutdown::Read)?;
        match open() {
            Ok(socket) => *place = Some(socket),
            Err(error) => {
                if let Err(lost) = listen_again(former, BACKLOG) {
                    *place = None;
                    return Err(error.context(format!("metrics are not served any more: {lost}")));
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Who listens at all addresses, and who listens at one of them, keep each other from the port.
    fn is_in_the_way_of(&self, endpoint: &Endpoint) -> Option<&TcpListener> {
        let (Listener::Tcp(listener), Endpoint::Tcp(wanted)) = (self.door.listener(), endpoint)
        else {
            return None;
        };
        let own = listener.local_addr().ok()?;
        let is_any = own.ip().is_unspecified() || wanted.ip().is_unspecified();
        (own.port() == wanted.port() && is_any).then_some(listener)
    }

    /// Somebody connects.
    pub(super) fn accept(&mut self, now: Instant, poller: &Poller) -> io::Result<()> {
        match self.door.accept(now, poller) {
            Ok(None) => Ok(()),
            Ok(Some(stream)) => self.clients.admit(now, stream, (), poller).map(drop),
            Err(error) => {
                // It has gone already, or we are out of descriptors.
                tracing::debug!(%error, "cannot accept a client");
                Ok(())
            }
        }
    }

    /// A client is ready; what it wants, once that is known and can be had.
    pub(super) fn serve(&mut self, token: u64, poller: &Poller) -> Option<Asked> {
        let (status, why) = match self.clients.serve(token, end_of_headers) {
            Heard::Nothing => return None,
            Heard::Request(request, ()) => match asked(&request) {
                Ok(asked) => return Some(asked),
                Err(refusal) => refusal,
            },
            Heard::TooMuch => ("431 Request Header Fields Too Large", "Too long.\n"),
        };
        let answer = response(status, "text/plain; charset=utf-8", why);
        self.clients.answer(token, answer.into_bytes(), poller);
        None
    }

    /// Gives a client what it asked for.
    pub(super) fn answer(&mut self, token: u64, asked: Asked, metrics: &str, poller: &Poller) {
        let mut answer = response("200 OK", CONTENT_TYPE, metrics);
        if asked == Asked::Length {
            answer.truncate(answer.len() - metrics.len());
        }
        self.clients.answer(token, answer.into_bytes(), poller);
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let both = [self.clients.poll_timeout(), self.door.poll_timeout()];
        both.into_iter().flatten().min()
    }

    /// Sends away who has taken too long.
    pub(super) fn handle_timeout(&mut self, now: Instant, poller: &Poller) {
        self.clients.handle_timeout(now);
        self.door.handle_timeout(now, poller);
    }
}

impl Drop for MetricsSocket {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self.door.listener() {
            // Whoever comes next removes what is left.
            let _ = fs::remove_file(path);
        }
    }
}

/// Where the headers end (RFC 9112, section 2.1); a lone line feed is a line's end, too (2.2).
fn end_of_headers(heard: &[u8]) -> Option<usize> {
    let ends = |end: &[u8]| heard.windows(end.len()).position(|window| window == end);
    let places = [ends(b"\r\n\r\n"), ends(b"\n\n")];
    places.into_iter().flatten().min()
}

/// What a request asks for, or the status line and text that refuse it.
fn asked(request: &[u8]) -> Result<Asked, (&'static str, &'static str)> {
    let line = request.split(|&byte| byte == b'\n').next();
    let line = line.and_then(|line| std::str::from_utf8(line).ok());
    let mut words = line.unwrap_or_default().split_ascii_whitespace();
    let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next())
    else {
        return Err(("400 Bad Request", "This is not HTTP.\n"));
    };
    if !version.starts_with("HTTP/1.") {
        return Err(("505 HTTP Version Not Supported", "Ask by HTTP/1.1.\n"));
    }
    let path = target.split('?').next().unwrap_or_default();
    match (method, path) {
        ("GET", "/metrics") => Ok(Asked::Metrics),
        ("HEAD", "/metrics") => Ok(Asked::Length),
        ("GET" | "HEAD", _) => Err(("404 Not Found", "There is /metrics.\n")),
        _ => Err(("405 Method Not Allowed", "There is GET.\n")),
    }
}

fn response(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    let allow = if status.starts_with("405") {
        "Allow: GET, HEAD\r\n"
    } else {
        ""
    };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         {allow}Connection: close\r\n\r\n{body}"
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::page;
    use crate::status::tests::sample;
    use outlast_gateway::links::{InterfaceId, LinkId};

    #[test]
    fn a_request_is_understood_or_refused() {
        for (request, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: x", Ok(Asked::Metrics)),
            ("GET /metrics?name=x HTTP/1.0", Ok(Asked::Metrics)),
            ("HEAD /metrics HTTP/1.1", Ok(Asked::Length)),
            ("GET / HTTP/1.1", Err("404")),
            ("POST /metrics HTTP/1.1", Err("405")),
            ("GET /metrics HTTP/2", Err("505")),
            ("GET /metrics", Err("400")),
            ("\u{0}\u{1}", Err("400")),
            ("", Err("400")),
        ] {
            match (asked(request.as_bytes()), expected) {
                (Ok(asked), Ok(expected)) => assert_eq!(asked, expected, "{request}"),
                (Err((status, _)), Err(code)) => assert!(status.starts_with(code), "{request}"),
                (got, _) => panic!("{request}: {got:?}"),
            }
        }
        assert_eq!(end_of_headers(b"GET / HTTP/1.1\r\n"), None);
        assert_eq!(end_of_headers(b"a\r\nb\r\n\r\n"), Some(4));
        assert_eq!(end_of_headers(b"a\n\nb"), Some(1));
    }

    /// What was counted of a gateway, one of everything.
    fn tally() -> Tally {
        let mut tally = Tally::new();
        tally.note_link(&LinkEvent {
            link: LinkId::of_interface(InterfaceId(0)),
            state: LinkState::Down,
            indicator: outlast_gateway::links::Indicator::Carrier,
        });
        tally.note_resume(Duration::from_millis(31));
        tally.note_reload(false);
        tally
    }

    #[test]
    fn a_journal_that_cannot_be_written_can_be_watched_for() {
        for is_sound in [true, false] {
            let agents = serde_json::json!({
                "neighbours": [], "frozen": 2, "is_journal_sound": is_sound, "lent": 0,
                "taken_over": 0, "settled": 0, "refused": 0, "reset": 0, "not_noted": 0,
            });
            let mut status = sample();
            status.agents = Some(serde_json::from_value(agents).expect("what agents say"));
            let text = exposition(&status, &tally());
            let line = format!("outlast_journal_sound {}\n", u8::from(is_sound));
            assert!(text.contains(&line), "{text}");
        }
    }

    /// The table of a page with every metric of a text.
    pub(crate) fn table_of(text: &str) -> String {
        let mut table = "\n| metric | kind | meaning |\n|---|---|---|\n".to_owned();
        for help in text.lines().filter_map(|line| line.strip_prefix("# HELP ")) {
            let (name, meaning) = help.split_once(' ').expect("a name and a text");
            let kind = text.lines().find_map(|line| {
                let kind = line.strip_prefix("# TYPE ")?.strip_prefix(name)?;
                kind.strip_prefix(' ')
            });
            let suffix = match kind.expect("every metric has a kind") {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            let sample = text.lines().find(|line| line.starts_with(name));
            let labels = sample.map_or("", |line| line.split([' ', '}']).next().unwrap_or(""));
            let labels = labels.split_once('{').map_or("", |(_, labels)| labels);
            let labels: Vec<_> = labels
                .split("\",")
                .filter_map(|label| Some(label.split_once('=')?.0))
                .filter(|label| *label != "le")
                .collect();
            let labels = match &labels[..] {
                [] => String::new(),
                labels => format!("{{{}}}", labels.join(", ")),
            };
            let kind = kind.unwrap_or_default();
            table.push_str(&format!(
                "| `{name}{suffix}{labels}` | {kind} | {meaning} |\n"
            ));
        }
        format!("{table}\n")
    }

    #[test]
    fn every_metric_is_in_the_page() {
        let table = table_of(&exposition(&sample(), &tally()));
        page::assert_part("docs/gateway.md", "metrics", &table);
    }
}
