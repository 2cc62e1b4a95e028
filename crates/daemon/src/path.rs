//! The data path: how packets get to the gateway, and which ones do.
//!
//! On the eBPF path they stay in the kernel, whose programs track the connections and record what
//! goes towards the link; only those of a link that is down, silent or not at rest yet go through
//! user space. Where that cannot be had, or a mechanism must be able to rewrite any packet, all of
//! them go through an NFQUEUE.
//!
//! Both paths fail open, and end with the process. While the process is stopped, a second process,
//! the [`Guardian`], lets the packets pass.

mod diverted;
mod kernel;
mod queue;
mod sending;
mod silent;
mod takeover;
#[cfg(test)]
mod tests;

use super::config::{DataPathChoice, Mechanism, Settings};
use crate::failure::Failure;
pub(super) use diverted::Diverted;
pub(super) use kernel::{KernelPath, Listed};
use outlast_base::time::Instant;
use outlast_gateway::gateway::Transmit;
use outlast_gateway::links::Direction;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_linux::guardian::{Guardian, Pulse};
use outlast_linux::netfilter::NetfilterError;
use outlast_linux::netfilter::rules::Claim;
use outlast_linux::raw::Sent;
use outlast_linux::tracker::TrackerError;
use outlast_wire::Packet;
use queue::QueuePath;
pub(super) use queue::{FromQueue, PathCounters, Waiting};
use rustix::fd::{AsFd, BorrowedFd};
use std::io;
pub(super) use takeover::Takeover;

/// The data path of one interface. Dropped, it lets everything pass.
#[derive(Debug)]
pub(super) struct DataPath {
    queue: QueuePath,
    /// `None`: every packet goes through user space.
    kernel: Option<KernelPath>,
    /// Why there is no eBPF path.
    why: String,
    interface: String,
    /// Keeps other daemons off the interface.
    _claim: Claim,
}

impl DataPath {
    /// Opens the queue, the claim and the eBPF programs; no packet is touched yet.
    pub(super) fn open(settings: &Settings) -> Result<Self, Failure> {
        let queue = QueuePath::open(settings).map_err(|error| missing(&error))?;
        let claim = claim(&settings.interface)?;
        let (kernel, why) = match settings.data_path {
            DataPathChoice::Nfqueue => (None, "as it was asked for".into()),
            choice => match kernel_path(settings) {
                Ok(kernel) => (Some(kernel), String::new()),
                Err(lack) if choice == DataPathChoice::Ebpf => return Err(lack.into_failure()),
                Err(lack) => (None, format!("because {}", lack.what)),
            },
        };
        let mut path = Self {
            queue,
            kernel,
            why,
            interface: settings.interface.clone(),
            _claim: claim,
        };
        path.choose_cutter().map_err(|error| missing(&error))?;
        if path.kernel.is_some() {
            path.queue.rehearse().map_err(|error| missing(&error))?;
        }
        Ok(path)
    }

    /// Chooses who cuts super-segments: the kernel on the eBPF path, or else the daemon.
    ///
    /// The kernel knows where to cut, but would cost too much where every packet is diverted.
    fn choose_cutter(&self) -> Result<(), NetfilterError> {
        self.queue.take_aggregates(self.kernel.is_none())
    }

