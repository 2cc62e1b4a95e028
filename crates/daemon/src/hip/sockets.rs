//! In which family an application of this host takes what a peer says first.

use outlast_hip::{Conversation, Family};
use outlast_linux::lookup::{SocketKind, SocketLookup};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The protocol number of UDP.
const UDP: u8 = 17;

/// The sockets of this host.
pub(super) struct Sockets(SocketLookup);

impl Sockets {
    pub(super) fn open() -> io::Result<Self> {
        let mut lookup = SocketLookup::open()?;
        if !lookup.can_look_up_udp()? {
            tracing::warn!(
                "the kernel has no udp_diag: datagrams that a peer sends first go to sockets of IPv6"
            );
        }
        Ok(Self(lookup))
    }

    /// IPv6 wherever a socket takes it, and where nobody does: the kernel then says so.
    pub(super) fn family_of(&mut self, conversation: &Conversation) -> Family {
        let Conversation {
            protocol,
            own,
            own_port,
            peer,
            peer_port,
        } = *conversation;
        let kind = if protocol == UDP {
            SocketKind::Udp
        } else {
            SocketKind::Tcp
        };
        let mut has_socket_for = |own: IpAddr, peer: IpAddr| {
            let (own, peer) = (
                SocketAddr::new(own, own_port),
                SocketAddr::new(peer, peer_port),
            );
            self.0
                .has_socket_for(kind, own, peer)
                .unwrap_or_else(|error| {
                    tracing::debug!(%own, %peer, "no socket is found: {error}");
                    false
                })
        };
        if !has_socket_for(own.v6.into(), peer.v6.into())
            && has_socket_for(own.v4.into(), peer.v4.into())
        {
            Family::V4
        } else {
            Family::V6
        }
    }
}
