//! `kill -9` of the daemon at any moment: while packets pass, while they are held, and while what was
//! held goes out. Every transfer still completes with what was sent, and nothing is left behind.
//!
//! Each moment begins with what it is about: the senders have timed out and something is held, or the
//! first of what was held has arrived. Where any time will do, it is drawn at random: `OUTLAST_SEED`
//! takes a printed seed back, and `OUTLAST_ROUNDS` says how often each moment is tried.
//!
//! Two mechanisms acknowledge what the mobile host has not, and say so: of what they have
//! acknowledged they have the only copy. So their connections survive a kill where nothing is
//! acknowledged ahead - payload of the mobile host, and anybody's once the mobile has acknowledged it
//! itself - and the last tests show that they end with an error at both hosts where something is.

use crate::path::{Daemon, FIXED, MOBILE, Over, Path, Transfer, Version, is_ahead, until, wait};
use crate::support::Place;
use outlast_base::time::Duration;
use outlast_linux::clock;
use serde_json::Value;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Of each transfer, at about 3 MB/s while nothing is in its way.
const BYTES: usize = 6_000_000;
/// Of which so much has come when the link goes away.
const BEFORE: usize = BYTES / 6;
const OUTAGE: Duration = Duration::from_millis(1_500);
/// How much longer it lasts once something is held.
const REST: Duration = Duration::from_millis(700);
/// A sender has repeated so often what nobody received: from then on every mechanism that keeps
/// packets has one, those that only keep repetitions among them.
const REPETITIONS: u8 = 2;
/// What is held goes out at this pace, so that there is time to kill in the middle of it: a window of
/// 100 kB takes a tenth of a second.
const RATE: &str = "rate = \"8 Mbit/s\"\n";

/// Who is told at once is told within this, however busy the machine.
const AT_ONCE: Duration = Duration::from_secs(1);

/// When the daemon is killed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Moment {
    /// While the link is up.
    Passing,
    /// At any time of an outage.
    Away,
    /// While something is held, as its status says.
    Holding,
    /// While what was held goes out: the first of it has arrived.
    Bursting,
}

/// The moments at which a mechanism has something to lose.
const AT_WORK: [Moment; 2] = [Moment::Holding, Moment::Bursting];

const MOMENTS: [Moment; 4] = [
    Moment::Passing,
    Moment::Away,
    Moment::Holding,
    Moment::Bursting,
];

/// Who sends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum From {
    /// The host behind the gateway, whose packets the gateway holds.
    Fixed,
    /// The mobile host.
    Mobile,
}

/// Numbers from a seed (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    /// From `OUTLAST_SEED`, or else one that is drawn; printed in any case.
    #[expect(
        clippy::print_stderr,
        reason = "who wants to see it again needs the seed"
    )]
    pub(crate) fn new(what: &str) -> Self {
        let given = std::env::var("OUTLAST_SEED").ok();
        let seed = given.map_or_else(drawn, |seed| seed.parse().expect("OUTLAST_SEED: a number"));
        eprintln!("{what}: OUTLAST_SEED={seed}");
        Self(seed)
    }

    /// Any.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Shorter than `limit`, in microseconds.
    pub(crate) fn below(&mut self, limit: Duration) -> Duration {
        let micros = u64::try_from(limit.as_micros()).expect("not that long");
        Duration::from_micros(self.number() % micros)
    }
}

fn drawn() -> u64 {
    let mut seed = [0; 8];
    let flags = rustix::rand::GetRandomFlags::empty();
    rustix::rand::getrandom(&mut seed, flags).expect("the kernel has random numbers");
    u64::from_ne_bytes(seed)
}

fn rounds() -> u32 {
    let given = std::env::var("OUTLAST_ROUNDS").ok();
    given.map_or(1, |rounds| {
        rounds.parse().expect("OUTLAST_ROUNDS: a number")
    })
}

/// A daemon on the gateway of its own site, and what crosses it.
struct Scene {
    place: Place,
    path: Path,
    mechanism: &'static str,
    over: Over,
}

impl Scene {
    /// `None`, with the reason, where this machine lacks something.
    fn new(mechanism: &'static str, over: Over) -> Option<Self> {
        let place = Place::new();
        place.file("rate.toml", RATE);
        Some(Self {
            path: Path::new()?,
            place,
            mechanism,
            over,
        })
    }

