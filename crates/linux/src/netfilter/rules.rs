//! The rules that hand an interface's packets to a queue.
//!
//! They are in a table of their own, which is owned by this process's socket
//! (`NFT_TABLE_F_OWNER`, Linux 5.12): nobody else can change it, and the kernel removes it when
//! the process ends, however it ends.

mod claim;
mod headers;
mod own_routes;
mod ranges;

pub use claim::Claim;
pub use headers::HeaderRules;
pub(crate) use own_routes::OwnRoutes;
pub use ranges::AddressRange;

use super::{ASKED, Conversation, Message, NetfilterError, may_administer};
use netlink_packet_core::{NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST};
use ranges::FAMILIES;
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
    kind: "filter",
    hook: 0,
    priority: -300,
};
const POST_ROUTING: Chain = Chain {
    name: "sent",
    kind: "filter",
    hook: 4,
    priority: 350,
};
/// Exempts this process's packets towards the link from connection tracking: they were tracked and translated before.
///
/// Packets that are sent as before their translation bear [`TRACKED`], and are tracked.
const LOCAL_OUT: Chain = Chain {
    name: "resent",
    kind: "filter",
    hook: 3,
    priority: -300,
};

/// Registers, keys and operators of expressions.
const REGISTER: u32 = 1;
const META_PRIORITY: u32 = 2;
const META_MARK: u32 = 3;
const META_IN_NAME: u32 = 6;
const META_OUT_NAME: u32 = 7;
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
const BYPASS: u16 = 1;

/// `SO_PRIORITY` of sockets whose packets are tracked although they bear the process's mark.
///
/// No queueing discipline has such a handle, so that the packets go where those without priority go.
pub const TRACKED: u32 = 0x4f55_0000;

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
    /// Which packets go there.
    pub scope: Scope<'a>,
}

/// Which of an interface's packets go to the queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope<'a> {
    /// All of them.
    Everything,
    /// Packets to and from these addresses beyond the interface.
    ///
    /// The addresses may be replaced by others.
    Ranges(&'a [AddressRange]),
}

/// What works on this kernel, as found when rules were installed.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    handover: Handover,
    untrack: bool,
}

/// Rules in force until the value is dropped, or the process ends.
#[derive(Debug)]
pub struct Rules {
    owner: Conversation,
    table: String,
    method: Method,
}

