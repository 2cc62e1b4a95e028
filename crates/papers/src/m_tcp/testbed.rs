//! The paper's testbed (section 6, figure 6) as scenarios.

use outlast_experiments::experiment::Extent;
use outlast_experiments::job::Job;
use outlast_experiments::record::{Record, Runs};
use outlast_report::statistics::Sample;
use outlast_scenario::result::World;
use outlast_scenario::{Content, Mechanism};

/// What readers are told of the testbed.
pub const METHOD: &str = "A fixed host sends to a mobile over a link of 32 kbit/s towards the mobile and \
    8 kbit/s back, with NetBSD of 1997 at both ends and buffers of 16 KB. Cells last 5 s on average, \
    disconnections 0.5 to 4.5 s, both normally or both exponentially distributed. The near sender is 5 \
    hops away: 2 ms each way, segments of 1,448 bytes. The far sender is 15 hops away: 40 ms each way, \
    which the paper does not tell, segments of 524 bytes, and independent losses of 5.1 % on the wired \
    path, which is what the paper measured for short bursts. The paper's link goes on to send while the \
    mobile is disconnected, and the mobile discards; here the link drops what it has queued. The \
    supervisor host of figures 7 to 13 is told of both ends of a disconnection, where the paper's is told of \
    the reconnection by a marked acknowledgement: the figures by detection have that, too.";

/// Rate towards the mobile, in bits per second.
const RATE: f64 = 32_000.0;
/// IP and TCP headers with timestamps, in bytes.
const HEADERS: f64 = 52.0;

/// How far away the sender is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sender {
    /// Five hops.
    Near,
    /// Fifteen hops.
    Far,
}

/// Source of what a supervisor host knows of disconnections.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Detection {
    /// The link tells both ends of each.
    #[default]
    Told,
    /// A missing acknowledgement shows the beginning, the mobile's marked one the end (sections 5.2 and 5.3.2).
    Marked,
    /// A missing acknowledgement, and a mobile that marks nothing: the supervisor host's probes find the end.
    Unmodified,
}

/// One cell of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Where the sender is.
    pub sender: Sender,
    /// Kilobytes.
    pub kilobytes: u32,
    /// Distribution of cell latency and disconnection length.
    pub process: &'static str,
    /// Mean cell latency, in milliseconds.
    pub up_ms: u32,
    /// Mean disconnection, in milliseconds.
    pub down_ms: u32,
    /// What the supervisor host does.
    pub gateway: Mechanism,
    /// What is sent compressed; `None`: nothing is compressed.
    pub compressed: Option<Content>,
    /// Source of what the supervisor host knows of disconnections.
    pub detection: Detection,
}

/// The paper's disconnections, in milliseconds.
pub const DISCONNECTIONS: [u32; 5] = [500, 1_500, 2_500, 3_500, 4_500];
/// The paper's distributions.
pub const PROCESSES: [&str; 2] = ["normal", "exponential"];

/// Repetitions. The paper has 10.
#[must_use]
pub const fn trials(extent: Extent) -> u32 {
    match extent {
        Extent::Quick => 5,
        Extent::Full => 10,
    }
}

impl Sender {
    /// For readers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Near => "5 hops",
            Self::Far => "15 hops",
        }
    }

    const fn mtu(self) -> u32 {
        match self {
            Self::Near => 1_500,
            Self::Far => 576,
        }
    }
}

impl Detection {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Told, Self::Marked, Self::Unmodified];

    /// The end of a cell's name.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Told => "",
            Self::Marked => ", marked",
            Self::Unmodified => ", unmodified",
        }
    }

    /// Keys of `[outlast]`.
    const fn keys(self) -> &'static str {
        match self {
            Self::Told => "",
            Self::Marked => "indicators = \"silence\"\nmobile = \"m-tcp\"\n",
            Self::Unmodified => "indicators = \"silence\"\n",
        }
    }
}

impl Transfer {
    /// Its name among the runs.
    #[must_use]
    pub fn cell(&self) -> String {
        let Self {
            sender,
            kilobytes,
            process,
            up_ms,
            down_ms,
            gateway,
            compressed,
            detection,
        } = self;
        let compressed = compressed.map_or_else(String::new, |content| format!(", {content}"));
        format!(
            "{}, {kilobytes} kB, {process} {up_ms}/{down_ms} ms, {gateway}{compressed}{}",
            sender.name(),
            detection.suffix()
        )
    }

