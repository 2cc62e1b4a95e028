//! What every part of a host needs to act: the time, the identity, chance, where packets go.

use crate::addresses::Path;
use crate::config::Config;
use crate::effort::Checks;
use crate::event::Outbox;
use crate::event::Refusal;
use crate::identity::{Identity, PublicIdentity};
use crate::keymat::HipKeys;
use crate::rhash::Rhash;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use chacha20::ChaCha20Rng;
use core::net::IpAddr;
use outlast_base::time::Instant;
use outlast_wire::hip::{Builder, Hit, HostId, LONGEST, Message, Parameter, Signature, kind};
use rand_core::Rng;

/// The reserved SPIs end here (RFC 7402, section 3.2.1).
const LAST_RESERVED_SPI: u32 = 255;

/// What a part is lent for one call.
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) identity: &'a Identity,
    pub(crate) config: &'a Config,
    pub(crate) random: &'a mut ChaCha20Rng,
    /// This host's addresses, the preferred one first.
    pub(crate) locals: &'a [IpAddr],
    pub(crate) spis: &'a BTreeMap<u32, Hit>,
    pub(crate) checks: &'a mut Checks,
    pub(crate) outbox: &'a mut Outbox,
}

impl Context<'_> {
    /// An SPI that no association here has.
    pub(crate) fn new_spi(&mut self) -> u32 {
        loop {
            let spi = self.random.next_u32();
            if spi > LAST_RESERVED_SPI && !self.spis.contains_key(&spi) {
                return spi;
            }
        }
    }

    /// Random bytes.
    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = alloc::vec![0; length];
        self.random.fill_bytes(&mut bytes);
        bytes
    }

    /// Sends a HIP packet on a path.
    pub(crate) fn send(&mut self, path: &Path, packet: &[u8]) {
        self.outbox.hip((path.local, path.remote), packet);
    }

    /// Appends the signature over all that is there.
    pub(crate) fn sign(&mut self, builder: &mut Builder, kind: u16) -> Option<()> {
        let signature = self.identity.sign(&builder.covered(), self.random)?;
        let parameter = Signature {
            algorithm: self.identity.public().algorithm(),
            signature: &signature,
        };
        builder.push_with(kind, |out| parameter.write(out));
        Some(())
    }

    /// Appends HIP_MAC and HIP_SIGNATURE, and ends the packet.
    pub(crate) fn authenticate(
        &mut self,
        mut builder: Builder,
        rhash: Rhash,
        keys: &HipKeys,
    ) -> Option<Vec<u8>> {
        let mac = rhash.mac(&keys.integrity, &[&builder.covered()]);
        builder.push(kind::HIP_MAC, &mac);
        self.sign(&mut builder, kind::HIP_SIGNATURE)?;
        builder.finish()
    }
}

/// Contents of each ECHO_REQUEST_UNSIGNED: middleboxes append it behind the signature (RFC 7401, section 5.2.21).
pub(crate) fn unsigned_requests<'a>(request: &Message<'a>) -> impl Iterator<Item = &'a [u8]> {
    let parameters = request.parameters();
    let requests = parameters.filter(|it| it.kind == kind::ECHO_REQUEST_UNSIGNED);
    requests.map(|request| request.contents)
}

/// Appends the responses to these requests, each one that leaves room for `reserved` bytes.
pub(crate) fn push_echoes<'a>(
    builder: &mut Builder,
    requests: impl Iterator<Item = &'a [u8]>,
    reserved: usize,
) {
    let mut requests = requests.peekable();
    if requests.peek().is_none() {
        return;
    }
    let mut length = builder.covered().len();
    for contents in requests {
        let longer = length + parameter_len(contents.len());
        if longer + reserved <= LONGEST {
            builder.push(kind::ECHO_RESPONSE_UNSIGNED, contents);
            length = longer;
        }
    }
}

/// Bytes of a parameter with contents of this length: kind and length go before, and padding follows.
pub(crate) const fn parameter_len(contents: usize) -> usize {
    (4 + contents).next_multiple_of(8)
}

/// Appends to `answer` the responses to what middleboxes ask in `request`, as far as there is room.
pub(crate) fn echo_unsigned(answer: Vec<u8>, request: &Message<'_>) -> Vec<u8> {
    let mut builder = Builder::continuing(&answer, kind::HIP_SIGNATURE);
    push_echoes(&mut builder, unsigned_requests(request), 0);
    builder.finish().unwrap_or(answer)
}

/// Appends a host identity.
pub(crate) fn push_host_id(builder: &mut Builder, identity: &PublicIdentity) {
    builder.push_with(kind::HOST_ID, |out| write_host_id(out, identity));
}

/// Writes the contents of HOST_ID.
pub(crate) fn write_host_id(out: &mut Vec<u8>, identity: &PublicIdentity) {
    let parameter = HostId {
        algorithm: identity.algorithm(),
        identity: identity.encoding(),
        domain_type: 0,
        domain: &[],
    };
    parameter.write(out);
}

/// A parameter that has to be there.
pub(crate) fn required<'a>(message: &Message<'a>, kind: u16) -> Result<Parameter<'a>, Refusal> {
    message.find(kind).ok_or(Refusal::Parameter)
}

/// Checks HIP_SIGNATURE of a message.
pub(crate) fn verify_signature(
    message: &Message<'_>,
    peer: &PublicIdentity,
) -> Result<(), Refusal> {
    let parameter = required(message, kind::HIP_SIGNATURE)?;
    let signature = Signature::parse(parameter.contents).map_err(|_| Refusal::Malformed)?;
    let is_right = signature.algorithm == peer.algorithm()
        && peer.verify(&message.covered_before(&parameter), signature.signature);
    is_right.then_some(()).ok_or(Refusal::Signature)
}

/// Checks HIP_MAC of a message.
pub(crate) fn verify_mac(
    message: &Message<'_>,
    rhash: Rhash,
    keys: &HipKeys,
) -> Result<(), Refusal> {
    let mac = required(message, kind::HIP_MAC)?;
    let covered = message.covered_before(&mac);
    let is_right = rhash.mac_is_right(&keys.integrity, &[&covered], mac.contents);
    is_right.then_some(()).ok_or(Refusal::Mac)
}
