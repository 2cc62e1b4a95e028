//! What `outlast status` shows.

mod flows;
mod neighbours;
mod outages;
pub(crate) mod text;

pub use text::{soon, time};

use super::Daemon;
use super::indicators::INTERFACE;
use super::path::{DataPath, KernelPath, PathCounters};
pub(crate) use flows::Flow;
pub(super) use neighbours::Agents;
pub(super) use outages::Saved;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_compression::Compression;
use outlast_gateway::gateway::{DampedLink, Gateway, SilentLink};
use outlast_gateway::limits::Limits;
use outlast_gateway::links::{Indicator, LinkId, LinkState};
use outlast_gateway::tracking::FlowKey;
use outlast_linux::clock;
use outlast_linux::tracker::TrackerMemory;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Resumes that are remembered.
const REMEMBERED: usize = 16;

/// How a daemon is. The form only grows.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Status {
    pub(crate) interface: String,
    /// The bridge, bond or switch that takes every packet of it.
    #[serde(default)]
    pub(crate) port_of: Option<String>,
    pub(crate) mechanism: String,
    /// Whether it may acknowledge what the receiver has not.
    pub(crate) acknowledges_ahead: bool,
    pub(crate) data_path: String,
    /// What the part in the kernel has done; `None`: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kernel: Option<Kernel>,
    /// Memory of the tables in the kernel; `None`: there are none, or the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tables: Option<Tables>,
    /// This gateway's part among its neighbours, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agents: Option<Agents>,
    pub(crate) running_s: f64,
    pub(crate) link: Link,
    pub(crate) peers_down: Vec<PeerDown>,
    /// Links that owe an answer.
    #[serde(default)]
    pub(crate) silent: Vec<Silent>,
    /// Links whose indicators are not believed at once.
    #[serde(default)]
    pub(crate) damped: Vec<Damped>,
    /// Tracked connections.
    pub(crate) flows: usize,
    /// Kept for TCP connections, with what keeping costs.
    pub(crate) held_bytes: u64,
    /// Kept of everything else.
    pub(crate) held_other_bytes: u64,
    /// Memory of the daemon's process; `None` if the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) counters: Counters,
    /// The newest last.
    pub(crate) resumes: Vec<Resume>,
    /// The last outages of links, the newest last.
    #[serde(default)]
    pub(crate) outages: Vec<Saved>,
    /// What may be tracked and kept.
    pub(crate) limits: Caps,
    /// The link's rate, if it is known.
    pub(crate) rate_bits_per_s: Option<u64>,
    /// Where metrics are served.
    pub(crate) metrics: Option<String>,
    /// The configuration file that is in force.
    pub(crate) config: Option<String>,
    /// Those that keep the most first; only if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) flow_list: Option<Vec<Flow>>,
}

/// Memory of the tables in the kernel, all of it taken when the daemon begins.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Tables {
    /// For connections, as many as there is room for.
    pub(crate) connections_bytes: u64,
    /// For handshakes.
    pub(crate) openings_bytes: u64,
    /// For copies of what went towards the link last.
    pub(crate) recorder_bytes: u64,
}

impl From<TrackerMemory> for Tables {
    fn from(memory: TrackerMemory) -> Self {
        Self {
            connections_bytes: memory.connections.0,
            openings_bytes: memory.openings.0,
            recorder_bytes: memory.recorder.0,
        }
    }
}

/// What may be tracked and kept.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Caps {
    pub(crate) flows: u64,
    pub(crate) held_per_flow_bytes: u64,
    pub(crate) held_in_all_bytes: u64,
    pub(crate) other_packets: u64,
    pub(crate) other_bytes: u64,
    pub(crate) peers: u64,
}

impl From<&Limits> for Caps {
    fn from(limits: &Limits) -> Self {
        Self {
            flows: limits.flows as u64,
            held_per_flow_bytes: limits.held_per_flow.0,
            held_in_all_bytes: limits.held_in_all.0,
            other_packets: limits.other_packets as u64,
            other_bytes: limits.other_bytes.0,
            peers: limits.peers as u64,
        }
    }
}

