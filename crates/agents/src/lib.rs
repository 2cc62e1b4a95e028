//! The agents' protocol: gateways that run `zero-window-ack` hand frozen connections to each
//! other (a thesis on TCP over Mobile IP, section 5.4.2, which leaves the protocol open).
//!
//! A gateway that has frozen a connection has acknowledged one segment that the mobile does not
//! have. It tells its neighbours; the one that the mobile comes to asks for the segment and
//! delivers it; the first one keeps it until the mobile has acknowledged it; and if either is
//! lost, the connection is reset at both ends instead of being left in an endless exchange of
//! probes and old acknowledgements. Messages, state machines, timers and what becomes of each
//! failure are described in `docs/agents.md`.
//!
//! An [`Agents`] is one gateway's part. It does no I/O, reads no clock and knows nothing of keys:
//! its driver carries messages over a channel that is ordered, reliable and authenticated, and says
//! when there is one and when it is gone. It acts on a [`Gateway`](outlast_gateway::gateway::Gateway)
//! that the driver lends it with every call. After each `handle_*` call the driver
//!
//! 1. hands the gateway's events to [`Agents::handle_gateway_event`],
//! 2. makes durable what [`Agents::poll_record`] gives,
//! 3. sends the gateway's packets, those of [`Agents::poll_packet`] and the messages of
//!    [`Agents::poll_transmit`],
//! 4. appends what [`Agents::poll_removal`] gives to the same journal,
//! 5. and arms its timer with [`Agents::poll_timeout`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod agent;
mod codec;
mod journal;
mod message;
mod prefix;

pub use agent::{
    Agents, Config, Counters, Event, Limits, Move, NeighbourView, Session, Site, StillNeeded,
    TimeoutReason, UnknownNeighbour, View,
};
pub use codec::DecodeError;
pub use journal::{Entry, Kept, Left};
pub use message::{FreezeId, LONGEST_MESSAGE, Message, Outcome, VERSION};
pub use prefix::Prefix;
