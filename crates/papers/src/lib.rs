//! Published figures and tables, with what was claimed and what is measured.
//!
//! | module | what lives there |
//! |---|---|
//! | [`caceres_iftode`] | figures of "Improving the Performance of Reliable Transport Protocols in Mobile Computing Environments" |
//! | [`catalogue`] | every figure, table and claim of the works, with what reproduces each |
//! | [`judgements`] | the judgements as they are recorded |
//! | [`schuetz`] | figures of "Protocol Enhancements for Intermittently Connected Hosts" |
//! | [`scott_mapp`] | figures of "Link Layer-Based TCP Optimisation for Disconnecting Networks" |
//! | [`m_tcp`] | figures of "M-TCP: TCP for Mobile Cellular Networks" |
//! | [`thesis`] | tables of a thesis on TCP over Mobile IP |
#![forbid(unsafe_code)]

pub mod caceres_iftode;
pub mod catalogue;
pub mod judgements;
pub mod m_tcp;
pub mod schuetz;
pub mod scott_mapp;
pub mod thesis;

use outlast_experiments::experiment::Experiment;

/// Every experiment on published figures.
pub const ALL: &[&Experiment] = &[
    &scott_mapp::EXPERIMENT,
    &scott_mapp::IN_SIM,
    &caceres_iftode::EXPERIMENT,
    &m_tcp::EXPERIMENT,
    &schuetz::EXPERIMENT,
    &schuetz::BY_HIP,
    &thesis::TIMEOUTS,
    &thesis::HANDOFF,
    &thesis::HELP,
    &thesis::MOBILE_IP,
];
