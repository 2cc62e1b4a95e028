//! Mobile IP in virtual time: agents and mobile nodes over links with faults, and who judges what they send.

mod network;
mod network_v6;

mod attackers;
mod crowd;
mod detection;
mod faults;
mod judge;
mod peers;
mod registration;
mod security;
mod v6_correspondents;
mod v6_faults;
mod v6_home;
mod v6_judge;
