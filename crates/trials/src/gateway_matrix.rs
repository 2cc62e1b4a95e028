//! Resume time of real programs after an outage, with `outlast run` on a real interface and without.
//!
//! Three namespaces - a fixed host, a gateway and a mobile host - carry transfers and a session of
//! programs as they are installed. The link between gateway and mobile host goes away once, in one of
//! three ways, and comes back. Measured is the time until the receiving application reads something
//! new.

pub mod cells;
mod container;
pub(crate) mod daemon;
pub(crate) mod payload;
pub mod programs;
mod table;
pub mod trial;
mod uptake;
pub(crate) mod vigil;
mod witness;

use cells::{CUTS, Cell, NOTICEABLE, cut_title};
pub use daemon::{Duty, Noticed};
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{median, own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Measured, Published};
use outlast_report::page::Highlight;
use outlast_report::table::Tone;
use outlast_report::unit::Unit;
use outlast_scenario::result::RunResult;
use outlast_testbed::site::{Cut, SOON};
use trial::Observed;
pub(crate) use witness::wait;

/// The matrix.
pub static EXPERIMENT: Experiment = Experiment {
    name: "gateway-matrix",
    title: "How soon real programs resume behind the gateway daemon",
    source: "an experiment of Outlast",
    measures: "Time from link-up until the receiving application reads something new, with `outlast \
               run` on a real interface",
    method,
    figures: &[&Matrix],
};

/// The limit that the daemon is to keep: one round trip and 50 ms.
pub const LIMIT_S: f64 = 0.040 + 0.050;

/// How often what was read is looked at a second after link-up, in seconds.
const LOOK_S: f64 = 0.010;
/// Shares of the link that differ by less are alike.
fn alike(extent: Extent) -> f64 {
    // Single runs of one cell used 83 to 98 % of the link; the full extent compares medians.
    extent.choose(0.1, 0.02)
}
/// A datagram may be late by so much more with the daemon than without, in seconds.
const MOST_AGE_S: f64 = 0.050;

fn method(extent: Extent) -> Vec<String> {
    let soon: Vec<_> = SOON
        .iter()
        .map(|(name, to)| format!("{name} {to}"))
        .collect();
    vec![
        format!(
            "Three network namespaces: a fixed host, a gateway, and a mobile host behind an emulated \
             Ethernet (TAP devices) of {} Mbit/s each way and 40 ms round trip, with room for {} \
             packets. Real programs carry 6 MB, or hold a session in which something is said \
             every 50 ms: by a server over a WebSocket, by a client of Redis, or by who types over ssh; or \
             160 bytes by UDP every 20 ms. `outlast run --mechanism hold` runs on the gateway for downloads, and on the \
             mobile host itself for uploads; the control runs the same without it.",
            trial::RATE_MBIT_PER_S,
            trial::QUEUE,
        ),
        format!(
            "After 1.8 MB (2 kB of the session) the link goes away. By carrier: both interfaces lose \
             it. By neighbour: nothing crosses any more, and the interfaces do not show it; so that \
             the kernel doubts its neighbour within the outage, `net.*.neigh.link0` is set to {}. \
             By black hole: neighbours still answer, and nothing else crosses, as if a hop behind \
             them were gone. What is queued or on its way is lost. The daemon has all its indicators at \
             their defaults; black holes it knows by their silence.",
            soon.join(", ")
        ),
        format!(
            "The first possible moment is the first sign of life: when the first frame comes out of \
             the link, at the end where the daemon is, by which a host can know that packets of this \
             version of IP get through. After a loss of carrier or of a neighbour that is the \
             neighbour's ARP or discovery, or a packet; after a black hole only a packet, as \
             neighbours have answered all the time. Before that nobody can know that anything \
             arrives; who asks how often is the kernel's and the daemon's affair, and is in the \
             column \"first sign\". From then on new bytes are to be read within one round trip and \
             50 ms, {}. Where they come before the first sign, the time counts from link-up. The link \
             itself sees the frames; what an application has read is what its kernel says \
             (`sock_diag`), looked at every millisecond in the first second after link-up, and every \
             ten later. Of requests to Redis that is what their client has read: the answers. Between \
             two requests it pauses of its own accord.",
            Unit::Seconds.show_exact(LIMIT_S)
        ),
        "What the limit leaves: the oldest segment that is not acknowledged reaches the receiver half a \
         round trip after the first sign. If that is what it lacks, 20 ms and the link's time for it \
         have passed. If it has it, and its acknowledgement was lost with the link, only its answer \
         says what it lacks: 60 ms and the link's time have passed once that has crossed. (After a \
         silence, the first sign is mostly that answer itself.) And where a sender was filling holes when the link went, the \
         receiver rejects the first copies of these for their timestamps (RFC 7323, section 5.3): then \
         the sender has to repeat them, and what it chooses to send before them goes before them. \
         Senders without SACK fill holes for a second at the time of the outage."
            .to_owned(),
        format!(
            "Runs of each cell: {}, and {} with datagrams; the table shows medians.{} Many runs go on at once, as most of their time is \
             outage; but when the link of one comes back, no other run has its link come back, sets its \
             place up or takes it down. `--only TEXT` carries some of the cells out.",
            cells::repetitions(extent),
            cells::DATAGRAM_RUNS,
            extent.choose(
                format!(
                    " A single run scatters: where one misses what it is held to, the cell is run {} times \
                     more, with its control, and judged by its medians.",
                    cells::FURTHER_RUNS
                ),
                String::new()
            ),
        ),
    ]
}

