//! The disconnecting link as a pure machine: rate, delay, queue, loss, duplication, reordering
//! and outages.
//!
//! A [`Link`] joins two far ends, the mobile's and the fixed host's, with one pipe per
//! [`Way`]. The lab drives it in real time, the simulator in virtual time; both see the same
//! outages for the same seed. It knows nothing of what a frame carries.
//!
//! Each pipe is a drop-tail queue, a transmitter that takes the frame's serialisation time, and
//! a propagation delay. Frames that have left the transmitter may be lost, doubled or held back.
//! When the link goes down, the queue and the frame being sent are flushed, and every frame that
//! arrives while it is down is dropped, or all of them wait ([`WhileDown`]). Nothing vanishes silently: each drop is a [`LinkEvent`]
//! that hands the frame back.
//!
//! The outages of a configuration can be known without running anything: see
//! [`LinkConfig::schedule`], [`LinkConfig::connected_time`] and [`Ideal`].
//!
//! # Example
//!
//! ```
//! use outlast_base::time::{Duration, Instant};
//! use outlast_base::units::{BitRate, ByteCount};
//! use outlast_link::{Frame, Link, LinkConfig, PipeConfig, Way};
//!
//! #[derive(Clone)]
//! struct Datagram(u64);
//! impl Frame for Datagram {
//!     fn wire_len(&self) -> ByteCount {
//!         ByteCount(self.0)
//!     }
//! }
//!
//! let pipe = PipeConfig {
//!     rate: BitRate::from_bits_per_second(10_000_000),
//!     delay: Duration::from_millis(25),
//!     ..PipeConfig::default()
//! };
//! let mut link = Link::new(LinkConfig { to_mobile: pipe, to_fixed: pipe, ..LinkConfig::default() });
//! link.handle_packet(Instant::ZERO, Way::ToMobile, Datagram(1_500));
//!
//! // 1500 bytes at 10 Mbit/s take 1.2 ms, and 25 ms to the far end.
//! let (at, _) = link.poll_timeout().expect("one frame is on its way");
//! assert_eq!(at.as_nanos(), 26_200_000);
//! link.handle_timeout(at);
//! assert!(matches!(link.poll_transmit(), Some((Way::ToMobile, Datagram(1_500)))));
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod analysis;
mod config;
mod configured_rate;
mod link;
mod outage;
mod pipe;
mod recovery;
pub mod trace;
mod transmitter;

pub use analysis::Ideal;
pub use config::{Frame, InFlight, LinkConfig, PipeConfig, RateChange, Way, WhileDown};
pub use configured_rate::ConfiguredRate;
pub use link::{DropReason, Link, LinkEvent, Reason};
pub use outage::{Outage, OutageProcess, Schedule};
pub use pipe::{Counters, MAX_FRAMES, REORDER_DEPTH, REORDER_HOLD};
pub use recovery::{FIRST_SECONDS, HALF_SECOND};
