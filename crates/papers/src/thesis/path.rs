//! The path of the experiments as a scenario.
//!
//! # Departures
//!
//! The thesis has a host between server and receiver that delays every packet, and cuts the path at
//! the receiver (chapter 3) or behind the home agent (chapter 4): what a server sends after the cut
//! is lost, and the acknowledgements that are on their way arrive. Here the whole delay lies on the
//! way back, so that the server's segments meet the cut at once. The server sees the same: when
//! each segment is sent, whether it is lost, and when its acknowledgement arrives. Times are as at the
//! place of the cut.
//!
//! The rate of the path is not told; 10 Mbit/s, the Ethernet of the time, is assumed. What the
//! delaying host adds of jitter is not told either; here there is none. Send buffers are those of
//! the profiles, as the thesis sets the receiver's alone.

use outlast_base::time::Duration;
use outlast_experiments::job::{Job, Watch};
use outlast_experiments::setting;
use outlast_scenario::result::World;
use outlast_scenario::{Mechanism, Profile};

/// What one run says.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The server's stack.
    pub server: Profile,
    /// The receiver's.
    pub receiver: Profile,
    /// The receiver's buffer, in bytes.
    pub buffer: u32,
    /// Round trip.
    pub round_trip: Duration,
    /// Rate, both ways.
    pub rate_mbit_per_s: u32,
    /// Largest packet in bytes.
    pub mtu: u32,
    /// When the path is cut, from the server's first segment on.
    pub cut: Duration,
    /// For how long.
    pub length: Duration,
    /// How much the server has to send.
    pub bytes: u64,
    /// When the run is given up.
    pub deadline: Duration,
}

impl Path {
    /// Run `index` of it. The seed decides on where the clocks of the hosts stand.
    #[must_use]
    pub fn job(&self, cell: String, index: u32, watch: Watch) -> Job {
        let text = self.to_toml(&cell);
        Job::from_toml(cell, text, index)
            .in_world(World::Sim)
            .watching(watch)
    }

    /// A run over this path with `mechanism` at the home agent's end.
    #[must_use]
    pub fn helped_job(&self, mechanism: Mechanism, cell: String, index: u32) -> Job {
        let text = format!(
            "{}\n[outlast]\ngateway = \"{mechanism}\"\n",
            self.to_toml(&cell)
        );
        Job::from_toml(cell, text, index).in_world(World::Sim)
    }

    fn to_toml(self, name: &str) -> String {
        let Self {
            server,
            receiver,
            buffer,
            rate_mbit_per_s,
            mtu,
            bytes,
            ..
        } = self;
        // Twice the buffer: the server alone can fill it, and never overflows it.
        let queue = (2 * buffer).div_ceil(mtu).max(100);
        let [round_trip, cut, length, deadline] =
            [self.round_trip, self.cut, self.length, self.deadline].map(setting::quoted);
        format!(
            r#"name = "{name}"

[link]
rate = "{rate_mbit_per_s} Mbit/s"
delay = "0 s"
queue = {queue}
mtu = {mtu}
[link.uplink]
delay = {round_trip}
[link.outages]
process = "single"
start = {cut}
length = {length}

[workload]
kind = "bulk"
bytes = "{bytes} B"

[stack]
profile = "{server}"
[stack.mobile]
profile = "{receiver}"
receive_buffer = "{buffer} B"

[run]
deadline = {deadline}
"#
        )
    }
}
