//! S. Schütz, L. Eggert, S. Schmid, M. Brunner, "Protocol Enhancements for Intermittently Connected
//! Hosts", ACM SIGCOMM Computer Communication Review 35(3), 2005: figures 10 to 13, in virtual time.
//!
//! In [`EXPERIMENT`] the readdressing of the Host Identity Protocol is a parameter, in [`BY_HIP`] it is packets; see
//! [`testbed`].

pub mod figure_13;
pub mod section_3_3;
pub mod single;
pub mod summary;
pub mod surface;
pub mod testbed;

use outlast_experiments::experiment::{Experiment, Extent};
use outlast_experiments::present;
use outlast_report::judgement::{Claim, Published, Tolerance};
use outlast_report::unit::Unit;
use std::borrow::Cow;

/// The figures of the paper.
pub static EXPERIMENT: Experiment = Experiment {
    name: "schuetz",
    title: "Intermittently connected hosts: the figures of Schütz and others",
    source: "S. Schütz, L. Eggert, S. Schmid, M. Brunner: Protocol Enhancements for Intermittently \
             Connected Hosts, 2005",
    measures: "What user timeouts and retransmission triggers make of disconnections up to 208 s",
    method,
    figures: &[
        &section_3_3::ExtraSegments,
        &surface::FIGURE_10,
        &surface::FIGURE_10_WITHOUT_QUEUE,
        &surface::FIGURE_11,
        &surface::FIGURE_12,
        &surface::FIGURE_12_EXPECTED,
        &surface::FIGURE_12_LINUX_6,
        &figure_13::FIGURE_13,
        &summary::Summary,
    ],
};

/// Figures 10 to 13 with HIP, whose readdressing is packets on the links.
pub static BY_HIP: Experiment = Experiment {
    name: "hip",
    title: "Intermittently connected hosts with HIP: the figures of Schütz and others",
    source: EXPERIMENT.source,
    measures: "What triggers make of disconnections up to 208 s when HIP's readdressing is packets",
    method: method_with_hip,
    figures: &[
        &surface::FIGURE_10_BY_HIP,
        &surface::FIGURE_11_BY_HIP,
        &surface::FIGURE_12_BY_HIP,
        &surface::FIGURE_12_TODAY,
        &figure_13::FIGURE_13_BY_HIP,
    ],
};

fn method(extent: Extent) -> Vec<String> {
    let mut method = method_of(testbed::method(), extent);
    method.push(
        "The tolerance of the least time with the trigger, 24 s, was taken away later: readdressing, which is given, and the link's \
         rate make 23 s of it."
            .to_owned(),
    );
    method.push(
        "What follows the trigger is the sender's congestion control. Linux 2.4 takes the outage for congestion: in the cell after 2 s \
         its window was 40 packets, as slow start had just overfilled the queue; the timeout halves that to 20, and five packets a \
         second more (Reno, 100 ms) need 13 s to fill a link that carries 85. After 20 s the window was 150, and half of it fills most of the link. Linux 6 leaves \
         slow start before the queue is full (HyStart): after 2 s it had 118 packets, keeps seven tenths of them (CUBIC), and has them \
         back half a second after the return."
            .to_owned(),
    );
    method
}

fn method_with_hip(extent: Extent) -> Vec<String> {
    method_of(testbed::method_with_hip(), extent)
}

fn method_of(testbed: String, extent: Extent) -> Vec<String> {
    vec![
        testbed,
        format!(
            "Figures 10 to 12 have {} lengths of the connected period, {} of the disconnected one, \
             and {} transfers of each pair; the phase of the hosts' timers is drawn for each.",
            single::connected(extent).len(),
            single::disconnected(extent).len(),
            single::transfers(extent),
        ),
        "Tolerances were set before anything was measured: 10 % for times that the paper reads off \
         its figures, none for shares and orders."
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
        "Schütz and others 2005",
        place,
        statement.into(),
        unit,
        published,
        tolerance,
    )
}
