//! K. Brown and S. Singh, "M-TCP: TCP for Mobile Cellular Networks", 1997: figures 7 to 13 and
//! table 1, 15, 16, the right half of 17, and 18 in virtual time; 14 and the left half of 17 on this machine.
//!
//! The figures of the paper are drawings without numbers; what its text says of them is held against
//! ours. What differs from the paper's testbed is said in [`testbed`].

pub mod behaviour;
pub mod codec;
pub mod compressed;
pub mod detection;
pub mod modern;
pub mod near_sender;
pub mod processing;
pub mod receives;
pub mod section_6_1;
pub mod send_buffer;
pub mod split;
pub mod state;
pub mod testbed;
mod timing;
pub mod transfers;
pub mod undisturbed;

use outlast_experiments::experiment::{Experiment, Extent};
use outlast_experiments::present;
use outlast_report::judgement::{Claim, Published, Tolerance};
use outlast_report::unit::Unit;
use std::borrow::Cow;

/// The figures of the paper.
pub static EXPERIMENT: Experiment = Experiment {
    name: "m-tcp",
    title: "M-TCP: the figures of Brown and Singh",
    source: "K. Brown, S. Singh: M-TCP: TCP for Mobile Cellular Networks, 1997",
    measures: "What a supervisor host that closes the sender's window makes of transfers to a mobile",
    method,
    figures: &[
        &split::Split,
        &state::State,
        &near_sender::NearSender,
        &transfers::FAR_SENDER,
        &section_6_1::Section61,
        &transfers::LONG_CELLS,
        &detection::ByDetection,
        &receives::Receives,
        &codec::Times,
        &compressed::NEAR,
        &compressed::FAR,
        &processing::Processing,
        &send_buffer::SendBuffer,
        &undisturbed::Undisturbed,
        &behaviour::Table1,
        &modern::Modern,
    ],
};

fn method(extent: Extent) -> Vec<String> {
    vec![
        testbed::METHOD.to_owned(),
        format!(
            "{} transfers for each cell, with other outages each; the paper has 10. The 95 % intervals \
             are those of Student's t. Transfers that did not complete are counted and left out of the \
             means, as in the paper.",
            testbed::trials(extent)
        ),
        "The optimum is the paper's: the wireless link is the bottleneck, and every connected moment is \
         used. Here it counts whole packets with their headers, one behind the other over the outages \
         of the very same run: a packet that an outage cuts is sent again."
            .to_owned(),
    ]
}

/// A statement of the paper.
fn claim(
    place: &'static str,
    statement: impl Into<Cow<'static, str>>,
    unit: Unit,
    published: Published,
    tolerance: Tolerance,
) -> Claim {
    present::claim(
        "Brown and Singh 1997",
        place,
        statement.into(),
        unit,
        published,
        tolerance,
    )
}
