//! What happens at once where a daemon runs on the gateway, and much later where none does.

use super::Over;
use crate::support::report;
use outlast_base::time::Duration;
use std::thread;

/// How often it is tried: where other tests keep the processors busy a run may be late for their sake.
pub(crate) const TRIES: u32 = 3;
/// Without a daemon it takes this many times as long, and more.
const LATER: u32 = 4;

/// Takes the time of both data paths and of none, side by side. Each of the first two is within `at_once`, and the last one is
/// much longer.
///
/// `measure` says `None`, after a word why, where this machine lacks what it needs.
pub(crate) fn judge(at_once: Duration, measure: impl Fn(Option<Over>) -> Option<Duration> + Sync) {
    let measure = &measure;
    let mut tried = Vec::new();
    for _ in 0..TRIES {
        let all = thread::scope(|scope| {
            let ways = [Some(Over::Ebpf), Some(Over::Nfqueue), None];
            let all = ways.map(|over| scope.spawn(move || measure(over)));
            all.map(|one| one.join().expect("it is measured"))
        });
        let [Some(ebpf), Some(nfqueue), Some(none)] = all else {
            return;
        };
        report(&format!(
            "eBPF {ebpf:?}, NFQUEUE {nfqueue:?}, no daemon {none:?}"
        ));
        if ebpf.max(nfqueue) <= at_once && none > at_once * LATER {
            return;
        }
        tried.push(all);
    }
    panic!("eBPF, NFQUEUE, no daemon: {tried:?}");
}
