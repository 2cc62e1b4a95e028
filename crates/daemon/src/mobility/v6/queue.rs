//! Received packets that the kernel cannot read, before it tries to.

use bytes::Bytes;
use outlast_linux::netfilter::NetfilterError;
use outlast_linux::netfilter::queue::{Queue, Ruling};
use outlast_linux::netfilter::rules::HeaderRules;
use outlast_mobility::Verdict;
use outlast_wire::Packet;
use rustix::fd::{AsFd, BorrowedFd};
use std::io;

/// IPv6 in IPv6, routing header, destination options, Mobility Header.
const HEADERS: [u8; 4] = [41, 43, 60, 135];
/// What a tunnel's entry cuts: IPv6 in IPv6.
const FRAGMENTED: [u8; 1] = [41];
/// Queues are tried from here on; gateways' begin at 20300.
const FIRST_QUEUE: u16 = 20_400;
const QUEUES: u16 = 64;

/// The table of the rules. That of a gateway on the same device has another name.
fn table_of(device: &str) -> String {
    format!("outlast-mobile-ip/{device}")
}

/// The packets of Mobile IPv6 and of tunnels. Dropped, it leaves them to the kernel.
pub(in crate::mobility) struct ExtensionQueue {
    queue: Queue,
    _rules: HeaderRules,
}

impl ExtensionQueue {
    /// Takes them from the network namespace of the calling thread, for the role on `device`.
    pub(in crate::mobility) fn take(device: &str) -> Result<Self, NetfilterError> {
        let take = |number| Queue::take(number).map(|queue| (queue, number));
        let first = take(FIRST_QUEUE);
        let (queue, number) = (1..QUEUES).fold(first, |taken, beyond| match taken {
            Err(NetfilterError::QueueTaken { .. }) => take(FIRST_QUEUE + beyond),
            other => other,
        })?;
        // Each packet by itself, with its checksum: a machine reads what the link has carried.
        queue.take_aggregates(false)?;
        let rules = HeaderRules::install(&table_of(device), number, &HEADERS, &FRAGMENTED)?;
        Ok(Self {
            queue,
            _rules: rules,
        })
    }

    /// Has `handle` decide what becomes of the next packet; whether there was one.
    pub(in crate::mobility) fn handle_next(
        &mut self,
        handle: impl FnOnce(Packet) -> Verdict,
    ) -> io::Result<bool> {
        let Some(queued) = self.queue.receive()? else {
            return Ok(false);
        };
        let id = queued.id;
        let packet = match queued.is_truncated {
            true => None,
            false => Packet::parse(Bytes::copy_from_slice(queued.bytes)).ok(),
        };
        let ruling = match packet.map(handle) {
            Some(Verdict::Taken) => Ruling::Drop,
            Some(Verdict::Pass) | None => Ruling::Accept,
        };
        self.queue.give(id, ruling)?;
        Ok(true)
    }
}

impl AsFd for ExtensionQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}
