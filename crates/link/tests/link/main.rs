//! How a link behaves, one file per behaviour.

mod fixture;

mod conservation;
mod damage;
mod determinism;
mod ideal;
mod order;
mod outages;
mod queue;
mod rate;
mod schedule;
mod traces;
