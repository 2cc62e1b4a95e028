//! The paper's channel (section 5.1): two states, each lasting evenly between half and one and a half
//! of its mean; mean connected time 0.5 s, mean disconnected time for the availability wanted.
//!
//! The testbed was one machine whose packets went through a user-level program. Its rate is not
//! stated; here the link has 10 Mbit/s and room for 75 packets. It had no propagation delay, and
//! has none in the simulator; the lab's link has 1 ms each way, which is short compared with every
//! outage.

use super::testbed::Testbed;
use outlast_base::time::Duration;
use outlast_experiments::experiment::Extent;
use outlast_experiments::setting::{Outages, Setting, Task};
use outlast_scenario::{Congestion, Direction, IpVersion, Mechanism};

/// Rate of the link.
pub const RATE_MBIT_PER_S: u32 = 10;
/// Packets that may wait.
pub const QUEUE: u32 = 75;
/// Mean connected time.
pub const UP: Duration = Duration::from_millis(500);

/// Mean disconnected time for an availability of `percent`, with the paper's connected time.
#[must_use]
pub fn down(percent: u32) -> Duration {
    UP * (100 - percent) / percent
}

/// The outages for an availability of `percent`.
#[must_use]
pub fn outages(percent: u32) -> Outages {
    if percent >= 100 {
        return Outages::None;
    }
    Outages::Uniform {
        up: UP,
        down: down(percent),
    }
}

/// A download over a channel of this availability with `mechanism` at both ends.
#[must_use]
pub fn transfer(bed: Testbed, extent: Extent, mechanism: Mechanism, percent: u32) -> Setting {
    let name = format!("{mechanism} at {percent} % availability");
    let task = Task::Bulk {
        bytes: bed.bytes(extent),
        direction: Direction::Download,
    };
    Setting {
        seed: u64::from(percent) * 100,
        deadline: bed.deadline(extent, percent),
        ..over(bed, name, outages(percent), task, mechanism)
    }
}

/// `task` over the channel with `outages`, with `mechanism` at both ends.
#[must_use]
pub fn over(
    bed: Testbed,
    name: String,
    outages: Outages,
    task: Task,
    mechanism: Mechanism,
) -> Setting {
    Setting {
        name,
        rate_mbit_per_s: RATE_MBIT_PER_S,
        delay: bed.delay(),
        queue: QUEUE,
        outages,
        task,
        congestion: Congestion::Cubic,
        sack: true,
        ip: IpVersion::V4,
        gateway: mechanism,
        mobile: mechanism,
        seed: 1,
        deadline: Duration::from_secs(60),
    }
}

/// The channel in words.
pub(super) fn method(bed: Testbed) -> String {
    format!(
        "The channel is the paper's (section 5.1): connected for 0.5 s on average, disconnected for \
         as long as the availability demands, each period evenly between half and one and a half of \
         its mean. The rate of the paper's testbed, one machine with a user-level link, is not \
         stated; here it is {RATE_MBIT_PER_S} Mbit/s, with {} ms of delay each way and room for \
         {QUEUE} packets.",
        bed.delay().as_millis(),
    )
}
