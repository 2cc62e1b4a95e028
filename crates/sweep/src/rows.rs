//! What stands in the tables of runs, outages and connections.

use crate::datum::{Column, Datum, Kind};
use crate::plan::Run;
use outlast_report::results::resume_times;
use outlast_report::statistics::Sample;
use outlast_report::unit::Unit;
use outlast_scenario::result::{Drops, FlowResult, OutageResult, RunResult};
use outlast_scenario::{Direction, Profile};

/// A column of results, and how to get its value.
struct Measure {
    name: &'static str,
    kind: Kind,
    unit: Unit,
    value: fn(&RunResult) -> Datum,
}

const fn flag(name: &'static str, value: fn(&RunResult) -> Datum) -> Measure {
    Measure {
        name,
        kind: Kind::Flag,
        unit: Unit::Number,
        value,
    }
}

const fn text(name: &'static str, value: fn(&RunResult) -> Datum) -> Measure {
    Measure {
        name,
        kind: Kind::Text,
        unit: Unit::Number,
        value,
    }
}

const fn count(name: &'static str, value: fn(&RunResult) -> Datum) -> Measure {
    Measure {
        name,
        kind: Kind::Integer,
        unit: Unit::Count,
        value,
    }
}

const fn whole(name: &'static str, unit: Unit, value: fn(&RunResult) -> Datum) -> Measure {
    Measure {
        name,
        kind: Kind::Integer,
        unit,
        value,
    }
}

const fn seconds(name: &'static str, value: fn(&RunResult) -> Datum) -> Measure {
    Measure {
        name,
        kind: Kind::Number,
        unit: Unit::Seconds,
        value,
    }
}

/// Every scalar of a result, and what its outages come to.
static MEASURES: [Measure; 47] = [
    count("seed", |run| run.settings.seed.into()),
    flag("completed", |run| run.completed.into()),
    flag("intact", |run| run.intact.into()),
    seconds("elapsed_s", |run| run.elapsed_s.into()),
    seconds("ideal_s", |run| run.ideal_s.into()),
    Measure {
        name: "utilisation",
        kind: Kind::Number,
        unit: Unit::Share,
        value: |run| run.utilisation.into(),
    },
    count("outages", |run| (run.outages.len() as u64).into()),
    seconds("resume_first_s", |run| {
        resume_times(run).next().flatten().into()
    }),
    seconds("resume_median_s", |run| {
        resumes(run).map(|sample| sample.median).into()
    }),
    seconds("resume_max_s", |run| {
        resumes(run).map(|sample| sample.greatest).into()
    }),
    count("never_resumed", |run| never_resumed(run).into()),
    seconds("half_second_median_s", |run| {
        median(run, |outage| outage.half_second_s).into()
    }),
    Measure {
        name: "first_five_seconds_median_share",
        kind: Kind::Number,
        unit: Unit::Share,
        value: |run| median(run, |outage| outage.first_five_seconds_share).into(),
    },
    count("timeouts", |run| run.timeouts.into()),
    whole("retransmitted_bytes", Unit::Bytes, |run| {
        run.retransmitted_bytes.into()
    }),
    count("injected_packets", |run| run.injected_packets.into()),
    whole("injected_bytes", Unit::Bytes, |run| {
        run.injected_bytes.into()
    }),
    flag("user_timeout_abort", |run| run.user_timeout_abort.into()),
    text("error", |run| run.error.as_deref().into()),
    whole("bytes_received", Unit::Bytes, |run| {
        run.bytes_received.into()
    }),
    count("updates", |run| run.updates.into()),
    count("ideal_updates", |run| run.ideal_updates.into()),
    count("dropped_queue_full", |run| {
        drops(run, |drops| drops.queue_full)
    }),
    count("dropped_loss", |run| drops(run, |drops| drops.loss)),
    count("dropped_link_down", |run| {
        drops(run, |drops| drops.link_down)
    }),
    count("dropped_flushed", |run| drops(run, |drops| drops.flushed)),
    count("dropped_in_flight", |run| {
        drops(run, |drops| drops.in_flight)
    }),
    text("world", |run| run.settings.world.name().into()),
    text("workload", |run| run.settings.workload.name().into()),
    text("direction", |run| {
        run.settings.direction.map(Direction::name).into()
    }),
    whole("bytes", Unit::Bytes, |run| run.settings.bytes.into()),
    whole("downlink_bits_per_s", Unit::BitsPerSecond, |run| {
        run.settings.downlink_bits_per_s.into()
    }),
    whole("uplink_bits_per_s", Unit::BitsPerSecond, |run| {
        run.settings.uplink_bits_per_s.into()
    }),
    seconds("round_trip_s", |run| run.settings.round_trip_s.into()),
    seconds("deadline_s", |run| run.settings.deadline_s.into()),
    text("ip", |run| run.settings.ip.name().into()),
    text("gateway", |run| run.settings.gateway.name().into()),
    text("mobile", |run| run.settings.mobile.name().into()),
    text("fixed", |run| run.settings.fixed.name().into()),
    text("indicators", |run| run.settings.indicators.name().into()),
    text("configured_rate", |run| {
        run.settings.configured_rate.as_str().into()
    }),
    seconds("user_timeout_s", |run| run.settings.user_timeout_s.into()),
    text("kernel", |run| run.settings.tcp.kernel.as_deref().into()),
    text("profile", |run| {
        run.settings.tcp.profile.map(Profile::name).into()
    }),
    text("congestion", |run| {
        run.settings.tcp.congestion.as_str().into()
    }),
    flag("sack", |run| run.settings.tcp.sack.into()),
    flag("timestamps", |run| run.settings.tcp.timestamps.into()),
];

