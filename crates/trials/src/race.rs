//! A race: the same transfer over the same outages by everything that is said to help.
//!
//! The place is that of [`gateway_matrix`](crate::gateway_matrix): a fixed host, a router and a mobile host in
//! namespaces of their own. Each contestant is as its users have it: the kernel's settings, MPTCP and QUIC
//! beside `outlast run` as a gateway and in the role `host`.

pub mod call;
pub mod cells;
mod remote;
pub mod trial;

use cells::{Cell, Contestant, title_of};
use outlast_experiments::experiment::{Experiment, Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{five_seconds, median, own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Published};
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_testbed::site::Cut;
use trial::Observed;

/// The trial.
pub static EXPERIMENT: Experiment = Experiment {
    name: "race",
    title: "Who resumes first after an outage",
    source: "an experiment of Outlast",
    measures: "Time from link-up until the receiving application has new bytes, and until it has all, with everything \
               that is said to help, and what each sends into the outage",
    method,
    figures: &[&Race, &remote::RemoteSender],
};

/// One round trip and 50 ms, in seconds.
pub const LIMIT_S: f64 = 0.040 + 0.050;
/// Outages of this length or longer, in seconds, make plain Linux wait for seconds.
const LONG_S: f64 = 15.0;

fn method(extent: Extent) -> Vec<String> {
    vec![
        format!(
            "Three network namespaces: a fixed host, a router, and a mobile host behind an emulated Ethernet of \
             {} Mbit/s and 40 ms round trip, with room for {} packets each way. A transfer of {} MB begins, and after {} s the \
             link is away, once: both ends lose their carrier, or nothing but neighbours' answers crosses (black hole). \
             What was on the link is lost.",
            trial::RATE_MBIT_PER_S,
            trial::QUEUE,
            trial::BYTES / 1_000_000,
            trial::WARM_UP.as_secs_f64(),
        ),
        "Every contestant has its defaults. `tcp_rto_max_ms = 1000` comes with `tcp_retries2 = 200`, so that nothing is \
         given up. MPTCP has the one path that there is. QUIC is quinn with its own CUBIC or BBR, and sends more than the \
         transfer, which counts as done with its last byte. `hold` is `outlast run --mechanism hold` on the link; the agent \
         is `outlast run --role host`, which nobody tells of a black hole: it tries the silent peer itself."
            .to_owned(),
        format!(
            "Resumed: from link-up until the receiving application reads something that it did not have. Done: until it has \
             all. Sent: IP packets that crossed into the void, by hosts and gateways. Runs of each cell: {}, and one where the outage lasts minutes; the table shows \
             medians.",
            cells::repetitions(extent)
        ),
        "A sender beyond the link: the fixed host sends, and nothing of Outlast is in front of the link there. What is sent to wake it \
         goes out as soon as the mobile host's link is back, made of the newest acknowledgement of its kernel: that one four times; ICMP \
         errors that quote the next byte as lost for want of a route (RFC 6069), or as too long for the path by two bytes. The agent \
         with `wakes_peers` has the acknowledgement repeated, and sends the last of these errors a round trip later if nothing has \
         come. `hold` at the mobile host acts as a gateway at the receiver's end does. With agents at both hosts the mobile host's asks the fixed host's (Immediate \
         Retransmission Option). An outage of 0.2 s is over before the sender's first timeout."
            .to_owned(),
        "What a short timeout costs: `tcp_rto_max_ms = 1000` asks nothing of the mobile host, and resumes within a second and a round \
         trip of every outage, half a second on average. But it has to be set at the sender, which for downloads is somebody else's \
         server. It holds for all of the host's connections, also where the path is congested rather than away: the back-off ends at one \
         second, where RFC 6298 has a minute. Each stalled connection sends a packet a second into the outage, 3,600 in an hour, where \
         `hold` sends up to 50 a second for all of a link together, and 7,600 in an hour. `hold` at the sender's end of the link is up to ten times \
         sooner, for senders anywhere, and needs no change of theirs. The agent is as soon where its host notices the outage, and sends nothing into it; in a black hole one connection with each \
         peer tries it, four times a second at first, 735 times in an hour."
            .to_owned(),
    ]
}

/// The race as one figure.
#[derive(Debug)]
struct Race;

impl Figure for Race {
    fn name(&self) -> &'static str {
        "race"
    }

    fn title(&self) -> &'static str {
        "When a transfer resumes and ends, by what helps it"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        cells::jobs(extent, &cells::cells(extent), &Contestant::ALL)
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        let cells = cells::cells(extent);
        let mut part = Part::new("When a transfer resumes and ends").table(needs());
        for cell in &cells {
            part = part.table(table(cell, runs));
        }
        part.claims(claims(&cells, runs))
    }
}

