//! Scenario files as the experiments write them.
//!
//! An experiment states its runs in the same language as a user does, so that every run of a report
//! can be repeated alone with `outlast lab` or `outlast sim`.

use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_scenario::{
    Congestion, Direction, IpVersion, Mechanism, Profile, Scenario, ScenarioError,
};
use std::path::Path;

/// What one scenario of an experiment says.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Rate of the link, both ways.
    pub rate_mbit_per_s: u32,
    /// One-way delay.
    pub delay: Duration,
    /// Packets that may wait at the link.
    pub queue: u32,
    /// When the link is down.
    pub outages: Outages,
    /// What the hosts do.
    pub task: Task,
    /// Congestion control.
    pub congestion: Congestion,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Network protocol.
    pub ip: IpVersion,
    /// What Outlast does at the fixed side of the link.
    pub gateway: Mechanism,
    /// What Outlast does at the mobile.
    pub mobile: Mechanism,
    /// Seed of the first run.
    pub seed: u64,
    /// When a run is given up.
    pub deadline: Duration,
}

/// When the link is down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outages {
    /// Never.
    None,
    /// Once.
    Single {
        /// From when on.
        start: Duration,
        /// For how long.
        length: Duration,
    },
    /// Again and again, each period between half and one and a half of its mean.
    Uniform {
        /// Mean connected time.
        up: Duration,
        /// Mean disconnected time.
        down: Duration,
    },
}

/// What the hosts do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Task {
    /// A transfer.
    Bulk {
        /// Of this size.
        bytes: ByteCount,
        /// Which way.
        direction: Direction,
    },
    /// Small updates, each asked for when the last one has arrived (Scott and Mapp, section 6.2).
    Interactive {
        /// How often there is something new.
        interval: Duration,
        /// How long it goes on.
        duration: Duration,
    },
    /// Small questions of the mobile host's, each answered in as few bytes.
    Questions {
        /// How many.
        count: u32,
        /// Time between an answer and the next question.
        think: Duration,
    },
}

/// Bytes of a small question, and of its answer.
const QUESTION: u32 = 64;

impl Setting {
    /// The scenario file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let Self {
            congestion, sack, ..
        } = self;
        self.with_stack(&[
            format!("congestion = \"{congestion}\""),
            format!("sack = {sack}"),
        ])
    }

    /// The scenario file for the simulator, with the stack of `profile` as it was: its own
    /// congestion control and options in place of those of the setting.
    #[must_use]
    pub fn to_toml_on(&self, profile: Profile) -> String {
        self.with_stack(&[format!("profile = \"{profile}\"")])
    }

    fn with_stack(&self, stack: &[String]) -> String {
        let mut lines = vec![
            format!("name = \"{}\"", self.name),
            String::new(),
            "[link]".to_owned(),
            format!("rate = \"{} Mbit/s\"", self.rate_mbit_per_s),
            format!("delay = {}", quoted(self.delay)),
            format!("queue = {}", self.queue),
        ];
        lines.extend(self.outages.lines());
        lines.extend(self.task.lines());
        let Self {
            ip,
            gateway,
            mobile,
            ..
        } = self;
        lines.extend([String::new(), "[stack]".to_owned()]);
        lines.extend_from_slice(stack);
        lines.extend([
            format!("ip = \"{ip}\""),
            String::new(),
            "[outlast]".to_owned(),
            format!("gateway = \"{gateway}\""),
            format!("mobile = \"{mobile}\""),
            String::new(),
            "[run]".to_owned(),
            format!("seed = {}", self.seed),
            format!("deadline = {}", quoted(self.deadline)),
        ]);
        lines.push(String::new());
        lines.join("\n")
    }
}

/// The scenario that `text` describes. It refers to no files.
///
/// # Errors
/// When the text is no scenario.
pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(text, "experiment.toml", Path::new("."))
}