/// The columns of the table of runs; `parameters` are the plan's.
pub(crate) fn run_columns(parameters: Vec<Column>) -> Vec<Column> {
    let measures = MEASURES
        .iter()
        .map(|measure| Column::quantity(measure.name, measure.kind, measure.unit));
    place_columns(parameters)
        .into_iter()
        .chain(measures)
        .collect()
}

/// The row of `run` in the table of runs; `parameters` are the plan's for it.
pub(crate) fn run_row(run: Run, parameters: &[Datum], result: &RunResult) -> Vec<Datum> {
    let measures = MEASURES.iter().map(|measure| (measure.value)(result));
    place(run, parameters).into_iter().chain(measures).collect()
}

/// The median over those outages of a run that have a measure.
fn median(run: &RunResult, measure: fn(&OutageResult) -> Option<f64>) -> Option<f64> {
    let measured = run.outages.iter().filter_map(measure);
    Sample::of(measured).map(|sample| sample.median)
}

/// The columns of the table of outages.
pub(crate) fn outage_columns(parameters: Vec<Column>) -> Vec<Column> {
    let mut columns = place_columns(parameters);
    columns.push(Column::new("seed", Kind::Integer));
    columns.push(Column::quantity("outage", Kind::Integer, Unit::Count));
    for name in ["start_s", "length_s", "resume_s", "half_second_s"] {
        columns.push(Column::quantity(name, Kind::Number, Unit::Seconds));
    }
    let share = "first_five_seconds_share";
    columns.push(Column::quantity(share, Kind::Number, Unit::Share));
    columns
}

/// The rows of the outages of `run`, counted from one.
pub(crate) fn outage_rows(
    run: Run,
    parameters: &[Datum],
    result: &RunResult,
) -> impl Iterator<Item = Vec<Datum>> {
    let row = move |(number, outage): (u64, &OutageResult)| {
        let mut row = place(run, parameters);
        row.extend([
            result.settings.seed.into(),
            number.into(),
            outage.start_s.into(),
            outage.length_s.into(),
            outage.resume_s.into(),
            outage.half_second_s.into(),
            outage.first_five_seconds_share.into(),
        ]);
        row
    };
    (1..).zip(&result.outages).map(row)
}

