//! One run of a scenario: two hosts, the link between them, and what they do.

use crate::agent::{Agent, Teller, line};
use crate::cancel::Cancel;
use crate::capture::Capture;
use crate::emulator::{Assignment, Emulated, Emulator};
use crate::error::LabError;
use crate::host::Host;
use crate::limits;
use crate::mechanism::{agents, gateways, gateways_of_hop, home_agent};
use crate::observer::Observer;
use crate::opening::Opening;
use crate::path::{Between, EmulatedLink, Roaming};
use crate::registry::Registration;
use crate::report::{self, Finished, RunReport};
use crate::status::Status;
use crate::stop::{Stop, StopReason};
use crate::tuning::Tuning;
use crate::user_timeout::UserTimeout;
use crate::workload::{self, FlowOutcome};
use outlast_base::time::Duration;
use outlast_host::Mechanism as HostMechanism;
use outlast_link::LinkConfig;
use outlast_linux::clock;
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::timer::Timer;
use outlast_linux::tun::Tun;
use outlast_linux::waker::Waker;
use outlast_scenario::Scenario;
use outlast_sim::topology;
use outlast_world::trace::Trace;
use outlast_world::{Gateways, Progress, RoamingSetup, Side};
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
    /// Of the mobile's link, then of [`Scenario::hops`] in order.
    gateways: Vec<Gateways>,
    /// Beside the hosts' TCP, by [`Side::index`].
    agents: [Option<HostMechanism>; 2],
    /// Further gateways, between which the mobile host goes.
    roaming: Option<RoamingSetup>,
    traced_packets: Option<usize>,
    /// Files of both ends of each link, if they are asked for: those of `gateways`, then those of the
    /// further gateways.
    captures: Vec<[PathBuf; 2]>,
}

impl Lab {
    /// The packets that [`Lab::with_trace`] keeps unless told otherwise: about 150 MB.
    pub const TRACED_PACKETS: usize = 1 << 20;

    /// Run `index` of `scenario`, counted from zero.
    ///
    /// # Errors
    /// When the scenario asks for something that the lab does not have.
    pub fn new(scenario: &Scenario, index: u32) -> Result<Self, LabError> {
        limits::check(scenario)?;
        let outlast = &scenario.outlast;
        let roaming = topology::roaming(scenario, index, home_agent(outlast)?);
        let mut at_first = gateways(outlast)?;
        if let Some(roaming) = &roaming {
            at_first = roaming.gateways(at_first);
        }
        let further = scenario.hops.iter();
        let further = further.map(|hop| gateways_of_hop(outlast, hop));
        Ok(Self {
            scenario: scenario.clone(),
            index,
            gateways: std::iter::once(Ok(at_first))
                .chain(further)
                .collect::<Result<_, _>>()?,
            agents: agents(scenario)?,
            roaming,
            traced_packets: None,
            captures: Vec::new(),
        })
    }

    /// Keeps what happens to the first `packets` packets, for [`RunReport::trace`].
    #[must_use]
    pub fn with_trace(mut self, packets: usize) -> Self {
        self.traced_packets = Some(packets);
        self
    }

    /// Captures what the two ends of the link see, into `directory/stem.fixed.pcapng` and
    /// `directory/stem.mobile.pcapng`, those of the first link behind it into
    /// `directory/stem.hop1.fixed.pcapng` and so on, and those of the second gateway's link into
    /// `directory/stem.gateway2.fixed.pcapng` and so on.
    #[must_use]
    pub fn with_capture(mut self, directory: &Path, stem: &str) -> Self {
        let hops = (1..self.gateways.len()).map(|number| format!("{stem}.hop{number}"));
        let cells = self.roaming.iter().flat_map(|roaming| &roaming.cells);
        let cells = cells
            .zip(2..)
            .map(|(_, number)| format!("{stem}.gateway{number}"));
        let stems = std::iter::once(stem.to_owned()).chain(hops).chain(cells);
        let files = stems
            .map(|stem| Side::BOTH.map(|side| directory.join(format!("{stem}.{side}.pcapng"))));
        self.captures = files.collect();
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
        self.run_showing(cancel, &mut progress)
    }

