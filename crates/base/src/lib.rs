//! What every other crate counts in: time, quantities with units, named random streams.
//!
//! ```
//! use outlast_base::time::{Duration, Instant};
//! use outlast_base::units::{BitRate, ByteCount};
//!
//! let rate = BitRate::from_bits_per_second(10_000_000).expect("not zero");
//! let sent = Instant::ZERO + rate.time_for(ByteCount(1_500));
//! assert_eq!(sent, Instant::ZERO + Duration::from_micros(1_200));
//! ```
#![no_std]
#![forbid(unsafe_code)]

pub mod random;
pub mod time;
pub mod units;
