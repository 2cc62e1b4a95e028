//! Several flows on one link.

use crate::support::{bulk, flow, link, outage};
use outlast_base::time::Duration;
use outlast_link::Way;
use outlast_world::{FlowSetup, Setup, Stack, World};

fn shared(count: u64) -> Setup {
    let flows = (0..count).map(|number| FlowSetup {
        begin: Duration::from_millis(10 * (count - number)),
        ..flow(bulk(200_000 + number, Way::ToMobile), Stack::default())
    });
    Setup {
        flows: flows.collect(),
        ..Setup::new(link())
    }
}

#[test]
fn flows_share_a_link_and_keep_their_bytes_apart() {
    let outcome = World::new(shared(10)).run();
    assert_eq!(outcome.flows.len(), 10);
    for (flow, bytes) in outcome.flows.iter().zip(200_000..) {
        assert_eq!(flow.is_intact(), Some(true));
        assert_eq!(flow.received[flow.receiver.index()], bytes);
    }
    // 2 MB with headers at 10 Mbit/s take 1.66 s; one flow alone would need 0.35 s.
    let took = outcome.ended.as_secs_f64();
    assert!((1.66..3.0).contains(&took), "{took} s");
}

#[test]
fn an_outage_is_every_flows() {
    let mut setup = shared(3);
    setup.link.outages = outage(Duration::from_millis(300), Duration::from_secs(2));
    let outcome = World::new(setup).run();
    for flow in &outcome.flows {
        assert!(flow.is_complete);
        assert!(matches!(flow.resumed[..], [Some(_)]), "{:?}", flow.resumed);
    }
}
