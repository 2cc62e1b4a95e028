//! What a receiver can send when its link is back, so that a sender beyond it sends again.
//!
//! Each is made of the newest acknowledgement that the receiver's own kernel has sent: nobody on its side knows more of
//! the connection. Hosts without Outlast understand all of them.

use crate::gateway_matrix::trial::TrialError;
use bytes::Bytes;
use outlast_lab::LabError;
use outlast_linux::raw::RawSender;
use outlast_testbed::site::{LINK, Site};
use outlast_wire::{IcmpNotice, IpHeader, Packet, TcpFlags, TcpHeader};
use std::io;

/// Something that is sent as soon as the link is back.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Call {
    /// The newest acknowledgement four times, as after lost segments (Cáceres and Iftode 1995, section IV.C).
    Acknowledgements,
    /// ICMP errors that say that no route was there, about the oldest segment that was not acknowledged (RFC 6069). Each takes
    /// one doubling of the timeout back; eight are more than an outage of half a minute has.
    Unreachable,
    /// An ICMP error that says that this segment is too big for the path, by two bytes (RFC 1191).
    SmallerMtu,
    /// The newest acknowledgement, and then the same error.
    AcknowledgementAndSmallerMtu,
}

const ACKNOWLEDGEMENTS: usize = 4;
const ERRORS: usize = 8;
/// Of the link, without what an error about the path's MTU takes off.
const MTU: u32 = 1500;
const OFF: u32 = 2;
const HOP_LIMIT: u8 = 64;

impl Call {
    /// Sends it from the mobile host.
    ///
    /// # Errors
    /// When the mobile host has acknowledged nothing yet, or this process may not send.
    pub(super) fn make(self, site: &Site) -> Result<(), TrialError> {
        let newest = site.air.newest_of_mobile().map_err(io_error)?;
        let newest = newest.and_then(|packet| Packet::parse(packet).ok());
        let Some(acknowledgement) = newest.filter(|packet| packet.tcp().is_some()) else {
            return Err(TrialError::NotBegun {
                said: "the mobile host has acknowledged nothing".to_owned(),
            });
        };
        let packets = self.packets(&acknowledgement);
        let to = acknowledgement.header().ip.destination;
        let send = || -> io::Result<()> {
            let sender = RawSender::open(0, Some(LINK))?;
            for packet in packets {
                // What the kernel does not take is lost, as by any host.
                sender.send(to, &packet)?;
            }
            Ok(())
        };
        site.mobile
            .run(send)
            .map_err(LabError::from)?
            .map_err(io_error)
    }

    fn packets(self, acknowledgement: &Packet) -> Vec<Bytes> {
        let error = |notice| refused(acknowledgement, notice);
        let smaller = || error(IcmpNotice::TooBig { mtu: MTU - OFF });
        match self {
            Self::Acknowledgements => vec![acknowledgement.to_bytes(); ACKNOWLEDGEMENTS],
            Self::Unreachable => vec![error(IcmpNotice::NetworkUnreachable); ERRORS],
            Self::SmallerMtu => vec![smaller()],
            Self::AcknowledgementAndSmallerMtu => vec![acknowledgement.to_bytes(), smaller()],
        }
    }
}

/// The error about the segment that would come next.
fn refused(acknowledgement: &Packet, notice: IcmpNotice) -> Bytes {
    let ip = acknowledgement.header().ip;
    let tcp = acknowledgement.tcp().expect("looked at before");
    let lost = IpHeader {
        source: ip.destination,
        destination: ip.source,
        hop_limit: HOP_LIMIT,
        traffic_class: 0,
        identification: 0,
    };
    let header = TcpHeader {
        source_port: tcp.destination_port,
        destination_port: tcp.source_port,
        seq: tcp.ack,
        ack: tcp.seq,
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    let about = Packet::tcp_segment(lost, header, &[]);
    let error = Packet::icmp_error(ip.source, notice, &about);
    error.expect("both are addresses of hosts").to_bytes()
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "call the sender",
        source,
    }
}
