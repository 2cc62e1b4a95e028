//! Section 4.3: the state of a connection that a hand-off moves between supervisor hosts.
//!
//! Agents of Outlast say it in one message. The message here has every field that is optional, and addresses of
//! IPv6, so that it is as long as such a message can be.

use super::claim;
use outlast_agents::Message;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_gateway::tracking::{Acquaintance, FlowKey, Half, SupervisedFlow, ToldWindow};
use outlast_report::judgement::{Measured, Published, Tolerance};
use outlast_report::unit::Unit;
use outlast_wire::SeqNumber;
use std::net::{Ipv6Addr, SocketAddr};

/// Bytes of a hand-off.
#[derive(Debug)]
pub struct State;

impl Figure for State {
    fn name(&self) -> &'static str {
        "section-4-3"
    }

    fn title(&self) -> &'static str {
        "Bytes that a hand-off between supervisor hosts moves for a connection"
    }

    /// None: a message is counted.
    fn jobs(&self, _extent: Extent) -> Vec<Job> {
        Vec::new()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let measured = runs.all().next().map(|_| longest().encode().len());
        Part::new("Section 4.3: bytes that a hand-off moves for a connection").claims(vec![
            claim(
                "section 4.3",
                "A hand-off between supervisor hosts moves no more than 500 bytes for a connection (the message of Outlast's \
                 agents, IPv6).",
                Unit::Bytes,
                Published::AtMost(500.0),
                Tolerance::Exact,
            )
            .judge(measured.map(|bytes| Measured::single(bytes as f64))),
        ])
    }
}

/// The message with all that it can hold.
fn longest() -> Message {
    let end = |last| SocketAddr::new(Ipv6Addr::from([last; 16]).into(), 443);
    let half = Half {
        allowed: Some(SeqNumber(7)),
        window_scale: Some(14),
        acquaintance: Acquaintance::Seen,
        fin: Some(SeqNumber(8)),
        ..Half::default()
    };
    Message::Supervised(Box::new(SupervisedFlow {
        flow: FlowKey {
            near: end(1),
            far: end(2),
        },
        near: half,
        far: half,
        clock: Some(1),
        echo: 2,
        told: SeqNumber(3),
        window: ToldWindow::Recovering {
            sent_before: SeqNumber(5),
            sent_since: SeqNumber(4),
        },
        is_refuted: true,
    }))
}
