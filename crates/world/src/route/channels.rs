//! Channels between agents: ordered and reliable while both agents run.

use super::Route;
use crate::path::{Path, Watch};
use crate::roaming::agent_at;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use outlast_agents::Session;
use outlast_base::time::{Duration, Instant};

/// Messages, each with when it arrives.
type Messages = VecDeque<(Instant, Vec<u8>)>;

/// All channels of a world.
#[derive(Debug)]
pub(super) struct Channels {
    delay: Duration,
    is_running: Vec<bool>,
    /// What is on its way, by sender and receiver. Both ways are there, or none is.
    open: BTreeMap<(usize, usize), Messages>,
    /// Processes that were started so far.
    instances: u64,
}

impl Channels {
    /// Between so many agents, all of which run.
    pub(super) fn new(agents: usize, delay: Duration) -> Self {
        Self {
            delay,
            is_running: vec![true; agents],
            open: BTreeMap::new(),
            instances: agents as u64,
        }
    }

    /// When the next message arrives.
    pub(super) fn next_at(&self) -> Instant {
        let first = self.open.values().filter_map(VecDeque::front);
        first
            .map(|(at, _)| *at)
            .fold(Instant::FAR_FUTURE, Instant::min)
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let count = self.is_running.len();
        (0..count).flat_map(move |a| (0..count).map(move |b| (a, b)))
    }

    fn take_due(&mut self, now: Instant) -> Option<(usize, usize, Vec<u8>)> {
        let is_due = |queue: &VecDeque<(Instant, _)>| queue.front().is_some_and(|f| f.0 <= now);
        let due = self.open.iter_mut().find(|(_, queue)| is_due(queue));
        let (&(from, to), queue) = due?;
        Some((from, to, queue.pop_front()?.1))
    }
}

impl<W: Watch> Route<W> {
    fn channels(&mut self) -> Option<&mut Channels> {
        self.roaming.as_mut()?.channels.as_mut()
    }

    /// A number that no process of an agent has had.
    pub(super) fn fresh_instance(&mut self) -> u64 {
        self.channels().map_or(0, |channels| {
            channels.instances += 1;
            channels.instances
        })
    }

    /// An agent runs again.
    pub(super) fn revive(&mut self, agent: usize) {
        if let Some(running) = self.channels().and_then(|c| c.is_running.get_mut(agent)) {
            *running = true;
        }
    }

    /// All agents that run and have no channel to each other get one.
    pub(super) fn connect(&mut self, now: Instant) {
        let Some(channels) = self.channels() else {
            return;
        };
        let pairs: Vec<_> = channels.pairs().filter(|(a, b)| a < b).collect();
        for (a, b) in pairs {
            let Some(channels) = self.channels() else {
                return;
            };
            let both_run = channels.is_running[a] && channels.is_running[b];
            if both_run && !channels.open.contains_key(&(a, b)) {
                channels.open.insert((a, b), VecDeque::new());
                channels.open.insert((b, a), VecDeque::new());
                self.tell_session(now, a, b, Session::Up);
                self.tell_session(now, b, a, Session::Up);
            }
        }
    }

    /// An agent's process has died, and its channels with it.
    pub(super) fn disconnect(&mut self, now: Instant, agent: usize) {
        let Some(channels) = self.channels() else {
            return;
        };
        channels.is_running[agent] = false;
        for other in 0..channels.is_running.len() {
            self.close(now, agent, other);
        }
    }

    fn close(&mut self, now: Instant, a: usize, b: usize) {
        let Some(channels) = self.channels() else {
            return;
        };
        if channels.open.remove(&(a, b)).is_some() {
            channels.open.remove(&(b, a));
            self.tell_session(now, a, b, Session::Down);
            self.tell_session(now, b, a, Session::Down);
        }
    }

    fn tell_session(&mut self, now: Instant, agent: usize, other: usize, session: Session) {
        if let Some(cell) = self.cell_mut(agent) {
            cell.handle_session(now, agent_at(other), session);
        }
    }

    /// Messages arrive.
    pub(super) fn deliver_messages(&mut self, now: Instant) {
        while let Some((from, to, message)) = self.channels().and_then(|c| c.take_due(now)) {
            let heard = self
                .cell_mut(to)
                .map(|cell| cell.handle_message(now, agent_at(from), &message));
            if heard.is_some_and(|heard| heard.is_err()) {
                // As every driver does: a channel on which nonsense comes is given up.
                self.close(now, from, to);
                self.connect(now);
            }
            self.forward_along(now);
        }
    }

    /// Agents say what they have to say.
    pub(super) fn send_messages(&mut self, now: Instant) {
        let Some(channels) = self.channels() else {
            return;
        };
        let at = now + channels.delay;
        let open: Vec<_> = channels.open.keys().copied().collect();
        for (from, to) in open {
            let neighbour = agent_at(to);
            while let Some(message) = self
                .cell_mut(from)
                .and_then(|cell| cell.poll_message(now, neighbour))
            {
                let queue = self.channels().and_then(|c| c.open.get_mut(&(from, to)));
                if let Some(queue) = queue {
                    queue.push_back((at, message));
                }
            }
        }
        self.close_silent(now);
    }

    fn close_silent(&mut self, now: Instant) {
        for agent in 0..self.cells() {
            while let Some(silent) = self.cell_mut(agent).and_then(Path::poll_silent) {
                let others = 0..self.cells();
                if let Some(other) = others.into_iter().find(|n| agent_at(*n) == silent) {
                    self.close(now, agent, other);
                    self.connect(now);
                }
            }
        }
    }
}
