//! The rules that hand an interface's packets to a queue.
//!
//! They are in a table of their own, which is owned by this process's socket
//! (`NFT_TABLE_F_OWNER`, Linux 5.12): nobody else can change it, and the kernel removes it when
//! the process ends, however it ends.

use super::{Conversation, Message, NetfilterError, may_administer};
use netlink_packet_core::{NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST};
use std::io;

/// `NFNL_SUBSYS_NFTABLES` and the message types of `linux/netfilter/nf_tables.h`.
const NFTABLES: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = NFTABLES << 8;
const NEW_CHAIN: u16 = NFTABLES << 8 | 3;
const NEW_RULE: u16 = NFTABLES << 8 | 6;
/// `NFPROTO_INET`: IPv4 and IPv6.
const INET: u8 = 1;
const TABLE_OWNER: u32 = 2;

/// Hooks (`NF_INET_*`) and priorities: what is received is taken before connection tracking and
/// address translation, what is sent after them, so that both sides of a flow look as they do on
/// the link.
const PRE_ROUTING: Chain = Chain {
    name: "received",
    hook: 0,
    priority: -300,
};
const POST_ROUTING: Chain = Chain {
    name: "sent",
    hook: 4,
    priority: 350,
};
/// What this process sends towards the link has been tracked and translated before.
const LOCAL_OUT: Chain = Chain {
    name: "resent",
    hook: 3,
    priority: -300,
};

/// Registers, keys and operators of expressions.
const REGISTER: u32 = 1;
const META_MARK: u32 = 3;
const META_IN_NAME: u32 = 6;
const META_OUT_NAME: u32 = 7;
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const BYPASS: u16 = 1;

/// The longest name of an interface, the NUL included.
const NAME_SIZE: usize = 16;

/// What the rules say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RuleSet<'a> {
    /// Name of the table; one such exists per namespace.
    pub table: &'a str,
    /// The interface whose packets, received and about to be sent, go to the queue.
    pub interface: &'a str,
    /// The queue.
    pub queue: u16,
    /// Packets with this mark do not go to the queue: this process has sent them.
    pub mark: u32,
}

/// Rules in force until the value is dropped, or the process ends.
#[derive(Debug)]
pub struct Rules {
    _owner: Conversation,
    is_untracked: bool,
}

struct Chain {
    name: &'static str,
    hook: u32,
    priority: i32,
}

/// How a rule hands packets to a queue.
#[derive(Clone, Copy, Debug)]
enum Handover {
    /// The expression of nftables (`CONFIG_NFT_QUEUE`).
    Expression,
    /// The target of iptables (`CONFIG_NFT_COMPAT`, `CONFIG_NETFILTER_XT_TARGET_NFQUEUE`).
    Target,
}

impl Rules {
    /// Puts the rules in force.
    ///
    /// # Errors
    /// When there is such a table already, without `CAP_NET_ADMIN`, or when the kernel lacks
    /// nftables or a way to hand packets to a queue.
    pub fn install(set: &RuleSet<'_>) -> Result<Self, NetfilterError> {
        let mut outcome = Self::attempt(set, Handover::Expression, true);
        for (handover, untrack) in [
            (Handover::Target, true),
            (Handover::Expression, false),
            (Handover::Target, false),
        ] {
            match &outcome {
                Err(NetfilterError::Refused { source, .. }) if lacks_expression(source) => {
                    outcome = Self::attempt(set, handover, untrack);
                }
                _ => break,
            }
        }
        match outcome {
            Err(NetfilterError::NotPermitted { .. }) if may_administer() => {
                Err(NetfilterError::TableTaken {
                    name: set.table.into(),
                })
            }
            outcome => outcome,
        }
    }

    /// Whether re-sent packets are exempt from connection tracking. Without that, a gateway that
    /// translates addresses may translate them twice.
    #[must_use]
    pub const fn is_untracked(&self) -> bool {
        self.is_untracked
    }