    /// Its runs.
    #[must_use]
    pub fn jobs(&self, trials: u32) -> Vec<Job> {
        let of = |index| Job::from_toml(self.cell(), self.text(), index).in_world(World::Sim);
        (0..trials).map(of).collect()
    }

    fn text(&self) -> String {
        let (delay, loss) = match self.sender {
            Sender::Near => ("2 ms", 0.0),
            Sender::Far => ("40 ms", 0.051),
        };
        let Self {
            kilobytes,
            process,
            up_ms,
            down_ms,
            gateway,
            compressed,
            ..
        } = self;
        let (content, compression) = match compressed {
            Some(content) => (format!("content = \"{content}\"\n"), "compression = true\n"),
            None => (String::new(), ""),
        };
        let (mtu, detection) = (self.sender.mtu(), self.detection.keys());
        format!(
            "name = \"m-tcp\"\n\
             [link]\ndelay = \"2 ms\"\nqueue = 1000\nmtu = {mtu}\n\
             [link.downlink]\nrate = \"32 kbit/s\"\n[link.uplink]\nrate = \"8 kbit/s\"\n\
             [link.outages]\nprocess = \"{process}\"\nup = \"{up_ms} ms\"\ndown = \"{down_ms} ms\"\n\
             [[hops]]\nrate = \"10 Mbit/s\"\ndelay = \"{delay}\"\nqueue = 1000\n\
             [hops.downlink]\nloss = {loss:?}\n\
             [workload]\nkind = \"bulk\"\nbytes = \"{kilobytes} kB\"\n{content}\
             [stack]\nprofile = \"netbsd-1997\"\n\
             [outlast]\ngateway = \"{gateway}\"\n{compression}{detection}\
             [run]\nseed = 1\ndeadline = \"24 h\"\n"
        )
    }

    /// The times of its completed runs, in seconds.
    #[must_use]
    pub fn times(&self, runs: &Runs) -> Option<Sample> {
        let records = runs.of(&self.cell()).iter();
        Sample::of(
            records
                .filter(|run| run.succeeded())
                .map(|run| run.result.elapsed_s),
        )
    }

    /// How many of its runs did not complete.
    #[must_use]
    pub fn failures(&self, runs: &Runs) -> usize {
        let records = runs.of(&self.cell()).iter();
        records.filter(|run| !run.succeeded()).count()
    }

    /// The optimum of each of its completed runs, in seconds.
    #[must_use]
    pub fn optima(&self, runs: &Runs) -> Option<Sample> {
        let records = runs.of(&self.cell()).iter();
        Sample::of(
            records
                .filter(|run| run.succeeded())
                .map(|run| self.optimum(run)),
        )
    }

    /// Each completed run's time over its optimum.
    #[must_use]
    pub fn over_optimum(&self, runs: &Runs) -> Option<Sample> {
        let records = runs.of(&self.cell()).iter();
        Sample::of(
            records
                .filter(|run| run.succeeded())
                .map(|run| run.result.elapsed_s / self.optimum(run)),
        )
    }

    /// When the last packet can have arrived at best, over the outages of `run`.
    fn optimum(&self, run: &Record) -> f64 {
        let segment = f64::from(self.sender.mtu()) - HEADERS;
        let mut left = f64::from(self.kilobytes) * 1_000.0;
        let mut now = 0.0;
        let mut outages = run.result.outages.iter().peekable();
        while left > 0.0 {
            let payload = segment.min(left);
            let takes = (payload + HEADERS) * 8.0 / RATE;
            match outages.peek() {
                Some(outage) if outage.start_s < now + takes => {
                    now = outage.start_s + outage.length_s.unwrap_or(0.0);
                    outages.next();
                }
                _ => {
                    now += takes;
                    left -= payload;
                }
            }
        }
        now
    }
}

/// Half the width of the 95 % interval of a mean (Student's t).
#[must_use]
pub fn interval(sample: &Sample) -> Option<f64> {
    const T: [f64; 10] = [
        12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    let deviation = sample.standard_deviation?;
    let t = T.get(sample.count.checked_sub(2)?).copied().unwrap_or(1.96);
    Some(t * deviation / (sample.count as f64).sqrt())
}
