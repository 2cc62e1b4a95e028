//! A mobile that goes from gateway to gateway.

use crate::fixture::{PLAIN, problems, scenario};
use insta::assert_snapshot;
use outlast_base::time::Duration;
use outlast_scenario::{Agents, Crash, Detection, Handoff, Mechanism};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn what_is_not_said_of_a_handoff_is_the_usual() {
    let shortest = scenario(&format!("{PLAIN}[[handoffs]]\nat = \"1 s\"\nto = 2\n"));
    let usual = Handoff {
        at: SECOND,
        gap: Duration::from_millis(100),
        to: 2,
        update: Duration::ZERO,
        forward: false,
    };
    assert_eq!(shortest.handoffs, [usual]);
    assert_eq!((shortest.agents, shortest.crashes.len()), (None, 0));
    assert_eq!(shortest.outlast.home_agent, Mechanism::None);
    assert!(shortest.has_roaming() && !scenario(PLAIN).has_roaming());
}

#[test]
fn gateways_are_as_many_as_are_named_and_their_links_have_chances_of_their_own() {
    let text = "[outlast]\ngateway = \"zero-window-ack\"\nhome_agent = \"retransmission-cache\"\n\
        [agents]\ndelay = \"20 ms\"\n\
        [[handoffs]]\nat = \"1 s\"\nto = 3\ngap = \"2 s\"\nupdate = \"1 s\"\nforward = true\n\
        [[handoffs]]\nat = \"9 s\"\nto = 1\n\
        [[crashes]]\nat = \"4 s\"\ngateway = 2\nback_after = \"1 s\"\n";
    let scenario = scenario(&format!("{PLAIN}{text}"));
    let agents = Agents {
        delay: Duration::from_millis(20),
        lost_after: 30 * SECOND,
    };
    assert_eq!(scenario.agents, Some(agents));
    assert_eq!(scenario.outlast.home_agent, Mechanism::RetransmissionCache);
    let crash = Crash {
        at: 4 * SECOND,
        gateway: 2,
        back_after: Some(SECOND),
    };
    assert_eq!(scenario.crashes, [crash]);
    let cells = scenario.cell_configs(0);
    assert_eq!(cells.len(), 2);
    let first = scenario.link_config(0);
    assert!(cells[0].seed != cells[1].seed && cells[0].seed != first.seed);
    assert_eq!(cells[0].to_mobile, first.to_mobile);
    // The result's outages are when the mobile is nowhere.
    let outages = first.outages_until(20 * SECOND);
    let outages: Vec<_> = outages.iter().map(|o| (o.start, o.end)).collect();
    let ms = Duration::from_millis;
    let expected = [(ms(1_000), Some(ms(3_000))), (ms(9_000), Some(ms(9_100)))];
    assert_eq!(outages, expected);
}

#[test]
fn what_contradicts_a_handoff_is_said_at_once() {
    let text = "[link.outages]\nprocess = \"single\"\nstart = \"1 s\"\nlength = \"1 s\"\n\
        [outlast]\ngateway = \"hold\"\nmobile = \"hold\"\n\
        [agents]\n\
        [[handoffs]]\nat = \"1 s\"\nto = 2\ngap = \"2 s\"\n\
        [[handoffs]]\nat = \"3 s\"\nto = 2\n\
        [[crashes]]\nat = \"4 s\"\ngateway = 3\n\
        [[crashes]]\ngateway = 1\n";
    assert_snapshot!(problems(&format!("{PLAIN}{text}")));
}

#[test]
fn mobile_ip_is_there_when_its_table_is_and_has_defaults() {
    let handoff = "[[handoffs]]\nat = \"1 s\"\nto = 2\n";
    assert_eq!(scenario(&format!("{PLAIN}{handoff}")).mobile_ip, None);
    let usual = scenario(&format!("{PLAIN}[mobile_ip]\n{handoff}")).mobile_ip;
    let usual = usual.expect("an empty table is enough");
    assert_eq!(usual.detection, Detection::Lazy);
    assert_eq!(usual.advertisements, SECOND);
    assert_eq!(usual.delay, Duration::from_millis(30));
    assert!(usual.reverse_tunnel && usual.loss == 0.0);
    assert!(usual.foreign_agents && usual.home.is_none());
    let eager = format!("{PLAIN}[mobile_ip]\ndetection = \"eager\"\nloss = 0.5\n{handoff}");
    let eager = scenario(&eager).mobile_ip.expect("it is there");
    assert_eq!((eager.detection, eager.loss), (Detection::Eager, 0.5));
}

#[test]
fn what_contradicts_mobile_ip_is_said() {
    let alone = problems(&format!("{PLAIN}[mobile_ip]\n"));
    assert!(
        alone.contains("of no use without `[[handoffs]]`"),
        "{alone}"
    );
    for key in ["update = \"1 s\"", "forward = true"] {
        let text = format!("{PLAIN}[mobile_ip]\n[[handoffs]]\nat = \"1 s\"\nto = 2\n{key}\n");
        let both = problems(&text);
        assert!(
            both.contains("the registration says where the mobile is"),
            "{both}"
        );
    }
}

#[test]
fn where_a_mobile_is_at_home_is_one_of_its_gateways() {
    let handoff = "[[handoffs]]\nat = \"1 s\"\nto = 2\n";
    let text = |keys: &str| format!("{PLAIN}[mobile_ip]\n{keys}\n{handoff}");
    let own = scenario(&text(
        "home = 2\nforeign_agents = false\naddress_after = \"1 s\"",
    ));
    let own = own.mobile_ip.expect("it is there");
    assert_eq!((own.home, own.foreign_agents), (Some(2), false));
    assert_eq!(own.address_after, SECOND);
    let beyond = problems(&text("home = 3"));
    assert!(beyond.contains("is no gateway of this file"), "{beyond}");
    let unused = problems(&text("address_after = \"1 s\""));
    assert!(
        unused.contains("write `foreign_agents = false`"),
        "{unused}"
    );
}