/// The matrix as one figure.
#[derive(Debug)]
pub struct Matrix;

impl Figure for Matrix {
    fn name(&self) -> &'static str {
        "matrix"
    }

    fn title(&self) -> &'static str {
        "Resume time by program, kind of outage and length, with the daemon and without"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        cells::jobs(extent)
    }

    fn further_jobs(&self, extent: Extent, runs: &Runs) -> Vec<Job> {
        let cells = cells::cells(extent);
        let doubtful = cells.iter().filter(|cell| is_doubtful(cell, runs, extent));
        doubtful
            .flat_map(|cell| cell.further_jobs(extent))
            .collect()
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let cells = cells::cells(extent);
        let all = |_: &Cell| true;
        let within = within(&cells, runs, extent, all);
        let part = Part::new("Resume time by program, outage and length")
            .table(table::matrix(&cells, runs));
        let part = match table::beyond(&cells, runs) {
            None => part,
            Some(beyond) => part.table(beyond),
        };
        part.table(table::circumstances(&cells, runs))
            .claims(claims(&cells, runs, extent))
            .highlight(Highlight {
                label: "Within the limit".to_owned(),
                value: within.map_or("–".to_owned(), |within| Unit::Share.show(within.value)),
                note: "of the runs with the daemon that can be judged".to_owned(),
                tone: Tone::Plain,
            })
    }
}

/// From link-up until something new was read; `None` if nothing was.
#[must_use]
pub fn resume(run: &Record) -> Option<f64> {
    run.result.outages.first()?.resume_s
}

/// The share of the link that the first five seconds after link-up used, of a transfer.
#[must_use]
pub fn five_seconds(run: &Record) -> Option<f64> {
    run.result.outages.first()?.first_five_seconds_share
}

/// By how much the latest datagram that was sent after link-up was late; `None` if none is sent.
#[must_use]
pub fn datagram_age(run: &Record) -> Option<f64> {
    run.observed::<Observed>()?.datagram_age_s
}

/// From the first possible moment until something new was read; `None` if nothing was.
#[must_use]
pub fn from_first_chance(run: &Record) -> Option<f64> {
    chance(resume(run)?, run.observed().as_ref())
}

fn chance(resume: f64, observed: Option<&Observed>) -> Option<f64> {
    let sign = observed.and_then(|observed| observed.first_sign_s);
    Some(match sign {
        Some(sign) if sign <= resume => resume - sign,
        _ => resume,
    })
}

fn has_kept_limit(result: &RunResult, observed: &Observed) -> bool {
    let resume = result.outages.first().and_then(|outage| outage.resume_s);
    let time = resume.and_then(|resume| chance(resume, Some(observed)));
    time.is_some_and(|time| time <= LIMIT_S)
}

