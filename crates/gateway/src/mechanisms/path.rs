//! Mechanisms on the path: they see the packets of both directions at one end of a link.

mod acknowledge_ahead;
mod auto;
mod far_host_proxy;
mod hold;
mod m_tcp;
mod near_host_proxy;
mod retransmission_cache;
mod smart_link;
mod unreachable;
mod zero_window_ack;

use crate::counters::Counters;
use crate::limits::{Budget, Limits};
use crate::links::{Direction, StateSince};
use crate::release::Allotment;
use crate::tracking::{FlowKey, Observation, TcpFlow};
use alloc::boxed::Box;
use core::fmt;
use core::fmt::Debug;
use outlast_base::time::{Duration, Instant};
use outlast_wire::Packet;

pub(crate) use far_host_proxy::newer as newer_stamp;
pub(crate) use hold::Retention;
pub use hold::{HoldRule, HoldRules};
pub(crate) use m_tcp::MTcp;
pub(crate) use near_host_proxy::NearHostProxy;
pub use smart_link::Level;
pub(crate) use unreachable::unreachable_from;
pub(crate) use zero_window_ack::ZeroWindowAck;

/// A path mechanism, chosen at run time.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum PathMechanismKind {
    /// Nothing: packets pass, and what the link drops is lost.
    #[default]
    None,
    /// One kept packet per connection (Scott and Mapp, levels 1 to 4).
    SmartLink(Level),
    /// Everything that the link dropped or would have dropped.
    Hold,
    /// One retransmission per connection that found the mobile away (a thesis on TCP over Mobile
    /// IP, section 5.3).
    RetransmissionCache,
    /// One segment per connection acknowledged for the mobile, with window zero (section 5.4).
    /// Acknowledges what the mobile has not.
    ZeroWindowAck,
    /// Everything that the link drops is kept and acknowledged for the mobile, with window zero.
    /// Acknowledges what the mobile has not.
    AcknowledgeAhead,
    /// M-TCP's supervisor host: a byte of each acknowledgement is withheld, and closes the sender's
    /// window in an outage (Brown and Singh).
    MTcp,
    /// M-TCP's supervisor host, but for senders that show that a window which shrinks does not stop them.
    MTcpAdaptive,
    /// For each connection the least that works, by what it shows.
    Auto,
}

/// What an operator should know of a mechanism before switching it on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Info {
    /// Its name in scenario files and configuration.
    pub name: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Whether it may acknowledge what the mobile has not.
    pub acknowledges_ahead: bool,
}

impl PathMechanismKind {
    /// Every mechanism, from the least to the most that it does.
    pub const ALL: [Self; 12] = [
        Self::None,
        Self::SmartLink(Level::One),
        Self::SmartLink(Level::Two),
        Self::SmartLink(Level::Three),
        Self::SmartLink(Level::Four),
        Self::RetransmissionCache,
        Self::Auto,
        Self::Hold,
        Self::MTcp,
        Self::MTcpAdaptive,
        Self::ZeroWindowAck,
        Self::AcknowledgeAhead,
    ];

    /// Name, source and promise.
    #[must_use]
    pub const fn info(self) -> Info {
        match self {
            Self::None => Info {
                name: "none",
                source: "RFC 9293",
                summary: "the control: every packet takes its chance",
                acknowledges_ahead: false,
            },
            Self::SmartLink(level) => level.info(),
            Self::Hold => hold::INFO,
            Self::RetransmissionCache => retransmission_cache::INFO,
            Self::ZeroWindowAck => zero_window_ack::INFO,
            Self::AcknowledgeAhead => acknowledge_ahead::INFO,
            Self::MTcp => m_tcp::INFO,
            Self::MTcpAdaptive => m_tcp::BY_EVIDENCE,
            Self::Auto => auto::INFO,
        }
    }

    /// The mechanism's part in one flow.
    pub(crate) fn for_flow(self) -> Option<Box<dyn PathMechanism>> {
        match self {
            Self::None => None,
            Self::SmartLink(level) => Some(level.for_flow()),
            Self::Hold => Some(Box::<hold::Hold>::default()),
            Self::RetransmissionCache => {
                Some(Box::<retransmission_cache::RetransmissionCache>::default())
            }
            Self::ZeroWindowAck => Some(Box::<ZeroWindowAck>::default()),
            Self::AcknowledgeAhead => Some(Box::<acknowledge_ahead::AcknowledgeAhead>::default()),
            Self::MTcp => Some(Box::<MTcp>::default()),
            Self::MTcpAdaptive => Some(Box::new(MTcp::by_evidence())),
            Self::Auto => Some(Box::<auto::Auto>::default()),
        }
    }

