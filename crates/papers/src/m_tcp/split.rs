//! Section 2.2: silences of a connection that is split between two TCPs.
//!
//! The half that meets disconnections is a connection of its own, from the base station to the mobile. It is
//! all that is run: the other half, which never is short of data, cannot make a silence.

use super::claim;
use super::testbed::{DISCONNECTIONS, PROCESSES};
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Measured, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::result::World;

/// The wireless half of a split connection.
#[derive(Debug)]
pub struct Split;

fn cell(process: &str, down_ms: u32) -> String {
    format!("wireless half of a split, {process} 5000/{down_ms} ms")
}

fn text(process: &str, down_ms: u32) -> String {
    format!(
        "name = \"split\"\n\
         [link]\ndelay = \"2 ms\"\nqueue = 1000\n\
         [link.downlink]\nrate = \"32 kbit/s\"\n[link.uplink]\nrate = \"8 kbit/s\"\n\
         [link.outages]\nprocess = \"{process}\"\nup = \"5 s\"\ndown = \"{down_ms} ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1000 kB\"\n\
         [stack]\nprofile = \"netbsd-1997\"\n\
         [run]\nseed = 1\ndeadline = \"24 h\"\n"
    )
}

fn cells() -> impl Iterator<Item = (&'static str, u32)> {
    PROCESSES
        .into_iter()
        .flat_map(|process| DISCONNECTIONS.map(|down_ms| (process, down_ms)))
}

/// From the beginning of each disconnection to the first new bytes after it, further disconnections included.
fn silences(record: &Record) -> impl Iterator<Item = f64> {
    let outages = record.result.outages.iter();
    outages.filter_map(|outage| Some(outage.length_s? + outage.resume_s?))
}

fn sample(runs: &Runs, process: &str, down_ms: u32) -> Option<Sample> {
    Sample::of(runs.of(&cell(process, down_ms)).iter().flat_map(silences))
}

impl Figure for Split {
    fn name(&self) -> &'static str {
        "section-2-2"
    }

    fn title(&self) -> &'static str {
        "Silences of the wireless half of a split connection"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let of_cell = |(process, down_ms)| {
            let job = move |index| {
                Job::from_toml(cell(process, down_ms), text(process, down_ms), index)
                    .in_world(World::Sim)
            };
            (0..extent.choose(10, 50)).map(job)
        };
        cells().flat_map(of_cell).collect()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let title = "Section 2.2: silences of the wireless half of a split connection";
        let mut table = Table::new([
            Column::text("distribution", "Distribution"),
            Column::quantity("disconnection_s", "Disconnection", Unit::Seconds),
            Column::quantity("silences", "Silences", Unit::Count),
            Column::quantity("mean_s", "Mean", Unit::Seconds),
            Column::quantity("greatest_s", "Longest", Unit::Seconds),
        ]);
        for (process, down_ms) in cells() {
            let ours = sample(runs, process, down_ms);
            table.push([
                Cell::from(process),
                Cell::from(f64::from(down_ms) / 1_000.0),
                Cell::from(ours.as_ref().map(|ours| ours.count as f64)),
                Cell::from(ours.as_ref().map(|ours| ours.mean)),
                Cell::from(ours.as_ref().map(|ours| ours.greatest)),
            ]);
        }
        table.note(
            "From the beginning of a disconnection to the first new bytes after it. 1 MB from the base station to the mobile, NetBSD of 1997 \
             at both ends, cells of 5 s.",
        );
        Part::new(title)
            .table(table.titled(title))
            .claims(claims(runs))
    }
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let greatest =
        cells().filter_map(|(process, down_ms)| Some(sample(runs, process, down_ms)?.greatest));
    let greatest = Sample::of(greatest).map(|all| Measured {
        value: all.greatest,
        standard_deviation: None,
        count: all.count,
    });
    vec![
        claim(
            "section 2.2",
            "Serial timeouts sometimes silence a connection that is split between two TCPs for 5 minutes and more (longest \
             silence).",
            Unit::Seconds,
            Published::AtLeast(300.0),
            Tolerance::Exact,
        )
        .judge(greatest),
    ]
}
