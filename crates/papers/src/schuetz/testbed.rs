//! The paper's testbed (sections 4.1 and 4.2): a mobile that sends to a correspondent over 10 Mbit/s with
//! 50 ms of delay each way and a queue of 75 packets, Linux 2.4 at both ends.
//!
//! - In experiment `schuetz` the Host Identity Protocol is not modelled. After each disconnection its
//!   readdressing keeps TCP from sending; here the outage is longer by that time. The prototype took 2 to 3 s
//!   (4.1.3), of which the middle is taken; two to three round trips, 200 to 300 ms, were due. HIP's
//!   headers cost the paper 1 s of a transfer of 21 s; they are not modelled.
//! - In experiment `hip` the hosts speak HIP (`[hip]`): the mobile has another address after each
//!   disconnection, readdressing is packets on the link, and so are ESP's headers. As in the paper, no data goes to
//!   an address that is not verified, and none waits at a host that has no path.
//! - Standard TCP gives up after nine failed retransmissions (4.1). The user timeout is 15 minutes
//!   (4.1.2); here both ends tell each other by the option.
//! - The receiver offers 256 kB. The default of Linux 2.4 would limit a transfer to half of the link's
//!   rate, and the paper's 21 s for 25 MB say that nothing did.
//! - "MB" are 10⁶ bytes: 25 MB take 21 s at 10 Mbit/s.

use outlast_base::time::Duration;
use outlast_experiments::job::Job;
use outlast_scenario::result::World;

/// What the paper compares.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Variant {
    /// TCP/HIP.
    Tcp,
    /// TCP+UTO/HIP.
    UserTimeout,
    /// TCP+UTO+RT/HIP.
    Trigger,
}

/// How the mobile's new address becomes known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Readdressing {
    /// Not at all: nothing passes for so long after the disconnection.
    Assumed(Duration),
    /// Nothing passes for so long, between hosts with Linux 6.
    AssumedToday(Duration),
    /// Nothing passes for so long, and the receiver offers too little to fill the link's queue.
    AssumedWithoutQueue(Duration),
    /// By HIP, as in the paper.
    Hip,
    /// By HIP with what `outlast run` has besides, between hosts with Linux 6.
    Today,
}

/// As long as readdressing took in the paper.
pub const PROTOTYPE: Readdressing = Readdressing::Assumed(Duration::from_millis(2_500));
/// As long, with the queue empty.
pub const PROTOTYPE_WITHOUT_QUEUE: Readdressing =
    Readdressing::AssumedWithoutQueue(Duration::from_millis(2_500));
/// As long, between hosts with Linux 6.
pub const PROTOTYPE_TODAY: Readdressing = Readdressing::AssumedToday(Duration::from_millis(2_500));
/// As long as readdressing is expected to take (4.1.3).
pub const EXPECTED: Readdressing = Readdressing::Assumed(Duration::from_millis(250));
/// There and back.
const ROUND_TRIP: Duration = Duration::from_millis(100);

impl Readdressing {
    /// By how much a disconnection is longer.
    #[must_use]
    pub const fn lengthens(self) -> Duration {
        match self {
            Self::Assumed(time) | Self::AssumedToday(time) | Self::AssumedWithoutQueue(time) => {
                time
            }
            Self::Hip | Self::Today => Duration::ZERO,
        }
    }

    /// What readdressing may cost at most: the assumed time, or three round trips.
    #[must_use]
    pub fn allowance(self) -> Duration {
        match self {
            Self::Assumed(time) | Self::AssumedToday(time) | Self::AssumedWithoutQueue(time) => {
                time
            }
            Self::Hip | Self::Today => 3 * ROUND_TRIP,
        }
    }

