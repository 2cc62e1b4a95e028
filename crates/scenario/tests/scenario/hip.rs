//! HIP between the hosts.

use crate::fixture::{PLAIN, problems, scenario};
use insta::assert_snapshot;
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_scenario::{Hip, IpVersion};

#[test]
fn an_empty_table_is_enough() {
    assert_eq!(scenario(PLAIN).hip, None);
    let usual = Hip {
        credit: true,
        address_delay: Duration::ZERO,
        waiting: 64,
    };
    assert_eq!(scenario(&format!("{PLAIN}[hip]\n")).hip, Some(usual));
    let keys = "[hip]\ncredit = false\naddress_delay = \"2 s\"\nwaiting = 0\n";
    let other = Hip {
        credit: false,
        address_delay: Duration::from_secs(2),
        waiting: 0,
    };
    assert_eq!(scenario(&format!("{PLAIN}{keys}")).hip, Some(other));
}

#[test]
fn connections_are_of_ipv6_and_take_more_room_on_the_link() {
    let plain = scenario(PLAIN);
    let hip = scenario(&format!("{PLAIN}[hip]\n"));
    assert_eq!((hip.ip_inside(), hip.mtu_inside()), (IpVersion::V6, 1_440));
    assert_eq!(
        (plain.ip_inside(), plain.mtu_inside()),
        (IpVersion::V4, 1_500)
    );
    // 1440 - 40 bytes are sealed with a trailer of 2 and a padding of 2, behind 20 + 8 + 8 bytes, with 16 behind.
    let segment = ByteCount(1_440 - 40 - 20 - 12);
    assert_eq!(hip.framing().wire_bytes(segment), ByteCount(1_456));
    let over_ipv6 = scenario(&format!("{PLAIN}[stack]\nip = \"ipv6\"\n[hip]\n"));
    assert_eq!(over_ipv6.framing().wire_bytes(segment), ByteCount(1_476));
    let round_trip = Duration::from_secs_f64(scenario(PLAIN).handshake().as_secs_f64());
    assert!(hip.handshake() > round_trip);
}

#[test]
fn what_contradicts_hip_is_said_at_once() {
    let text = "[outlast]\ngateway = \"hold\"\nmobile = \"hold\"\nhome_agent = \"hold\"\n\
        [hip]\nwaiting = 5000\n[mobile_ip]\n\
        [[handoffs]]\nat = \"1 s\"\nto = 2\nupdate = \"1 s\"\n";
    assert_snapshot!(problems(&format!("{PLAIN}{text}")));
}

#[test]
fn an_agent_at_the_mobile_may_move_with_it() {
    let text = "[outlast]\nmobile = \"retransmission-trigger\"\n[hip]\n\
        [[handoffs]]\nat = \"1 s\"\nto = 2\n";
    assert!(scenario(&format!("{PLAIN}{text}")).has_roaming());
}