    /// Begins to show packets to the gateway.
    ///
    /// On the eBPF path only [diverted](Self::divert) packets are shown; some may be diverted
    /// already, for the link may be down when the daemon starts.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        match &self.kernel {
            Some(_) => Ok(()),
            None => self
                .queue
                .take_everything()
                .map_err(|error| missing(&error)),
        }
    }

    /// One line on what is used for `mechanism`, and why.
    pub(super) fn describe(&self, mechanism: Mechanism) -> String {
        match &self.kernel {
            // Begun with another one, before a reload.
            Some(_) if must_rewrite(mechanism.0) => format!(
                "eBPF: every packet through user space, because mechanism {mechanism} must rewrite \
                 packets"
            ),
            Some(kernel) => kernel.describe(),
            None => format!(
                "NFQUEUE {}: every packet through user space, {}",
                self.queue.number(),
                self.why
            ),
        }
    }

    /// The part in the kernel, if there is one.
    pub(super) const fn kernel(&self) -> Option<&KernelPath> {
        self.kernel.as_ref()
    }

    pub(super) const fn kernel_mut(&mut self) -> Option<&mut KernelPath> {
        self.kernel.as_mut()
    }

    /// The interface is there, perhaps anew, or its MTU is another.
    pub(super) fn attach(&mut self, mtu: u32, is_new: bool) -> io::Result<()> {
        self.queue.attach(mtu, is_new)?;
        if !is_new {
            return Ok(());
        }
        match self.kernel.as_mut().map(|k| k.attach(&self.interface)) {
            None | Some(Ok(())) => Ok(()),
            // It is gone again.
            Some(Err(error @ TrackerError::Interface(_))) => Err(io::Error::other(error)),
            Some(Err(error)) => self.fall_back(&error),
        }
    }

    /// The interface is gone.
    pub(super) fn detach(&mut self) {
        self.queue.detach();
        if let Some(kernel) = &mut self.kernel {
            kernel.detach();
        }
    }

    /// Gives up the eBPF path: from now on every packet goes through user space.
    fn fall_back(&mut self, error: &TrackerError) -> io::Result<()> {
        let lack = Lack::of(error);
        tracing::warn!("no eBPF path on {}: {}", self.interface, lack.what);
        self.kernel = None;
        self.why = format!("because {}", lack.what);
        self.choose_cutter()
            .and_then(|()| self.queue.take_everything())
            .map_err(io::Error::other)
    }

    /// Lets the packets of `diverted` go through user space, and no others, on the eBPF path.
    pub(super) fn divert(
        &mut self,
        now: Instant,
        diverted: &Diverted,
        ways: &[outlast_linux::monitor::Way],
    ) -> Result<(), NetfilterError> {
        let Some(kernel) = &mut self.kernel else {
            return Ok(());
        };
        let ranges = diverted.ranges(ways);
        if !kernel.is_in_force(&ranges) {
            self.queue.take_only(&ranges)?;
            kernel.note_ranges(ranges);
        }
        kernel.note_diversion(now, diverted.clone());
        Ok(())
    }

    /// Nothing goes through user space any more.
    pub(super) fn end_diversion(&mut self) {
        if let Some(kernel) = &mut self.kernel {
            kernel.note_end();
            self.queue.take_nothing();
        }
    }

    /// Reads the connections for which `is_behind` holds from the kernel's tracker.
    pub(super) fn take_over(
        &self,
        now: Instant,
        is_behind: impl Fn(&outlast_gateway::tracking::FlowKey) -> bool,
    ) -> Takeover {
        match &self.kernel {
            Some(kernel) => Takeover::read(kernel.tracker(), now, self.queue.mtu(), is_behind),
            None => Takeover::default(),
        }
    }

    /// Reads those of `keys` from the kernel's tracker of which only the near host was heard.
    pub(super) fn take_over_one_sided(
        &self,
        keys: &[outlast_gateway::tracking::FlowKey],
    ) -> Takeover {
        match &self.kernel {
            Some(kernel) => Takeover::read_one_sided(kernel.tracker(), self.queue.mtu(), keys),
            None => Takeover::default(),
        }
    }

    /// The next packet. `longest_of` says of one that is to be cut how long its pieces may be, where
    /// that is less than the MTU.
    pub(super) fn take(
        &mut self,
        now: Instant,
        longest_of: impl Fn(&Packet, Direction) -> Option<u32>,
    ) -> io::Result<FromQueue> {
        self.queue.take(now, longest_of)
    }

    /// Ends a packet's wait: `passed` are those of its [`Waiting::packets`] that go on.
    pub(super) fn release(&mut self, waiting: &Waiting, passed: &[Packet]) -> io::Result<()> {
        self.queue.release(waiting, passed)
    }

    /// Ends a packet's wait: `instead` goes on in its stead.
    pub(super) fn replace(&mut self, waiting: &Waiting, instead: &[Packet]) -> io::Result<()> {
        self.queue.replace(waiting, instead)
    }

    /// Sends what the gateway wants sent, in pieces of at most `longest` bytes where that is known;
    /// whether there was room for it.
    pub(super) fn transmit(
        &mut self,
        transmit: &Transmit,
        longest: Option<u32>,
    ) -> io::Result<Sent> {
        self.queue.transmit(transmit, longest)
    }

    /// The pulse by which the guardian knows that this process runs.
    pub(super) const fn pulse(&self) -> &Pulse {
        self.queue.pulse()
    }

    /// The guardian; its descriptor is readable once the guardian has ended.
    pub(super) const fn guardian(&self) -> &Guardian {
        self.queue.guardian()
    }

    /// Lets the guardian outlive this process until it has ended the connections left to it.
    pub(super) fn leave_guardian(&mut self) {
        self.queue.leave_guardian();
    }

    /// Starts another guardian.
    pub(super) fn renew_guardian(&mut self) -> io::Result<()> {
        self.queue.renew_guardian()
    }

    pub(super) const fn counters(&self) -> PathCounters {
        self.queue.counters
    }
}

