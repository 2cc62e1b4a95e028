//! Channels between agents: ordered and reliable, until they are gone.

use super::{Network, address};
use outlast_agents::Session;
use outlast_base::time::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// How long a message takes.
const DELAY: Duration = Duration::from_millis(5);

#[derive(Default)]
pub(crate) struct Channels {
    pub(super) all: BTreeMap<(usize, usize), Channel>,
    instances: u64,
}

/// One between two agents, the lower number first.
#[derive(Default)]
pub(super) struct Channel {
    is_cut: bool,
    /// Messages vanish, and nobody is told.
    is_mute: bool,
    is_open: bool,
    /// For the first, and for the second.
    messages: [VecDeque<(Instant, Vec<u8>)>; 2],
}

fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

impl Channels {
    pub(super) fn next_at(&self) -> Option<Instant> {
        let queues = self.all.values().flat_map(|channel| &channel.messages);
        let next = queues.filter_map(|queue| queue.front().map(|(at, _)| *at));
        next.min()
    }
}

impl Network {
    /// Starts an agent, which finds its neighbours.
    pub(crate) fn start(&mut self, agent: usize) {
        if self.stations[agent].agent.is_some() {
            return;
        }
        self.channels.instances += 1;
        let instance = self.channels.instances;
        self.stations[agent].start(self.now, instance);
        self.connect_all();
        self.settle();
    }

    /// Ends an agent as the kernel ends what runs amok. Its neighbours' channels are reset.
    pub(crate) fn crash(&mut self, agent: usize) {
        self.stations[agent].agent = None;
        self.bury(agent);
        self.settle();
    }

    /// An agent is gone: so are its channels.
    pub(crate) fn bury(&mut self, agent: usize) {
        for other in 0..self.stations.len() {
            self.close(agent, other);
        }
    }

    /// No channel between two agents from now on.
    pub(crate) fn cut(&mut self, a: usize, b: usize) {
        self.channels.all.entry(pair(a, b)).or_default().is_cut = true;
        self.close(a, b);
        self.settle();
    }

    /// Messages between two agents vanish from now on, and nobody is told.
    pub(crate) fn mute(&mut self, a: usize, b: usize) {
        self.channels.all.entry(pair(a, b)).or_default().is_mute = true;
    }

    /// Two agents can reach each other again.
    pub(crate) fn mend(&mut self, a: usize, b: usize) {
        let channel = self.channels.all.entry(pair(a, b)).or_default();
        if channel.is_mute {
            // What is lost is lost: only a new channel is whole.
            channel.is_mute = false;
            self.close(a, b);
        }
        self.channels.all.entry(pair(a, b)).or_default().is_cut = false;
        self.connect_all();
        self.settle();
    }

    /// Puts bytes into a channel, as `from` might.
    pub(crate) fn inject(&mut self, from: usize, to: usize, bytes: Vec<u8>) {
        let at = self.now + DELAY;
        let channel = self.channels.all.entry(pair(from, to)).or_default();
        channel.messages[usize::from(to > from)].push_back((at, bytes));
    }

    /// Whether there is a channel.
    pub(crate) fn is_open(&self, a: usize, b: usize) -> bool {
        let channel = self.channels.all.get(&pair(a, b));
        channel.is_some_and(|channel| channel.is_open)
    }

    /// An agent finds a channel silent, and closes it.
    pub(super) fn part(&mut self, agent: usize, other: SocketAddr) {
        let all = 0..self.stations.len();
        if let Some(other) = all.into_iter().find(|index| address(*index) == other) {
            self.close(agent, other);
            self.connect_all();
        }
    }

    fn close(&mut self, a: usize, b: usize) {
        let Some(channel) = self.channels.all.get_mut(&pair(a, b)) else {
            return;
        };
        if !std::mem::take(&mut channel.is_open) {
            return;
        }
        channel.messages = Default::default();
        self.tell_session(a, b, Session::Down);
        self.tell_session(b, a, Session::Down);
    }

    fn connect_all(&mut self) {
        for a in 0..self.stations.len() {
            for b in a + 1..self.stations.len() {
                let both = self.stations[a].agent.is_some() && self.stations[b].agent.is_some();
                let speak = self.stations[a].speaks();
                let channel = self.channels.all.entry((a, b)).or_default();
                if channel.is_cut || channel.is_mute || channel.is_open || !both || !speak {
                    continue;
                }
                channel.is_open = true;
                self.tell_session(a, b, Session::Up);
                self.tell_session(b, a, Session::Up);
            }
        }
    }

    fn tell_session(&mut self, agent: usize, other: usize, session: Session) {
        let now = self.now;
        if let Some(there) = &mut self.stations[agent].agent {
            there.act(now, |agents, site| {
                agents.handle_session(site, address(other), session);
            });
        }
    }

    pub(super) fn send_messages(&mut self, from: usize) {
        if self.stations[from].agent.is_none() {
            // It has died on the way.
            self.bury(from);
            return;
        }
        let at = self.now + DELAY;
        for (&(a, b), channel) in &mut self.channels.all {
            if !channel.is_open || (a != from && b != from) {
                continue;
            }
            let to = if a == from { b } else { a };
            let Some(there) = &mut self.stations[from].agent else {
                return;
            };
            let transmit = || {
                there.act(self.now, |agents, site| {
                    agents.poll_transmit(site, address(to))
                })
            };
            for message in std::iter::from_fn(transmit) {
                if !channel.is_mute {
                    channel.messages[usize::from(to > from)].push_back((at, message));
                }
            }
        }
    }

    pub(super) fn deliver_messages(&mut self) {
        let now = self.now;
        let pairs: Vec<_> = self.channels.all.keys().copied().collect();
        for (a, b) in pairs {
            for (index, from, to) in [(0, b, a), (1, a, b)] {
                while let Some(channel) = self.channels.all.get_mut(&(a, b))
                    && channel.messages[index]
                        .front()
                        .is_some_and(|(at, _)| *at <= now)
                    && let Some((_, message)) = channel.messages[index].pop_front()
                {
                    let Some(there) = &mut self.stations[to].agent else {
                        continue;
                    };
                    let heard = there.act(now, |agents, site| {
                        agents.handle_message(site, address(from), &message)
                    });
                    if heard.is_err() {
                        self.close(a, b);
                        self.connect_all();
                    }
                    self.settle();
                }
            }
        }
    }
}