    /// Not generic: the gateways and hosts of a run would be compiled again for every caller.
    fn run_showing(
        &self,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<RunReport, LabError> {
        limits::make_room(&self.scenario)?;
        let tuning = Tuning::new(&self.scenario);
        let mtu = self.scenario.mtu_inside();
        let (fixed, fixed_tun) = Host::new(Side::Fixed, mtu, &tuning)?;
        let (mobile, mobile_tun) = Host::new(Side::Mobile, mtu, &tuning)?;
        let user_timeout = self.scenario.outlast.user_timeout;
        let user_timeout = UserTimeout::arrange(user_timeout, [&fixed, &mobile])?;
        let _registration = Registration::new(&self.scenario.name, &fixed, &mobile);
        let failed = |action| move |source| LabError::Socket { action, source };
        let stop = Arc::new(Stop::new().map_err(failed("make an event"))?);
        let opening = Arc::new(Opening::new().map_err(failed("make an event"))?);
        let status = Arc::new(Status::default());
        let (of_fixed, agent_at_fixed) = self.agent(&fixed, Side::Fixed)?.unzip();
        let (of_mobile, agent_at_mobile) = self.agent(&mobile, Side::Mobile)?.unzip();
        let tellers = [of_fixed, of_mobile];
        let tuns = [fixed_tun, mobile_tun];
        let emulator = self.emulator(tuns, &stop, &status, &opening, tellers)?;
        let link = self.scenario.link_config(self.index);
        let context = workload::Run {
            scenario: &self.scenario,
            fixed: &fixed,
            mobile: &mobile,
            tuning: &tuning,
            opening: &opening,
            seed: link.seed,
            content: self.scenario.content.of_streams(),
            user_timeout: user_timeout.of_sockets,
            stop: &stop,
            status: &status,
        };
        let (outcomes, emulated) = thread::scope(|scope| {
            let agents = [(agent_at_fixed, &fixed), (agent_at_mobile, &mobile)];
            let serve = |(agent, host): (Option<Agent>, _)| {
                let host: &Host = host;
                agent.map(|agent| scope.spawn(move || host.run(|| agent.run())))
            };
            let agents = agents.map(serve);
            let outcomes = supervise(&context, cancel, progress);
            // Then the agents have nobody left to hear of, and end.
            let emulated = emulator.finish().map_err(LabError::Emulator);
            for agent in agents.into_iter().flatten() {
                let ended = agent.join();
                ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))??;
            }
            Ok::<_, LabError>((outcomes, emulated?))
        })?;
        if stop.reason() == Some(StopReason::Cancelled) {
            return Err(LabError::Cancelled);
        }
        self.report(
            &outcomes?,
            emulated,
            [&fixed, &mobile],
            user_timeout.warning,
        )
    }

    /// The agent beside the TCP of the host of `side`, and who tells it of the link.
    fn agent(&self, host: &Host, side: Side) -> Result<Option<(Teller, Agent)>, LabError> {
        let Some(mechanism) = self.agents[side.index()] else {
            return Ok(None);
        };
        // With HIP both are told of the same.
        let asks = self.agents.iter().all(Option::is_some) && self.scenario.hip.is_none();
        let (teller, listener) = line().map_err(|source| LabError::Socket {
            action: "make an event",
            source,
        })?;
        let agent = host.run(|| Agent::new(mechanism, listener, asks))??;
        Ok(Some((teller, agent)))
    }

    fn emulator(
        &self,
        tuns: [Tun; 2],
        stop: &Arc<Stop>,
        status: &Arc<Status>,
        opening: &Arc<Opening>,
        agents: [Option<Teller>; 2],
    ) -> Result<Emulator, LabError> {
        let scenario = &self.scenario;
        let assignment = Assignment {
            between: Between {
                links: self.links()?,
                roaming: self.roaming()?,
                trace: self.traced_packets.map(Trace::new),
                cross_traffic: topology::cross_traffic(scenario),
                ip: topology::ip(scenario.stack.ip),
                seed: scenario.run.seed_of(self.index),
                status: Arc::clone(status),
                hip: topology::hip(scenario),
                agents,
            },
            tuns,
            deadline: self.scenario.run.deadline,
            stop: Arc::clone(stop),
            opening: Arc::clone(opening),
        };
        Emulator::start(assignment).map_err(LabError::Emulator)
    }

    /// The mobile's link, then those behind it.
    fn links(&self) -> Result<Vec<EmulatedLink>, LabError> {
        let mut first = self.scenario.link_config(self.index);
        if let Some(roaming) = &self.roaming {
            first = roaming.first_link(first);
        }
        let further = (0..).map_while(|number| self.scenario.hop_config(self.index, number));
        let configs = std::iter::once(first).chain(further);
        let each = configs.zip(&self.gateways).enumerate();
        each.map(|(number, (config, &gateways))| {
            let name = match number {
                0 => "link".to_owned(),
                _ => format!("hop {number}"),
            };
            self.link(&name, number, config, gateways)
        })
        .collect()
    }

    /// The links of further gateways, each with what stands at the ends of the first one's.
    fn roaming(&self) -> Result<Option<Roaming>, LabError> {
        let Some(setup) = &self.roaming else {
            return Ok(None);
        };
        let cells = setup.further_links().enumerate();
        let cells = cells.map(|(place, config)| {
            let name = format!("gateway {}", place + 2);
            let files = self.gateways.len() + place;
            self.link(&name, files, config, self.gateways[0])
        });
        Ok(Some(Roaming {
            setup: setup.clone(),
            cells: cells.collect::<Result<_, _>>()?,
        }))
    }

    /// A link, captured into pair `files` of the files if they are asked for.
    fn link(
        &self,
        name: &str,
        files: usize,
        config: LinkConfig,
        gateways: Gateways,
    ) -> Result<EmulatedLink, LabError> {
        let files = self.captures.get(files);
        let capture = files.map(|files| Capture::create(name, files, clock::unix_offset()));
        Ok(EmulatedLink {
            config,
            gateways,
            observer: Observer {
                capture: capture.transpose()?,
            },
        })
    }

    fn report(
        &self,
        flows: &[FlowOutcome],
        emulated: Emulated,
        hosts: [&Host; 2],
        warning: Option<String>,
    ) -> Result<RunReport, LabError> {
        report::assemble(Finished {
            scenario: &self.scenario,
            index: self.index,
            flows,
            emulated,
            hosts,
            warning,
            files: &self.captures,
        })
    }
}

/// Lets the workloads run on a thread of their own, while this one shows the progress and listens
/// for a cancellation.
fn supervise(
    context: &workload::Run<'_>,
    cancel: &Cancel,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Vec<FlowOutcome>, LabError> {
    let failed = |action| move |source| LabError::Socket { action, source };
    let over = Waker::new().map_err(failed("make an event"))?;
    thread::scope(|scope| {
        let workload = thread::Builder::new()
            .name("workload".into())
            .spawn_scoped(scope, || {
                // Woken when the thread ends, be it by a panic.
                let _over = WakeAtEnd(&over);
                workload::run_all(context)
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
    context: &workload::Run<'_>,
    cancel: &Cancel,
    progress: &mut dyn FnMut(&Progress),
    over: &Waker,
) -> io::Result<()> {
    const OVER: Token = Token(0);
    const CANCEL: Token = Token(1);
    const TICK: Token = Token(2);
    let goal = workload::goal(context.scenario);
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