impl AsFd for DataPath {
    /// Readable when [`DataPath::take`] has something.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

/// Why there is no eBPF path, and what would help.
struct Lack {
    /// To follow "every packet through user space, because".
    what: String,
    remedy: &'static str,
    is_usage: bool,
}

impl Lack {
    fn of(error: &TrackerError) -> Self {
        let outlast_linux::tracker::Lack { what, remedy } = error.lack();
        Self {
            what,
            remedy,
            is_usage: false,
        }
    }

    fn into_failure(self) -> Failure {
        let Self {
            what,
            remedy,
            is_usage,
        } = self;
        let text = format!("the eBPF data path cannot be had: {what}; {remedy}");
        match is_usage {
            true => Failure::Usage(text),
            false => Failure::Capability(text),
        }
    }
}

fn kernel_path(settings: &Settings) -> Result<KernelPath, Lack> {
    may_stay_in_the_kernel(settings)?;
    KernelPath::open(settings).map_err(|error| Lack::of(&error))
}

fn may_stay_in_the_kernel(settings: &Settings) -> Result<(), Lack> {
    if settings.compression.is_some() {
        return Err(Lack {
            what: "`compression` must see every packet".to_owned(),
            remedy: "turn it off, or take `data_path = \"auto\"`",
            is_usage: true,
        });
    }
    match must_rewrite(settings.mechanism.0) {
        false => Ok(()),
        true => Err(Lack {
            what: format!("mechanism {} must rewrite packets", settings.mechanism),
            remedy: "take another mechanism, or `data_path = \"auto\"`",
            is_usage: true,
        }),
    }
}

/// Checks that the data path and the mechanism of the configuration go together.
pub(crate) fn check(settings: &Settings) -> Result<(), Failure> {
    match settings.data_path {
        DataPathChoice::Ebpf => may_stay_in_the_kernel(settings).map_err(Lack::into_failure),
        DataPathChoice::Auto | DataPathChoice::Nfqueue => Ok(()),
    }
}

/// Whether a mechanism may have to change any packet of its connections, also while the link is up.
pub(super) const fn must_rewrite(mechanism: PathMechanismKind) -> bool {
    matches!(
        mechanism,
        PathMechanismKind::ZeroWindowAck
            | PathMechanismKind::AcknowledgeAhead
            | PathMechanismKind::MTcp
            | PathMechanismKind::MTcpAdaptive
    )
}

/// Claims the interface: a second daemon would take this one's packets for the hosts'.
fn claim(interface: &str) -> Result<Claim, Failure> {
    // No interface has a slash in its name, so that this is none of the tables with rules.
    Claim::stake(&format!("outlast/{interface}")).map_err(|error| match error {
        NetfilterError::TableTaken { .. } => Failure::Usage(format!(
            "another `outlast run` looks after {interface} already: end that one first, or leave \
             it at that (`outlast status --interface {interface}` shows it)"
        )),
        error => missing(&error),
    })
}

/// The failure for a netfilter error: a wrong setting, or a missing capability.
fn missing(error: &NetfilterError) -> Failure {
    let text = match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    match error {
        NetfilterError::QueueTaken { .. } | NetfilterError::TableTaken { .. } => {
            Failure::Usage(text)
        }
        _ => Failure::Capability(text),
    }
}

/// The packets that the link carries for `packet`, with checksums: they may be kept.
fn as_carried(packet: Packet, mtu: u32, lacks_checksum: bool) -> Vec<Packet> {
    if packet.total_len() > mtu
        && let Ok(segments) = packet.segment_to_mtu(mtu)
    {
        return segments.collect();
    }
    vec![completed(packet, mtu, lacks_checksum)]
}

/// `packet` with its checksum, unless it is longer than a packet can be.
fn completed(packet: Packet, mtu: u32, lacks_checksum: bool) -> Packet {
    if !lacks_checksum || packet.total_len() > mtu {
        return packet;
    }
    let mut edit = packet.edit();
    edit.fill_checksums();
    edit.finish()
}