/// Declares a struct of numbers: the name of each, and what it is. An older daemon has fewer.
macro_rules! numbers {
    ($(#[$about:meta])* $struct:ident { $($name:ident: $what:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
        #[serde(default)]
        pub(crate) struct $struct {
            $(#[doc = $what] pub(crate) $name: u64,)*
        }

        impl $struct {
            /// Each with its name and what it is.
            pub(crate) fn each(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$((stringify!($name), $what, self.$name),)*].into_iter()
            }
        }
    };
}

numbers! {
    /// Counts since the daemon began.
    Counters {
        packets: "Packets that the gateway was shown",
        passed_unseen: "Packets that passed because they are malformed, too long, or several in one that only the kernel can cut",
        super_segments_cut: "Super-segments of which only a part passed",
        odd_segments: "Segments that do not belong to their connection as tracked",
        taken: "Packets taken instead of being lost, or that waited behind those",
        superseded: "Taken packets that a later one made useless",
        suppressed: "Retransmissions of what had just been re-sent",
        losses_signalled: "Segments dropped so that a sender without SACK hears by one loss that the link's queue is full",
        path_mtus_lowered: "Times that a sender was told of a path MTU that is smaller since the link is back",
        acks_resent: "Acknowledgements re-sent towards the link",
        resent: "Packets sent towards the link",
        rereceived: "Packets handed to this side",
        unsent: "Packets of the gateway for which there was no way or no room",
        forbidden: "Packets of the gateway that a firewall of this host has dropped",
        unprotected: "Packets that passed unseen, or that the gateway did not send, as a policy of IPsec might not hold for its own",
        kicks_repeated: "Second tries to make a connection move",
        resumes: "Connections that resumed: new bytes were acknowledged, or the next that was lacking came",
        freezes: "Connections whose window was closed for the receiver",
        resets: "Connections reset because the receiver never acknowledged",
        silences: "Times that a link owed an answer for too long",
        probes: "Probes sent towards links that owed an answer",
        questions: "Far hosts asked whether they have sent what is lost",
        wakes: "ICMP errors sent to senders that waited for a timeout",
        link_ups_delayed: "Times that a link's return was told late, because its indicators flap",
        link_downs_ignored: "Changes of a link that were not believed, because its indicators flap",
        flows_displaced: "Connections that gave way because the table was full",
        flows_refused: "Connections not tracked, because nobody in the full table may give way",
        fallbacks: "Connections of which one packet was kept, past a cap",
        not_kept: "Segments that could not be kept at all, past a cap",
        others_evicted: "Packets of other traffic dropped: the oldest past a cap, and those too old or replaced by newer ones",
        link_events_refused: "Changes of a link that were ignored, past the cap of peers",
        compressed: "Segments that went towards the link compressed",
        compressed_from_bytes: "Bytes of these packets before, with headers",
        compressed_to_bytes: "Bytes of these packets as they went, with headers",
        incompressible: "Segments that did not become smaller, and went as they are",
        compression_paused: "Times that a connection was not compressed for a while, as that saved too little",
        restored: "Compressed segments from the link that were restored",
        not_restored: "Compressed segments from the link that were damaged, and dropped",
        compression_offers: "Hosts behind the link that were asked whether they restore",
        compression_agreed: "Hosts that agreed to restore, or were told so",
        compression_refused: "Times that a host was found not to restore",
        links_undamped: "Changes of a link that were not damped, past the cap of links that flap",
    }
}

numbers! {
    /// The part of the data path that is in the kernel.
    Kernel {
        flows: "Connections in the kernel's table that were not closed, some seconds ago at most",
        tracked: "Segments that belong to their connection, seen in the kernel",
        odd_segments: "Segments that do not, seen in the kernel",
        not_tracked: "Packets looked at closely that are no whole segments, seen in the kernel",
        contended: "Segments not looked at, since another processor was at their connection",
        recorded: "Segments of which a copy was kept in the kernel for a while",
        thinned: "Segments of which none was, since the link is too fast for that",
        evicted: "Connections that were not closed and gave way to others, since the table was full",
        suspected: "Times that a connection's far host was suspected of being away",
        diversions: "Times that packets were sent through user space",
    }
}

impl Kernel {
    fn of(path: &KernelPath) -> Option<Self> {
        let counters = path.counters().ok()?;
        Some(Self {
            flows: path.counted() as u64,
            tracked: counters.tracked,
            odd_segments: counters.odd,
            not_tracked: counters.not_tracked,
            contended: counters.contended,
            recorded: counters.recorded,
            thinned: counters.thinned,
            evicted: counters.evicted,
            suspected: counters.suspected,
            diversions: path.diversions,
        })
    }
}

/// The state of the interface's link.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Link {
    /// `up` or `down`.
    pub(crate) state: String,
    /// For how long.
    pub(crate) for_s: f64,
    /// The indicator that said so.
    #[serde(default)]
    pub(crate) by: String,
}

