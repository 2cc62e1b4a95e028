//! Published figures and tables, and experiments of our own: run on the live lab or in virtual time,
//! judged by their numbers, and presented.
//!
//! An [`Experiment`] is a declaration: which runs its figures need, what was claimed beforehand, and
//! how the numbers are shown. [`run::run`] carries the runs out, many at once, and stores each as
//! soon as it is done; [`page::page`] makes the report of what is stored, now or later.
//!
//! | module | what lives there |
//! |---|---|
//! | [`experiment`] | what an experiment is, and the list of them |
//! | [`job`] | one run of a scenario, before it is carried out |
//! | [`batch`] | many runs at once |
//! | [`record`] | one run, after it was carried out |
//! | [`store`] | the files that hold the runs |
//! | [`page`] | the report |
//! | [`caceres_iftode`] | figures of "Improving the Performance of Reliable Transport Protocols in Mobile Computing Environments" |
//! | [`schuetz`] | figures of "Protocol Enhancements for Intermittently Connected Hosts" |
//! | [`scott_mapp`] | figures of "Link Layer-Based TCP Optimisation for Disconnecting Networks" |
//! | [`thesis`] | tables of a thesis on TCP over Mobile IP |
//! | [`auto_choice`] | what `auto` decides, against `hold` in every cell |
//! | [`field_matrix`] | what follows an outage at 1 to 400 Mbit/s with the default configuration |
//! | [`hold_matrix`] | resume time by congestion control, SACK, direction, outage and placement |
//! | [`gateway_cost`] | what `outlast run` costs while its link is up |
//! | [`gateway_matrix`] | resume time of real programs, with `outlast run` on the gateway |
//! | [`gateway_herd`] | 5,000 connections that come back at once, with `outlast run` on the gateway |
//! | [`gateway_siege`] | honest transfers while the daemon is killed, and amid hostile packets |
//! | [`hold_channel`] | utilisation of the paper's channel |
//! | [`lab_vs_sim`] | the simulator beside the kernel |
#![forbid(unsafe_code)]

pub mod auto_choice;
pub mod batch;
pub mod caceres_iftode;
pub mod carry_out;
pub mod diagram;
pub mod experiment;
pub mod field_matrix;
pub mod gateway_cost;
pub mod gateway_herd;
pub mod gateway_matrix;
pub mod gateway_siege;
pub mod hold_channel;
pub mod hold_matrix;
pub mod job;
pub mod lab_vs_sim;
pub mod live;
pub mod moments;
pub mod page;
mod present;
pub mod record;
pub mod run;
pub mod schuetz;
pub mod scott_mapp;
pub mod setting;
pub mod store;
pub mod thesis;

pub use experiment::{ALL, Experiment, Extent, Figure, named};
