//! Packet formats of the disconnecting path: checked views, builders, in-place edits.
//!
//! A [`Packet`] is parsed once, at the edge, or built from headers; what its headers say is then
//! a plain value. [`edit`] alters one in place, [`segment`] cuts a super-segment into packets of
//! the link's MTU, [`pcapng`] writes and reads capture files, [`capture`] reads those of
//! either format piece by piece, [`outline`] reads packets that were cut short, [`compressed`] holds segments whose payload is compressed, [`pattern`] is the payload of
//! packets that are only modelled.
//!
//! Nothing in this crate panics on any input. Nothing reads a clock or does I/O.
//!
//! ```
//! use outlast_wire::{Packet, SeqNumber};
//!
//! # fn receive() -> bytes::Bytes {
//! #     let ip = outlast_wire::IpHeader::new([192, 0, 2, 1].into(), [198, 51, 100, 2].into());
//! #     let tcp = outlast_wire::TcpHeader { seq: SeqNumber(1000), ..Default::default() };
//! #     Packet::tcp_segment(ip, tcp, &[7; 4000]).to_bytes()
//! # }
//! let packet = Packet::parse(receive())?;
//! let tcp = packet.tcp().expect("this example receives TCP");
//! assert_eq!(tcp.seq + packet.sequence_len(), SeqNumber(5000));
//!
//! let mut edit = packet.edit();
//! edit.decrement_hop_limit()?;
//! for segment in edit.finish().segment_to_mtu(1500)? {
//!     assert!(segment.checksums_ok());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod build;
pub mod capture;
mod checksum;
pub mod compressed;
pub mod edit;
mod error;
pub mod fragment;
pub mod frame;
pub mod hip;
mod icmp;
mod ip;
pub mod join;
pub mod mobile_ip;
pub mod mobile_ipv6;
pub mod outline;
mod packet;
mod parse;
pub mod pattern;
pub mod pcapng;
pub mod segment;
mod seq;
pub mod tcp;
pub mod translation;
mod tunnel;
mod udp;

pub use build::PlainTcp;
pub use error::{ParseError, Part};
pub use icmp::{IcmpError, IcmpExtension, IcmpNotice, IcmpRefusal, QuotedPacket};
pub use packet::{Header, IpHeader, ModelledPayload, Packet, Transport};
pub use seq::SeqNumber;
pub use tcp::{TcpFlags, TcpHeader};
pub use udp::UdpHeader;
