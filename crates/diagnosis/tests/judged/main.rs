//! Captures of the simulator, whose outages are known, judged.
//!
//! Every case takes the capture of one end of the link or of both, and compares what
//! is found with what the link and the hosts did. [`truth`] has the rule for causes.

mod case;
mod causes;
mod outages;
mod pair;
mod quiet;
mod stalls;
mod truth;
mod tshark;