struct Chain {
    name: &'static str,
    /// Its type: "filter", or "route", which looks the route up again for a packet whose mark the chain has changed.
    kind: &'static str,
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
        let methods = [
            (Handover::Expression, true),
            (Handover::Target, true),
            (Handover::Expression, false),
            (Handover::Target, false),
        ];
        let mut outcome = Err(NetfilterError::Malformed("no method"));
        for (handover, untrack) in methods {
            outcome = Self::install_by(set, Method { handover, untrack });
            match &outcome {
                Err(NetfilterError::Refused { source, .. }) if lacks_expression(source) => {}
                _ => break,
            }
        }
        outcome
    }

    /// Puts the rules in force in the way that is known to work.
    ///
    /// # Errors
    /// As [`Self::install`].
    pub fn install_by(set: &RuleSet<'_>, method: Method) -> Result<Self, NetfilterError> {
        or_taken(set.table, Self::attempt(set, method))
    }

    /// How these rules were installed.
    #[must_use]
    pub const fn method(&self) -> Method {
        self.method
    }

    /// Lets the packets of other addresses go to the queue, in one step, where the scope was
    /// [`Scope::Ranges`].
    ///
    /// # Errors
    /// When the scope was another one, or the kernel is out of memory.
    pub fn replace(&mut self, ranges: &[AddressRange]) -> Result<(), NetfilterError> {
        let mut batch = Batch::default();
        for family in &FAMILIES {
            batch.flush_set(&self.table, family);
            batch.add_ranges(&self.table, family, ranges);
        }
        self.owner
            .ask(&batch.bytes(), batch.requests, "change rules of nftables")
    }

    /// Whether re-sent packets are exempt from connection tracking. Without that, a gateway that
    /// translates addresses may translate them twice.
    #[must_use]
    pub const fn is_untracked(&self) -> bool {
        self.method.untrack
    }

    fn attempt(set: &RuleSet<'_>, method: Method) -> Result<Self, NetfilterError> {
        let owner = Conversation::open()?;
        owner.enlarge().map_err(NetfilterError::Socket)?;
        let mut batch = Batch::default();
        batch.add(NEW_TABLE, NLM_F_CREATE | NLM_F_EXCL, |message| {
            message
                .with_text(1, set.table)
                .with(2, &TABLE_OWNER.to_be_bytes())
        });
        if let Scope::Ranges(ranges) = set.scope {
            for family in &FAMILIES {
                batch.add_set(set.table, family);
                batch.add_ranges(set.table, family, ranges);
            }
        }
        for (chain, key, end) in [
            (PRE_ROUTING, META_IN_NAME, End::Source),
            (POST_ROUTING, META_OUT_NAME, End::Destination),
        ] {
            batch.add_chain(set.table, &chain);
            match set.scope {
                Scope::Everything => batch.add_rule(set.table, &chain, |rule| {
                    hand_over(of_others(on_interface(rule, key, set), set), set, method)
                }),
                Scope::Ranges(_) => {
                    for family in &FAMILIES {
                        batch.add_rule(set.table, &chain, |rule| {
                            let rule = of_others(on_interface(rule, key, set), set);
                            hand_over(family.is_in_set(rule, end), set, method)
                        });
                    }
                }
            }
        }
        if method.untrack {
            batch.add_chain(set.table, &LOCAL_OUT);
            batch.add_rule(set.table, &LOCAL_OUT, |rule| {
                let rule = own(on_interface(rule, META_OUT_NAME, set), set);
                let rule = compare(rule, META_PRIORITY, NOT_EQUAL, &TRACKED.to_ne_bytes());
                expression(rule, "notrack", |data| data)
            });
        }
        owner.ask(&batch.bytes(), batch.requests, "add rules to nftables")?;
        Ok(Self {
            owner,
            table: set.table.into(),
            method,
        })
    }
}

/// The kernel says "not permitted" of what is another's, too.
fn or_taken<T>(table: &str, outcome: Result<T, NetfilterError>) -> Result<T, NetfilterError> {
    match outcome {
        Err(NetfilterError::NotPermitted { .. }) if may_administer() => {
            Err(NetfilterError::TableTaken { name: table.into() })
        }
        outcome => outcome,
    }
}

/// Which of a packet's addresses is beyond the interface.
#[derive(Clone, Copy, Debug)]
enum End {
    Source,
    Destination,
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
    messages: Vec<u8>,
    requests: usize,
}

impl Batch {
    fn add(&mut self, kind: u16, flags: u16, fill: impl FnOnce(Message) -> Message) {
        self.requests += 1;
        let flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let message = Message::new(kind, flags, ASKED, INET, 0);
        self.messages.extend(fill(message).finish());
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
                .with_text(7, chain.kind)
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

    fn bytes(&self) -> Vec<u8> {
        [
            bracket(BATCH_BEGIN).as_slice(),
            &self.messages,
            &bracket(BATCH_END),
        ]
        .concat()
    }
}

fn bracket(kind: u16) -> Vec<u8> {
    Message::new(kind, NLM_F_REQUEST, ASKED, 0, NFTABLES).finish()
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

fn hand_over(rule: Message, set: &RuleSet<'_>, method: Method) -> Message {
    hand_over_to(rule, set.queue, method.handover)
}

fn hand_over_to(rule: Message, queue: u16, handover: Handover) -> Message {
    match handover {
        Handover::Expression => expression(rule, "queue", |data| {
            data.with(1, &queue.to_be_bytes())
                .with(2, &1_u16.to_be_bytes())
                .with(3, &BYPASS.to_be_bytes())
        }),
        Handover::Target => expression(rule, "target", |data| {
            // struct xt_NFQ_info_v3: number, total, flags; padded as the kernel's structures are.
            let mut info = [0; 8];
            info[..2].copy_from_slice(&queue.to_ne_bytes());
            info[2..4].copy_from_slice(&1_u16.to_ne_bytes());
            info[4..6].copy_from_slice(&BYPASS.to_ne_bytes());
            data.with_text(1, "NFQUEUE")
                .with(2, &3_u32.to_be_bytes())
                .with(3, &info)
        }),
    }
}