    /// Whether it asks a far host after an outage whether that waits for a timeout, as `hold` does and what is made of it.
    pub(crate) const fn asks(self) -> bool {
        matches!(self, Self::Hold | Self::AcknowledgeAhead | Self::Auto)
    }

    /// Whether datagrams and other traffic are kept while the link is down.
    pub(crate) const fn holds_other_traffic(self) -> bool {
        matches!(
            self,
            Self::Hold | Self::AcknowledgeAhead | Self::MTcp | Self::MTcpAdaptive | Self::Auto
        )
    }
}

impl fmt::Display for PathMechanismKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)
    }
}

/// What happens to a packet that the gateway was shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub enum Verdict {
    /// The driver forwards it, untouched.
    Pass,
    /// The gateway has it; the driver does not forward it.
    Taken(TakeReason),
}

/// Why the gateway took a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TakeReason {
    /// The link is down: it is sent at reconnection.
    LinkDown,
    /// It waits its turn behind what was kept.
    BehindKept,
    /// It waits for its connection's share of the link's rate.
    AwaitsShare,
    /// The gateway re-sent this segment less than a round-trip time ago.
    JustResent,
    /// It is dropped: by one loss its sender hears that the link's queue is full.
    FullQueue,
    /// It says nothing but that the gateway's own probe has arrived.
    AnswersProbe,
    /// It is an answer to what was kept, and waits for more of these.
    Gathered,
    /// It echoes a timestamp from before the outage: what it says goes first without.
    StaleEcho,
    /// It goes on with a fresh timestamp instead of an echo from before the outage.
    Freshened,
    /// A supervisor host answers it, or passes it on with another acknowledgement.
    Supervised,
}

/// Why the gateway sends a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SendReason {
    /// The newest acknowledgement, which the link dropped.
    NewestAck,
    /// What the near host has, without timestamps: they would tell the far host of a round trip as long as the outage.
    Untimed,
    /// It has waited in the gateway: while the link was down, or for its turn.
    Kept,
    /// It has waited for its connection's share of the link's rate.
    Share,
    /// It was on the link when it went down, and is not acknowledged.
    Unacknowledged,
    /// The flow does not move yet: the kick is repeated.
    RepeatedKick,
    /// The kept packet of the smart link layer.
    SmartLink,
    /// The retransmission that found the mobile away.
    CachedRetransmission,
    /// Acknowledges for the far host and closes its window, so that the sender waits.
    WindowClosed,
    /// The far host can be reached again: the window that it had offered is open.
    WindowOpened,
    /// The far host never acknowledged what was acknowledged for it: the connection is over.
    Reset,
    /// The last acknowledgement, for a sender to measure its round trip while the link is down.
    Nudge,
    /// The last acknowledgement, for a sender to fill the hole of which nobody else has a copy.
    Duplicate,
    /// The newest of the answers to what was kept.
    Gathered,
    /// The far host's, with a fresh timestamp instead of an echo from before the outage.
    Fresh,
    /// Asks a silent link whether it is back: a keep-alive in the near host's name.
    Probe,
    /// Asks the far host whether it has sent what is lost: such a keep-alive, too.
    Question,
    /// Asks a far host that is late with its answer, by such a keep-alive: the link is suspected from then on.
    Overdue,
    /// An ICMP error to a sender that waits for its timeout: it takes a back-off back (RFC 6069).
    Unreachable,
    /// An ICMP error to a sender whose path takes smaller packets only since the link is back (RFC 1191, RFC 8201).
    TooBig,
    /// An acknowledgement of the far host's, as far and with the window as a supervisor host passes it on.
    Supervised,
    /// An offer to compress, or its answer, which goes beside what the gateway sends.
    Compression,
}

/// A packet that a mechanism wants sent now.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) direction: Direction,
    pub(crate) packet: Packet,
    pub(crate) reason: SendReason,
}

/// What a mechanism says of its part in one flow, for whoever watches.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Account {
    /// The mechanism that this flow has, where the one that was asked for chose it.
    pub chosen: Option<&'static str>,
    /// Why it does what it does; empty where there is nothing to say.
    pub why: &'static str,
    /// Whether it has acknowledged something that the far host has not: there is no other copy.
    pub acknowledged_ahead: bool,
}

