//! How agents freeze, hand over and restore connections, one file per claim.

mod network;
mod there;

mod codec;
mod contradictions;
mod crashes;
mod handover;
mod properties;
mod reconfigure;
mod restoring;
mod supervising;
mod telling;
