//! Kinds of link between two routers, firewalls on them, and routers that change: what outlasts an outage of each with
//! `hold` at one end or at both, and what stalls without.
//!
//! ```text
//! near host --- near router --- switch --- far router --- far host
//! ```
//!
//! Most of it needs modules that a distribution's kernel has. Where this machine lacks them, a test says so and ends.

mod bed;
mod devices;
mod firewalls;
mod ipsec;
mod replaced;
mod tunnels;
mod uplinks;

use crate::path::{Daemon, Over, Transfer, connected_at, seen};
use crate::support::{Place, report};
use bed::{Bed, Outage};
use outlast_base::time::{Duration, Instant};
use outlast_linux::namespace::Namespace;
use socket2::SockRef;
use std::net::SocketAddr;

/// Bytes of a transfer, and those that have arrived when the link goes.
const BYTES: usize = 300_000;
const BEFORE: usize = 120_000;
/// Bytes that a sender may have written and that are not acknowledged: twice of what the link carries in a round trip.
const ROOM: usize = 100_000;
/// An outage lasts so long, and then until no sender tries again for a while.
const LENGTH: Duration = Duration::from_secs(8);
/// Three round trips of the link, what waits in its queues, and what a slow processor needs.
const AT_ONCE: Duration = Duration::from_millis(500);
/// Bound of cases that take longer than [`AT_ONCE`], and less than any control.
const LATER: Duration = Duration::from_secs(1);
/// A control must stall for longer than this.
const STALL: Duration = Duration::from_secs(2);

/// Routers with `hold`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum At {
    Neither,
    NearEnd,
    BothEnds,
}

/// Direction of a transfer, as the near host has it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    Download,
    Upload,
}

impl Way {
    const BOTH: [Self; 2] = [Self::Download, Self::Upload];

    /// A transfer on a connection that the near host has opened.
    fn start(self, near_host: &Namespace, far_host: &Namespace, far_end: SocketAddr) -> Transfer {
        let (near, far) = connected_at(near_host, far_host, far_end);
        for end in [&near, &far] {
            // The kernel doubles it.
            let room = SockRef::from(end).set_send_buffer_size(ROOM / 2);
            room.expect("room");
        }
        match self {
            Self::Download => Transfer::over(far, near, BYTES),
            Self::Upload => Transfer::over(near, far, BYTES),
        }
    }
}

/// First new bytes of a transfer after an outage.
#[derive(Clone, Copy, Debug)]
struct Stall {
    way: Way,
    /// Time from the end of the outage until they arrive.
    lasted: Duration,
    /// Time from the end of the outage to the sender's own next timeout.
    alone: Duration,
}

/// Transfers that run at once.
struct Transfers(Vec<(Way, Transfer)>);

/// Stalls of several transfers after one outage.
#[derive(Clone, Debug)]
struct Stalls(Vec<Stall>);

impl Transfers {
    /// Those of each of these directions, once enough has arrived.
    fn start(hosts: [&Namespace; 2], ways: &[Way]) -> Self {
        Self::start_to(hosts, ways, |_| SocketAddr::new(Bed::far_address(), 0))
    }

    /// Those to other addresses and ports; zero: to some port.
    fn start_to(
        [near_host, far_host]: [&Namespace; 2],
        ways: &[Way],
        far_end: impl Fn(Way) -> SocketAddr,
    ) -> Self {
        let start = |way: Way| way.start(near_host, far_host, far_end(way));
        let all = ways.iter().map(|way| (*way, start(*way)));
        let mut all: Vec<_> = all.collect();
        for (_, transfer) in &mut all {
            transfer.wait_for(BEFORE);
        }
        Self(all)
    }

    /// Waits for [`LENGTH`], and until no sender tries again by itself for long; when each would.
    fn wait_out(&self) -> Vec<Instant> {
        self.wait_for(LENGTH, Transfer::long_timeout)
    }

    /// Waits so long, and until it is known of all when they try again.
    fn wait_for(
        &self,
        length: Duration,
        next_try: impl Fn(&Transfer) -> Option<Instant>,
    ) -> Vec<Instant> {
        crate::path::wait(length);
        let all = || {
            self.0
                .iter()
                .map(|(_, transfer)| next_try(transfer))
                .collect()
        };
        seen("long timeouts", all)
    }

    /// Waits until all have come to their ends whole.
    fn finish(self) {
        for (_, transfer) in self.0 {
            transfer.finish();
        }
    }

    /// Waits until all go on, and come to their ends whole.
    fn resume(self, up: Instant, by_themselves: Vec<Instant>) -> Stalls {
        let mut transfers = self.0;
        let stalls = transfers.iter_mut().zip(by_themselves);
        let stalls = stalls.map(|((way, transfer), by_itself)| Stall {
            way: *way,
            lasted: transfer.resumed(up).since(up),
            alone: by_itself.since(up),
        });
        let stalls = Stalls(stalls.collect());
        for (_, transfer) in transfers {
            transfer.finish();
        }
        stalls
    }
}

impl Stall {
    /// Time after the sender's own next try.
    fn late(&self) -> Duration {
        self.lasted.max(self.alone) - self.alone
    }
}

