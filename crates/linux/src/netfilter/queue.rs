//! NFQUEUE: the kernel hands packets to this process and waits for its verdict.
//!
//! Super-segments are handed over whole (`NFQA_CFG_F_GSO`), or cut by the kernel, which knows of how
//! many packets they are. When this process is too slow, packets
//! pass without a verdict (`NFQA_CFG_F_FAIL_OPEN`); when it is gone, the rule's bypass flag lets
//! them pass.

use super::message::{self, Received};
use super::{ASKED, Conversation, Message, NetfilterError, may_administer};
use crate::socket::{Buffer, set_buffer};
use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST};
use rustix::fd::{AsFd, BorrowedFd};
use std::io;

/// `NFNL_SUBSYS_QUEUE` and the message types of `linux/netfilter/nfnetlink_queue.h`.
const SUBSYSTEM: u16 = 3 << 8;
const PACKET: u16 = SUBSYSTEM;
const VERDICT: u16 = SUBSYSTEM | 1;
const BATCH_VERDICT: u16 = SUBSYSTEM | 3;
const CONFIGURE: u16 = SUBSYSTEM | 2;
/// Attributes of packets and verdicts (`NFQA_*`).
const PACKET_HEADER: u16 = 1;
const VERDICT_HEADER: u16 = 2;
const PAYLOAD: u16 = 10;
const ORIGINAL_LENGTH: u16 = 13;
const BUFFER_INFO: u16 = 14;
/// Attributes of a configuration (`NFQA_CFG_*`).
const COMMAND: u16 = 1;
const PARAMETERS: u16 = 2;
const MAX_LENGTH: u16 = 3;
const MASK: u16 = 4;
const FLAGS: u16 = 5;

const COMMAND_BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
const FAIL_OPEN: u32 = 1;
const WITH_AGGREGATES: u32 = 4;
/// In `NFQA_SKB_INFO`: the network card was to fill in the checksum.
const CHECKSUM_NOT_READY: u32 = 1;
/// It stands for several.
const AGGREGATE: u32 = 2;

/// Memory for packets on their way to this process, in bytes: what does not fit passes.
const RECEIVE_BUFFER: usize = 16 << 20;
/// The longest message: attributes are limited to 65,535 bytes.
const LONGEST: usize = 65_535 + 1024;

/// A queue of packets that wait for this process's verdict.
#[derive(Debug)]
pub struct Queue {
    conversation: Conversation,
    number: u16,
    buffer: Box<[u8]>,
}

/// Where on its way through the host a packet was taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hook {
    /// It has just been received (`NF_INET_PRE_ROUTING`).
    Received,
    /// It is about to be sent (`NF_INET_POST_ROUTING`).
    Sent,
    /// The packet is elsewhere, by another's rule.
    Other(u8),
}

/// A packet that waits for its verdict.
#[derive(Clone, Copy, Debug)]
pub struct Queued<'a> {
    /// For [`Queue::give`].
    pub id: PacketId,
    /// Where it was taken.
    pub hook: Hook,
    /// Its bytes from the IP header on; possibly a super-segment ([`Queue::take_aggregates`]).
    pub bytes: &'a [u8],
    /// Whether `bytes` are only the beginning: super-segments above 65,531 bytes.
    pub is_truncated: bool,
    /// Whether it is a super-segment.
    pub is_aggregate: bool,
    /// Whether its checksum is still to be filled in.
    pub lacks_checksum: bool,
}

/// What a queued packet is called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PacketId(u32);

/// What becomes of a queued packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ruling {
    /// It goes on as if nothing had been (`NF_ACCEPT`).
    Accept,
    /// It ends here (`NF_DROP`).
    Drop,
}

impl Queue {
    /// Packets that wait for a verdict at most; more pass without one.
    pub const CAPACITY: usize = 4096;

    /// Takes queue `number` of the calling thread's namespace.
    ///
    /// # Errors
    /// When another program has it, without `CAP_NET_ADMIN`, or when the kernel has none.
    pub fn take(number: u16) -> Result<Self, NetfilterError> {
        let conversation = Conversation::open()?;
        let queue = Self {
            conversation,
            number,
            buffer: vec![0; LONGEST].into(),
        };
        let bind = queue
            .configuration()
            .with(COMMAND, &[COMMAND_BIND, 0, 0, 0]);
        match queue.conversation.ask(&bind.finish(), 1, "take a queue") {
            Err(NetfilterError::NotPermitted { .. }) if may_administer() => {
                return Err(NetfilterError::QueueTaken { number });
            }
            result => result?,
        }
        let mut parameters = 0_u32.to_be_bytes().to_vec(); // 0: as much as fits
        parameters.push(COPY_PACKET);
        let rest = queue
            .configuration()
            .with(PARAMETERS, &parameters)
            .with(MAX_LENGTH, &(Self::CAPACITY as u32).to_be_bytes());
        queue.configure(with_flags(
            rest,
            FAIL_OPEN | WITH_AGGREGATES,
            FAIL_OPEN | WITH_AGGREGATES,
        ))?;
        queue.enlarge().map_err(NetfilterError::Socket)?;
        Ok(queue)
    }

