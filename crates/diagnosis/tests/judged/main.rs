//! Captures of the simulator, whose outages are known, judged.
//!
//! Every case runs a scenario, takes the capture of one end of the link or of both, and compares what
//! is found with what the link did.

mod case;
mod outages;
mod quiet;
