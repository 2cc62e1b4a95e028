//! Two hosts and the disconnecting links between them in virtual time.
//!
//! A [`World`] is a loop around machines that know nothing of it: the links are the lab's
//! ([`outlast_link`]), the gateways at their ends are the ones that run on real interfaces
//! ([`outlast_gateway`]), and the hosts are [`outlast_tcp`]'s endpoints instead of kernels. Each
//! packet is there with all its headers; its payload is known by its place in a stream, and gets
//! bytes only in captures. The receiving endpoint checks that each stretch is the one that was due.
//!
//! Time is a number: it jumps to the earliest deadline of any machine. What happens at one instant
//! happens in a fixed order, as in the lab: the links first, from the mobile's on (each link, then
//! the gateways at its fixed and at its mobile end), then cross traffic, then each flow's fixed and
//! mobile end, then its applications; what follows from a step without delay follows before the next
//! one. Everything random comes from one
//! named stream for each component, so that the same setup gives the same run to the byte.
//!
//! # What is not modelled
//!
//! Hosts have no processing time, no queue of their own and no segmentation offload: what an
//! endpoint sends is at the link at the same instant. Applications read at once. Links stand in one
//! chain: there is no second way but that of a mobile host that goes from gateway to gateway
//! ([`RoamingSetup`]), and the routers between them take no time. Cross traffic takes its
//! share whatever happens to it. What [`outlast_tcp`] does not model is not modelled here either.
//!
//! # Example
//!
//! ```
//! use outlast_gateway::mechanisms::path::PathMechanismKind;
//! use outlast_base::time::Duration;
//! use outlast_base::units::{BitRate, ByteCount};
//! use outlast_link::{LinkConfig, OutageProcess, PipeConfig, Way};
//! use outlast_world::{FlowSetup, Setup, Stack, Workload, World};
//!
//! let pipe = PipeConfig {
//!     rate: BitRate::from_bits_per_second(10_000_000),
//!     delay: Duration::from_millis(25),
//!     ..PipeConfig::default()
//! };
//! let outages = OutageProcess::Single {
//!     start: Duration::from_secs(1),
//!     length: Duration::from_secs(10),
//! };
//! let link = LinkConfig { to_mobile: pipe, to_fixed: pipe, outages, ..LinkConfig::default() };
//! let workload = Workload::Bulk { bytes: ByteCount(3_000_000), way: Way::ToMobile };
//! let flow = FlowSetup { begin: Duration::ZERO, workload, stacks: [Stack::default(); 2] };
//! let outcome = World::new(Setup {
//!     mechanisms: [PathMechanismKind::Hold; 2],
//!     flows: vec![flow],
//!     ..Setup::new(link)
//! })
//! .run();
//!
//! assert!(outcome.flows[0].is_complete);
//! let resumed = outcome.flows[0].resumed[0].expect("the transfer went on");
//! assert!(resumed < Duration::from_millis(52), "{resumed:?}");
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod agenda;
mod agent;
mod capture;
mod flow;
mod hip;
mod mobile_ip;
mod outcome;
pub mod path;
mod progress;
mod recovery;
mod roaming;
pub mod route;
mod setup;
mod side;
pub mod trace;
mod traffic;
mod workload;
mod world;

pub use hip::{HipOutcome, HipSetup};
pub use mobile_ip::{MobileIpOutcome, MobileIpSetup};
pub use outcome::{FlowOutcome, HopOutcome, Lost, Outcome};
pub use path::{Counts, Gateways, Indicators};
pub use progress::Progress;
pub use recovery::Recovery;
pub use roaming::{AgentsSetup, Crash, Handoff, RoamingOutcome, RoamingSetup};
pub use setup::{FlowSetup, HopSetup, Recording, Setup, Stack};
pub use side::{IpVersion, Side};
pub use traffic::{
    CrossTraffic, Datagram, Pattern, TrafficOutcome, TrafficSetup, is_cross_traffic,
};
pub use workload::Workload;
pub use world::World;
