//! Tunnels with TCP inside, seen on the tunnel's own interface.

use super::bed::{Bed, Kind, UNDERLAY, UNDERLAYS, run};
use super::{Carrier, is_none_the_worse, outlasts};
use crate::path::{LINK, Over, skip};
use outlast_linux::namespace::Namespace;

fn over_a_tunnel(commands: &str, prepare: impl Fn(&Bed) -> Option<()>) {
    let commands = commands.replace("LINK", LINK);
    let Some(bed) = Bed::new(Kind::tunnel(&commands)) else {
        return;
    };
    if prepare(&bed).is_some() {
        outlasts(&bed, Over::Ebpf, Carrier::Below);
    }
}

#[test]
fn ip_in_ip_is_outlasted() {
    over_a_tunnel("link add LINK type ipip local HERE remote THERE\n", |_| {
        Some(())
    });
}

#[test]
fn gre_is_outlasted() {
    over_a_tunnel("link add LINK type gre local HERE remote THERE\n", |_| {
        Some(())
    });
}

/// Keys of no one's: those of the near router, and of the far one.
pub(super) const KEYS: [WireGuardKey; 2] = [
    WireGuardKey {
        private: "QMFJBOK5SU2hvHNgw0hDTIZTggHDeSl2Z0wOc+q4qkY=",
        public: "qMQjMDREnR8QjozpdEkEE4/zxHriUR+GWYVk9ScWNiA=",
    },
    WireGuardKey {
        private: "wFAHFDwXOfw7VjBa3MsWD+/LYybL46e7S38GQCU2r0Q=",
        public: "z6S211gvugOpEQzP5MwBJwFlus40H5begOUgmoAILmI=",
    },
];

/// A pair of WireGuard's keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireGuardKey {
    private: &'static str,
    public: &'static str,
}

impl WireGuardKey {
    /// Gives a router's tunnel this key and its only peer, with the rest of what is said of that.
    pub(super) fn join(
        self,
        router: &Namespace,
        tunnel: &str,
        peer: Self,
        rest: &str,
    ) -> Option<()> {
        let (own, other) = (self.private, peer.public);
        let configuration = format!(
            "[Interface]\nPrivateKey = {own}\nListenPort = {PORT}\n\
             [Peer]\nPublicKey = {other}\nAllowedIPs = 0.0.0.0/0\n{rest}"
        );
        let joined = run(
            router,
            "wg",
            &["setconf", tunnel, "/proc/self/fd/0"],
            &configuration,
        );
        joined.inspect_err(|why| skip(why)).ok()
    }
}

/// WireGuard's port.
const PORT: u16 = 51_820;

/// Both routers are each other's only peers.
fn wireguard(bed: &Bed, tunnel: &str) -> Option<()> {
    let [near, far] = KEYS;
    for (router, own, peer, address) in [
        (&bed.near_router, near, far, UNDERLAYS[1]),
        (&bed.far_router, far, near, UNDERLAYS[0]),
    ] {
        own.join(
            router,
            tunnel,
            peer,
            &format!("Endpoint = {address}:{PORT}\n"),
        )?;
    }
    Some(())
}

#[test]
fn wireguard_is_outlasted() {
    over_a_tunnel("link add LINK type wireguard\n", |bed| wireguard(bed, LINK));
}

/// Security associations both ways that hide nothing, which an emulated processor does sooner, and policies for what
/// the interface sends and gets.
const IPSEC: &str = "\
link add LINK type xfrm dev UNDERLAY if_id 7
xfrm state add src HERE dst THERE proto esp spi 7 reqid 7 mode tunnel if_id 7 auth digest_null \"\" enc cipher_null \"\"
xfrm state add src THERE dst HERE proto esp spi 7 reqid 7 mode tunnel if_id 7 auth digest_null \"\" enc cipher_null \"\"
xfrm policy add dir out if_id 7 tmpl src HERE dst THERE proto esp reqid 7 mode tunnel
xfrm policy add dir in if_id 7 tmpl src THERE dst HERE proto esp reqid 7 mode tunnel
xfrm policy add dir fwd if_id 7 tmpl src THERE dst HERE proto esp reqid 7 mode tunnel
";

#[test]
fn ipsec_with_an_interface_of_its_own_is_outlasted() {
    over_a_tunnel(&IPSEC.replace("UNDERLAY", UNDERLAY), |_| Some(()));
}

/// The gateway sees the tunnel's own packets alone, which are UDP.
#[test]
fn below_wireguard_nothing_is_the_worse() {
    const TUNNEL: &str = "tunnel0";
    let kind = Kind::tunnel_above(TUNNEL, &format!("link add {TUNNEL} type wireguard\n"));
    let Some(bed) = Bed::new(kind) else {
        return;
    };
    if wireguard(&bed, TUNNEL).is_some() {
        is_none_the_worse(&bed);
    }
}