impl Outages {
    fn lines(self) -> Vec<String> {
        let lines = |process: &str, first: (&str, Duration), second: (&str, Duration)| {
            vec![
                "[link.outages]".to_owned(),
                format!("process = \"{process}\""),
                format!("{} = {}", first.0, quoted(first.1)),
                format!("{} = {}", second.0, quoted(second.1)),
            ]
        };
        match self {
            Self::None => Vec::new(),
            Self::Single { start, length } => lines("single", ("start", start), ("length", length)),
            Self::Uniform { up, down } => lines("uniform", ("up", up), ("down", down)),
        }
    }
}

impl Task {
    fn lines(self) -> Vec<String> {
        let head = |kind| {
            [
                String::new(),
                "[workload]".to_owned(),
                format!("kind = \"{kind}\""),
            ]
        };
        match self {
            Self::Bulk { bytes, direction } => head("bulk")
                .into_iter()
                .chain([
                    format!("bytes = \"{} B\"", bytes.as_u64()),
                    format!("direction = \"{direction}\""),
                ])
                .collect(),
            Self::Interactive { interval, duration } => head("interactive")
                .into_iter()
                .chain([
                    format!("interval = {}", quoted(interval)),
                    format!("duration = {}", quoted(duration)),
                ])
                .collect(),
            Self::Questions { count, think } => head("request-response")
                .into_iter()
                .chain([
                    format!("requests = {count}"),
                    format!("request = \"{QUESTION} B\""),
                    format!("response = \"{QUESTION} B\""),
                    format!("think = {}", quoted(think)),
                ])
                .collect(),
        }
    }
}

/// A duration as scenario files have it: in the largest unit in which it is a whole number.
pub fn quoted(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let units = [
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let (worth, unit) = units
        .into_iter()
        .find(|(worth, _)| nanos.is_multiple_of(*worth))
        .expect("every duration is a whole number of nanoseconds");
    format!("\"{} {unit}\"", nanos / worth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_link::OutageProcess;
    use outlast_scenario::Workload;

    #[test]
    fn what_is_written_is_what_is_read() {
        let setting = Setting {
            name: "a download".into(),
            rate_mbit_per_s: 10,
            delay: Duration::from_micros(1_500),
            queue: 75,
            outages: Outages::Uniform {
                up: Duration::from_millis(500),
                down: Duration::from_nanos(55_555_555),
            },
            task: Task::Bulk {
                bytes: ByteCount(4_000_000),
                direction: Direction::Upload,
            },
            congestion: Congestion::Bbr,
            sack: false,
            ip: IpVersion::V6,
            gateway: Mechanism::Hold,
            mobile: Mechanism::SmartLink3,
            seed: 7,
            deadline: Duration::from_secs(90),
        };
        let scenario = parse(&setting.to_toml()).expect("the setting is sound");
        assert_eq!(scenario.name, "a download");
        assert_eq!(scenario.link.downlink, scenario.link.uplink);
        assert_eq!(scenario.link.downlink.delay, setting.delay);
        assert_eq!(scenario.link.downlink.queue, 75);
        let (up, down) = (Duration::from_millis(500), Duration::from_nanos(55_555_555));
        assert_eq!(scenario.link.outages, OutageProcess::Uniform { up, down });
        let bytes = ByteCount(4_000_000);
        assert_eq!(
            scenario.workload,
            Workload::Bulk {
                bytes,
                direction: Direction::Upload
            }
        );
        assert_eq!(scenario.stack.congestion, Some(Congestion::Bbr));
        assert_eq!(
            (scenario.stack.sack, scenario.stack.ip),
            (Some(false), IpVersion::V6)
        );
        assert_eq!(scenario.outlast.gateway, Mechanism::Hold);
        assert_eq!(scenario.outlast.mobile, Mechanism::SmartLink3);
        assert_eq!(
            (scenario.run.seed, scenario.run.deadline),
            (7, setting.deadline)
        );

        let historic = parse(&setting.to_toml_on(Profile::Linux22)).expect("so it is here");
        assert_eq!(historic.stack.profile, Profile::Linux22);
        assert_eq!(
            (historic.stack.congestion, historic.stack.sack),
            (None, None)
        );
        assert_eq!(historic.link, scenario.link);
    }
}
