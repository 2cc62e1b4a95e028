//! One file per subcommand.

pub(crate) mod agents;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
mod experiments;
pub(crate) mod guest_run;
pub(crate) mod hip;
pub(crate) mod kernels;
pub(crate) mod lab;
pub(crate) mod lab_in_guest;
pub(crate) mod lab_shell;
pub(crate) mod man;
pub(crate) mod mobile_ip;
pub(crate) mod notify;
pub(crate) mod papers;
pub(crate) mod reload;
pub(crate) mod run;
pub(crate) mod setup;
pub(crate) mod sim;
pub(crate) mod status;
pub(crate) mod sweep;
mod sweep_in_guests;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod trials;
