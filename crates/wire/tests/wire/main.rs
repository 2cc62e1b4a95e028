//! Packets and capture files, one file per format or claim.

mod common;

mod arbitrary;
mod build;
mod capture;
mod compressed;
mod edit;
mod hip;
mod icmp;
mod mobile_ip;
mod mobile_ipv6;
mod options;
mod parse;
mod pcapng;
mod roundtrip;
mod segment;
mod translation;
