//! What a connection costs in memory.

#[path = "../../gateway/tests/counting/mod.rs"]
mod counting;
#[path = "world/support/mod.rs"]
mod support;

use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_world::{FlowSetup, Setup, Stack, Workload, World};
use support::{flow, link};

/// What a world of so many connections, each of which has sent and received, has in use.
fn in_use(connections: u32) -> usize {
    let workload = Workload::RequestResponse {
        requests: 100,
        request: ByteCount(100),
        response: ByteCount(1_000),
        think: Duration::from_secs(60),
    };
    let flows = (0..connections).map(|number| FlowSetup {
        begin: Duration::from_millis(10) * number,
        ..flow(workload, Stack::default())
    });
    let mut link = link();
    (link.to_mobile.queue, link.to_fixed.queue) = (10_000, 10_000);
    let setup = Setup {
        flows: flows.collect(),
        ..Setup::new(link)
    };
    let before = counting::in_use();
    let mut world = World::new(setup);
    while world.now().as_nanos() < 50_000_000_000 {
        world.step();
    }
    let used = usize::try_from(counting::in_use() - before).expect("it is still there");
    assert_eq!(world.finish().flows.len(), connections as usize);
    used
}

#[test]
fn a_connection_whose_buffers_are_empty_takes_less_than_ten_kilobytes() {
    let (few, many) = (in_use(100), in_use(1_100));
    let each = (many - few) / 1_000;
    assert!((500..10_000).contains(&each), "{each} bytes");
}
