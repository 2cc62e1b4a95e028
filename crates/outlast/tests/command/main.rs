//! The command as users run it, as far as it needs no network and no time of its own.

#[path = "../place/mod.rs"]
mod place;

mod cli;
mod corpus;
mod judgements;
mod kernels;
mod manual;
mod packaging;
mod setup;
mod sweep;
mod trace;
