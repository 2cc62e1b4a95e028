//! Registration and rendezvous (RFC 8003; RFC 8004).
//!
//! A server forwards I1 and UPDATE packets for its clients, with the sender's address in FROM and
//! a MAC under the client's key. A client registers in the base exchange and renews by UPDATE.

use crate::addresses::Path;
use crate::event::Refusal;
use crate::session::Session;
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::Duration;
use outlast_wire::hip::{
    Builder, Message, RegInfo, RegItems, from_address, kind, write_from_address,
};

/// The coded lifetime that this crate asks for and grants: 2^((x - 64) / 8) seconds, so 1,024 s.
const LIFETIME: u8 = 144;

/// For so long a registration is granted, in seconds: what [`LIFETIME`] stands for.
const LIFETIME_SECONDS: u64 = 1024;

/// REG_FAILED: this service is not offered (RFC 8003, section 4.5).
const UNAVAILABLE: u8 = 1;

/// What a server offers in R1.
pub(crate) fn offer() -> RegInfo {
    RegInfo {
        min_lifetime: LIFETIME,
        max_lifetime: LIFETIME,
        types: alloc::vec![RegItems::RENDEZVOUS],
    }
}

fn rendezvous(head: u8) -> RegItems {
    RegItems {
        head,
        types: alloc::vec![RegItems::RENDEZVOUS],
    }
}

/// Asks for a registration.
pub(crate) fn push_request(builder: &mut Builder) {
    builder.push_with(kind::REG_REQUEST, |out| rendezvous(LIFETIME).write(out));
}

/// Grants or refuses a registration.
pub(crate) fn push_response(builder: &mut Builder, is_granted: bool) {
    if is_granted {
        builder.push_with(kind::REG_RESPONSE, |out| rendezvous(LIFETIME).write(out));
    } else {
        builder.push_with(kind::REG_FAILED, |out| rendezvous(UNAVAILABLE).write(out));
    }
}

/// Whether a peer asks for a registration.
pub(crate) fn wants_registration(message: &Message<'_>) -> bool {
    let request = message.find(kind::REG_REQUEST);
    let request = request.and_then(|request| RegItems::parse(request.contents).ok());
    request.is_some_and(|request| request.types.contains(&RegItems::RENDEZVOUS))
}

/// The lifetime of the registration that a server grants.
pub(crate) fn granted(message: &Message<'_>) -> Option<Duration> {
    let response = message.find(kind::REG_RESPONSE)?;
    let response = RegItems::parse(response.contents).ok()?;
    let is_ours = response.types.contains(&RegItems::RENDEZVOUS);
    (is_ours && response.head > 0).then(|| lifetime(response.head))
}

/// The time that a coded lifetime stands for: at most a day, at least some seconds.
fn lifetime(coded: u8) -> Duration {
    let power = u32::from(coded.saturating_sub(64)) / 8;
    Duration::from_secs(1_u64 << power.clamp(4, 16))
}

/// How long a server keeps a registration.
pub(crate) const fn kept() -> Duration {
    Duration::from_secs(LIFETIME_SECONDS)
}

/// A packet for a client, with FROM and RVS_HMAC appended.
pub(crate) fn forwarded(client: &Session, message: &Message<'_>, from: IpAddr) -> Option<Vec<u8>> {
    // Nothing may follow these two but VIA_RVS, and no server has been there before.
    if message.find(kind::FROM).is_some() || message.find(kind::RVS_HMAC).is_some() {
        return None;
    }
    let mut builder = Builder::continuing(message.bytes(), kind::FROM);
    builder.push_with(kind::FROM, |out| write_from_address(out, from));
    let keys = &client.keying.keys.own;
    let mac = client
        .keying
        .rhash
        .mac(&keys.integrity, &[&builder.covered()]);
    builder.push(kind::RVS_HMAC, &mac);
    builder.finish()
}

/// The address of the sender of a packet that the server of `session` has forwarded.
pub(crate) fn sender(session: &Session, message: &Message<'_>) -> Result<IpAddr, Refusal> {
    let from = message.find(kind::FROM).ok_or(Refusal::Parameter)?;
    let mac = message.find(kind::RVS_HMAC).ok_or(Refusal::Parameter)?;
    let covered = message.covered_before(&mac);
    let keys = &session.keying.keys.peer;
    let is_right = session
        .keying
        .rhash
        .mac_is_right(&keys.integrity, &[&covered], mac.contents);
    let address = from_address(from.contents).ok_or(Refusal::Malformed)?;
    is_right.then_some(address).ok_or(Refusal::Mac)
}

/// Where a server sends what it forwards: only to where the client was seen.
pub(crate) fn path(
    client: &mut Session,
    now: outlast_base::time::Instant,
    locals: &[IpAddr],
) -> Option<Path> {
    client
        .addresses
        .path(now, locals)
        .filter(|path| path.is_verified)
}
