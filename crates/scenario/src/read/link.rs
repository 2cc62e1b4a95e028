//! `[link]` and `[[hops]]`, and their directions.

use super::{duration, outages};
use crate::keys;
use crate::keys::{Key, Section};
use crate::mechanism::Mechanism;
use crate::reader::Reader;
use crate::scenario::LinkSettings;
use crate::topology::Hop;
use outlast_base::time::Duration;
use outlast_base::units::BitRate;
use outlast_link::{InFlight, OutageProcess, PipeConfig, WhileDown};
use std::path::Path;

/// A queue shorter than this hardly lets a TCP work.
const SHORTEST_DEFAULT_QUEUE: usize = 20;

/// What a table says of a direction.
struct Pipe {
    /// The inner `None` is unlimited.
    rate: Option<Option<BitRate>>,
    delay: Option<Duration>,
    queue: Option<usize>,
    loss: Option<f64>,
    duplicate: Option<f64>,
    reorder: Option<f64>,
}

/// The tables within a link's own.
struct Parts {
    /// Downlink and uplink.
    directions: [(&'static Key, &'static Section); 2],
    outages: &'static Section,
}

static OF_LINK: Parts = Parts {
    directions: [
        (&keys::link::DOWNLINK, &keys::DOWNLINK),
        (&keys::link::UPLINK, &keys::UPLINK),
    ],
    outages: &keys::OUTAGES,
};
static OF_HOP: Parts = Parts {
    directions: [
        (&keys::hops::DOWNLINK, &keys::HOP_DOWNLINK),
        (&keys::hops::UPLINK, &keys::HOP_UPLINK),
    ],
    outages: &keys::HOP_OUTAGES,
};

/// `[link]`.
pub(super) fn link(link: &Reader<'_>, directory: &Path) -> LinkSettings {
    let mtu = link.integer(&keys::link::MTU).unwrap_or(1_500);
    let mtu = u32::try_from(mtu).expect("the key's range fits");
    settings(link, &OF_LINK, mtu, directory)
}

/// One of `[[hops]]`, whose packets are no larger than those of `[link]`.
pub(super) fn hop(hop: &Reader<'_>, mtu: u32, directory: &Path) -> Hop {
    let mechanism = |key: &'static Key| {
        let name = hop.choice(key);
        name.and_then(Mechanism::from_name).unwrap_or_default()
    };
    Hop {
        link: settings(hop, &OF_HOP, mtu, directory),
        fixed_end: mechanism(&keys::hops::FIXED_END),
        mobile_end: mechanism(&keys::hops::MOBILE_END),
    }
}

fn settings(link: &Reader<'_>, parts: &Parts, mtu: u32, directory: &Path) -> LinkSettings {
    let top = pipe(link);
    let readers = parts
        .directions
        .map(|(key, section)| link.table(key, section));
    let pipes = readers.each_ref().map(pipe);
    let outages = link.table(&keys::link::OUTAGES, parts.outages);
    let process = outages::process(&outages, directory);

    let own_rate = match &process {
        Some(OutageProcess::Deliveries { trace, .. }) => {
            for reader in readers.iter().chain([link]) {
                refuse_rate(reader);
            }
            Some(trace.mean_rate())
        }
        _ => None,
    };
    // A trace that could not be read may be one that has its own rate.
    if own_rate.is_none() && process.is_some() {
        require(link, &readers, &keys::link::RATE);
    }
    require(link, &readers, &keys::link::DELAY);

    let [downlink, uplink] = pipes.map(|pipe| pipe.or(&top).resolve(own_rate, mtu));
    LinkSettings {
        downlink,
        uplink,
        outages: process.unwrap_or_default(),
        in_flight: in_flight(link),
        while_down: while_down(link),
        rate_changes: Vec::new(),
        mtu,
    }
}

fn in_flight(link: &Reader<'_>) -> InFlight {
    match link.choice(&keys::link::IN_FLIGHT_FATE) {
        Some("lost") => InFlight::Lost,
        _ => InFlight::Delivered,
    }
}

fn while_down(link: &Reader<'_>) -> WhileDown {
    match link.choice(&keys::link::WHILE_DOWN) {
        Some("queued") => WhileDown::Queued,
        _ => WhileDown::Dropped,
    }
}

fn pipe(reader: &Reader<'_>) -> Pipe {
    let queue = reader.integer(&keys::link::QUEUE);
    Pipe {
        rate: rate(reader),
        delay: duration(reader, &keys::link::DELAY),
        queue: queue.map(|queue| usize::try_from(queue).expect("the key's range fits")),
        loss: reader.probability(&keys::link::LOSS),
        duplicate: reader.probability(&keys::link::DUPLICATE),
        reorder: reader.probability(&keys::link::REORDER),
    }
}

fn rate(reader: &Reader<'_>) -> Option<Option<BitRate>> {
    let key = &keys::link::RATE;
    if reader.is_word(key, "unlimited") {
        return Some(None);
    }
    reader.quantity(key).map(BitRate::from_bits_per_second)
}

impl Pipe {
    /// What this table does not say, `general` does.
    fn or(self, general: &Self) -> Self {
        Self {
            rate: self.rate.or(general.rate),
            delay: self.delay.or(general.delay),
            queue: self.queue.or(general.queue),
            loss: self.loss.or(general.loss),
            duplicate: self.duplicate.or(general.duplicate),
            reorder: self.reorder.or(general.reorder),
        }
    }

    fn resolve(self, own_rate: Option<BitRate>, mtu: u32) -> PipeConfig {
        let rate = own_rate.or(self.rate.flatten());
        let delay = self.delay.unwrap_or_default();
        PipeConfig {
            rate,
            delay,
            queue: self
                .queue
                .unwrap_or_else(|| default_queue(rate, delay, mtu)),
            loss: self.loss.unwrap_or_default(),
            duplicate: self.duplicate.unwrap_or_default(),
            reorder: self.reorder.unwrap_or_default(),
        }
    }
}

/// One bandwidth-delay product in packets.
fn default_queue(rate: Option<BitRate>, delay: Duration, mtu: u32) -> usize {
    let product = rate.map_or(0, |rate| rate.bytes_in(delay * 2).as_u64());
    let packets = product.div_ceil(u64::from(mtu)).min(1_000_000);
    usize::try_from(packets)
        .unwrap_or(usize::MAX)
        .max(SHORTEST_DEFAULT_QUEUE)
}

/// Notes that `key` is missing, unless `[link]` or both directions have it.
fn require(link: &Reader<'_>, directions: &[Reader<'_>; 2], key: &'static Key) {
    if link.has(key) {
        return;
    }
    match directions.each_ref().map(|direction| direction.has(key)) {
        [true, true] => {}
        [false, false] => link.missing(key, ""),
        [true, false] => link.missing(key, "the uplink"),
        [false, true] => link.missing(key, "the downlink"),
    }
}

fn refuse_rate(reader: &Reader<'_>) {
    reader.forbid(
        &keys::link::RATE,
        "the packet-delivery trace",
        "remove it: the trace says when packets are delivered",
    );
}
