//! Runs of the lab on this machine's kernel.
//!
//! They are one program, so that what waits for outages waits together.

mod support;

mod agent;
mod capture;
mod commands;
mod concurrent;
mod conversations;
mod cross_traffic;
mod flows;
mod hops;
mod killed;
mod limits;
mod outage;
mod roaming;
mod transfer;
