//! Outlast's own experiments: how soon connections resume, what that costs, and what it withstands.
//!
//! | module | what lives there |
//! |---|---|
//! | [`aftermath`] | first bytes, five seconds and a later loss, with `hold`, nothing and a sysctl |
//! | [`auto_choice`] | what `auto` decides, against `hold` in every cell |
//! | [`field_matrix`] | what follows an outage at 1 to 400 Mbit/s with the default configuration |
//! | [`gateway_cost`] | what `outlast run` costs while its link is up |
//! | [`gateway_herd`] | 5,000 connections that come back at once, with `outlast run` on the gateway |
//! | [`gateway_matrix`] | resume time of real programs, with `outlast run` on the gateway |
//! | [`gateway_siege`] | honest transfers while the daemon is killed, and amid hostile packets |
//! | [`hold_channel`] | utilisation of a channel that is up a tenth of the time |
//! | [`hold_matrix`] | resume time by congestion control, SACK, direction, outage and placement |
//! | [`hip_cost`] | what HIP costs, beside WireGuard, and with many hosts at one server |
//! | [`hip_moves`] | programs through changes of address with HIP, without its trigger, and without HIP |
//! | [`host_matrix`] | resume time of a mobile host's uploads with an agent beside its TCP |
//! | [`kernels_vs_sim`] | the simulator beside packaged kernels in virtual time |
//! | [`lab_vs_sim`] | the simulator beside the kernel |
//! | [`live`] | what is done in a live run |
//! | [`middle_of_path`] | outages that are not next to the gateway, several at once, one inside another |
//! | [`mobile_ip_crowd`] | thousands of mobile nodes that move at once, in virtual time and live |
//! | [`mobile_ip_detection`] | how long hand-offs take with each way of movement detection |
//! | [`mobile_ip_matrix`] | resume time after a registration, with `hold` and the trigger and without |
//! | [`race`] | the same transfer over the same outages by everything that is said to help |
//! | [`strangers`] | QUIC, tunnels, real-time streams and DNS: what a gateway does for what it cannot read |
//! | [`host_cost`] | what the agent beside a host's TCP costs while nothing happens |
//! | [`supervisor_cost`] | what the supervisor host costs while its link is up, beside plain forwarding and a proxy |
//! | [`supervisor_half`] | resume time behind M-TCP's supervisor host, with the mobile's half and without it |
//! | [`supervisor_matrix`] | resume time behind M-TCP's supervisor host, beside `hold` |
//! | [`tunnel_cost`] | throughput and delay of Mobile IP's tunnels beside plain forwarding |
#![forbid(unsafe_code)]

pub mod aftermath;
pub mod auto_choice;
pub mod field_matrix;
pub mod gateway_cost;
pub mod gateway_herd;
pub mod gateway_matrix;
pub mod gateway_siege;
pub mod hip_cost;
pub mod hip_moves;
pub mod hold_channel;
pub mod hold_matrix;
pub mod host_cost;
pub mod host_matrix;
pub mod kernels_vs_sim;
pub mod lab_vs_sim;
pub mod live;
pub mod middle_of_path;
pub mod mobile_ip_crowd;
pub mod mobile_ip_detection;
pub mod mobile_ip_matrix;
mod moments;
pub mod race;
mod role;
pub mod strangers;
mod streams;
pub mod supervisor_cost;
pub mod supervisor_half;
pub mod supervisor_matrix;
mod transfer;
pub mod tunnel_cost;
mod usage;

use outlast_experiments::experiment::Experiment;

/// Every trial.
pub const ALL: &[&Experiment] = &[
    &hold_matrix::EXPERIMENT,
    &hold_channel::EXPERIMENT,
    &auto_choice::EXPERIMENT,
    &aftermath::IN_SIM,
    &aftermath::IN_GUESTS,
    &field_matrix::IN_SIM,
    &field_matrix::IN_LAB,
    &gateway_cost::EXPERIMENT,
    &gateway_matrix::EXPERIMENT,
    &gateway_herd::EXPERIMENT,
    &gateway_siege::EXPERIMENT,
    &supervisor_matrix::EXPERIMENT,
    &supervisor_half::EXPERIMENT,
    &supervisor_cost::EXPERIMENT,
    &host_matrix::EXPERIMENT,
    &host_cost::EXPERIMENT,
    &mobile_ip_matrix::EXPERIMENT,
    &mobile_ip_detection::EXPERIMENT,
    &tunnel_cost::EXPERIMENT,
    &mobile_ip_crowd::EXPERIMENT,
    &hip_moves::EXPERIMENT,
    &hip_cost::EXPERIMENT,
    &race::EXPERIMENT,
    &strangers::EXPERIMENT,
    &middle_of_path::EXPERIMENT,
    &lab_vs_sim::EXPERIMENT,
    &kernels_vs_sim::EXPERIMENT,
];