/// Whether the run says something of the daemon: not one that missed the limit each time while the
/// machine was late.
#[must_use]
pub fn is_judged(run: &Record) -> bool {
    run.warnings.is_empty()
}

/// Whether the daemon knew of the outage when it was over.
#[must_use]
pub fn noticed(run: &Record) -> bool {
    let noticed = run.observed::<Observed>().and_then(|seen| seen.noticed);
    noticed.is_some_and(|noticed| noticed.down)
}

/// Whether new bytes came in time.
#[must_use]
pub fn is_within(run: &Record) -> bool {
    from_first_chance(run).is_some_and(|time| time <= LIMIT_S)
}

/// The share of those cells in which the daemon kept the limit, of those that can be judged: of their runs,
/// or of their medians where cells in doubt were run again.
fn within(
    cells: &[Cell],
    runs: &Runs,
    extent: Extent,
    those: impl Fn(&Cell) -> bool,
) -> Option<Measured> {
    let cells = cells.iter().filter(|cell| those(cell));
    let kept: Vec<bool> = cells
        .flat_map(|cell| kept_limit(cell, runs, extent))
        .collect();
    share_of(&kept)
}

/// Whether each run of a cell kept the limit; its median, if it was in doubt and was run again.
fn kept_limit(cell: &Cell, runs: &Runs, extent: Extent) -> Vec<bool> {
    let all = runs.of(&cell.name(true));
    let judged = || all.iter().filter(|run| is_judged(run));
    if !cell.is_run_again(all, extent) {
        return judged().map(is_within).collect();
    }
    let late = |run: &Record| Some(from_first_chance(run).unwrap_or(f64::INFINITY));
    let median = middle(judged(), late);
    median.map(|time| time <= LIMIT_S).into_iter().collect()
}

fn share_of(judged: &[bool]) -> Option<Measured> {
    let good = judged.iter().filter(|&&holds| holds).count();
    (!judged.is_empty()).then(|| Measured {
        value: good as f64 / judged.len() as f64,
        standard_deviation: None,
        count: judged.len(),
    })
}

/// Whether the limit is asked of a cell.
///
/// One that starts in the outage has only the segment that the sender repeats. If the receiver had that,
/// the receiver's answer, the sender's repetition with a fresh timestamp and what the sender then takes
/// for lost cross one after the other: three round trips instead of one. So it is held against the
/// control alone.
fn is_held_to_limit(cell: &Cell) -> bool {
    cell.outage >= least_outage(cell.cut) && !cell.starts_late
}

/// How long an outage has to be for the limit to be asked.
fn least_outage(cut: Cut) -> Duration {
    match cut {
        Cut::Carrier => Duration::ZERO,
        Cut::MobileCarrier | Cut::Neighbour | Cut::BlackHole => NOTICEABLE,
    }
}

/// Whether single runs of a cell leave one of the claims in doubt.
fn is_doubtful(cell: &Cell, runs: &Runs, extent: Extent) -> bool {
    extent == Extent::Quick
        && (is_held_to_limit(cell) && kept_limit(cell, runs, extent).contains(&false)
            || BESIDE_CONTROL
                .iter()
                .any(|beside| beside.holds_in(cell, runs, extent) == Some(false)))
}

/// In what a cell with the daemon must not be worse than its control.
#[derive(Clone, Copy)]
enum BesideControl {
    NextByte,
    FiveSeconds,
    Datagrams,
}

const BESIDE_CONTROL: [BesideControl; 3] = [
    BesideControl::NextByte,
    BesideControl::FiveSeconds,
    BesideControl::Datagrams,
];

impl BesideControl {
    fn statement(self, extent: Extent) -> String {
        match self {
            Self::NextByte => "With the daemon the next byte is read at most 10 ms later than without \
                               (share of cells, medians)."
                .into(),
            Self::FiveSeconds => format!(
                "With the daemon the first five seconds of a transfer bring no less than without, by more \
                 than {} of the link (share of cells, medians).",
                Unit::Share.show_exact(alike(extent))
            ),
            Self::Datagrams => {
                "A datagram that is sent after link-up is late by at most 50 ms more with the daemon than \
                 without (share of cells, medians)."
                    .into()
            }
        }
    }