    /// Whether super-segments are handed over whole from now on, as they are at first. Otherwise each
    /// of their packets comes by itself, as the link will carry it, with its checksum. Packets that
    /// wait at this moment pass.
    ///
    /// # Errors
    /// When the kernel is out of memory.
    pub fn take_aggregates(&self, whole: bool) -> Result<(), NetfilterError> {
        let flags = if whole { WITH_AGGREGATES } else { 0 };
        self.configure(with_flags(self.configuration(), flags, WITH_AGGREGATES))
    }

    /// Packets that come before the answer pass: nobody could be told of them. Where they leave no
    /// room for the answer there is some afterwards.
    fn configure(&self, configuration: Message) -> Result<(), NetfilterError> {
        const TRIES: usize = 8;
        let pass = |message: &Received<'_>| match queued(message) {
            Some(queued) => self.give(queued.id, Ruling::Accept),
            None => Ok(()),
        };
        let (mut buffer, request) = (vec![0; LONGEST], "configure a queue");
        let bytes = configuration.finish();
        for _ in 0..TRIES {
            let answer = self
                .conversation
                .ask_among(&mut buffer, &bytes, 1, request, pass)?;
            if answer.is_some() {
                return Ok(());
            }
        }
        Err(NetfilterError::Malformed("packets leave no room for it"))
    }

    fn configuration(&self) -> Message {
        let flags = NLM_F_REQUEST | NLM_F_ACK;
        Message::new(CONFIGURE, flags, ASKED, 0, self.number)
    }

    fn enlarge(&self) -> io::Result<()> {
        let socket = &self.conversation.socket;
        set_buffer(socket, Buffer::Receive, RECEIVE_BUFFER)?;
        // A full buffer lets packets pass; it is nothing that this process could act on.
        socket.set_no_enobufs(true)
    }

    /// The next packet, without waiting; `None` if none waits.
    ///
    /// # Errors
    /// Only those of a broken descriptor, which this type never holds.
    pub fn receive(&mut self) -> io::Result<Option<Queued<'_>>> {
        let Self {
            conversation,
            buffer,
            ..
        } = self;
        let Some(bytes) = conversation.receive(buffer)? else {
            return Ok(None);
        };
        // The kernel sends one packet per message and one message per datagram; anything else is
        // an answer to a verdict that came too late.
        Ok(message::received(bytes).find_map(|message| queued(&message)))
    }

    /// Gives a verdict. One on a packet that is gone already has no effect.
    ///
    /// # Errors
    /// When the kernel is out of memory.
    pub fn give(&self, id: PacketId, ruling: Ruling) -> io::Result<()> {
        self.rule(VERDICT, id, ruling)
    }

    /// Gives a verdict on a packet, and on all that wait since before it came.
    ///
    /// # Errors
    /// When the kernel is out of memory.
    pub fn give_until(&self, id: PacketId, ruling: Ruling) -> io::Result<()> {
        self.rule(BATCH_VERDICT, id, ruling)
    }

    /// Has another packet, whole from its IP header on, go on in the stead of one: before every filter that it would have
    /// met itself. The one that waited may be no super-segment.
    ///
    /// # Errors
    /// When the kernel is out of memory.
    pub fn exchange(&self, id: PacketId, bytes: &[u8]) -> io::Result<()> {
        let verdict = self.verdict(VERDICT, id, Ruling::Accept);
        self.conversation
            .send(&verdict.with(PAYLOAD, bytes).finish())
    }

    fn rule(&self, kind: u16, id: PacketId, ruling: Ruling) -> io::Result<()> {
        self.conversation
            .send(&self.verdict(kind, id, ruling).finish())
    }

    fn verdict(&self, kind: u16, id: PacketId, ruling: Ruling) -> Message {
        let code: u32 = match ruling {
            Ruling::Drop => 0,
            Ruling::Accept => 1,
        };
        let mut header = [0; 8];
        header[..4].copy_from_slice(&code.to_be_bytes());
        header[4..].copy_from_slice(&id.0.to_be_bytes());
        let message = Message::new(kind, NLM_F_REQUEST, 0, 0, self.number);
        message.with(VERDICT_HEADER, &header)
    }
}

/// Sets those flags of a queue that are in `mask`.
fn with_flags(configuration: Message, flags: u32, mask: u32) -> Message {
    configuration
        .with(MASK, &mask.to_be_bytes())
        .with(FLAGS, &flags.to_be_bytes())
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.conversation.as_fd()
    }
}

fn queued<'a>(message: &Received<'a>) -> Option<Queued<'a>> {
    if message.kind != PACKET {
        return None;
    }
    let (mut header, mut payload) = (None, None);
    let (mut original, mut info) = (None, 0);
    for (kind, value) in message.attributes() {
        let number = || value.first_chunk::<4>().map(|b| u32::from_be_bytes(*b));
        match kind {
            // struct nfqnl_msg_packet_hdr: id, protocol, hook.
            PACKET_HEADER => header = Some((number()?, *value.get(6)?)),
            PAYLOAD => payload = Some(value),
            ORIGINAL_LENGTH => original = number(),
            BUFFER_INFO => info = number()?,
            _ => {}
        }
    }
    let ((id, hook), bytes) = (header?, payload.unwrap_or_default());
    Some(Queued {
        id: PacketId(id),
        hook: match hook {
            0 => Hook::Received,
            4 => Hook::Sent,
            other => Hook::Other(other),
        },
        bytes,
        is_truncated: original.is_some_and(|length| length as usize > bytes.len()),
        is_aggregate: info & AGGREGATE != 0,
        lacks_checksum: info & CHECKSUM_NOT_READY != 0,
    })
}