    /// As headings and cells have it.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Assumed(time) => format!("readdressing {} s", time.as_secs_f64()),
            Self::AssumedToday(time) => {
                format!("readdressing {} s and Linux 6", time.as_secs_f64())
            }
            Self::AssumedWithoutQueue(time) => {
                format!("readdressing {} s and an empty queue", time.as_secs_f64())
            }
            Self::Hip => "readdressing by HIP".to_owned(),
            Self::Today => "HIP and Linux 6".to_owned(),
        }
    }

    /// The stack's profile, and the table of HIP.
    const fn keys(self) -> (&'static str, &'static str) {
        match self {
            Self::Assumed(_) | Self::AssumedWithoutQueue(_) => ("linux-2.4", ""),
            Self::AssumedToday(_) => ("linux-6", ""),
            Self::Hip => ("linux-2.4", "[hip]\ncredit = false\nwaiting = 0\n"),
            Self::Today => ("linux-6", "[hip]\n"),
        }
    }
}

impl Variant {
    /// As the paper calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::UserTimeout => "TCP+UTO",
            Self::Trigger => "TCP+UTO+RT",
        }
    }

    fn keys(self) -> (&'static str, &'static str) {
        match self {
            Self::Tcp => ("retries = 9\n", ""),
            Self::UserTimeout => ("", "[outlast]\nuser_timeout = \"15 min\"\n"),
            Self::Trigger => (
                "",
                "[outlast]\nuser_timeout = \"15 min\"\nmobile = \"retransmission-trigger\"\n\
                 fixed = \"retransmission-trigger\"\n",
            ),
        }
    }
}

/// Run `index` of an upload of `megabytes` with `outages`, the body of `[link.outages]`.
#[must_use]
pub fn job(
    cell: String,
    (variant, readdressing): (Variant, Readdressing),
    megabytes: u32,
    outages: &str,
    index: u32,
) -> Job {
    let (stack, outlast) = variant.keys();
    let (profile, hip) = readdressing.keys();
    // What Linux 2.4 would offer at most; Linux 6 tunes its own.
    let buffer = match readdressing {
        Readdressing::Today | Readdressing::AssumedToday(_) => "",
        Readdressing::Assumed(_) | Readdressing::Hip => "receive_buffer = \"256 kB\"\n",
        // About what the link holds within a round trip of 100 ms.
        Readdressing::AssumedWithoutQueue(_) => "receive_buffer = \"128 kB\"\n",
    };
    let text = format!(
        "name = \"{}\"\n\n\
         [link]\nrate = \"10 Mbit/s\"\ndelay = \"50 ms\"\nqueue = 75\n\
         [link.outages]\n{outages}\n\
         [workload]\nkind = \"bulk\"\nbytes = \"{megabytes} MB\"\ndirection = \"upload\"\n\n\
         [stack]\nprofile = \"{profile}\"\n{buffer}{stack}\n{outlast}\n{hip}\n\
         [run]\nseed = 1\ndeadline = \"4 h\"\n",
        variant.name(),
    );
    Job::from_toml(cell, text, index).in_world(World::Sim)
}

/// The testbed in words.
pub(super) fn method() -> String {
    format!(
        "A mobile sends to a correspondent over 10 Mbit/s, 50 ms each way and 75 packets of queue, \
         with the model of Linux 2.4 at both ends, or of Linux 6 where a table says so. HIP itself is not modelled: after each \
         disconnection the link stays away for the time of readdressing, {} s as with the \
         prototype or {} s as expected. The net transmission time is the total less the \
         disconnected time, as in the paper, so that it contains the readdressing.",
        PROTOTYPE.lengthens().as_secs_f64(),
        EXPECTED.lengthens().as_secs_f64()
    )
}

/// The testbed with HIP in words.
pub(super) fn method_with_hip() -> String {
    "A mobile sends to a correspondent over 10 Mbit/s, 50 ms each way and 75 packets of queue. Both hosts \
     speak HIP: the mobile has another address after each disconnection, the base exchange and readdressing \
     are packets on the link, and TCP crosses the link in ESP. Readdressing by HIP is between \
     models of Linux 2.4, without data to unverified addresses and without packets that wait for a path, \
     as in the paper; HIP and Linux 6 has both, as `outlast run` has. The net transmission time is the total less the \
     disconnected time, as in the paper, so that it contains the readdressing."
        .to_owned()
}