    fn daemon(&self) -> Option<Daemon> {
        let config = self.place.path().join("rate.toml");
        let config = config.to_str().expect("a temporary path");
        let (mechanism, over) = (self.mechanism, self.over.name());
        let arguments = [
            "--config",
            config,
            "--mechanism",
            mechanism,
            "--data-path",
            over,
        ];
        Daemon::start_with(&self.place, &self.path.gateway, &arguments)
    }

    fn transfer(&self, from: From, version: Version) -> Transfer {
        let Path { fixed, mobile, .. } = &self.path;
        match from {
            From::Fixed => Transfer::start(fixed, mobile, MOBILE.of(version), BYTES),
            From::Mobile => Transfer::start(mobile, fixed, FIXED.of(version), BYTES),
        }
    }

    /// Kills the daemon at `moment`, and sees everything come to its end.
    fn survives(&self, senders: &[From], moment: Moment, random: &mut Random) -> Option<()> {
        let daemon = self.daemon()?;
        let versions = [Version::V4, Version::V6];
        let all = senders.iter().flat_map(|&s| versions.map(|v| (s, v)));
        let mut all: Vec<Transfer> = all.map(|(s, v)| self.transfer(s, v)).collect();
        for transfer in &mut all {
            transfer.wait_for(BEFORE);
        }
        self.kill(daemon, moment, &mut all, random);
        for transfer in all {
            transfer.finish();
        }
        self.expect_nothing_left();
        Some(())
    }

    fn kill(&self, daemon: Daemon, moment: Moment, all: &mut [Transfer], random: &mut Random) {
        if moment == Moment::Passing {
            wait(random.below(Duration::from_millis(300)));
            daemon.kill();
            return;
        }
        self.path.cut();
        if moment == Moment::Away {
            let before = random.below(OUTAGE);
            wait(before);
            daemon.kill();
            wait(OUTAGE - before);
            self.path.mend();
            return;
        }
        for transfer in all.iter() {
            transfer.wait_for_backoff(REPETITIONS);
        }
        self.wait_until_held(&daemon);
        if moment == Moment::Holding {
            let before = random.below(REST);
            wait(before);
            daemon.kill();
            wait(REST - before);
            self.path.mend();
            return;
        }
        let up = self.path.mend();
        all[0].resumed(up);
        daemon.kill();
    }

    /// Returns when the daemon says that it holds something, where its mechanism keeps packets.
    fn wait_until_held(&self, daemon: &Daemon) {
        if self.keeps() {
            let holds = |status: &Value| status["held_bytes"].as_u64() > Some(0);
            daemon.status_when("something that is held", holds);
        }
    }

    /// Whether the mechanism keeps packets for whoever sends.
    fn keeps(&self) -> bool {
        !matches!(self.mechanism, "zero-window-ack" | "acknowledge-ahead")
    }

    /// Files in which connections are written down.
    fn pledges(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.place.path()).expect("a directory");
        let paths = files.map(|file| file.expect("a directory").path());
        paths
            .filter(|path| path.extension().is_some_and(|name| name == "pledges"))
            .collect()
    }

    /// Expects neither a process, nor an eBPF program at the interface, nor a mount.
    ///
    /// Another daemon finds table, queue and socket free, and works.
    fn expect_nothing_left(&self) {
        assert_eq!(self.path.inhabitants(), Vec::<String>::new());
        assert_eq!(
            self.path.programs(),
            0,
            "eBPF programs are left at the interface"
        );
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("procfs");
        let own = self.place.path().to_str().expect("a temporary path");
        assert!(!mounts.contains(own), "{mounts}");
        let another = self.daemon().expect("as before");
        let mut transfer = self.transfer(From::Fixed, Version::V6);
        transfer.wait_for(BEFORE);
        let status = another.status();
        assert!(status["flows"].as_u64() > Some(0), "{status:#}");
        another.stop();
        transfer.finish();
        assert_eq!(
            self.path.programs(),
            0,
            "eBPF programs are left at the interface"
        );
    }
}

/// At each of these moments, both ways at once.
fn survives(mechanism: &'static str, over: Over, senders: &[From], moments: &[Moment]) {
    let mut random = Random::new(&format!("{mechanism} by {over:?}"));
    for _ in 0..rounds() {
        for &moment in moments {
            let Some(scene) = Scene::new(mechanism, over) else {
                return;
            };
            if scene.survives(senders, moment, &mut random).is_none() {
                return;
            }
        }
    }
}

const BOTH: [From; 2] = [From::Fixed, From::Mobile];

