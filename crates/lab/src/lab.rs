//! One run of a scenario: two hosts, the link between them, and what they do.

use crate::cancel::Cancel;
use crate::capture::Capture;
use crate::emulator::{Assignment, Crossing, Emulator};
use crate::error::LabError;
use crate::host::Host;
use crate::mechanism::mechanisms;
use crate::observer::Observer;
use crate::registry::Registration;
use crate::report::{self, Finished, RunReport};
use crate::status::{Progress, Status};
use crate::stop::{Stop, StopReason};
use crate::tuning::Tuning;
use crate::workload::{self, Context, Outcome};
use outlast_core::mechanisms::path::PathMechanismKind;
use outlast_core::time::Duration;
use outlast_linux::clock;
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::timer::Timer;
use outlast_linux::tun::Tun;
use outlast_linux::waker::Waker;
use outlast_scenario::Scenario;
use outlast_world::Side;
use outlast_world::trace::Trace;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

/// How often the progress is shown.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// One run of a scenario, ready to begin.
///
/// Several labs may run at once in one process, each on a thread of its own. Nothing of a lab is
/// left when [`Lab::run`] returns, panics, or the process is killed.
#[derive(Clone, Debug)]
pub struct Lab {
    scenario: Scenario,
    index: u32,
    mechanisms: [PathMechanismKind; 2],
    traced_packets: Option<usize>,
    capture: Option<[PathBuf; 2]>,
}

impl Lab {
    /// The packets that [`Lab::with_trace`] keeps unless told otherwise: about 150 MB.
    pub const TRACED_PACKETS: usize = 1 << 20;

    /// Run `index` of `scenario`, counted from zero.
    ///
    /// # Errors
    /// When the scenario asks for something that the lab does not have.
    pub fn new(scenario: &Scenario, index: u32) -> Result<Self, LabError> {
        refuse_topology(scenario)?;
        Ok(Self {
            scenario: scenario.clone(),
            index,
            mechanisms: mechanisms(&scenario.outlast)?,
            traced_packets: None,
            capture: None,
        })
    }

    /// Keeps what happens to the first `packets` packets, for [`RunReport::trace`].
    #[must_use]
    pub fn with_trace(mut self, packets: usize) -> Self {
        self.traced_packets = Some(packets);
        self
    }

    /// Captures what the two ends of the link see, into `directory/stem.fixed.pcapng` and
    /// `directory/stem.mobile.pcapng`.
    #[must_use]
    pub fn with_capture(mut self, directory: &Path, stem: &str) -> Self {
        let file = |side| directory.join(format!("{stem}.{side}.pcapng"));
        self.capture = Some(Side::BOTH.map(file));
        self
    }

    /// Carries the run out. `progress` is called about ten times a second, by the thread that
    /// calls this.
    ///
    /// What becomes of the workload, a connection given up among it, is the report's to tell.
    ///
    /// # Errors
    /// When this machine lacks something, a part of the lab fails, or the run is cancelled.
    pub fn run(
        &self,
        cancel: &Cancel,
        mut progress: impl FnMut(&Progress),
    ) -> Result<RunReport, LabError> {
        let tuning = Tuning::new(&self.scenario);
        let mtu = self.scenario.link.mtu;
        let (fixed, fixed_tun) = Host::new(Side::Fixed, mtu, &tuning)?;
        let (mobile, mobile_tun) = Host::new(Side::Mobile, mtu, &tuning)?;
        let _registration = Registration::new(&self.scenario.name, &fixed, &mobile);
        let failed = |action| move |source| LabError::Socket { action, source };
        let stop = Arc::new(Stop::new().map_err(failed("make an event"))?);
        let status = Arc::new(Status::default());
        let emulator = self.emulator([fixed_tun, mobile_tun], &stop, &status)?;
        let link = self.scenario.link_config(self.index);
        let context = Context {
            scenario: &self.scenario,
            fixed: &fixed,
            mobile: &mobile,
            tuning: &tuning,
            seed: link.seed,
            stop: &stop,
            status: &status,
        };
        let outcome = supervise(&context, cancel, &mut progress);
        let crossing = emulator.finish().map_err(LabError::Emulator)?;
        if stop.reason() == Some(StopReason::Cancelled) {
            return Err(LabError::Cancelled);
        }
        self.report(outcome?, crossing, [&fixed, &mobile])
    }

