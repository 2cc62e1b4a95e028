//! J. Scott and G. Mapp, "Link Layer-Based TCP Optimisation for Disconnecting Networks", ACM SIGCOMM
//! Computer Communication Review 33(5), 2003: figures 1, 5 to 11 and 14, on this machine's
//! kernel and, at the paper's full parameters, in virtual time.
//!
//! Figures 12 and 13 repeat 5 and 6 on the authors' hardware prototype, in virtual time only. What differs
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
pub mod figure_stacks;
pub mod interactive;
pub mod prototype;
pub mod section_1;
pub mod sweep;
pub mod testbed;
pub mod traces;

use self::testbed::Testbed;
use outlast_experiments::experiment::{Experiment, Extent};
use outlast_experiments::present;
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
    method: |extent| method(Testbed::Lab, extent),
    figures: &[
        &figure_01::Figure01 { bed: LAB },
        &figure_05::Figure05 { bed: LAB },
        &figure_06::Figure06 { bed: LAB },
        &figure_07::Figure07 { bed: LAB },
        &figure_08::Figure08 { bed: LAB },
        &figure_09::Figure09 { bed: LAB },
        &figure_10::Figure10 { bed: LAB },
        &figure_11::Figure11 { bed: LAB },
        &figure_hold::FigureHold { bed: LAB },
        &figure_14::Figure14 { bed: LAB },
    ],
};

/// Scott and Mapp's figures in virtual time, at the paper's full parameters.
pub static IN_SIM: Experiment = Experiment {
    name: "scott-mapp-sim",
    title: "Smart link layer: the figures of Scott and Mapp, in virtual time",
    source: EXPERIMENT.source,
    measures: EXPERIMENT.measures,
    method: |extent| method(Testbed::OF_THE_PAPER, extent),
    figures: &[
        &section_1::Section1,
        &figure_01::Figure01 { bed: SIM },
        &figure_05::Figure05 { bed: SIM },
        &figure_06::Figure06 { bed: SIM },
        &figure_07::Figure07 { bed: SIM },
        &figure_08::Figure08 { bed: SIM },
        &figure_09::Figure09 { bed: SIM },
        &figure_10::Figure10 { bed: SIM },
        &figure_11::Figure11 { bed: SIM },
        &figure_hold::FigureHold { bed: SIM },
        &prototype::Figure12,
        &prototype::Figure13,
        &figure_14::Figure14 { bed: SIM },
        &figure_stacks::FigureStacks,
    ],
};

const LAB: Testbed = Testbed::Lab;
const SIM: Testbed = Testbed::OF_THE_PAPER;

fn method(bed: Testbed, extent: Extent) -> Vec<String> {
    let mut paragraphs = vec![channel::method(bed)];
    paragraphs.extend(bed.method(extent));
    paragraphs.push(
        "Every series meets the same outages: a trial has the same seed in all of them. Levels 1 \
         to 4 and `hold` work at both ends of the link, as in the paper."
            .to_owned(),
    );
    paragraphs.push(
        "Levels 1 and 2 act only if the host has handed a packet to the link layer while the link \
         was down: so the \"send attempt [...] during the disconnected period\" of section 4.2 is \
         read. A packet that was in the queue when the link went down is none, and after an outage \
         shorter than the sender's timeout both do nothing. In virtual time both come out alike: a \
         sender that has timed out takes repeated acknowledgements for no sign of loss (section \
         5.4), so that four more of them change nothing."
            .to_owned(),
    );
    paragraphs
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
