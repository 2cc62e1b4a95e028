//! Hosts, links and gateways in one world, one file per claim.

mod support;

mod agents;
mod captures;
mod determinism;
mod flows;
mod hip;
mod one_end;
mod placement;
mod profiles;
mod properties;
mod resume;
mod reunion;
mod roaming;
mod silence;
mod told_resumes;
mod topology;