/// A peer that is down while others are not.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct PeerDown {
    pub(crate) peer: IpAddr,
    pub(crate) for_s: f64,
    /// Which indicator says so.
    #[serde(default)]
    pub(crate) by: String,
}

/// A link that owes an answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Silent {
    /// `null`: that of the whole interface.
    pub(crate) peer: Option<IpAddr>,
    /// Since the first thing went towards it that was not answered.
    pub(crate) for_s: f64,
}

/// A link whose indicators are not believed at once.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Damped {
    /// `null`: that of the whole interface.
    pub(crate) peer: Option<IpAddr>,
    /// What they said last: `up` or `down`.
    pub(crate) said: String,
    /// What holds instead.
    pub(crate) told: String,
    /// 1000 for each change to down; halves in each half-life.
    pub(crate) penalty: u32,
    pub(crate) for_s: f64,
    /// In how many seconds it is looked at again.
    pub(crate) again_s: f64,
}

impl Silent {
    fn of(now: Instant, link: SilentLink) -> Self {
        Self {
            peer: link.link.peer,
            for_s: now.since(link.since).as_secs_f64(),
        }
    }
}

impl Damped {
    pub(crate) fn of(now: Instant, damped: DampedLink) -> Self {
        Self {
            peer: damped.link.peer,
            said: state(damped.said).into(),
            told: state(damped.told).into(),
            penalty: damped.penalty,
            for_s: now.since(damped.since).as_secs_f64(),
            again_s: damped.until.since(now).as_secs_f64(),
        }
    }
}

/// A link's state as it is shown.
pub(super) const fn state(state: LinkState) -> &'static str {
    match state {
        LinkState::Up => "up",
        LinkState::Down => "down",
    }
}

/// An indicator's name, as in the configuration file where it is there.
pub(super) const fn indicator(indicator: Indicator) -> &'static str {
    match indicator {
        Indicator::Assumed => "assumed",
        Indicator::Carrier => "carrier",
        Indicator::Address => "address",
        Indicator::Route => "route",
        Indicator::Neighbour => "neighbour",
        Indicator::Notify => "notify",
        Indicator::MobilityUpdate => "mobility-update",
        Indicator::Silence => "silence",
        Indicator::FirstPacket => "first-packet",
        Indicator::Suspension => "suspension",
    }
}

/// A connection that moved again after an outage.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Resume {
    pub(crate) near: String,
    pub(crate) far: String,
    /// From link-up as it was told, by a silence's first packet if by nobody else, until something new was
    /// acknowledged.
    pub(crate) after_s: f64,
    pub(crate) ago_s: f64,
}

/// The counters of what happens at a cap.
const CAPS: [&str; 7] = [
    "flows_displaced",
    "flows_refused",
    "fallbacks",
    "not_kept",
    "others_evicted",
    "link_events_refused",
    "links_undamped",
];

/// The last connections that moved again.
#[derive(Debug, Default)]
pub(super) struct Resumes {
    last: VecDeque<(Instant, FlowKey, Duration)>,
}

impl Resumes {
    pub(super) fn note(&mut self, now: Instant, flow: FlowKey, after: Duration) {
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back((now, flow, after));
    }
}