/// What each contestant needs.
fn needs() -> Table {
    let mut table = Table::new(vec![
        Column::text("contestant", "Contestant"),
        Column::text("needs", "Needs"),
    ])
    .titled("What has to be there");
    for contestant in Contestant::ALL {
        table.push(vec![
            Shown::from(contestant.title()),
            Shown::from(contestant.needs()),
        ]);
    }
    table
}

/// One cell: a row for each contestant.
fn table(cell: &Cell, runs: &Runs) -> Table {
    let mut table = Table::new(vec![
        Column::text("contestant", "Contestant"),
        Column::quantity("resume_s", "Resumed", Unit::Seconds),
        Column::quantity("worst_s", "worst", Unit::Seconds),
        Column::quantity("five_seconds", "First five seconds", Unit::Share),
        Column::quantity("done_s", "Done", Unit::Seconds),
        Column::quantity("sent", "Sent into the outage", Unit::Count),
        Column::text("ended", "Ended"),
    ])
    .titled(format!(
        "{}, {}, {} for {} s",
        cell.direction,
        cell.congestion,
        title_of(cell.cut),
        cell.outage.as_secs_f64(),
    ));
    for contestant in Contestant::ALL {
        let records = runs.of(&cell.name(contestant));
        let worst = records
            .iter()
            .map(|run| resume(run).unwrap_or(f64::INFINITY));
        let ended = records.iter().find_map(|run| of(run)?.ended);
        table.push(vec![
            Shown::from(contestant.title()),
            shown(median(records.iter().map(resume)).map(|it| it.value)),
            shown(worst.reduce(f64::max)),
            Shown::from(five_seconds(records)),
            shown(median(records.iter().map(done)).map(|it| it.value)),
            sent(cell, records),
            ended.map_or_else(Shown::missing, |why| Shown::from(why).tone(Tone::Bad)),
        ]);
    }
    table
}

/// Nothing crosses an interface without carrier, so that nobody can count there.
fn sent(cell: &Cell, records: &[Record]) -> Shown {
    let counts = records
        .iter()
        .filter_map(|run| Some(of(run)?.sent_while_away as f64));
    let middle = median(counts.map(Some)).filter(|_| cell.cut != Cut::Carrier);
    middle.map_or_else(Shown::missing, |count| Shown::from(count.value as u64))
}

fn shown(time: Option<f64>) -> Shown {
    match time {
        None => Shown::missing(),
        Some(time) if time.is_finite() => Shown::from(time),
        Some(_) => Shown::from("never").tone(Tone::Bad),
    }
}

fn of(run: &Record) -> Option<Observed> {
    run.observed()
}

fn resume(run: &Record) -> Option<f64> {
    of(run)?.seen.resume_s
}

fn done(run: &Record) -> Option<f64> {
    of(run)?.done_s
}

/// Whether the run says something of its contestant: not one that was late each time while the machine was, too.
fn is_judged(run: &Record) -> bool {
    run.warnings.is_empty()
}

fn claims(cells: &[Cell], runs: &Runs) -> Vec<Judged> {
    let own =
        |statement: &'static str, unit, published| own_claim("race", statement, unit, published);
    let with = |contestant: Contestant| {
        let all = cells
            .iter()
            .flat_map(move |cell| runs.of(&cell.name(contestant)));
        all.filter(|run| is_judged(run))
    };
    let long = cells
        .iter()
        .filter(|cell| cell.outage.as_secs_f64() >= LONG_S);
    let plain = long.flat_map(|cell| runs.of(&cell.name(Contestant::Plain)));
    vec![
        own(
            "With hold at both ends a transfer resumes within one round trip and 50 ms of link-up (share of runs).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(share(with(Contestant::HoldAtBoth), |run| {
            resume(run).is_some_and(|time| time <= LIMIT_S)
        })),
        own(
            "Plain Linux resumes a second after link-up or later, where the outage lasted 15 s or longer (median).",
            Unit::Seconds,
            Published::AtLeast(1.0),
        )
        .judge(median(plain.map(resume))),
        own(
            "Whoever comes to the end has what was sent (share of runs).",
            Unit::Share,
            Published::AtLeast(1.0),
        )
        .judge(share(
            // Of a stream whose end had not come by the deadline nobody knows, though all of its bytes may be there.
            runs.all().filter(|run| run.result.intact.is_some()),
            |run| run.result.intact == Some(true),
        )),
    ]
}