    fn emulator(
        &self,
        tuns: [Tun; 2],
        stop: &Arc<Stop>,
        status: &Arc<Status>,
    ) -> Result<Emulator, LabError> {
        let capture = match &self.capture {
            Some(files) => Some(Capture::create(files, clock::unix_offset())?),
            None => None,
        };
        let trace = self.traced_packets.map(Trace::new);
        let assignment = Assignment {
            link: self.scenario.link_config(self.index),
            mechanisms: self.mechanisms,
            tuns,
            observer: Observer::new(trace, capture, Arc::clone(status)),
            deadline: self.scenario.run.deadline,
            stop: Arc::clone(stop),
        };
        Emulator::start(assignment).map_err(LabError::Emulator)
    }

    fn report(
        &self,
        outcome: Outcome,
        crossing: Crossing,
        hosts: [&Host; 2],
    ) -> Result<RunReport, LabError> {
        let files = self.capture.as_ref();
        report::assemble(Finished {
            scenario: &self.scenario,
            index: self.index,
            outcome,
            crossing,
            hosts,
            files,
        })
    }
}

/// The lab has one link and one connection.
fn refuse_topology(scenario: &Scenario) -> Result<(), LabError> {
    let tables = [
        ("flows", scenario.flows.is_empty()),
        ("traffic", scenario.traffic.is_empty()),
        ("hops", scenario.hops.is_empty()),
    ];
    match tables.iter().find(|(_, is_empty)| !is_empty) {
        Some(&(table, _)) => Err(LabError::NoTopology { table }),
        None => Ok(()),
    }
}

/// Lets the workload run on a thread of its own, while this one shows the progress and listens
/// for a cancellation.
fn supervise(
    context: &Context<'_>,
    cancel: &Cancel,
    progress: &mut impl FnMut(&Progress),
) -> Result<Outcome, LabError> {
    let failed = |action| move |source| LabError::Socket { action, source };
    let over = Waker::new().map_err(failed("make an event"))?;
    thread::scope(|scope| {
        let workload = thread::Builder::new()
            .name("workload".into())
            .spawn_scoped(scope, || {
                // Woken when the thread ends, be it by a panic.
                let _over = WakeAtEnd(&over);
                workload::run(context)
            })
            .map_err(failed("start a thread"))?;
        if let Err(source) = show_progress(context, cancel, progress, &over) {
            context.stop.pull(StopReason::Broken);
            return Err(failed("wait for the workload")(source));
        }
        workload
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

struct WakeAtEnd<'a>(&'a Waker);

impl Drop for WakeAtEnd<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// Shows the progress until the workload is over.
fn show_progress(
    context: &Context<'_>,
    cancel: &Cancel,
    progress: &mut impl FnMut(&Progress),
    over: &Waker,
) -> io::Result<()> {
    const OVER: Token = Token(0);
    const CANCEL: Token = Token(1);
    const TICK: Token = Token(2);
    let goal = workload::goal(&context.scenario.workload);
    let mut poller = Poller::new()?;
    let mut tick = Timer::new()?;
    poller.add(over, OVER, Interest::Readable)?;
    poller.add(cancel, CANCEL, Interest::Readable)?;
    poller.add(&tick, TICK, Interest::Readable)?;
    loop {
        let now = clock::now();
        progress(&context.status.progress(now, goal));
        tick.set(Some(now + PROGRESS_INTERVAL))?;
        let (mut is_over, mut cancelled) = (false, false);
        for ready in poller.wait()? {
            is_over |= ready.token == OVER;
            cancelled |= ready.token == CANCEL;
        }
        if is_over {
            return Ok(());
        }
        if cancelled {
            context.stop.pull(StopReason::Cancelled);
            poller.remove(cancel)?;
        }
        tick.consume()?;
    }
}
