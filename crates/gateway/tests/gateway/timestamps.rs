//! Timestamps of what `hold` sends: a receiver that has taken a newer one rejects an older (PAWS, RFC 7323,
//! section 5.3).

use crate::path::{MSS, Path, Sent};
use outlast_base::time::Duration;
use outlast_gateway::mechanisms::path::{HoldRule, HoldRules, PathMechanismKind};

/// A far host that takes what comes in order and is no older than TS.Recent, and answers everything.
struct Receiver {
    rcv_nxt: u32,
    ts_recent: u32,
    rejected: u32,
}

impl Receiver {
    /// Answers what the gateway has sent, a round trip later.
    fn answer(&mut self, path: &mut Path) {
        let sent = path.sent();
        path.after_ms(40);
        for segment in sent {
            let Sent::Data(first, len, stamp) = segment else {
                continue;
            };
            if stamp < self.ts_recent {
                self.rejected += 1;
            } else if first <= self.rcv_nxt {
                self.ts_recent = stamp;
                self.rcv_nxt = self.rcv_nxt.max(first + len);
            }
            path.far_ack_echoing(self.rcv_nxt, self.ts_recent);
        }
    }
}

fn path_with(rules: HoldRules) -> Path {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.gateway.set_rules(rules);
    path
}

/// The near host's repetition of what is missing first has come to the far host by another path, amid the
/// outage; all that the gateway has kept is older.
fn overtaken(rules: HoldRules) -> (Path, Receiver) {
    let mut path = path_with(rules);
    path.down();
    for n in 0..20 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(2_000);
    let far = Receiver {
        rcv_nxt: MSS,
        ts_recent: 1_900,
        rejected: 0,
    };
    path.up();
    (path, far)
}

/// How many copies the far host rejects in two round trips, and how many in the 50 after these.
fn rejected(path: &mut Path, far: &mut Receiver) -> (u32, u32) {
    far.answer(path);
    far.answer(path);
    let at_first = far.rejected;
    for _ in 0..50 {
        far.answer(path);
    }
    (at_first, far.rejected - at_first)
}

#[test]
fn copies_older_than_a_repetition_that_was_not_seen_give_way() {
    let (mut path, mut far) = overtaken(HoldRules::default());
    let (at_first, later) = rejected(&mut path, &mut far);
    assert_eq!(later, 0, "after {at_first}");
    // Nothing older goes before what the near host repeats, or after it.
    assert_eq!(path.data(MSS, MSS), None);
    path.after_ms(5_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn without_that_they_are_sent_in_vain() {
    let without = HoldRules::default().without(HoldRule::GiveUpStale);
    let (mut path, mut far) = overtaken(without);
    let (at_first, later) = rejected(&mut path, &mut far);
    assert!(at_first > 10 && later >= 3, "{at_first}, {later}");
}

#[test]
fn an_echo_that_answers_nothing_gives_nothing_up() {
    let (mut path, _) = overtaken(HoldRules::default());
    let before = path.sent().len();
    // It says something new, and may be of any time.
    path.far_ack_echoing(MSS, 1_000_000);
    path.after_ms(10);
    assert!(before + path.sent().len() >= 19);
}

/// What was acknowledged ahead has no other copy, and no host can have repeated it.
#[test]
fn what_was_acknowledged_ahead_is_not_given_up_for_an_echo() {
    let mut path = Path::established(PathMechanismKind::AcknowledgeAhead);
    path.down();
    path.data(0, MSS);
    path.data(MSS, MSS);
    path.after_ms(2_000);
    path.up();
    assert!(path.sent().contains(&Sent::Data(0, MSS, 0)));
    path.after_ms(40);
    path.far_ack_echoing(0, 1_000_000);
    path.far_ack_echoing(0, 1_000_000);
    path.after_ms(5_000);
    let again = |sent: &Sent| matches!(sent, Sent::Data(0, MSS, stamp) if *stamp < 10_000);
    assert!(path.sent().iter().any(again));
}

/// The far host has a repetition whose acknowledgement was lost: the first copy of the next segment is too
/// old for it, and there is a fresher one.
#[test]
fn a_fresher_copy_goes_at_once_when_the_first_was_rejected() {
    let mut path = path_with(HoldRules::default());
    for n in 0..3 {
        path.data(n * MSS, MSS);
        path.after_ms(1);
    }
    path.after_ms(297);
    path.data(0, MSS);
    path.after_ms(5);
    path.down();
    path.after_ms(395);
    path.data(0, MSS);
    path.after_ms(1);
    path.data(MSS, MSS);
    path.after_ms(1_000);
    path.up();
    let mut far = Receiver {
        rcv_nxt: MSS,
        ts_recent: 300,
        rejected: 0,
    };
    let up = path.now();
    while far.rcv_nxt < 2 * MSS {
        far.answer(&mut path);
        assert!(
            path.now().since(up) < Duration::from_secs(1),
            "{}",
            far.rejected
        );
    }
    // The first answer shows that the copy was rejected; the second is to the fresher one.
    assert_eq!(path.now().since(up), Duration::from_millis(80));
}
