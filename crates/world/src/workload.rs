//! What the two hosts do with a connection. The mobile opens it, the fixed host listens.
//!
//! Applications take no time: what arrives is read, and answered, at once. They count bytes; that
//! the bytes are the right ones is checked by the endpoint that receives them.

mod bulk;
mod interactive;
mod request_response;

use crate::side::Side;
use bulk::Bulk;
use interactive::Interactive;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::ByteCount;
use outlast_link::Way;
use request_response::RequestResponse;

/// What the two hosts do, as scenario files describe it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Workload {
    /// One side sends a stream of bytes.
    Bulk {
        /// How many; at least one.
        bytes: ByteCount,
        /// Which way.
        way: Way,
    },
    /// A remote desktop, after Scott and Mapp, section 6.2.1: what the fixed host shows changes
    /// every `interval`. The mobile asks for an update, at first and whenever it has one; the fixed
    /// host answers at once if something has changed since its last update, else at the next change.
    Interactive {
        /// How often there is something new; not zero.
        interval: Duration,
        /// Size of an update; at least one byte.
        update: ByteCount,
        /// Size of the request for an update; at least one byte.
        request: ByteCount,
        /// How long this goes on.
        duration: Duration,
    },
    /// The mobile asks, the fixed host answers, one exchange after the other.
    RequestResponse {
        /// How many exchanges; at least one.
        requests: u32,
        /// Size of each request; at least one byte.
        request: ByteCount,
        /// Size of each response; at least one byte.
        response: ByteCount,
        /// How long the mobile waits after a response before it asks again.
        think: Duration,
    },
}

impl Workload {
    /// The side that gets the payload: the answer to a request counts, not the request.
    #[must_use]
    pub const fn receiver(&self) -> Side {
        match self {
            Self::Bulk { way, .. } => Side::reached_by(*way),
            Self::Interactive { .. } | Self::RequestResponse { .. } => Side::Mobile,
        }
    }

    /// Payload bytes that the receiver is to get; `None` if nobody knows beforehand.
    #[must_use]
    pub fn goal(&self) -> Option<u64> {
        match self {
            Self::Bulk { bytes, .. } => Some(bytes.0),
            Self::RequestResponse {
                requests, response, ..
            } => Some(response.0.saturating_mul(u64::from(*requests))),
            Self::Interactive { .. } => None,
        }
    }

    pub(crate) fn application(&self) -> Application {
        match *self {
            Self::Bulk { bytes, way } => Application::Bulk(Bulk::new(bytes.0, way)),
            Self::Interactive {
                interval,
                update,
                request,
                duration,
            } => {
                let sizes = Sizes::new(request, update);
                Application::Interactive(Interactive::new(interval, duration, sizes))
            }
            Self::RequestResponse {
                requests,
                request,
                response,
                think,
            } => {
                let sizes = Sizes::new(request, response);
                Application::RequestResponse(RequestResponse::new(requests, think, sizes))
            }
        }
    }
}

/// Sizes of the messages of one exchange, in bytes.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    request: u64,
    response: u64,
}

impl Sizes {
    fn new(request: ByteCount, response: ByteCount) -> Self {
        Self {
            request: request.0.max(1),
            response: response.0.max(1),
        }
    }
}

/// Both ends' applications of one connection. What they are asked to do is answered with the
/// number of bytes that the host of that side writes now.
#[derive(Clone, Debug)]
pub(crate) enum Application {
    Bulk(Bulk),
    Interactive(Interactive),
    RequestResponse(RequestResponse),
}

impl Application {
    /// The handshake is done, as seen from `side`.
    pub(crate) fn connected(&mut self, now: Instant, side: Side) -> u64 {
        match self {
            Self::Bulk(bulk) => bulk.connected(side),
            Self::Interactive(interactive) => interactive.connected(now, side),
            Self::RequestResponse(exchange) => exchange.connected(side),
        }
    }

    /// `bytes` came to `side`.
    #[inline]
    pub(crate) fn received(&mut self, now: Instant, side: Side, bytes: u64) -> u64 {
        match self {
            Self::Bulk(bulk) => bulk.received(side, bytes),
            Self::Interactive(interactive) => interactive.received(now, side, bytes),
            Self::RequestResponse(exchange) => exchange.received(now, side, bytes),
        }
    }

    /// Time has come to `now`: what the hosts write, by [`Side::index`].
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> [u64; 2] {
        match self {
            Self::Bulk(_) => [0, 0],
            Self::Interactive(interactive) => interactive.handle_timeout(now),
            Self::RequestResponse(exchange) => exchange.handle_timeout(now),
        }
    }

    /// When to call [`Self::handle_timeout`].
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Bulk(_) => None,
            Self::Interactive(interactive) => interactive.poll_timeout(),
            Self::RequestResponse(exchange) => exchange.poll_timeout(),
        }
    }

    /// Whether the workload has come to its end.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        match self {
            Self::Bulk(bulk) => bulk.is_complete(),
            Self::Interactive(interactive) => interactive.is_complete(),
            Self::RequestResponse(exchange) => exchange.is_complete(),
        }
    }

    /// Updates that the mobile saw; `None` unless interactive.
    pub(crate) fn updates(&self) -> Option<u32> {
        match self {
            Self::Interactive(interactive) => Some(interactive.updates()),
            Self::Bulk(_) | Self::RequestResponse(_) => None,
        }
    }
}