/// The columns of the table of connections.
pub(crate) fn flow_columns(parameters: Vec<Column>) -> Vec<Column> {
    let mut columns = place_columns(parameters);
    columns.push(Column::new("seed", Kind::Integer));
    columns.push(Column::quantity("flow", Kind::Integer, Unit::Count));
    columns.extend([
        Column::new("completed", Kind::Flag),
        Column::new("intact", Kind::Flag),
        Column::quantity("begin_s", Kind::Number, Unit::Seconds),
        Column::quantity("elapsed_s", Kind::Number, Unit::Seconds),
        Column::quantity("resume_median_s", Kind::Number, Unit::Seconds),
        Column::quantity("resume_max_s", Kind::Number, Unit::Seconds),
        Column::quantity("timeouts", Kind::Integer, Unit::Count),
        Column::quantity("retransmitted_bytes", Kind::Integer, Unit::Bytes),
        Column::new("user_timeout_abort", Kind::Flag),
        Column::new("error", Kind::Text),
        Column::quantity("bytes_received", Kind::Integer, Unit::Bytes),
        Column::quantity("updates", Kind::Integer, Unit::Count),
        Column::new("workload", Kind::Text),
        Column::new("direction", Kind::Text),
        Column::quantity("bytes", Kind::Integer, Unit::Bytes),
        Column::new("kernel", Kind::Text),
        Column::new("profile", Kind::Text),
        Column::new("congestion", Kind::Text),
        Column::new("sack", Kind::Flag),
        Column::new("timestamps", Kind::Flag),
    ]);
    columns
}

/// The rows of the connections of `run`, counted from one; none if there is only that of
/// `[workload]`, of which the table of runs says it all.
pub(crate) fn flow_rows(
    run: Run,
    parameters: &[Datum],
    result: &RunResult,
) -> impl Iterator<Item = Vec<Datum>> {
    let row = move |(number, flow): (u64, &FlowResult)| {
        let resumes = Sample::of(flow.resume_s.iter().copied().flatten());
        let mut row = place(run, parameters);
        row.extend([
            result.settings.seed.into(),
            number.into(),
            flow.completed.into(),
            flow.intact.into(),
            flow.begin_s.into(),
            flow.elapsed_s.into(),
            resumes.map(|sample| sample.median).into(),
            resumes.map(|sample| sample.greatest).into(),
            flow.timeouts.into(),
            flow.retransmitted_bytes.into(),
            flow.user_timeout_abort.into(),
            flow.error.as_deref().into(),
            flow.bytes_received.into(),
            flow.updates.into(),
            flow.workload.name().into(),
            flow.direction.map(Direction::name).into(),
            flow.bytes.into(),
            flow.tcp.kernel.as_deref().into(),
            flow.tcp.profile.map(Profile::name).into(),
            flow.tcp.congestion.as_str().into(),
            flow.tcp.sack.into(),
            flow.tcp.timestamps.into(),
        ]);
        row
    };
    (1..).zip(&result.flows).map(row)
}

/// Where a run stands in the sweep.
fn place_columns(parameters: Vec<Column>) -> Vec<Column> {
    let mut columns = vec![
        Column::quantity("cell", Kind::Integer, Unit::Count),
        Column::quantity("repetition", Kind::Integer, Unit::Count),
    ];
    columns.extend(parameters);
    columns
}

/// The first values of a row: cell and repetition, from one, and `parameters`.
fn place(run: Run, parameters: &[Datum]) -> Vec<Datum> {
    let mut place = vec![(run.cell + 1).into(), (run.repetition + 1).into()];
    place.extend_from_slice(parameters);
    place
}

/// The times from link-up to new data, of the returns after which data came.
fn resumes(run: &RunResult) -> Option<Sample> {
    Sample::of(resume_times(run).flatten())
}

fn never_resumed(run: &RunResult) -> u64 {
    resume_times(run).filter(Option::is_none).count() as u64
}

fn drops(run: &RunResult, of: fn(&Drops) -> u64) -> Datum {
    run.dropped_packets.as_ref().map(of).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use std::path::Path;

    /// A result that grows gets columns.
    #[test]
    fn every_scalar_of_a_result_has_a_column() {
        let text = "[link]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n\
            [workload]\nkind = \"bulk\"\nbytes = \"10 kB\"\n[sweep]\n";
        let plan = Plan::parse(text, "small.toml", Path::new(".")).expect("a sound sweep");
        let run = Run {
            cell: 0,
            repetition: 0,
        };
        let result = plan.carry_out(run).expect("a sound run");
        let json = serde_json::to_value(&result).expect("results are JSON");
        let known = |name: &str| MEASURES.iter().any(|measure| measure.name == name);
        for (name, value) in json.as_object().expect("a result is an object") {
            let is_column = match name.as_str() {
                "dropped_packets" => {
                    let drops = value.as_object().expect("drops by reason");
                    drops
                        .keys()
                        .all(|reason| known(&format!("dropped_{reason}")))
                }
                name => known(name),
            };
            assert!(is_column, "no column for `{name}`: add it to MEASURES");
        }
    }
}
