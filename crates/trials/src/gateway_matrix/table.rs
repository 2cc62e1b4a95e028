//! The matrix as tables.

use super::cells::{CUTS, Cell, cut_title};
use super::programs;
use super::trial::{Observed, ProgramTrial, TOLERABLE_DELAY};
use super::{
    LIMIT_S, datagram_age, five_seconds, from_first_chance, is_judged, is_within, middle, resume,
};
use outlast_experiments::record::{Record, Runs};
use outlast_report::table::{Cell as Shown, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_testbed::site::Cut;
use std::collections::BTreeSet;

fn columns() -> [Column; 20] {
    [
        Column::text("cut", "Outage by"),
        Column::quantity("outage_s", "Length", Unit::Seconds),
        Column::text("program", "Program"),
        Column::text("direction", "Direction"),
        Column::text("stack", "Stack"),
        Column::quantity("control_s", "Control", Unit::Seconds),
        Column::quantity("control_half_second_s", "half a second", Unit::Seconds),
        Column::quantity("control_five_seconds", "five seconds", Unit::Share),
        Column::quantity("control_timeouts", "its timeouts", Unit::Count),
        Column::text("data_path", "Data path"),
        Column::text("noticed", "Noticed"),
        Column::quantity("daemon_s", "Daemon", Unit::Seconds),
        Column::quantity("daemon_half_second_s", "half a second", Unit::Seconds),
        Column::quantity("daemon_five_seconds", "five seconds", Unit::Share),
        Column::quantity("first_sign_s", "first sign", Unit::Seconds),
        Column::quantity("from_first_chance_s", "from first chance", Unit::Seconds),
        Column::text("limit_kept", "Limit kept"),
        Column::quantity(
            "control_datagram_age_s",
            "Datagrams late: control",
            Unit::Seconds,
        ),
        Column::quantity("daemon_datagram_age_s", "daemon", Unit::Seconds),
        Column::text("intact", "Intact"),
    ]
}

/// One row per cell.
pub(super) fn matrix(cells: &[Cell], runs: &Runs) -> Table {
    let mut table = Table::new(columns())
        .titled("Time from link-up until the receiving application has read something new");
    for cell in cells {
        let [controls, daemons] = [false, true].map(|who| runs.of(&cell.name(who)));
        let (control, daemon) = (controls.first(), daemons.first());
        if control.or(daemon).is_none() && programs::missing(cell.program).is_none() {
            // It was not carried out yet.
            continue;
        }
        let first_sign = |run: &Record| run.observed::<Observed>()?.first_sign_s;
        let timeouts = |run: &Record| run.result.timeouts.map(|count| count as f64);
        table.push([
            Shown::from(cut_title(cell.cut)),
            Shown::from(cell.outage.as_secs_f64()),
            Shown::from(cell.program.title()),
            Shown::from(cell.program.direction().name()),
            Shown::from(cell.stack.to_string()),
            time(controls, resume),
            Shown::from(middle(controls.iter(), half_second)),
            Shown::from(middle(controls.iter(), five_seconds)),
            Shown::from(middle(controls.iter(), timeouts)),
            daemon.map_or(Shown::missing(), |run| Shown::from(way(cell, run))),
            daemon.map_or(Shown::missing(), noticed),
            time(daemons, resume),
            Shown::from(middle(daemons.iter(), half_second)),
            Shown::from(middle(daemons.iter(), five_seconds)),
            Shown::from(middle(daemons.iter(), first_sign)),
            time(daemons, from_first_chance),
            daemon.map_or_else(|| skipped(cell), |_| limit(daemons)),
            Shown::from(middle(controls.iter(), datagram_age)),
            Shown::from(middle(daemons.iter(), datagram_age)),
            Shown::from(intact(controls, daemons)),
        ]);
    }
    table.note(format!(
        "Control and Daemon: from link-up. First sign: when the first frame came out of the link at \
         the end where the daemon is. From first chance: from the first sign on, or from link-up \
         if the new bytes came before it. Limit kept: that is at most one round trip and 50 ms, {}. \
         \"never\": not before the deadline, three times the outage and a minute.",
        Unit::Seconds.show_exact(LIMIT_S)
    ));
    table.note(
        "Where the gateway's kernel itself notices the outage (carrier, neighbour), it answers each \
         retransmission of the control with \"host unreachable\", upon which the sender takes back its \
         back-off (RFC 6069): so the control often waits less than its timeouts would say. After a \
         black hole nobody tells it anything.",
    );
    table.note(
        "Noticed: whether the daemon held the link or the peer for down when it came back. Intact: \
         hashes of what was sent and of what came, without and with the daemon; iperf3 leaves \
         nothing to compare, and \"done\" says that both its ends are content.",
    );
    table
}

/// The runs with the daemon that missed the limit, with what bears on it; `None` if there are none.
pub(super) fn beyond(cells: &[Cell], runs: &Runs) -> Option<Table> {
    let mut table = Table::new([
        Column::text("cell", "Run"),
        Column::quantity("from_first_chance_s", "From first chance", Unit::Seconds),
        Column::text("noticed", "Noticed"),
        Column::quantity("late_s", "Machine late by", Unit::Seconds),
        Column::quantity("attempts", "Attempts", Unit::Count),
        Column::text("why", "Why"),
    ])
    .titled("Beyond the limit");
    let all = cells.iter().flat_map(|cell| runs.of(&cell.name(true)));
    let mut missed = all.filter(|run| !is_within(run)).peekable();
    missed.peek()?;
    for run in missed {
        table.push([
            Shown::from(run.cell.clone()),
            time(std::slice::from_ref(run), from_first_chance),
            noticed(run),
            Shown::from(run.worst_delay_s),
            Shown::from(u64::from(run.attempts)),
            Shown::from(why(run)),
        ]);
    }
    table.note(
        format!(
            "Machine late by: the most by which the emulated link, who looked at what was read, or a \
             thread on each processor that wants to run for a moment every millisecond was late until \
             the resumption, or for a second. A run that misses the limit while that is more than \
             {} is carried out again, {} times in all; if it was so each time, the run is not judged.",
            Unit::Seconds.show_exact(TOLERABLE_DELAY.as_secs_f64()),
            ProgramTrial::ATTEMPTS
        ),
    );
    table.note(
        "Not known: nothing that the run has recorded tells. Captures of uploads that missed the limit after \
         an outage of 1 s show two reasons. The router has given the mobile host up, and asks for it \
         before it forwards an answer: a round trip more; the daemon reminds it, but not with each probe. Or \
         another connection answers first, the payload's own answer finds it in the midst of filling a \
         hole, and its sender, having learnt that its timeout was spurious, sends a window of new data \
         before the hole: 40 to 60 packets' time on the link more.",
    );
    Some(table)
}

/// What is known of the reason.
fn why(run: &Record) -> &'static str {
    match (is_judged(run), super::noticed(run)) {
        (false, _) => "not judged: the machine was late each time",
        (true, false) => "the daemon did not know of the outage",
        (true, true) => "not known",
    }
}

