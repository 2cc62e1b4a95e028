//! Giving up what is not needed any more.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs,
};
use std::io;

/// Keeps, of the capabilities that the calling thread has, those that a gateway goes on to need
/// (`CAP_NET_ADMIN`, `CAP_NET_RAW`), and lets no program that it starts gain any.
///
/// # Errors
/// When the kernel refuses, which it does not by its documentation.
pub fn keep_network_capabilities() -> io::Result<()> {
    let kept = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    let sets = capabilities(None)?;
    let reduced = CapabilitySets {
        effective: sets.effective & kept,
        permitted: sets.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, reduced)?;
    Ok(set_no_new_privs(true)?)
}
