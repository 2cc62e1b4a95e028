//! Rules that hand received IPv6 packets to a queue by the header that follows the fixed one.

use super::{
    Batch, Chain, EQUAL, Handover, NEW_TABLE, PRE_ROUTING, REGISTER, TABLE_OWNER, compare,
    expression, hand_over_to, lacks_expression, or_taken,
};
use crate::netfilter::message::Message;
use crate::netfilter::{Conversation, NetfilterError};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};

/// The version of IP, as `NFPROTO_IPV6`.
const META_VERSION: u32 = 15;
const VERSION_6: u8 = 10;
/// Payload expressions that begin at the IP header (`NFT_PAYLOAD_NETWORK_HEADER`).
const NETWORK_HEADER: u32 = 1;
const NEXT_HEADER_AT: u32 = 6;
const FRAGMENT_HEADER: u8 = 44;
/// Where a fragment header says what follows it, if it follows the fixed header.
const FRAGMENT_NEXT_AT: u32 = 40;

/// Rules in force until the value is dropped, or the process ends, however it ends.
#[derive(Debug)]
pub struct HeaderRules {
    /// The table goes with it.
    _owner: Conversation,
}

impl HeaderRules {
    /// Hands received IPv6 packets to `queue` whose fixed header is followed by one of `headers`, and fragments
    /// of packets whose fragment header is followed by one of `fragmented`; packets pass while nobody takes the
    /// queue.
    ///
    /// # Errors
    /// When there is a table of that name already, without `CAP_NET_ADMIN`, or when the kernel lacks
    /// nftables or a way to hand packets to a queue.
    pub fn install(
        table: &str,
        queue: u16,
        headers: &[u8],
        fragmented: &[u8],
    ) -> Result<Self, NetfilterError> {
        let mut outcome = Err(NetfilterError::Malformed("no method"));
        for handover in [Handover::Expression, Handover::Target] {
            outcome = Self::attempt(table, queue, (headers, fragmented), handover);
            match &outcome {
                Err(NetfilterError::Refused { source, .. }) if lacks_expression(source) => {}
                _ => break,
            }
        }
        or_taken(table, outcome)
    }

    fn attempt(
        table: &str,
        queue: u16,
        (headers, fragmented): (&[u8], &[u8]),
        handover: Handover,
    ) -> Result<Self, NetfilterError> {
        let owner = Conversation::open()?;
        let mut batch = Batch::default();
        batch.add(NEW_TABLE, NLM_F_CREATE | NLM_F_EXCL, |message| {
            message
                .with_text(1, table)
                .with(2, &TABLE_OWNER.to_be_bytes())
        });
        let chain: &Chain = &PRE_ROUTING;
        batch.add_chain(table, chain);
        for header in headers {
            batch.add_rule(table, chain, |rule| {
                let rule = compare(rule, META_VERSION, EQUAL, &[VERSION_6]);
                hand_over_to(has_at(rule, NEXT_HEADER_AT, *header), queue, handover)
            });
        }
        for header in fragmented {
            batch.add_rule(table, chain, |rule| {
                let rule = compare(rule, META_VERSION, EQUAL, &[VERSION_6]);
                let rule = has_at(rule, NEXT_HEADER_AT, FRAGMENT_HEADER);
                hand_over_to(has_at(rule, FRAGMENT_NEXT_AT, *header), queue, handover)
            });
        }
        owner.ask(&batch.bytes(), batch.requests, "add rules to nftables")?;
        Ok(Self { _owner: owner })
    }
}

/// Goes on only if the packet has `value` at an offset in bytes.
fn has_at(rule: Message, offset: u32, value: u8) -> Message {
    let register = REGISTER.to_be_bytes();
    let rule = expression(rule, "payload", |data| {
        data.with(1, &register)
            .with(2, &NETWORK_HEADER.to_be_bytes())
            .with(3, &offset.to_be_bytes())
            .with(4, &1_u32.to_be_bytes())
    });
    expression(rule, "cmp", |data| {
        data.with(1, &register)
            .with(2, &EQUAL.to_be_bytes())
            .with_nested(3, |data| data.with(1, &[value]))
    })
}
