//! Giving up what is not needed any more.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_no_new_privs,
};
use std::io;

/// What a gateway goes on to need.
const KEPT: CapabilitySet = CapabilitySet::NET_ADMIN.union(CapabilitySet::NET_RAW);

/// Keeps, of the capabilities that the calling thread has, those that a gateway goes on to need
/// (`CAP_NET_ADMIN`, `CAP_NET_RAW`), and lets no program that it starts gain any: no capability is
/// left in the inheritable, ambient and, where that is allowed, bounding sets, and no file may give
/// any (`no_new_privs`).
///
/// # Errors
/// When the kernel refuses, which it does not by its documentation.
pub fn keep_network_capabilities() -> io::Result<()> {
    let sets = capabilities(None)?;
    if sets.effective.contains(CapabilitySet::SETPCAP) {
        empty_bounding_set()?;
    }
    clear_ambient_capability_set()?;
    let reduced = CapabilitySets {
        effective: sets.effective & KEPT,
        permitted: sets.permitted & KEPT,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, reduced)?;
    Ok(set_no_new_privs(true)?)
}

/// Takes away every capability that a program could gain when it is started.
fn empty_bounding_set() -> io::Result<()> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(capability) {
            Ok(true) => remove_capability_from_bounding_set(capability)?,
            Ok(false) => {}
            // The kernel has no further ones.
            Err(Errno::INVAL) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
