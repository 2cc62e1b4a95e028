//! Scenarios in the simulator, one file per mechanism.

mod handover;
mod hip;
mod m_tcp;
mod mobile_ip;
mod scenario;
mod supervisors;