/// How soon the kernel doubts its neighbours, and how packets came to the daemon: as it was in the
/// runs.
pub(super) fn circumstances(cells: &[Cell], runs: &Runs) -> Table {
    let mut table = Table::new([
        Column::text("cut", "Outage by"),
        Column::text("neighbours", "net.*.neigh.link0"),
        Column::text("data_path", "Data path"),
        Column::text("congestion", "Congestion in force"),
    ])
    .titled("Circumstances");
    for cut in CUTS {
        let records = || of_cut(cut, cells, runs);
        let observed = || records().filter_map(Record::observed::<Observed>);
        let timing = observed().map(|observed| {
            let one = |(name, value): &(String, String)| format!("{name} {value}");
            let all: Vec<_> = observed.neighbour_timing.iter().map(one).collect();
            all.join(", ")
        });
        table.push([
            Shown::from(cut_title(cut)),
            Shown::from(each_once(timing)),
            Shown::from(each_once(
                records()
                    .filter(|run| {
                        run.observed::<Observed>()
                            .is_some_and(|seen| seen.noticed.is_some())
                    })
                    .map(data_path),
            )),
            Shown::from(each_once(
                records().map(|run| run.result.settings.tcp.congestion.clone()),
            )),
        ]);
    }
    table
}

fn of_cut<'r>(
    cut: Cut,
    cells: &'r [Cell],
    runs: &'r Runs,
) -> impl Iterator<Item = &'r Record> + 'r {
    let those = cells.iter().filter(move |cell| cell.cut == cut);
    those.flat_map(|cell| {
        [false, true]
            .into_iter()
            .flat_map(|assisted| runs.of(&cell.name(assisted)))
    })
}

