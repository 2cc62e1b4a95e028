//! What a session begins with when something is over that the neighbour has not heard of, and may have
//! to hear before the list is complete: what is not in that list, of an agent that was started anew,
//! is reset.

use crate::there::{OWN_INSTANCE, There, id, segment};
use outlast_agents::{FreezeId, Limits, Message, Outcome};
use outlast_gateway::links::Direction;
use outlast_wire::{SeqNumber, TcpFlags, TcpHeader};

const HELLO: Message = Message::Hello {
    instance: OWN_INSTANCE,
};
const FREEZE: FreezeId = id(2, 1);
const RELEASED: Message = Message::Released { id: FREEZE };
const SETTLED: Message = Message::Settled {
    id: FREEZE,
    outcome: Outcome::Acknowledged,
};

/// A session begins while a segment is kept here, and nothing of it was said yet.
fn beginning() -> There {
    let mut there = There::new(Limits::default());
    assert_eq!(there.hear(&segment(FREEZE, 1)), Ok(()));
    assert_eq!(there.agents.frozen().count(), 1);
    there.meet_again(2);
    there
}

#[test]
fn what_is_not_confirmed_is_said_before_the_list_is_complete() {
    let mut there = beginning();
    let _ = there.said();
    there.acknowledge(1);
    assert_eq!(there.said(), [SETTLED]);
    there.meet_again(2);
    assert_eq!(there.said(), [HELLO, SETTLED, Message::Listed]);
    assert_eq!(there.hear(&RELEASED), Ok(()));
    there.meet_again(2);
    assert_eq!(there.said(), [HELLO, Message::Listed]);
}

#[test]
fn what_is_over_before_it_was_said_to_be_frozen_is_said_to_be_over() {
    let mut there = beginning();
    there.acknowledge(1);
    assert_eq!(there.said(), [HELLO, SETTLED, Message::Listed, SETTLED]);
}

#[test]
fn what_a_neighbour_ends_before_it_was_said_to_be_frozen_is_said_to_be_released() {
    let mut there = beginning();
    assert_eq!(there.hear(&SETTLED), Ok(()));
    assert_eq!(there.said(), [HELLO, RELEASED, Message::Listed, RELEASED]);
}

#[test]
fn what_is_known_here_to_be_over_is_not_reset() {
    let mut there = There::new(Limits::default());
    let (near, far) = (SeqNumber(1_000), SeqNumber(7_000));
    let header = |seq: SeqNumber, ack: SeqNumber, flags| TcpHeader {
        seq,
        ack,
        flags,
        ..TcpHeader::default()
    };
    let syn = header(near + u32::MAX, SeqNumber(0), TcpFlags::SYN);
    there.show(1, Direction::ToLink, syn, 0);
    let both = TcpFlags::SYN | TcpFlags::ACK;
    there.show(
        1,
        Direction::FromLink,
        header(far + u32::MAX, near, both),
        0,
    );
    there.show(1, Direction::ToLink, header(near, far, TcpFlags::ACK), 500);
    there.acknowledge(1);
    assert_eq!(there.hear(&segment(FREEZE, 1)), Ok(()));
    assert!(there.said().contains(&SETTLED));
    // It was started anew and does not have it any more, whether it has heard that or not.
    there.meet_again(3);
    assert_eq!(there.hear(&Message::Listed), Ok(()));
    assert!(there.agents.poll_packet().is_none());
    assert_eq!(there.agents.counters().reset, 0);
}
