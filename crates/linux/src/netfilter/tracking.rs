//! The kernel's connection tracking: a connection's addresses before they were translated (ctnetlink).

use super::{ASKED, Conversation, Message, NetfilterError, message};
use message::Attributes;
use netlink_packet_core::{NLM_F_ACK, NLM_F_REQUEST};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// `NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET` of `linux/netfilter/nfnetlink_conntrack.h`.
const GET: u16 = 1 << 8 | 1;
/// `CTA_TUPLE_ORIG` and `CTA_TUPLE_REPLY`.
const ORIGINAL: u16 = 1;
const REPLY: u16 = 2;
/// `CTA_TUPLE_IP` and `CTA_TUPLE_PROTO`.
const ADDRESSES: u16 = 1;
const TRANSPORT: u16 = 2;
/// `CTA_IP_V4_SRC` and its like.
const SOURCE_V4: u16 = 1;
const DESTINATION_V4: u16 = 2;
const SOURCE_V6: u16 = 3;
const DESTINATION_V6: u16 = 4;
/// `CTA_PROTO_NUM` and its like.
const PROTOCOL: u16 = 1;
const SOURCE_PORT: u16 = 2;
const DESTINATION_PORT: u16 = 3;

/// Something that exists in each namespace where connections can be tracked.
const SIGN: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

/// One direction of a connection, as its packets look at one place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Tuple {
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Address and port of the receiver.
    pub destination: SocketAddr,
    /// The protocol's number.
    pub protocol: u8,
}

impl Tuple {
    /// The packets of the other direction, as they look at the same place.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            protocol: self.protocol,
        }
    }
}

/// A conversation with the kernel's connection tracking.
#[derive(Debug)]
pub struct ConnectionTracking {
    kernel: Conversation,
}

impl ConnectionTracking {
    /// Begins a conversation about the calling thread's namespace; `None` where no connections are tracked.
    ///
    /// # Errors
    /// An error if the process is out of descriptors.
    pub fn open() -> Result<Option<Self>, NetfilterError> {
        if !Path::new(SIGN).exists() {
            return Ok(None);
        }
        let kernel = Conversation::open()?;
        Ok(Some(Self { kernel }))
    }

    /// The packets that leave this host as `sent`, as they looked before their addresses were translated.
    ///
    /// `None` if their connection is not tracked.
    ///
    /// # Errors
    /// An error if the kernel does not tell of its connections.
    pub fn before_translation(&self, sent: Tuple) -> Result<Option<Tuple>, NetfilterError> {
        let answered = sent.reversed();
        let request = Message::new(GET, NLM_F_REQUEST | NLM_F_ACK, ASKED, family(&answered), 0)
            .with_nested(ORIGINAL, |tuple| written(tuple, &answered))
            .finish();
        let mut both = [None; 2];
        let mut buffer = vec![0; super::ANSWER];
        let asked = self.kernel.ask_among(
            &mut buffer,
            &request,
            1,
            "look up a tracked connection",
            |answer| {
                for (kind, value) in answer.attributes() {
                    match kind {
                        ORIGINAL => both[0] = read(value),
                        REPLY => both[1] = read(value),
                        _ => {}
                    }
                }
                Ok(())
            },
        );
        match asked {
            Ok(_) => {}
            Err(NetfilterError::Refused { source, .. }) if is_unknown(&source) => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(match both {
            [Some(original), Some(reply)] if original == answered => Some(reply),
            [Some(original), Some(_)] => Some(original),
            _ => None,
        })
    }
}

fn is_unknown(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOENT)
}

fn family(tuple: &Tuple) -> u8 {
    let family = match tuple.source {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    u8::try_from(family).expect("few families")
}

fn written(message: Message, tuple: &Tuple) -> Message {
    let Tuple {
        source,
        destination,
        protocol,
    } = *tuple;
    let message = message.with_nested(ADDRESSES, |addresses| {
        match (source.ip(), destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => addresses
                .with(SOURCE_V4, &source.octets())
                .with(DESTINATION_V4, &destination.octets()),
            (IpAddr::V6(source), IpAddr::V6(destination)) => addresses
                .with(SOURCE_V6, &source.octets())
                .with(DESTINATION_V6, &destination.octets()),
            // No packet is like that, and the kernel refuses it.
            _ => addresses,
        }
    });
    message.with_nested(TRANSPORT, |transport| {
        transport
            .with(PROTOCOL, &[protocol])
            .with(SOURCE_PORT, &source.port().to_be_bytes())
            .with(DESTINATION_PORT, &destination.port().to_be_bytes())
    })
}

fn read(tuple: &[u8]) -> Option<Tuple> {
    let [mut source, mut destination] = [None; 2];
    let (mut protocol, mut ports) = (None, [0; 2]);
    let port = |value: &[u8]| value.first_chunk().map(|port| u16::from_be_bytes(*port));
    for (kind, value) in Attributes::of(tuple) {
        for (inner, value) in Attributes::of(value) {
            match (kind, inner) {
                (ADDRESSES, SOURCE_V4 | SOURCE_V6) => source = address(value),
                (ADDRESSES, DESTINATION_V4 | DESTINATION_V6) => destination = address(value),
                (TRANSPORT, PROTOCOL) => protocol = value.first().copied(),
                (TRANSPORT, SOURCE_PORT) => ports[0] = port(value)?,
                (TRANSPORT, DESTINATION_PORT) => ports[1] = port(value)?,
                _ => {}
            }
        }
    }
    Some(Tuple {
        source: SocketAddr::new(source?, ports[0]),
        destination: SocketAddr::new(destination?, ports[1]),
        protocol: protocol?,
    })
}

fn address(value: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(value) {
        return Some(IpAddr::from(octets));
    }
    <[u8; 16]>::try_from(value).ok().map(IpAddr::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuple_that_is_written_is_read() {
        for [source, destination] in [
            ["192.0.2.1:40000", "198.51.100.2:443"],
            ["[2001:db8::1]:40000", "[2001:db8::2]:443"],
        ] {
            let tuple = Tuple {
                source: source.parse().expect("literal"),
                destination: destination.parse().expect("literal"),
                protocol: 6,
            };
            let bytes = Message::new(GET, 0, ASKED, family(&tuple), 0);
            let bytes = written(bytes, &tuple).finish();
            let header = Message::new(GET, 0, ASKED, family(&tuple), 0).finish();
            assert_eq!(read(&bytes[header.len()..]), Some(tuple));
        }
    }
}