#[test]
fn transfers_survive_the_end_of_hold_in_the_kernels_data_path() {
    survives("hold", Over::Ebpf, &BOTH, &MOMENTS);
}

#[test]
fn transfers_survive_the_end_of_hold_in_user_spaces_data_path() {
    survives("hold", Over::Nfqueue, &BOTH, &MOMENTS);
}

#[test]
fn transfers_survive_the_end_of_auto_in_the_kernels_data_path() {
    survives("auto", Over::Ebpf, &BOTH, &MOMENTS);
}

#[test]
fn transfers_survive_the_end_of_auto_in_user_spaces_data_path() {
    survives("auto", Over::Nfqueue, &BOTH, &AT_WORK);
}

#[test]
fn transfers_survive_the_end_of_a_smart_link_that_re_receives() {
    survives("smart-link-1", Over::Nfqueue, &BOTH, &AT_WORK);
    // Of a connection that has nothing on its way when the link goes, the kernel shows nothing to
    // keep here.
    let at_any_time = [Moment::Passing, Moment::Away];
    survives("smart-link-2", Over::Ebpf, &BOTH, &at_any_time);
}

#[test]
fn transfers_survive_the_end_of_a_smart_link_that_re_sends() {
    survives("smart-link-3", Over::Nfqueue, &BOTH, &AT_WORK);
    survives("smart-link-4", Over::Ebpf, &BOTH, &MOMENTS);
}

#[test]
fn transfers_survive_the_end_of_a_retransmission_cache() {
    survives("retransmission-cache", Over::Ebpf, &BOTH, &MOMENTS);
    survives("retransmission-cache", Over::Nfqueue, &BOTH, &AT_WORK);
}

#[test]
fn transfers_survive_the_end_of_a_supervisor_host_as_published() {
    survives("m-tcp", Over::Nfqueue, &BOTH, &MOMENTS);
}

#[test]
fn transfers_survive_the_end_of_a_supervisor_host_that_adapts() {
    survives("m-tcp-adaptive", Over::Nfqueue, &BOTH, &AT_WORK);
}

#[test]
fn what_the_mobile_sends_survives_the_end_of_zero_window_ack() {
    survives("zero-window-ack", Over::Nfqueue, &[From::Mobile], &MOMENTS);
}

#[test]
fn what_the_mobile_sends_survives_the_end_of_acknowledge_ahead() {
    survives(
        "acknowledge-ahead",
        Over::Nfqueue,
        &[From::Mobile],
        &MOMENTS,
    );
}

/// An outage that freezes a download, the daemon killed after it has thawed.
/// `None`, with the reason, where this machine lacks something.
///
/// When the daemon is killed the sender has nothing on its way but what is frozen. So the mobile
/// host has certainly not got that, as it may have got a segment whose acknowledgement was lost; and
/// nothing freezes anew, as it would if an acknowledgement were late on a busy machine.
fn thawed_download(mechanism: &'static str) -> Option<(Scene, Transfer)> {
    let scene = Scene::new(mechanism, Over::Nfqueue)?;
    let daemon = scene.daemon()?;
    let mut transfer = scene.transfer(From::Fixed, Version::V4);
    let rest = |transfer: &Transfer| {
        transfer.pause();
        let is_thawed = |status: &Value| !is_ahead(status);
        daemon.flows_when("a thaw", is_thawed);
    };
    transfer.wait_for(BEFORE);
    rest(&transfer);
    scene.path.cut();
    let is_down = |status: &Value| status["link"]["state"] == "down";
    daemon.status_when("the outage", is_down);
    transfer.go_on_in_vain();
    wait(OUTAGE);
    let up = scene.path.mend();
    transfer.resumed(up);
    rest(&transfer);
    daemon.kill();
    transfer.go_on();
    Some((scene, transfer))
}

#[test]
fn a_frozen_transfer_survives_the_end_of_the_daemon_once_the_mobile_has_acknowledged() {
    for mechanism in ["zero-window-ack", "acknowledge-ahead"] {
        let Some((scene, transfer)) = thawed_download(mechanism) else {
            return;
        };
        transfer.finish();
        scene.expect_nothing_left();
    }
}

/// What both ends are told of a connection of which only the daemon had something.
const BROKEN: [Result<(), ErrorKind>; 2] = [Err(ErrorKind::ConnectionReset); 2];

