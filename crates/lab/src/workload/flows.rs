//! Every connection of a run, each on a thread of its own: that of `[workload]`, and `[[flows]]`.

use super::connection::Sockets;
use super::{Context, Outcome, Terms, run};
use crate::error::LabError;
use crate::host::Host;
use crate::opening::Opening;
use crate::status::Status;
use crate::stop::{Stop, StopReason};
use crate::tuning::Tuning;
use outlast_base::random::derived_seed;
use outlast_base::time::{Duration, Instant};
use outlast_scenario::Scenario;
use outlast_wire::pattern::Content;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

/// What the connections of a run have in common.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) fixed: &'a Host,
    pub(crate) mobile: &'a Host,
    pub(crate) tuning: &'a Tuning,
    pub(crate) opening: &'a Opening,
    /// Which stream of generated content the connection of `[workload]` sends.
    pub(crate) seed: u64,
    /// What is sent.
    pub(crate) content: Content,
    /// What each socket sets itself.
    pub(crate) user_timeout: Option<Duration>,
    pub(crate) stop: &'a Arc<Stop>,
    pub(crate) status: &'a Status,
}

/// What came of one connection.
#[derive(Clone, Debug)]
pub(crate) struct FlowOutcome {
    pub(crate) outcome: Outcome,
    /// When the mobile opened it; `None` if the run was over before, and for commands, which open
    /// their own.
    pub(crate) began: Option<Instant>,
    /// What was in force; `None` if it did not come to that.
    pub(crate) terms: Option<Terms>,
}

/// Carries all workloads out, each to its end or until the run is stopped: that of `[workload]`
/// first, then [`Scenario::flows`] in order.
pub(crate) fn run_all(cx: &Run<'_>) -> Result<Vec<FlowOutcome>, LabError> {
    let stops = cx
        .scenario
        .connections()
        .map(|_| Stop::within(cx.stop))
        .collect::<io::Result<Vec<_>>>()
        .map_err(failed("make an event"))?;
    let turn = Mutex::default();
    let connections = cx.scenario.connections().zip(&stops).enumerate();
    let contexts: Vec<_> = connections
        .map(|(number, (connection, stop))| Context {
            scenario: cx.scenario,
            fixed: cx.fixed,
            mobile: cx.mobile,
            tuning: cx.tuning,
            opening: cx.opening,
            turn: &turn,
            number,
            begin: connection.begin,
            workload: connection.workload,
            stack: connection.stack,
            seed: cx.content.stream(match number {
                0 => cx.seed,
                _ => derived_seed(cx.seed, &format!("lab.flow.{number}")),
            }),
            user_timeout: cx.user_timeout,
            stop,
            status: cx.status,
            received: AtomicU64::new(0),
            began: OnceLock::new(),
            terms: OnceLock::new(),
        })
        .collect();
    let outcomes = run_at_once(cx, &contexts)?;
    let each = contexts.iter().zip(outcomes);
    Ok(each
        .map(|(flow, outcome)| FlowOutcome {
            outcome,
            began: flow.began.get().copied(),
            terms: flow.terms.get().cloned(),
        })
        .collect())
}

/// Each on a thread of its own, but the first.
fn run_at_once(cx: &Run<'_>, flows: &[Context<'_>]) -> Result<Vec<Outcome>, LabError> {
    let (first, further) = flows
        .split_first()
        .expect("there is always the connection of `[workload]`");
    // Before the first one opens, so that those that begin with it are not kept waiting.
    let sockets = further
        .iter()
        .map(Sockets::new)
        .collect::<Result<Vec<_>, _>>()?;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (flow, sockets) in further.iter().zip(sockets) {
            let thread = thread::Builder::new()
                .name(format!("flow {}", flow.number))
                .spawn_scoped(scope, || guarded(cx, || run(flow, Some(sockets))));
            if thread.is_err() {
                cx.stop.pull(StopReason::Broken);
            }
            threads.push(thread.map_err(failed("start a thread")));
        }
        let first = guarded(cx, || run(first, None));
        cx.opening.close();
        let further = threads.into_iter().map(|thread| {
            thread?
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        // All of them, so that none is left behind.
        let outcomes: Vec<_> = std::iter::once(first).chain(further).collect();
        outcomes.into_iter().collect()
    })
}

fn failed(action: &'static str) -> impl Fn(io::Error) -> LabError {
    move |source| LabError::Socket { action, source }
}

/// Lets a connection's error, or its panic, end the others too.
fn guarded(
    cx: &Run<'_>,
    work: impl FnOnce() -> Result<Outcome, LabError>,
) -> Result<Outcome, LabError> {
    struct PullUnlessSound<'a>(&'a Stop, bool);

    impl Drop for PullUnlessSound<'_> {
        fn drop(&mut self) {
            if !self.1 {
                self.0.pull(StopReason::Broken);
            }
        }
    }

    let mut guard = PullUnlessSound(cx.stop, false);
    let outcome = work();
    guard.1 = outcome.is_ok();
    outcome
}