impl Status {
    pub(super) fn of(now: Instant, daemon: &Daemon) -> Self {
        let Daemon {
            settings,
            gateway,
            path,
            compression,
            indicators,
            ..
        } = daemon;
        let link = gateway.link_state(LinkId::of_interface(INTERFACE));
        let peers_down = indicators.absent().map(|(peer, since, by)| PeerDown {
            peer,
            for_s: now.since(since).as_secs_f64(),
            by: indicator(by).into(),
        });
        let silent = gateway.silent_links().map(|link| Silent::of(now, link));
        let damped = gateway.damped_links(now).map(|link| Damped::of(now, link));
        let resumes = daemon.resumes.last.iter().map(|(at, flow, after)| Resume {
            near: flow.near.to_string(),
            far: flow.far.to_string(),
            after_s: after.as_secs_f64(),
            ago_s: now.since(*at).as_secs_f64(),
        });
        let outages = daemon.outages.told(now, clock::unix_offset());
        let info = settings.mechanism.0.info();
        let kernel = path.kernel().and_then(Kernel::of);
        let unused = outlast_compression::Counters::default();
        Self {
            interface: settings.interface.clone(),
            port_of: daemon.port_of.as_ref().map(|(_, of)| of.clone()),
            mechanism: info.name.into(),
            acknowledges_ahead: info.acknowledges_ahead,
            data_path: path.describe(settings.mechanism),
            kernel,
            tables: path
                .kernel()
                .and_then(|kernel| kernel.memory.map(Tables::from)),
            agents: daemon.agents.as_ref().map(|agents| Agents::of(now, agents)),
            running_s: now.since(daemon.began).as_secs_f64(),
            link: Link {
                state: link.map_or("up", |link| state(link.state)).into(),
                by: link.map_or("", |link| indicator(link.by)).into(),
                for_s: link.map_or(0.0, |link| now.since(link.since).as_secs_f64()),
            },
            peers_down: peers_down.collect(),
            silent: silent.collect(),
            damped: damped.collect(),
            flows: kernel
                .map_or(0, |kernel| kernel.flows as usize)
                .max(gateway.flows()),
            held_bytes: gateway.held().0,
            held_other_bytes: gateway.held_other().0,
            resident_bytes: resident_bytes(),
            counters: Counters::of(
                gateway,
                path,
                compression.as_ref().map_or(&unused, Compression::counters),
                indicators.refused(),
            ),
            resumes: resumes.collect(),
            outages: outages.collect(),
            limits: Caps::from(&settings.limits),
            rate_bits_per_s: settings.rate.map(BitRate::bits_per_second),
            metrics: settings.metrics.as_ref().map(ToString::to_string),
            config: daemon.file.as_ref().map(|file| file.display().to_string()),
            flow_list: None,
        }
    }
}

impl Counters {
    /// Each cap that was reached: its name, what is counted, and how often it was.
    pub(crate) fn caps_reached(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let caps = self.each().filter(|(name, _, _)| CAPS.contains(name));
        caps.filter(|(_, _, count)| *count > 0)
    }

    fn of(
        gateway: &Gateway,
        path: &DataPath,
        compression: &outlast_compression::Counters,
        refused: u64,
    ) -> Self {
        // All of them: who adds one is told here that it is to be shown.
        let outlast_gateway::counters::Counters {
            packets,
            odd_segments,
            taken,
            superseded,
            suppressed,
            losses_signalled,
            path_mtus_lowered,
            acks_resent,
            resent,
            rereceived,
            kicks_repeated,
            resumes,
            freezes,
            resets,
            silences,
            probes,
            questions,
            wakes,
            link_ups_delayed,
            link_downs_ignored,
            links_undamped,
            flows_displaced,
            flows_refused,
            fallbacks,
            not_kept,
            others_evicted,
            link_events_refused,
        } = *gateway.counters();
        Self {
            packets,
            odd_segments,
            taken,
            superseded,
            suppressed,
            losses_signalled,
            path_mtus_lowered,
            acks_resent,
            resent,
            rereceived,
            kicks_repeated,
            resumes,
            freezes,
            resets,
            silences,
            probes,
            questions,
            wakes,
            link_ups_delayed,
            link_downs_ignored,
            links_undamped,
            flows_displaced,
            flows_refused,
            fallbacks,
            not_kept,
            others_evicted,
            link_events_refused: link_events_refused + refused,
            ..Self::default()
        }
        .with_path(path.counters())
        .with_compression(compression)
    }

    /// These counts with those of the data path.
    const fn with_path(self, path: PathCounters) -> Self {
        let PathCounters {
            unseen,
            cut,
            unsent,
            forbidden,
            unprotected,
        } = path;
        Self {
            passed_unseen: unseen,
            super_segments_cut: cut,
            unsent,
            forbidden,
            unprotected,
            ..self
        }
    }

    /// These counts with what this end of a compressed link has counted.
    fn with_compression(self, compression: &outlast_compression::Counters) -> Self {
        let outlast_compression::Counters {
            compressed,
            original_bytes,
            compressed_bytes,
            incompressible,
            given_up,
            restored,
            damaged,
            offers,
            agreements,
            refusals,
            no_room: _,
        } = *compression;
        Self {
            compressed,
            compressed_from_bytes: original_bytes,
            compressed_to_bytes: compressed_bytes,
            incompressible,
            compression_paused: given_up,
            restored,
            not_restored: damaged,
            compression_offers: offers,
            compression_agreed: agreements,
            compression_refused: refusals,
            ..self
        }
    }
}

/// Memory of this process that is in use (proc_pid_status(5)); `None` if the kernel does not tell.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let kilobytes = lines.find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB"))?;
    Some(kilobytes.trim().parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
pub(super) mod tests;
