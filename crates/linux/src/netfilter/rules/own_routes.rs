//! Rules by which packets of this process's raw sockets find their routes by what their headers say.
//!
//! For a raw socket the kernel looks up the route, and the policy of IPsec, by the destination alone: it knows
//! neither the packet's source nor its protocol and ports. What a policy demands to be encrypted would leave in
//! clear text, and a rule of policy routing for a source would not hold. Where a chain of type `route` changes a
//! packet's mark, the kernel looks up both again, by the packet's headers, as it does for a packet that it forwards.
//!
//! One chain turns the sender's mark over, and the next one turns it back: who looks later sees the sender's mark,
//! and the route is looked up with it. An encrypted packet comes by once more with the same mark. Its priority shows
//! that it has been here.

use super::{
    Batch, Chain, EQUAL, META_MARK, META_PRIORITY, NEW_TABLE, NOT_EQUAL, REGISTER, TABLE_OWNER,
    compare, expression,
};
use crate::netfilter::message::Message;
use crate::netfilter::{Conversation, NetfilterError};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};

/// After the chain that exempts packets from connection tracking, which knows them by their mark, and before connection
/// tracking. Few other chains have these priorities.
const TURN: Chain = Chain {
    name: "turned",
    kind: "filter",
    hook: 3,
    priority: -299,
};
const TURN_BACK: Chain = Chain {
    name: "routed",
    kind: "route",
    hook: 3,
    priority: -298,
};

/// Priority of packets whose route has been looked up again. No queueing discipline has such a handle, so that they go
/// where those without priority go.
const ROUTED: u32 = 0x4f56_0000;

/// Rules in force until the value is dropped, or the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct OwnRoutes {
    /// The table goes with it.
    _owner: Conversation,
}

impl OwnRoutes {
    /// Puts the rules in force in the network namespace of the calling thread, for packets that bear `mark`.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN`, or when the kernel lacks nftables, its chains that route (Linux 5.2) or tables that
    /// have an owner (Linux 5.12).
    pub(crate) fn install(mark: u32) -> Result<Self, NetfilterError> {
        let owner = Conversation::open()?;
        // No other socket of the namespace has this number, and with a socket its table goes.
        let table = format!("outlast-raw-{}", owner.number()?);
        let mut batch = Batch::default();
        batch.add(NEW_TABLE, NLM_F_CREATE | NLM_F_EXCL, |message| {
            message
                .with_text(1, &table)
                .with(2, &TABLE_OWNER.to_be_bytes())
        });
        batch.add_chain(&table, &TURN);
        batch.add_rule(&table, &TURN, |rule| {
            let rule = compare(rule, META_MARK, EQUAL, &mark.to_ne_bytes());
            let rule = compare(rule, META_PRIORITY, NOT_EQUAL, &ROUTED.to_ne_bytes());
            set(set(rule, META_PRIORITY, ROUTED), META_MARK, !mark)
        });
        batch.add_chain(&table, &TURN_BACK);
        batch.add_rule(&table, &TURN_BACK, |rule| {
            let rule = compare(rule, META_MARK, EQUAL, &(!mark).to_ne_bytes());
            set(rule, META_MARK, mark)
        });
        owner.ask(&batch.bytes(), batch.requests, "add rules to nftables")?;
        Ok(Self { _owner: owner })
    }
}

/// Changes what `key` says of the packet.
fn set(rule: Message, key: u32, value: u32) -> Message {
    let register = REGISTER.to_be_bytes();
    let rule = expression(rule, "immediate", |data| {
        data.with(1, &register)
            .with_nested(2, |data| data.with(1, &value.to_ne_bytes()))
    });
    expression(rule, "meta", |data| {
        data.with(2, &key.to_be_bytes()).with(3, &register)
    })
}
