//! Neighbours that have the key, speak the language and make no sense. Found by `fuzz/src/bin/agents.rs`
//! or made safe before it could find them.

use crate::there::{OWN_INSTANCE, There, frozen, id, mobile, segment};
use outlast_agents::{DecodeError, Limits, Message, Outcome};

#[test]
fn who_names_another_connection_alike_is_believed_of_that_one_only() {
    let mut there = There::new(Limits::default());
    for number in [1, 2, 3] {
        let numbers = frozen(number).numbers().expect("plausible");
        let told = Message::Frozen {
            id: id(2, 1),
            numbers,
        };
        assert_eq!(there.hear(&told), Ok(()));
    }
    let awaited = [1, 2, 3].map(|number| there.agents.awaits(mobile(number)));
    assert_eq!(awaited, [false, false, true]);
    assert_eq!(there.hear(&Message::Released { id: id(2, 1) }), Ok(()));
    assert!(!there.agents.awaits(mobile(3)));
}

#[test]
fn a_name_is_that_of_one_connection_only() {
    let mut there = There::new(Limits::default());
    assert_eq!(there.hear(&segment(id(2, 1), 1)), Ok(()));
    assert_eq!(there.hear(&segment(id(2, 1), 2)), Ok(()));
    let kept: Vec<_> = there
        .agents
        .frozen()
        .map(|view| view.flow.far.ip())
        .collect();
    assert_eq!(kept, [mobile(1)]);
    assert_eq!(there.agents.counters().refused, 1);
    let refusal = Message::Settled {
        id: id(2, 1),
        outcome: Outcome::Refused,
    };
    assert!(there.said().contains(&refusal));
}

#[test]
fn nobody_names_what_will_be_frozen_here() {
    let mut there = There::new(Limits::default());
    assert_eq!(there.hear(&segment(id(OWN_INSTANCE, 1), 1)), Ok(()));
    assert_eq!(there.agents.frozen().count(), 0);
    assert_eq!(there.agents.counters().refused, 1);
}

#[test]
fn who_asks_and_does_not_read_is_left() {
    let mut there = There::new(Limits {
        unsaid: 10,
        ..Limits::default()
    });
    let _ = there.said();
    let ask = Message::Want { id: id(9, 9) };
    let answers = (0..100).map(|_| there.hear(&ask)).take_while(Result::is_ok);
    assert_eq!(answers.count(), 11);
    assert_eq!(there.hear(&ask), Err(DecodeError::Unread));
    assert!(there.agents.counters().unread > 0);
    // Who reads may ask as often as it likes.
    for _ in 0..100 {
        let answer = Message::Released { id: id(9, 9) };
        assert!(there.said().iter().all(|said| *said == answer));
        assert_eq!(there.hear(&ask), Ok(()));
    }
}