    fn value(self, run: &Record) -> Option<f64> {
        match self {
            Self::NextByte => Some(resume(run).unwrap_or(f64::INFINITY)),
            Self::FiveSeconds => five_seconds(run),
            Self::Datagrams => datagram_age(run),
        }
    }

    /// Whether a cell's medians are as they must be; `None` where there is nothing to compare.
    fn holds_in(self, cell: &Cell, runs: &Runs, extent: Extent) -> Option<bool> {
        let value = |run: &Record| self.value(run);
        let control = middle(runs.of(&cell.name(false)).iter(), value)?;
        let judged = runs
            .of(&cell.name(true))
            .iter()
            .filter(|run| is_judged(run));
        let daemon = middle(judged, value)?;
        Some(match self {
            Self::NextByte => daemon <= control + LOOK_S,
            Self::FiveSeconds => daemon >= control - alike(extent),
            Self::Datagrams => daemon <= control + MOST_AGE_S,
        })
    }

    fn judge(self, cells: &[Cell], runs: &Runs, extent: Extent) -> Judged {
        let judged = cells
            .iter()
            .filter_map(|cell| self.holds_in(cell, runs, extent));
        let judged: Vec<bool> = judged.collect();
        let statement = self.statement(extent);
        let claim = own_claim(
            "gateway-matrix",
            statement,
            Unit::Share,
            Published::AtLeast(1.0),
        );
        claim.judge(share_of(&judged))
    }
}

/// The median of what runs of one cell show; the lower one of two. `None` where no run shows any.
pub(crate) fn middle<'r>(
    runs: impl Iterator<Item = &'r Record>,
    value: impl Fn(&Record) -> Option<f64>,
) -> Option<f64> {
    let mut values: Vec<f64> = runs.filter_map(value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

fn claims(cells: &[Cell], runs: &Runs, extent: Extent) -> Vec<Judged> {
    let own = |statement: String, unit, published| {
        own_claim("gateway-matrix", statement, unit, published)
    };
    let everywhere = Published::AtLeast(1.0);
    let mut claims: Vec<Judged> = CUTS
        .iter()
        .map(|&cut| {
            let which = match cut {
                Cut::Carrier => "every outage",
                Cut::MobileCarrier | Cut::Neighbour | Cut::BlackHole => "outages of 5 s and longer",
            };
            let statement = format!(
                "By {}: with the daemon new bytes are read within one round trip and 50 ms of the \
                 first possible moment, after {which} (share of cells).",
                cut_title(cut)
            );
            let those = |cell: &Cell| cell.cut == cut && is_held_to_limit(cell);
            own(statement, Unit::Share, everywhere).judge(within(cells, runs, extent, those))
        })
        .collect();
    let long = cells
        .iter()
        .filter(|cell| cell.cut == Cut::BlackHole && cell.outage >= NOTICEABLE);
    let stalled = median(long.flat_map(|cell| runs.of(&cell.name(false))).map(resume));
    claims.push(
        own(
            "By black hole: the control stalls for a second or more after outages of 5 s and longer \
             (median)."
                .into(),
            Unit::Seconds,
            Published::AtLeast(1.0),
        )
        .judge(stalled),
    );
    let assisted = || cells.iter().flat_map(|cell| runs.of(&cell.name(true)));
    claims.extend(BESIDE_CONTROL.map(|beside| beside.judge(cells, runs, extent)));
    claims.push(
        own(
            "With the daemon every program comes to its end (share of runs).".into(),
            Unit::Share,
            everywhere,
        )
        .judge(share(assisted(), |run| run.result.completed)),
    );
    let compared = runs.all().filter(|run| run.result.completed);
    let compared = compared.filter(|run| run.result.intact.is_some());
    claims.push(
        own(
            "What arrives is what was sent, with the daemon and without (share of runs).".into(),
            Unit::Share,
            everywhere,
        )
        .judge(share(compared, |run| run.result.intact == Some(true))),
    );
    claims
}