fn each_once(values: impl Iterator<Item = String>) -> String {
    let values: BTreeSet<String> = values.collect();
    values.into_iter().collect::<Vec<_>>().join("; ")
}

fn half_second(run: &Record) -> Option<f64> {
    run.result.outages.first()?.half_second_s
}

/// The median of the runs' times; missing where there are no runs.
fn time(runs: &[Record], time: fn(&Record) -> Option<f64>) -> Shown {
    let times = |run: &Record| Some(time(run).unwrap_or(f64::INFINITY));
    match middle(runs.iter(), times) {
        None => Shown::missing(),
        Some(time) if time.is_finite() => Shown::from(time),
        Some(_) => Shown::from("never").tone(Tone::Bad),
    }
}

fn noticed(run: &Record) -> Shown {
    match super::noticed(run) {
        true => Shown::from("yes"),
        false => Shown::from("no").tone(Tone::Warning),
    }
}

/// How packets came to the daemon, and whether it was there from the beginning.
fn way(cell: &Cell, run: &Record) -> String {
    let late = match cell.starts_late {
        true => ", started in the outage",
        false => "",
    };
    data_path(run) + late
}

/// Its name alone; what it is doing at the moment follows a colon.
fn data_path(run: &Record) -> String {
    let noticed = run.observed::<Observed>().and_then(|seen| seen.noticed);
    let path = noticed
        .as_ref()
        .map_or("–", |noticed| noticed.data_path.as_str());
    path.split(':').next().unwrap_or(path).to_owned()
}

/// Whether each of the runs that can be judged kept the limit.
fn limit(runs: &[Record]) -> Shown {
    let judged = || runs.iter().filter(|run| is_judged(run) || is_within(run));
    let (all, kept) = (
        judged().count(),
        judged().filter(|run| is_within(run)).count(),
    );
    match all - kept {
        _ if all == 0 => Shown::from("not judged").tone(Tone::Warning),
        0 => Shown::from("yes").tone(Tone::Good),
        _ if all == 1 => Shown::from("no").tone(Tone::Bad),
        _ => Shown::from(format!("{kept} of {all}")).tone(Tone::Bad),
    }
}

/// Why there is no run.
fn skipped(cell: &Cell) -> Shown {
    match programs::missing(cell.program) {
        Some(missing) => Shown::from(format!("skipped: no {}", missing.program)),
        None => Shown::missing(),
    }
}

fn intact(controls: &[Record], daemons: &[Record]) -> String {
    let word = |run: &Record| match (run.result.completed, run.result.intact) {
        (false, _) => "incomplete",
        (true, None) => "done",
        (true, Some(true)) => "yes",
        (true, Some(false)) => "NO",
    };
    let words = |runs: &[Record]| match runs.is_empty() {
        true => "–".to_owned(),
        false => each_once(runs.iter().map(|run| word(run).to_owned())),
    };
    match (words(controls), words(daemons)) {
        (one, other) if one == other => one,
        (one, other) => format!("{one}, {other}"),
    }
}
