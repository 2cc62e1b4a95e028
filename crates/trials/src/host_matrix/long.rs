//! Uploads that outlive their kernel's own limit: outages of minutes, with the User Timeout Option and without.

use super::{LIMIT_S, resume};
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{own_claim, share};
use outlast_experiments::record::{Record, Runs};
use outlast_report::judgement::{Judged, Published};
use outlast_report::table::{Cell as Shown, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Congestion::{self, Bbr, Cubic};

/// How often both kernels repeat a segment (`net.ipv4.tcp_retries2`): Linux gives a connection up after about
/// 13 s then, with a round trip of 40 ms.
const RETRIES: u32 = 5;
const CONGESTIONS: [Congestion; 2] = [Cubic, Bbr];

/// What helps an upload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Help {
    None,
    Agent,
    AgentAndTimeout,
}

const HELP: [Help; 3] = [Help::None, Help::Agent, Help::AgentAndTimeout];

impl Help {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::Agent => "agent",
            Self::AgentAndTimeout => "agent, user timeout of 10 min",
        }
    }

    const fn keys(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Agent => "[outlast]\nmobile = \"retransmission-trigger\"\n",
            Self::AgentAndTimeout => {
                "[outlast]\nmobile = \"retransmission-trigger\"\nuser_timeout = \"10 min\"\n"
            }
        }
    }
}

fn outage(extent: Extent) -> Duration {
    extent.choose(Duration::from_secs(45), Duration::from_secs(300))
}

fn name(congestion: Congestion, help: Help) -> String {
    format!("{congestion}, minutes away, {}", help.name())
}

fn job(extent: Extent, congestion: Congestion, help: Help) -> Job {
    let name = name(congestion, help);
    let length = outage(extent);
    let text = format!(
        "name = \"{name}\"\n[link]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\nqueue = 75\n\
         [link.outages]\nprocess = \"single\"\nstart = \"2 s\"\nlength = \"{} s\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"2 MB\"\ndirection = \"upload\"\n\
         [stack]\ncongestion = \"{congestion}\"\nretries = {RETRIES}\n{}\
         [run]\ndeadline = \"{} s\"\n",
        length.as_secs(),
        help.keys(),
        length.as_secs() + 60,
    );
    Job::from_toml(name, text, 0)
}

/// Outages beyond the kernel's own limit, as one figure.
#[derive(Debug)]
pub(super) struct Long;

impl Figure for Long {
    fn name(&self) -> &'static str {
        "minutes-away"
    }

    fn title(&self) -> &'static str {
        "Uploads that are away for longer than their kernel keeps them"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let of = |congestion| HELP.map(|help| job(extent, congestion, help));
        CONGESTIONS.into_iter().flat_map(of).collect()
    }

    fn present(&self, extent: Extent, runs: &Runs) -> Part {
        Part::new("An outage that is longer than the kernel's own limit")
            .table(table(extent, runs))
            .claims(claims(runs))
    }
}

fn is_kept(record: &Record) -> bool {
    !record.result.user_timeout_abort && record.result.completed
}

fn table(extent: Extent, runs: &Runs) -> Table {
    let columns = vec![
        Column::text("congestion", "Congestion"),
        Column::text("help", "Helped by"),
        Column::text("connection", "Connection"),
        Column::quantity("resume_s", "Resumed", Unit::Seconds),
    ];
    let mut table = Table::new(columns).titled("Uploads over one long outage");
    for congestion in CONGESTIONS {
        for help in HELP {
            for record in runs.of(&name(congestion, help)) {
                table.push(vec![
                    Shown::from(congestion.name()),
                    Shown::from(help.name()),
                    Shown::from(if is_kept(record) { "kept" } else { "given up" }),
                    resume(record).map_or(Shown::missing(), Shown::from),
                ]);
            }
        }
    }
    table.note(format!(
        "An outage of {} s. Both kernels repeat a segment {RETRIES} times at most (`net.ipv4.tcp_retries2`), and give a \
         connection up after about 13 s. The user timeout is asked for by both ends on the wire (RFC 5482).",
        outage(extent).as_secs(),
    ));
    table
}

fn claims(runs: &Runs) -> Vec<Judged> {
    let of = |help: Help| {
        let cells = CONGESTIONS.into_iter();
        cells.flat_map(move |congestion| runs.of(&name(congestion, help)))
    };
    let own = |statement: &'static str| {
        own_claim(
            "host-matrix",
            statement,
            Unit::Share,
            Published::AtLeast(1.0),
        )
    };
    let is_in_time =
        |record: &Record| is_kept(record) && resume(record).is_some_and(|time| time <= LIMIT_S);
    vec![
        own(
            "With the user timeout and the agent, uploads outlive the kernel's own limit and resume within one round \
             trip and 100 ms (share of runs).",
        )
        .judge(share(of(Help::AgentAndTimeout), is_in_time)),
        own("Without the user timeout the kernel gives them up (share of runs).").judge(share(
            of(Help::None).chain(of(Help::Agent)),
            |record| record.result.user_timeout_abort,
        )),
    ]
}