/// The daemon is killed while something is acknowledged ahead. The sender is told at once, though the link
/// is away; the receiver once the link is back. `then`: whether another daemon is started before.
fn breaks(then: Option<&'static str>) -> Option<()> {
    let mut scene = Scene::new("acknowledge-ahead", Over::Nfqueue)?;
    let daemon = scene.daemon()?;
    let mut transfer = scene.transfer(From::Fixed, Version::V4);
    transfer.wait_for(BEFORE);
    scene.path.cut();
    daemon.flows_when("a frozen connection", is_ahead);
    wait(OUTAGE);
    daemon.kill();
    let killed = clock::now();
    until("an error at the sender", || transfer.is_broken());
    let told = clock::now().since(killed);
    assert!(told < AT_ONCE, "the sender is told after {told:?}");
    if let Some(mechanism) = then {
        scene.mechanism = mechanism;
        let another = scene.daemon()?;
        wait(OUTAGE);
        scene.path.mend();
        assert_eq!(transfer.outcome(), BROKEN);
        until("no file", || scene.pledges().is_empty());
        another.stop();
    } else {
        wait(OUTAGE);
        scene.path.mend();
        assert_eq!(transfer.outcome(), BROKEN);
        // It does not know that they were, and waits for the next daemon, or for a quarter of an hour.
        let another = scene.daemon()?;
        until("the end of the guardian", || {
            scene.path.inhabitants().len() == 2
        });
        until("no file", || scene.pledges().is_empty());
        another.stop();
    }
    assert_eq!(scene.path.inhabitants(), Vec::<String>::new());
    Some(())
}

#[test]
fn what_was_acknowledged_ahead_ends_with_an_error_at_both_hosts_when_the_daemon_is_killed() {
    std::thread::scope(|scope| {
        for then in [None, Some("acknowledge-ahead"), Some("hold")] {
            scope.spawn(move || breaks(then));
        }
    });
}

/// Between what was written down last and the daemon's end more may have passed. Its far host answers
/// nonetheless, and so both hosts are told: here more has passed than ever does.
#[test]
fn both_hosts_are_told_though_more_has_passed_than_was_written_down() {
    let Some(scene) = Scene::new("acknowledge-ahead", Over::Nfqueue) else {
        return;
    };
    let Some(daemon) = scene.daemon() else { return };
    let mut transfer = scene.transfer(From::Fixed, Version::V4);
    transfer.wait_for(BEFORE);
    scene.path.cut();
    daemon.flows_when("a frozen connection", is_ahead);
    let [file] = &scene.pledges()[..] else {
        panic!("{:?}", scene.pledges());
    };
    let written = std::fs::read(file).expect("a file");
    let up = scene.path.mend();
    transfer.resumed(up);
    daemon.flows_when("a thaw", |status| !is_ahead(status));
    daemon.kill();
    scene.path.until_deserted();
    std::fs::write(file, written).expect("a file");
    let another = scene.daemon().expect("as before");
    assert_eq!(transfer.outcome(), BROKEN);
    until("no file", || scene.pledges().is_empty());
    another.stop();
}

/// Whenever the daemon is killed, a download comes to its end, or both hosts are told that it does not.
#[test]
fn no_connection_hangs_that_was_acknowledged_ahead() {
    let mut random = Random::new("no hang");
    for moment in (0..rounds()).flat_map(|_| MOMENTS) {
        let Some(scene) = Scene::new("acknowledge-ahead", Over::Nfqueue) else {
            return;
        };
        let Some(daemon) = scene.daemon() else { return };
        let versions = [Version::V4, Version::V6, Version::V4];
        let mut all = versions.map(|version| scene.transfer(From::Fixed, version));
        for transfer in &mut all {
            transfer.wait_for(BEFORE);
        }
        match moment {
            Moment::Holding | Moment::Bursting => {
                scene.path.cut();
                daemon.flows_when("a frozen connection", is_ahead);
                wait(random.below(REST));
                if moment == Moment::Holding {
                    daemon.kill();
                    scene.path.mend();
                } else {
                    let up = scene.path.mend();
                    all[0].resumed(up);
                    daemon.kill();
                }
            }
            Moment::Passing | Moment::Away => scene.kill(daemon, moment, &mut all, &mut random),
        }
        for transfer in all {
            let outcome = transfer.outcome();
            assert!(
                outcome == BROKEN || outcome == [Ok(()); 2],
                "{moment:?}: {outcome:?}"
            );
        }
        let another = scene.daemon().expect("as before");
        until("no file", || scene.pledges().is_empty());
        another.stop();
        scene.path.until_deserted();
        scene.expect_nothing_left();
    }
}
