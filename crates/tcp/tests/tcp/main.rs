//! How an endpoint behaves, one file per behaviour.

#[macro_use]
mod common;

mod answers;
mod closing;
mod control;
mod cubic;
mod estimator;
mod fast_recovery;
mod half_close;
mod handshake;
mod handshake_errors;
mod hostile_peer;
mod judge;
mod kernel_traces;
mod profiles;
mod properties;
mod published_timeouts;
mod push;
mod reordering;
mod sack;
mod timeouts;
mod transfer;
mod user_timeout;
mod windows;
mod writes;
