//! What `hold` does for traffic that a gateway cannot read: QUIC, tunnels, streams, questions that are repeated.
//!
//! The place is that of [`gateway_matrix`](crate::gateway_matrix): a fixed host, a gateway and a mobile
//! host in namespaces, and `outlast run` on a real interface. What crosses the link is made by
//! machines without I/O in this process; the kernel carries their datagrams.

mod aioquic;
pub mod arrivals;
pub mod cells;
pub mod dns;
mod epoch;
pub mod losses;
pub mod machine;
mod payload;
pub mod quic;
pub mod sctp;
pub mod stream;
mod table;
pub mod trial;
pub mod virtual_time;
pub mod wireguard;

use cells::{Cell, Placement, Stranger};
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{median, own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::unit::Unit;
use trial::Observed;

/// The trial.
pub static EXPERIMENT: Experiment = Experiment {
    name: "strangers",
    title: "What a gateway does for traffic that it cannot read",
    source: "an experiment of Outlast",
    measures: "Time from link-up until an application is given something new, what comes late or twice, and what \
               the first five seconds bring, for QUIC, ESP, RTP and DNS",
    method,
    figures: &[&Matrix],
};

/// One round trip and 50 ms, in seconds.
pub const LIMIT_S: f64 = 0.040 + 0.050;
/// Two round trips and 50 ms, in seconds: the answer to a probe comes back before TCP in a tunnel sends what is lacking.
const TUNNEL_LIMIT_S: f64 = 0.080 + 0.050;
/// A datagram that is sent after link-up may be later than without a gateway by so much, in seconds.
const ALIKE_S: f64 = 0.010;

fn method(extent: Extent) -> Vec<String> {
    vec![
        format!(
            "Three network namespaces: a fixed host, a gateway, and a mobile host behind an emulated \
             Ethernet of {} Mbit/s and 40 ms round trip, with room for {} packets each way. After {} s both ends of \
             the link lose their carrier, once. What was in the link's queue is lost. `outlast run --mechanism hold` \
             with its defaults runs at no end of the link, at the sender's, at the receiver's, or at both.",
            trial::RATE_MBIT_PER_S,
            trial::QUEUE,
            trial::WARM_UP.as_secs_f64(),
        ),
        "QUIC: a server sends without end over one stream from port 443 (quinn, CUBIC, all its defaults; aioquic, Reno, \
         all its defaults). WireGuard: a download over TCP between two hosts behind a tunnel's ends (the TCP model, Linux 6, \
         CUBIC, in messages of WireGuard's format). SCTP: messages of 1,000 bytes without end over one stream in UDP \
         (sctp-proto). ESP: 100 \
         packets of 1,000 bytes a second in UDP. RTP: 50 packets of 172 bytes a second. DNS: the mobile host asks for a \
         name, waits 5 s, asks again from the same port, and goes on to the next name a second after an \
         answer."
            .to_owned(),
        format!(
            "Resumed: from link-up until the receiving application is given something that it did not have: the next \
             byte in order, a datagram with a new number, an answer. First sign: \
             when the first frame came out of the link at the sender's end, mostly the neighbour's ARP, which nobody can precede: \
             a loss of carrier makes both ends forget who is at the other. Neighbours known: each end knows the other for good, and asks \
             nobody, as on a link without Ethernet addresses, such as a modem's. Late: datagrams that were sent before link-up \
             and came after it. Slowest fresh, and jitter as an RTP \
             receiver reports it: of the first half second after link-up. Runs of each cell: {} (of transfers \
             without a gateway three at least); the table shows medians.",
            cells::repetitions(extent)
        ),
    ]
}

/// The matrix as one figure.
#[derive(Debug)]
struct Matrix;

impl Figure for Matrix {
    fn name(&self) -> &'static str {
        "matrix"
    }

    fn title(&self) -> &'static str {
        "What follows an outage, by what crosses the link and where gateways stand"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        cells::jobs(extent)
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let cells = cells::cells(extent);
        Part::new("What follows an outage")
            .table(table::transfers(&cells, runs))
            .table(table::datagrams(&cells, runs))
            .claims(claims(&cells, runs))
    }
}

