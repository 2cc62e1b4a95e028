//! J. Scott and G. Mapp, "Link Layer-Based TCP Optimisation for Disconnecting Networks", ACM SIGCOMM
//! Computer Communication Review 33(5), 2003: figures 1, 5 to 11 and 14 on this machine's kernel.
//!
//! Figures 12 and 13 repeat 5 and 6 on the authors' hardware prototype and are left out. What differs
//! from the paper's testbed is said where it happens: [`channel`] for the link, [`interactive`] for
//! the updates.

pub mod channel;
pub mod figure_01;
pub mod figure_05;
pub mod figure_06;
pub mod figure_07;
pub mod figure_08;
pub mod figure_09;
pub mod figure_10;
pub mod figure_11;
pub mod figure_14;
pub mod figure_hold;
pub mod interactive;
pub mod sweep;
pub mod traces;

use crate::experiment::{Experiment, Extent};
use crate::present;
use outlast_report::judgement::{Claim, Published, Tolerance};
use outlast_report::unit::Unit;
use std::borrow::Cow;

/// The figures of the paper.
pub static EXPERIMENT: Experiment = Experiment {
    name: "scott-mapp",
    title: "Smart link layer: the figures of Scott and Mapp",
    source: "J. Scott, G. Mapp: Link Layer-Based TCP Optimisation for Disconnecting Networks, 2003",
    measures: "Transfers and updates over a link that comes and goes, at the paper's levels 0 to 4 \
               and with `hold`",
    method,
    figures: &[
        &figure_01::Figure01,
        &figure_05::Figure05,
        &figure_06::Figure06,
        &figure_07::Figure07,
        &figure_08::Figure08,
        &figure_09::Figure09,
        &figure_10::Figure10,
        &figure_11::Figure11,
        &figure_hold::FigureHold,
        &figure_14::Figure14,
    ],
};

fn method(extent: Extent) -> Vec<String> {
    vec![
        channel::method(extent),
        "Every series meets the same outages: a trial has the same seed in all of them. Levels 1 \
         to 4 and `hold` work at both ends of the link, as in the paper. The TCP is this machine's \
         Linux with its defaults (CUBIC, SACK, timestamps, RACK and tail loss probes), where the \
         paper had one of its time."
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
        "Scott and Mapp 2003",
        place,
        statement.into(),
        unit,
        published,
        tolerance,
    )
}

/// The same statement, with why a modern kernel may differ.
fn departing(claim: Claim, departure: &'static str) -> Claim {
    Claim {
        departure: Some(departure.into()),
        ..claim
    }
}