/// What a mechanism has waiting for the link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Waiting {
    /// A small packet that goes before all data.
    Urgent,
    /// Data of a link that was away, in its turn.
    Data,
    /// Data that waits outside of an episode: it came after the link's return, or is sent for its sender.
    InLine,
}

/// What a mechanism is told with every call.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    /// The connection's addresses and ports.
    pub(crate) key: &'a FlowKey,
    /// The connection, as tracked after the packet at hand.
    pub(crate) flow: &'a TcpFlow,
    pub(crate) link: StateSince,
    /// Nothing comes from the link although it owes an answer; nobody has said that it is down.
    pub(crate) is_suspected: bool,
    /// The link came back, and the first answers come: new data goes no faster than what was kept.
    pub(crate) is_paced: bool,
    /// What of the link's rate the connection gets, if that is shared out.
    pub(crate) allotment: Option<Allotment>,
    /// What the near host has said last.
    pub(crate) near_host_proxy: NearHostProxy,
    /// Whether both hosts permit selective acknowledgements; `None` if no SYN was seen.
    pub(crate) sack: Option<bool>,
    /// Which rules `hold` obeys.
    pub(crate) rules: HoldRules,
    /// What `hold` may not let go of, where another mechanism is made of it.
    pub(crate) retention: Retention,
    pub(crate) limits: &'a Limits,
    pub(crate) budget: &'a mut Budget,
    pub(crate) counters: &'a mut Counters,
    /// Bytes of ICMP errors that may go out after this return to hosts of which it is not known that they wait.
    pub(crate) unasked: &'a mut u64,
    /// Set to how long after link-up the flow resumed, once it has.
    pub(crate) resumed: &'a mut Option<Duration>,
    /// Bytes of which the far host now says selectively that they have arrived.
    pub(crate) arrived: &'a mut u32,
    /// Set to what goes on at once in the place of the packet at hand, or before it: where to, and why.
    pub(crate) instead: &'a mut Option<(Direction, Packet, SendReason)>,
}

/// A mechanism's part in one flow. Every packet it is shown is plausible and of a connection
/// that was seen in both directions.
pub(crate) trait PathMechanism: Debug + Send {
    /// A segment crosses.
    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        direction: Direction,
        packet: &Packet,
        observation: Observation,
    ) -> Verdict;

    /// The link says that it dropped this segment, which had passed towards it.
    fn handle_drop(&mut self, cx: &mut Context<'_>, packet: &Packet);

    /// The flow's link went up or down.
    fn handle_link(&mut self, cx: &mut Context<'_>);

    /// The deadline has come.
    fn handle_timeout(&mut self, cx: &mut Context<'_>);

    /// What waits for the link.
    fn waiting(&self) -> Option<Waiting>;

    /// The next packet that waits.
    fn poll_transmit(&mut self, cx: &mut Context<'_>) -> Option<Outgoing>;

    /// When it wants [`Self::handle_timeout`].
    fn poll_timeout(&self) -> Option<Instant>;

    /// What it does, and why.
    fn account(&self) -> Account {
        Account::default()
    }

    /// Whether a new one in its place would do as well: nothing is kept, owed, or worth remembering.
    /// Asked when the flow has been quiet for a while and its link is up.
    fn may_rest(&self, _now: Instant, _flow: &TcpFlow) -> bool {
        false
    }

    /// The flow has been quiet for a while, its link is up, and it may not rest altogether: what it
    /// keeps takes as little memory as it can.
    fn rest(&mut self, _budget: &mut Budget) {}

    /// Gives all memory back: the flow is gone.
    fn release(&mut self, budget: &mut Budget);

    /// Whether the far host was acknowledged for.
    fn standing(&self) -> Standing {
        Standing::Running
    }

    /// A reset for the near and for the far host, of a connection that ends here with something
    /// acknowledged that the far host lacks; `None` if it lacks nothing that was.
    fn resets(&self, _flow: &TcpFlow) -> Option<[Packet; 2]> {
        None
    }

    /// The mechanism whose frozen connections another gateway can take over.
    fn zero_window_ack(&mut self) -> Option<&mut ZeroWindowAck> {
        None
    }

    /// The mechanism whose supervised connections another gateway can take over.
    fn m_tcp(&mut self) -> Option<&mut MTcp> {
        None
    }
}

/// What a mechanism that acknowledges ahead has made of a connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Standing {
    /// Only the far host has acknowledged.
    #[default]
    Running,
    /// One segment was acknowledged for the far host, and is kept.
    Frozen,
    /// That segment was given up: both hosts are told so.
    Broken,
}