/// Whether a run does what it is to do: of a real-time stream that is judged beside the control.
fn has_kept_limit(cell: &Cell, observed: &Observed) -> bool {
    if cell.placement == Placement::None {
        return !cell.stranger.is_real_time() || is_prompt(observed);
    }
    match cell.stranger.is_real_time() {
        true => is_prompt(observed),
        false => observed
            .resumed_after_s()
            .is_some_and(|time| time <= limit_s(cell.stranger)),
    }
}

/// After the first sign, in how many seconds who waits for an answer has something new with a gateway.
const fn limit_s(stranger: Stranger) -> f64 {
    match stranger {
        Stranger::WireGuard => TUNNEL_LIMIT_S,
        _ => LIMIT_S,
    }
}

/// Whether what was sent after link-up came within a round trip.
fn is_prompt(observed: &Observed) -> bool {
    let slowest = observed.seen.slowest_fresh_s;
    slowest.is_some_and(|time| time <= 0.040)
}

fn of(run: &Record) -> Option<Observed> {
    run.observed()
}

/// Whether the run says something of the gateway: not one that missed its limit each time while the machine was
/// late.
fn is_judged(run: &Record) -> bool {
    run.warnings.is_empty()
}

fn resume(run: &Record) -> Option<f64> {
    of(run)?.seen.resume_s
}

fn is_within(run: &Record, limit_s: f64) -> bool {
    let time = of(run).and_then(|observed| observed.resumed_after_s());
    time.is_some_and(|time| time <= limit_s)
}

/// The runs of those cells.
fn those<'r>(
    cells: &'r [Cell],
    runs: &'r Runs,
    which: impl Fn(&Cell) -> bool + 'r,
) -> impl Iterator<Item = &'r Record> {
    let cells = cells.iter().filter(move |cell| which(cell));
    cells
        .flat_map(|cell| runs.of(&cell.name()))
        .filter(|run| is_judged(run))
}

fn claims(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    let mut claims = claims_of_quic(cells, runs);
    claims.extend(claims_of_waiting(cells, runs));
    claims.extend(claims_of_all(cells, runs));
    claims
}

/// Whether a gateway keeps what the sender sends.
fn is_held(cell: &Cell) -> bool {
    matches!(cell.placement, Placement::Near | Placement::Both)
}

/// Of transfers over QUIC.
fn claims_of_quic(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    vec![
        in_time(
            cells,
            runs,
            "QUIC (quinn and aioquic) resumes within one round trip and 50 ms of the first sign with hold at the sender's \
             end or both (share of runs).",
            &[Stranger::Quic, Stranger::Aioquic],
        ),
        own_claim(
            "strangers",
            "Where the link's ends know each other, it resumes within one round trip and 50 ms of link-up \
             itself with hold at the sender's end or both (share of runs).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(share(
            those(cells, runs, |cell| cell.is_introduced && is_held(cell)),
            |run| resume(run).is_some_and(|time| time <= LIMIT_S),
        )),
        waits(
            cells,
            runs,
            "QUIC (quinn) without a gateway resumes 150 ms after link-up or later (median).",
            (Stranger::Quic, 0.150),
        ),
        waits(
            cells,
            runs,
            "QUIC (aioquic) without a gateway resumes 150 ms after link-up or later (median).",
            (Stranger::Aioquic, 0.150),
        ),
    ]
}

/// Of whatever else waits for an answer.
fn claims_of_waiting(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    let in_time =
        |statement, strangers: &'static [Stranger]| in_time(cells, runs, statement, strangers);
    let waits = |statement, stranger, least_s| waits(cells, runs, statement, (stranger, least_s));
    vec![
        in_time(
            "SCTP resumes within one round trip and 50 ms of the first sign with hold at the sender's end or both (share of \
             runs).",
            &[Stranger::Sctp],
        ),
        waits(
            "SCTP without a gateway waits for half a second or more (median).",
            Stranger::Sctp,
            0.5,
        ),
        in_time(
            "TCP in WireGuard resumes within two round trips and 50 ms of the first sign with hold at the sender's end or \
             both (share of runs).",
            &[Stranger::WireGuard],
        ),
        waits(
            "TCP in WireGuard without a gateway waits for half a second or more (median).",
            Stranger::WireGuard,
            0.5,
        ),
        in_time(
            "A question of DNS is answered within one round trip and 50 ms of the first sign with hold at the asking end or \
             both (share of runs).",
            &[Stranger::Dns],
        ),
        waits(
            "DNS without a gateway waits for half a second or more (median).",
            Stranger::Dns,
            0.5,
        ),
    ]
}