    fn attempt(
        set: &RuleSet<'_>,
        handover: Handover,
        untrack: bool,
    ) -> Result<Self, NetfilterError> {
        let owner = Conversation::open()?;
        let mut batch = Batch::default();
        batch.add(NEW_TABLE, NLM_F_CREATE | NLM_F_EXCL, |message| {
            message
                .with_text(1, set.table)
                .with(2, &TABLE_OWNER.to_be_bytes())
        });
        for (chain, key) in [(PRE_ROUTING, META_IN_NAME), (POST_ROUTING, META_OUT_NAME)] {
            batch.add_chain(set.table, &chain);
            batch.add_rule(set.table, &chain, |rule| {
                hand_over(of_others(on_interface(rule, key, set), set), set, handover)
            });
        }
        if untrack {
            batch.add_chain(set.table, &LOCAL_OUT);
            batch.add_rule(set.table, &LOCAL_OUT, |rule| {
                let rule = on_interface(rule, META_OUT_NAME, set);
                expression(own(rule, set), "notrack", |data| data)
            });
        }
        let requests = batch.requests;
        owner.ask(&batch.finish(), requests, "add rules to nftables")?;
        Ok(Self {
            _owner: owner,
            is_untracked: untrack,
        })
    }
}

fn lacks_expression(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::EINVAL)
    )
}

/// Requests that take effect together or not at all.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    requests: usize,
}

impl Batch {
    fn add(&mut self, kind: u16, flags: u16, fill: impl FnOnce(Message) -> Message) {
        if self.bytes.is_empty() {
            self.bytes = bracket(BATCH_BEGIN);
        }
        self.requests += 1;
        let message = Message::new(kind, NLM_F_REQUEST | NLM_F_ACK | flags, 1, INET, 0);
        self.bytes.extend(fill(message).finish());
    }

    fn add_chain(&mut self, table: &str, chain: &Chain) {
        self.add(NEW_CHAIN, NLM_F_CREATE, |message| {
            message
                .with_text(1, table)
                .with_text(3, chain.name)
                .with_nested(4, |hook| {
                    hook.with(1, &chain.hook.to_be_bytes())
                        .with(2, &chain.priority.to_be_bytes())
                })
                .with_text(7, "filter")
        });
    }

    fn add_rule(&mut self, table: &str, chain: &Chain, fill: impl FnOnce(Message) -> Message) {
        self.add(NEW_RULE, NLM_F_CREATE | NLM_F_APPEND, |message| {
            message
                .with_text(1, table)
                .with_text(2, chain.name)
                .with_nested(4, fill)
        });
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes.extend(bracket(BATCH_END));
        self.bytes
    }
}

fn bracket(kind: u16) -> Vec<u8> {
    Message::new(kind, NLM_F_REQUEST, 1, 0, NFTABLES).finish()
}

fn expression(rule: Message, name: &str, fill: impl FnOnce(Message) -> Message) -> Message {
    rule.with_nested(1, |element| element.with_text(1, name).with_nested(2, fill))
}

/// Goes on only if what `key` says of the packet compares as wanted with `value`.
fn compare(rule: Message, key: u32, operator: u32, value: &[u8]) -> Message {
    let register = REGISTER.to_be_bytes();
    let rule = expression(rule, "meta", |data| {
        data.with(1, &register).with(2, &key.to_be_bytes())
    });
    expression(rule, "cmp", |data| {
        data.with(1, &register)
            .with(2, &operator.to_be_bytes())
            .with_nested(3, |data| data.with(1, value))
    })
}

fn on_interface(rule: Message, key: u32, set: &RuleSet<'_>) -> Message {
    let mut name = [0; NAME_SIZE];
    for (to, from) in name.iter_mut().zip(set.interface.bytes()) {
        *to = from;
    }
    compare(rule, key, EQUAL, &name)
}

fn of_others(rule: Message, set: &RuleSet<'_>) -> Message {
    compare(rule, META_MARK, NOT_EQUAL, &set.mark.to_ne_bytes())
}

fn own(rule: Message, set: &RuleSet<'_>) -> Message {
    compare(rule, META_MARK, EQUAL, &set.mark.to_ne_bytes())
}

fn hand_over(rule: Message, set: &RuleSet<'_>, handover: Handover) -> Message {
    match handover {
        Handover::Expression => expression(rule, "queue", |data| {
            data.with(1, &set.queue.to_be_bytes())
                .with(2, &1_u16.to_be_bytes())
                .with(3, &BYPASS.to_be_bytes())
        }),
        Handover::Target => expression(rule, "target", |data| {
            // struct xt_NFQ_info_v3: number, total, flags; padded as the kernel's structures are.
            let mut info = [0; 8];
            info[..2].copy_from_slice(&set.queue.to_ne_bytes());
            info[2..4].copy_from_slice(&1_u16.to_ne_bytes());
            info[4..6].copy_from_slice(&BYPASS.to_ne_bytes());
            data.with_text(1, "NFQUEUE")
                .with(2, &3_u32.to_be_bytes())
                .with(3, &info)
        }),
    }
}