impl Stalls {
    /// Transfers of these directions over an outage.
    fn over(bed: &Bed, how: Outage, ways: &[Way]) -> Self {
        let transfers = Transfers::start(bed.hosts(), ways);
        bed.cut(how);
        let by_themselves = transfers.wait_out();
        let up = bed.mend(how);
        transfers.resume(up, by_themselves)
    }

    /// Checks that all have stalled for longer than `shortest`: otherwise there is nothing to help.
    #[track_caller]
    fn assert_stalled(&self, shortest: Duration) {
        for stall in &self.0 {
            assert!(stall.lasted > shortest, "the control: {self:?}");
        }
    }

    /// Checks that none came much later after its sender's own next try than in the control: that try may be lost, and
    /// be repeated.
    #[track_caller]
    fn assert_none_the_worse_than(&self, control: &Self) {
        for (with, without) in self.0.iter().zip(&control.0) {
            let worse = with.late() > without.late() + LENGTH;
            assert!(!worse, "{self:?}; the control: {control:?}");
        }
    }

    #[track_caller]
    fn assert_within(&self, longest: Duration) {
        for stall in &self.0 {
            assert!(stall.lasted <= longest, "longer than {longest:?}: {self:?}");
        }
    }

    /// First new bytes in this direction.
    fn of(&self, way: Way) -> Stall {
        let stall = self.0.iter().find(|stall| stall.way == way);
        *stall.expect("it was asked for")
    }
}

/// Whose carrier it is that is lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Carrier {
    /// The link's own: the near router is told.
    Own,
    /// That of an interface below it: to the link that is silence.
    Below,
}

/// Does something where there is no daemon, one at the near end, and one at each end. The far end's is on the other
/// data path: that one starts sooner.
#[track_caller]
fn at_each(bed: &Bed, over: Over, mut work: impl FnMut(At)) {
    let place = Place::new();
    let start = |over, router| Daemon::start_over(over, &place, router, "hold");
    work(At::Neither);
    let Some(near) = start(over, &bed.near_router) else {
        return;
    };
    work(At::NearEnd);
    let Some(far) = start(Over::Nfqueue, &bed.far_router) else {
        return;
    };
    work(At::BothEnds);
    near.stop();
    far.stop();
}

/// Transfers over both kinds of outage: without a daemon they stall; with one at the near end, and with one at each
/// end, they go on at once.
///
/// Silence shows at the end that sends. There each direction has an outage of its own: while the other one's data comes
/// until the last moment, a gateway may not notice it.
#[track_caller]
fn outlasts(bed: &Bed, over: Over, carrier: Carrier) {
    outlasts_within(AT_ONCE, bed, over, carrier);
}

/// Transfers as with [`outlasts`] that go on within `longest`.
#[track_caller]
fn outlasts_within(longest: Duration, bed: &Bed, over: Over, carrier: Carrier) {
    at_each(bed, over, |at| {
        let suffers = |how, ways: &[Way]| {
            let stalls = Stalls::over(bed, how, ways);
            report(&format!("{at:?}, {how:?}, {}: {stalls:?}", over.name()));
            stalls
        };
        let ways = match at {
            At::Neither => {
                suffers(Outage::Silence, &Way::BOTH).assert_stalled(STALL);
                return;
            }
            At::NearEnd => &[Way::Upload][..],
            At::BothEnds => &Way::BOTH[..],
        };
        if carrier == Carrier::Own {
            suffers(Outage::Carrier, &Way::BOTH).assert_within(longest);
        }
        for way in ways {
            suffers(Outage::Silence, &[*way]).assert_within(longest);
            if carrier == Carrier::Below {
                suffers(Outage::Carrier, &[*way]).assert_within(LATER);
            }
        }
    });
}

/// Transfers over both kinds of outage go on no later with a daemon at each end than without one.
#[track_caller]
fn is_none_the_worse(bed: &Bed) {
    let suffer = |how| Stalls::over(bed, how, &Way::BOTH);
    are_none_the_worse(bed, [Over::Ebpf, Over::Nfqueue], suffer, |_| {});
}

/// Asserts that the stalls which `suffer` measures over both kinds of outage are no longer with a daemon at each end, over these
/// data paths, than without one. `look` inspects the near daemon at the end.
#[track_caller]
fn are_none_the_worse(
    bed: &Bed,
    over: [Over; 2],
    suffer: impl Fn(Outage) -> Stalls,
    look: impl FnOnce(&Daemon),
) {
    let controls = Outage::BOTH.map(&suffer);
    let place = Place::new();
    let start = |over, router| Daemon::start_over(over, &place, router, "hold");
    let near = start(over[0], &bed.near_router);
    let far = start(over[1], &bed.far_router);
    let (Some(near), Some(far)) = (near, far) else {
        return;
    };
    for (how, control) in Outage::BOTH.into_iter().zip(controls) {
        let stalls = suffer(how);
        report(&format!("{how:?}: {stalls:?}; the control: {control:?}"));
        stalls.assert_none_the_worse_than(&control);
    }
    look(&near);
    near.stop();
    far.stop();
}