/// With a gateway where the sender is, they go on in their time after the first sign.
fn in_time(
    cells: &[Cell],
    runs: &Runs,
    statement: &'static str,
    strangers: &'static [Stranger],
) -> Judged {
    let held = those(cells, runs, move |cell| {
        strangers.contains(&cell.stranger) && is_held(cell)
    });
    let limit_s = strangers.iter().copied().map(limit_s).fold(0.0, f64::max);
    own_claim("strangers", statement, Unit::Share, Published::AtLeast(1.0))
        .judge(share(held, |run| is_within(run, limit_s)))
}

/// Without a gateway it waits for so many seconds at least.
fn waits(
    cells: &[Cell],
    runs: &Runs,
    statement: &'static str,
    (stranger, least_s): (Stranger, f64),
) -> Judged {
    let control = those(cells, runs, move |cell| {
        (cell.stranger, cell.placement) == (stranger, Placement::None)
    });
    let least = Published::AtLeast(least_s);
    own_claim("strangers", statement, Unit::Seconds, least).judge(median(control.map(resume)))
}

/// Of streams in real time, and of all traffic.
fn claims_of_all(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    let own = |statement: &'static str| {
        own_claim("strangers", statement, Unit::Share, Published::AtLeast(1.0))
    };
    vec![
        own(
            "A stream in real time is no worse than without a gateway: what is sent after link-up is not later by 10 ms, its \
             jitter is not higher by 10 ms (share of runs).",
        )
        .judge(streams_no_worse(cells, runs, |cell| {
            cell.placement != Placement::None
        })),
        own("With hold at the sender's end or both it is no worse, either (share of runs).")
            .judge(streams_no_worse(cells, runs, is_held)),
        own("No datagram is delivered twice (share of runs).")
            .judge(share(those(cells, runs, |_| true), comes_once)),
        own("No datagram is, but for questions of DNS (share of runs).").judge(share(
            those(cells, runs, |cell| cell.stranger != Stranger::Dns),
            comes_once,
        )),
        own(
            "What a transfer delivers is what was sent (share of runs).",
        )
        .judge(share(
            those(cells, runs, |cell| cell.stranger.is_transfer()),
            |run| run.result.intact == Some(true),
        )),
    ]
}

/// Whether each datagram comes once. A resolver that asks again sends the same question twice itself.
fn comes_once(run: &Record) -> bool {
    of(run).is_some_and(|observed| observed.seen.duplicates == 0)
}

/// The share of those runs of streams, in cells `among` those with a gateway, that are no worse than those without. A
/// gateway at the receiver's end has nothing of the stream to keep: when something comes there is the neighbours'
/// doing, as without one.
fn streams_no_worse(
    cells: &[Cell],
    runs: &Runs,
    among: impl Fn(&Cell) -> bool,
) -> Option<Measured> {
    let streams = those(cells, runs, move |cell| {
        cell.stranger.is_real_time() && among(cell)
    });
    share(streams, |run| {
        let cell = cells.iter().find(|cell| cell.name() == run.cell);
        cell.is_some_and(|cell| is_no_worse(run, runs.of(&cell.control().name())))
    })
}

/// Whether a stream's run is no worse than the runs without a gateway.
fn is_no_worse(run: &Record, control: &[Record]) -> bool {
    let worst = |value: fn(&Observed) -> Option<f64>| {
        let all = control.iter().filter_map(|run| value(&of(run)?));
        all.reduce(f64::max)
    };
    let is_alike = |value: fn(&Observed) -> Option<f64>| {
        let own = of(run).and_then(|observed| value(&observed));
        // To the control nothing may come in that time: its kernel asks for the neighbour once a second.
        match (own, worst(value)) {
            (Some(own), Some(control)) => own <= control + ALIKE_S,
            (Some(_), None) => true,
            (None, _) => false,
        }
    };
    is_alike(|observed| observed.seen.slowest_fresh_s)
        && is_alike(|observed| observed.seen.jitter_s)
}
