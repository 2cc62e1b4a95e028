//! In which family an application of this host takes what a peer says first.

use outlast_hip::{Conversation, Family};
use outlast_linux::lookup::{SocketKind, SocketLookup};
use std::net::{IpAddr, SocketAddr};

/// The protocol number of UDP.
const UDP: u8 = 17;

/// The sockets of this host, if there is a need to know them and a way.
pub(super) struct Sockets(Option<SocketLookup>);

impl Sockets {
    /// Asks the kernel only if applications have LSIs: else all speak IPv6.
    pub(super) fn open(has_identifiers: bool) -> Self {
        if !has_identifiers {
            return Self(None);
        }
        let (lookup, finds_udp) = match SocketLookup::open() {
            Ok(mut lookup) => {
                let finds_udp = lookup.can_look_up_udp();
                (Some(lookup), finds_udp)
            }
            Err(error) => (None, Err(error)),
        };
        match finds_udp {
            Ok(true) => {}
            Ok(false) => tracing::warn!(
                "the kernel has no udp_diag: datagrams that a peer sends first go to sockets of IPv6"
            ),
            Err(error) => tracing::warn!(
                "what a peer says first may go to sockets of IPv6 only: they cannot be looked up: {error}"
            ),
        }
        Self(lookup)
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
        let Some(lookup) = &mut self.0 else {
            return Family::V6;
        };
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
            lookup
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

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_linux::namespace::Namespace;
    use outlast_linux::sysctl;

    /// No reason not to start: everything but the conversations that peers begin is as usual.
    #[test]
    fn a_host_where_no_socket_is_found_starts() {
        let Ok(namespace) = Namespace::new() else {
            return outlast_skip::skip("no namespace");
        };
        let works = namespace.run(|| {
            // No port is left for the socket that is looked up.
            sysctl::write("net.ipv4.ip_local_reserved_ports", "1-65535")
                .expect("a namespace of ours");
            let lookup = SocketLookup::open().and_then(|mut lookup| lookup.can_look_up_udp());
            assert!(lookup.is_err(), "this test shows nothing");
            Sockets::open(true).0.is_some()
        });
        assert!(works.expect("enter"));
        assert!(Sockets::open(false).0.is_none());
    }
}
