//! Outages found in captured packets, and why each connection stood still.
//!
//! A [`Diagnosis`] is shown the packets of a capture in the order of their times and tells in the
//! end when paths went silent, when they were back, when each connection noticed, and what it
//! waited for meanwhile. It needs no word of where the capture was made, and its memory does not
//! grow with the capture: see [`Limits`].
//!
//! # What counts as an outage
//!
//! A host is *silent* while packets that it should answer remain unanswered. A silence is an outage
//! if plain loss, at the rate that the connection shows, would hardly explain it. A sender without data, a receiver with a closed window that answers
//! probes, and a lost segment are none.
//!
//! # What a capture cannot tell
//!
//! A path gives no sign of its return. With one connection alone, the return lies between the last
//! transmission that was not answered and the first that was; [`Outage::end_earliest`] and
//! [`Outage::end`] are these bounds. Packets of any other connection over the same path make them
//! close in.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bins;
mod connection;
mod diagnosis;
mod evidence;
mod flow;
mod grouping;
mod half;
mod outage;
mod paths;
mod seen;
mod seniority;
mod signs;
mod silence;

pub use diagnosis::{Counters, Diagnosis, Limits};
pub use flow::FlowId;
pub use outage::{Affected, Cause, Findings, Outage, Scope, Wasted};
