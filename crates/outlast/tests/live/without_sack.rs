//! Senders without SACK: a gateway knows them, over both data paths, and helps them otherwise than others.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::told::ToldSite;
use crate::path::{Over, at_once, wait};
use outlast_base::time::{Duration, Instant};
use outlast_testbed::site::Place as Host;
use serde_json::Value;
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::Receiver;
use std::thread;

/// From the beginning of the transfer until the link goes: its sender repairs what it has lost to a full queue, and has more than
/// a hundred segments under way.
const BEFORE: Duration = Duration::from_secs(2);
/// What was under way is repeated about 1, 2.5 and 5.5 s after the link has gone, and then after more than 10 s: it comes back long
/// before that. After outages as long the sender's window is too large for the link.
const AWAY: Duration = Duration::from_millis(6_200);
/// What is read after the link's return is more than was under way.
const READS: usize = 3_000;
/// Without a daemon the sender's next timeout is 3.7 s after the link's return, or later.
const AT_ONCE: Duration = Duration::from_millis(800);

/// A download of whose link the gateway has been told that it went and came back.
struct Download {
    link: ToldSite,
    sender: TcpStream,
    read: Receiver<Instant>,
    back: Instant,
}

impl Download {
    /// With a daemon on the gateway over that data path or without, and with SACK at both hosts or without.
    fn after_an_outage(over: Option<Over>, sack: bool) -> Option<Self> {
        let link = ToldSite::with_sack(over, sack)?;
        let (sender, read) = link.transfer(Host::Fixed, Host::Mobile);
        wait(BEFORE);
        link.cut();
        link.tell_down();
        wait(AWAY);
        let back = link.mend();
        Some(Self {
            link,
            sender,
            read,
            back,
        })
    }

    /// The longest time after the link's return without anything to read.
    fn longest_silence(&self) -> Duration {
        let mut last = self.back;
        let mut longest = Duration::ZERO;
        let after = self.read.iter().filter(|at| *at >= self.back);
        for at in after.take(READS) {
            longest = longest.max(at.since(last));
            last = at;
        }
        longest
    }

    fn end(self) {
        self.sender.shutdown(Shutdown::Both).expect("it is open");
        self.link.stop();
    }
}

/// Its first byte is there at once with many a rule. What follows shows whether its sender comes to stand still again.
fn is_silent_for(over: Option<Over>) -> Option<Duration> {
    let download = Download::after_an_outage(over, false)?;
    let silence = download.longest_silence();
    download.end();
    Some(silence)
}

#[test]
fn a_download_without_sack_goes_on_after_its_first_byte() {
    at_once::judge(AT_ONCE, is_silent_for);
}

/// How many losses a daemon has signalled to the sender of a download that goes on after an outage.
fn losses_signalled(over: Over, sack: bool) -> Option<u64> {
    let download = Download::after_an_outage(Some(over), sack)?;
    download.longest_silence();
    let counted = |status: &Value, name: &str| status["counters"][name].as_u64().expect("a number");
    let status = download
        .link
        .status_when("it resumed", |status| counted(status, "resumes") > 0);
    download.end();
    Some(counted(&status, "losses_signalled"))
}

/// Where other tests keep the processors busy, a sender may have too little under way for that.
#[test]
fn a_sender_without_sack_hears_of_a_full_queue_by_one_loss() {
    let cases = [
        (Over::Ebpf, false),
        (Over::Nfqueue, false),
        (Over::Ebpf, true),
        (Over::Nfqueue, true),
    ];
    let mut tried = Vec::new();
    for _ in 0..at_once::TRIES {
        let all = thread::scope(|scope| {
            let runs = cases.map(|(over, sack)| scope.spawn(move || losses_signalled(over, sack)));
            runs.map(|run| run.join().expect("it is measured"))
        });
        let [
            Some(ebpf),
            Some(nfqueue),
            Some(ebpf_sack),
            Some(nfqueue_sack),
        ] = all
        else {
            return;
        };
        assert_eq!([ebpf_sack, nfqueue_sack], [0, 0], "with SACK");
        if [ebpf, nfqueue] == [1, 1] {
            return;
        }
        tried.push([ebpf, nfqueue]);
    }
    panic!("eBPF, NFQUEUE: {tried:?}");
}
