//! Programs that pass every packet and do nothing else, where the tracker's are: what the place
//! itself costs.

use super::TrackerError;
use crate::netlink::RouteSocket;
use crate::sys::bpf::{self, Hook, Tags, Word};
use crate::traffic_control::{Attachment, Order, Spot, Way};
use outlast_base::time::Duration;
use rustix::fd::{AsFd, OwnedFd};

/// A loaded program without effect. It and its attachments are gone when it is dropped.
#[derive(Debug)]
pub struct PassThrough {
    program: OwnedFd,
    way: Way,
    attached: Vec<Attachment>,
}

impl PassThrough {
    /// Loads the program; no packet goes through it yet.
    ///
    /// # Errors
    /// Without `CAP_BPF` and `CAP_NET_ADMIN`, or on a kernel without eBPF.
    pub fn load() -> Result<Self, TrackerError> {
        let program = bpf::load_program(Word::Next).map_err(TrackerError::Try)?;
        let way = Way::of(program.as_fd()).map_err(TrackerError::Attach)?;
        Ok(Self {
            program,
            way,
            attached: Vec::new(),
        })
    }

    /// Lets the packets of `interface` go through it in both directions, in the network namespace
    /// of the calling thread.
    ///
    /// # Errors
    /// When there is no such interface, on a kernel without a way to attach programs, or without
    /// `CAP_NET_ADMIN`.
    pub fn attach(&mut self, interface: &str) -> Result<(), TrackerError> {
        let index = RouteSocket::open()
            .and_then(|mut route| route.interface(interface))
            .map_err(TrackerError::Interface)?;
        let mut spot = Spot::at(index);
        for hook in [Hook::Egress, Hook::Ingress] {
            let program = self.program.as_fd();
            let attached = self.way.attach(program, &mut spot, hook, Order::Last);
            self.attached.push(attached.map_err(TrackerError::Attach)?);
        }
        Ok(())
    }

    /// Measures how long a frame takes, as [`super::Tracker::time`] does.
    ///
    /// # Errors
    /// When the frame is shorter than an Ethernet header or longer than a page, or without
    /// `CAP_BPF`.
    pub fn time(&self, frame: &[u8], times: u32) -> Result<Duration, TrackerError> {
        bpf::run(self.program.as_fd(), frame, Tags::default(), times).map_err(TrackerError::Try)
    }
}
