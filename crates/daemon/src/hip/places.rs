//! Where this host is: its addresses, and the sockets that receive HIP and ESP there.

use outlast_hip::Protocol;
use outlast_linux::netlink::InterfaceIndex;
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::protocol::ProtocolReceiver;
use outlast_wire::hip::{ESP_PROTOCOL, HIP_PROTOCOL};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

/// One address, and what receives there.
struct Place {
    address: IpAddr,
    receivers: [(u64, Protocol, ProtocolReceiver); 2],
}

/// All addresses of this host.
#[derive(Default)]
pub(super) struct Places {
    places: Vec<Place>,
    next: u64,
    running: BTreeMap<u32, bool>,
}

impl Places {
    /// The addresses, the preferred one first.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.places.iter().map(|place| place.address).collect()
    }

    /// What receives under a number.
    pub(super) fn receiver(&self, wanted: u64) -> Option<(Protocol, &ProtocolReceiver)> {
        let mut receivers = self.places.iter().flat_map(|place| &place.receivers);
        let found = receivers.find(|(number, ..)| *number == wanted);
        found.map(|(_, protocol, receiver)| (*protocol, receiver))
    }

    /// Opens and closes sockets so that these are the addresses; whether anything has changed. An
    /// address that may not be used yet is left out: the kernel tells when it may.
    pub(super) fn settle(
        &mut self,
        addresses: &[IpAddr],
        poller: &Poller,
        first_token: u64,
    ) -> io::Result<bool> {
        let before = self.addresses();
        let mut old = std::mem::take(&mut self.places);
        for &address in addresses {
            if let Some(at) = old.iter().position(|place| place.address == address) {
                self.places.push(old.swap_remove(at));
                continue;
            }
            match self.open(address) {
                Ok(place) => {
                    for (number, _, receiver) in &place.receivers {
                        poller.add(receiver, Token(first_token + number), Interest::Readable)?;
                    }
                    self.places.push(place);
                }
                Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.addresses() != before)
    }

    fn open(&mut self, address: IpAddr) -> io::Result<Place> {
        let hip = ProtocolReceiver::open(HIP_PROTOCOL, address)?;
        let esp = ProtocolReceiver::open(ESP_PROTOCOL, address)?;
        let number = self.next;
        self.next += 2;
        Ok(Place {
            address,
            receivers: [
                (number, Protocol::Hip, hip),
                (number + 1, Protocol::Esp, esp),
            ],
        })
    }

    /// Notes an interface; whether it carries packets again that did not.
    pub(super) fn note_interface(&mut self, interface: InterfaceIndex, is_running: bool) -> bool {
        let was_running = self.running.insert(interface.0, is_running);
        is_running && was_running == Some(false)
    }
}
