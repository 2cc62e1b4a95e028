//! What agents say to each other.

use crate::codec::{DecodeError, Reader, Writer};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_gateway::tracking::{FrozenFlow, FrozenNumbers, SupervisedFlow};

/// The version of the protocol that is spoken here.
pub const VERSION: u8 = 1;

/// The longest message in bytes: the longest segment that is kept, and what is said of it.
pub const LONGEST_MESSAGE: usize = 62 << 10;

/// One freeze of one connection: a name that no other one has, and that goes with its segment from
/// agent to agent.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct FreezeId {
    /// The agent that froze it: drawn at random when that was started.
    pub instance: u64,
    /// Counted there.
    pub number: u64,
}

/// What has become of a segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// The mobile has acknowledged it, or the hosts have ended the connection.
    Acknowledged,
    /// The connection was reset at both ends.
    Reset,
    /// The sender cannot take it.
    Refused,
}

/// A message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Message {
    /// The first one of each session.
    Hello {
        /// Drawn at random when the agent was started: another one says that it was started anew.
        instance: u64,
    },
    /// The sender keeps the segment of a frozen connection: it has frozen it, or taken it over.
    Frozen {
        /// The freeze.
        id: FreezeId,
        /// What it takes to reset the connection.
        numbers: FrozenNumbers,
    },
    /// The list of frozen connections, with which each session begins, is complete.
    Listed,
    /// The sender keeps nothing of it any more, or never did.
    Released {
        /// The freeze.
        id: FreezeId,
    },
    /// The mobile is here: the sender asks for the segment.
    Want {
        /// The freeze.
        id: FreezeId,
    },
    /// The segment, and all that is known of its connection.
    Segment {
        /// The freeze.
        id: FreezeId,
        /// The connection.
        flow: Box<FrozenFlow>,
    },
    /// The segment needs nobody any more, or the sender cannot take it. The sender says so again in
    /// each session until it is answered with `Released`.
    Settled {
        /// The freeze.
        id: FreezeId,
        /// How.
        outcome: Outcome,
    },
    /// Nothing but that the sender is there.
    Alive,
    /// A mobile has come to the sender, which is a supervisor host: it asks for the connections of the
    /// mobile that the receiver has supervised.
    Here {
        /// The mobile.
        mobile: IpAddr,
    },
    /// The receiver supervises this connection from now on: the mobile is there.
    Supervised(Box<SupervisedFlow>),
}

const HELLO: u8 = 1;
const FROZEN: u8 = 2;
const LISTED: u8 = 3;
const RELEASED: u8 = 4;
const WANT: u8 = 5;
const SEGMENT: u8 = 6;
const SETTLED: u8 = 7;
const ALIVE: u8 = 8;
const HERE: u8 = 9;
const SUPERVISED: u8 = 10;

impl Message {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        match self {
            Self::Hello { instance } => {
                out.u8(HELLO);
                out.u8(VERSION);
                out.u64(*instance);
            }
            Self::Frozen { id, numbers } => {
                out.u8(FROZEN);
                out.id(*id);
                out.numbers(numbers);
            }
            Self::Listed => out.u8(LISTED),
            Self::Released { id } => {
                out.u8(RELEASED);
                out.id(*id);
            }
            Self::Want { id } => {
                out.u8(WANT);
                out.id(*id);
            }
            Self::Segment { id, flow } => {
                out.u8(SEGMENT);
                out.id(*id);
                out.flow(flow);
            }
            Self::Settled { id, outcome } => {
                out.u8(SETTLED);
                out.id(*id);
                out.u8(match outcome {
                    Outcome::Acknowledged => 0,
                    Outcome::Reset => 1,
                    Outcome::Refused => 2,
                });
            }
            Self::Alive => out.u8(ALIVE),
            Self::Here { mobile } => {
                out.u8(HERE);
                out.address(*mobile);
            }
            Self::Supervised(supervised) => {
                out.u8(SUPERVISED);
                out.supervised(supervised);
            }
        }
        out.finish()
    }

    /// The message that `bytes` are.
    ///
    /// # Errors
    /// [`DecodeError`] for anything that [`Self::encode`] does not write.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > LONGEST_MESSAGE {
            return Err(DecodeError::TooLong(bytes.len()));
        }
        let mut input = Reader::new(bytes);
        let message = match input.u8()? {
            HELLO => match input.u8()? {
                VERSION => Self::Hello {
                    instance: input.u64()?,
                },
                other => return Err(DecodeError::Version(other)),
            },
            FROZEN => Self::Frozen {
                id: input.id()?,
                numbers: input.numbers()?,
            },
            LISTED => Self::Listed,
            RELEASED => Self::Released { id: input.id()? },
            WANT => Self::Want { id: input.id()? },
            SEGMENT => Self::Segment {
                id: input.id()?,
                flow: Box::new(input.flow()?),
            },
            SETTLED => Self::Settled {
                id: input.id()?,
                outcome: match input.u8()? {
                    0 => Outcome::Acknowledged,
                    1 => Outcome::Reset,
                    2 => Outcome::Refused,
                    other => return Err(DecodeError::BadValue("outcome", other)),
                },
            },
            ALIVE => Self::Alive,
            HERE => Self::Here {
                mobile: input.address()?,
            },
            SUPERVISED => Self::Supervised(Box::new(input.supervised()?)),
            other => return Err(DecodeError::UnknownKind(other)),
        };
        input.end()?;
        Ok(message)
    }
}
