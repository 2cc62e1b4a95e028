//! The Host Identity Protocol between hosts in virtual time, one file per claim.

mod common;

mod exchange;
mod first_flight;
mod flood;
mod foreign;
mod forgeries;
mod forgetting;
mod hostile;
mod judges;
mod local_scope;
mod opportunistic;
mod readdress;
mod recorded;
mod rekey;
mod restart;
mod segments;
mod timestamps;
mod volume;
