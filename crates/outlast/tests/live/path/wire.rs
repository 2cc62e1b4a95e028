//! A wire in the middle of the link, of which a test reads along what goes through it: as a network
//! card sends it, which cuts super-segments and fills in checksums.

use super::copier::{Carrier, Copier};
use super::wiring::{inside, switch};
use super::{Path, skip};
use bytes::Bytes;
use outlast_linux::netlink::{InterfaceSettings, RouteSocket};
use outlast_linux::tun::Tun;
use outlast_wire::{Packet, Transport};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    ToGateway,
    ToMobile,
}

/// What has gone one way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// Packets of IP.
    pub(crate) packets: usize,
    /// The longest of them, in bytes.
    pub(crate) longest: usize,
    /// Packets that are fragments of others.
    pub(crate) fragments: usize,
    /// What no host takes: the first of them, and why.
    pub(crate) wrong: Option<String>,
    /// Frames with a tag of a virtual LAN, but none of those that the wire has tagged itself.
    pub(crate) tagged: Vec<Vec<u8>>,
}

/// Frames go through it while it lives.
pub(crate) struct Wire {
    shared: Arc<Shared>,
    _copier: Copier,
}

struct Shared {
    ends: [Tun; 2],
    logs: [Mutex<Log>; 2],
    /// Frames go on with a priority of IEEE 802.1Q, in a tag of no virtual LAN.
    gives_priority: AtomicBool,
    /// Longer packets, in bytes, are lost, and nobody is told.
    most: AtomicUsize,
}

/// Length of the header of an Ethernet frame, in bytes.
const HEADER: usize = 14;
/// Nothing that goes over the link is too long for the wire.
const MTU: u32 = 9_000;
const ADDRESSES: usize = 12;
const VLAN: [u8; 2] = [0x81, 0];
const SERVICE_VLAN: [u8; 2] = [0x88, 0xa8];
const IPV4: [u8; 2] = [8, 0];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Priority 5 in virtual LAN 0, which is none.
const PRIORITY: [u8; 4] = [0x81, 0, 0xa0, 0];

impl Path {
    /// Puts a wire between the two ports of the switch; `None`, with the reason, where this machine
    /// does not allow it.
    pub(crate) fn tap(&self) -> Option<Wire> {
        let names = ["near", "far"];
        let make = |name| self.air.run(|| Tun::create_ethernet(name)).expect("enter");
        let [near, far] = names.map(|name| make(name).inspect_err(|error| skip(error)));
        let (near, far) = (near.ok()?, far.ok()?);
        inside(&self.air, |route| {
            route.add_bridge("beyond").expect("bridge");
            switch(route, "beyond", true);
            for (port, bridge) in [
                ("gateway", "air"),
                ("near", "air"),
                ("far", "beyond"),
                ("mobile", "beyond"),
            ] {
                set_mtu(route, port, MTU);
                let [port, bridge] =
                    [port, bridge].map(|name| route.interface(name).expect("made"));
                route.attach(port, bridge).expect("port");
            }
            names.iter().for_each(|name| switch(route, name, true));
        });
        let shared = Arc::new(Shared {
            ends: [near, far],
            logs: Default::default(),
            gives_priority: AtomicBool::default(),
            most: AtomicUsize::new(usize::MAX),
        });
        let _copier = Copier::start(shared.clone());
        Some(Wire { shared, _copier })
    }
}

/// Sets the longest packet of an interface.
pub(crate) fn set_mtu(route: &mut RouteSocket, name: &str, mtu: u32) {
    let index = route.interface(name).expect("made");
    let settings = InterfaceSettings {
        mtu: Some(mtu),
        ..InterfaceSettings::default()
    };
    route.configure(index, &settings).expect("configure");
}

impl Wire {
    /// What has gone that way so far.
    pub(crate) fn log(&self, way: Way) -> Log {
        self.shared.log(way).clone()
    }

    /// Forgets what has gone so far, either way.
    pub(crate) fn forget(&self) {
        for way in [Way::ToGateway, Way::ToMobile] {
            *self.shared.log(way) = Log::default();
        }
    }

    /// Whether frames are given a priority from now on.
    pub(crate) fn give_priority(&self, is_so: bool) {
        self.shared.gives_priority.store(is_so, Ordering::Release);
    }

    /// Loses longer packets from now on, either way, and tells nobody.
    pub(crate) fn lose_longer_than(&self, bytes: usize) {
        self.shared.most.store(bytes, Ordering::Release);
    }

    /// Puts a frame of one's own on the wire.
    pub(crate) fn inject(&self, way: Way, frame: &[u8]) {
        self.shared.end_of(way).write(frame).expect("its end");
    }

    /// Checks that all that went that way was as an interface with this MTU sends it.
    #[track_caller]
    pub(crate) fn assert_within(&self, way: Way, mtu: usize) {
        let Log {
            packets,
            longest,
            fragments,
            wrong,
            ..
        } = self.log(way);
        assert!(packets > 0, "nothing went {way:?}");
        assert!(longest <= mtu, "{longest} bytes went {way:?}");
        assert_eq!((fragments, wrong), (0, None), "went {way:?}");
    }
}

impl Shared {
    fn log(&self, way: Way) -> MutexGuard<'_, Log> {
        let log = &self.logs[way as usize];
        log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where what goes that way leaves the wire.
    const fn end_of(&self, way: Way) -> &Tun {
        match way {
            Way::ToGateway => &self.ends[0],
            Way::ToMobile => &self.ends[1],
        }
    }

    fn as_sent(&self, frame: &[u8]) -> Vec<u8> {
        let is_given = self.gives_priority.load(Ordering::Acquire);
        match frame.split_at_checked(ADDRESSES) {
            Some((addresses, rest)) if is_given && !is_tag(rest) => {
                [addresses, &PRIORITY, rest].concat()
            }
            _ => frame.to_vec(),
        }
    }
}

impl Carrier for Shared {
    fn ends(&self) -> &[Tun; 2] {
        &self.ends
    }

    fn carry(&self, from: usize, frame: &[u8]) -> io::Result<()> {
        let way = [Way::ToMobile, Way::ToGateway][from];
        let longest = HEADER.saturating_add(self.most.load(Ordering::Acquire));
        if frame.len() > longest {
            return Ok(());
        }
        self.log(way).note(frame);
        let frame = self.as_sent(frame);
        // Where there is no room, or the port is down, it is lost, as by wire.
        let _ = self.end_of(way).write(&frame)?;
        Ok(())
    }
}

impl Log {
    pub(crate) fn note(&mut self, frame: &[u8]) {
        let mut rest = frame.get(ADDRESSES..).unwrap_or_default();
        let mut virtual_lan = 0;
        while is_tag(rest) {
            virtual_lan |= u16::from_be_bytes([rest[2] & 0xf, rest[3]]);
            rest = &rest[4..];
        }
        if virtual_lan != 0 {
            self.tagged.push(frame.to_vec());
            return;
        }
        let Some((&(IPV4 | IPV6), packet)) = rest.split_first_chunk() else {
            return;
        };
        self.packets += 1;
        self.longest = self.longest.max(packet.len());
        match Packet::parse(Bytes::copy_from_slice(packet)) {
            Ok(packet) if packet.checksums_ok() => {
                let part = matches!(
                    packet.header().transport,
                    Transport::Other { fragment: true, .. }
                );
                self.fragments += usize::from(part);
            }
            Ok(packet) => self.note_wrong(format!("checksum of {:?}", packet.header())),
            Err(error) => self.note_wrong(format!("{error} of {packet:x?}")),
        }
    }

    fn note_wrong(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }
}

fn is_tag(rest: &[u8]) -> bool {
    rest.len() >= 4 && (rest.starts_with(&VLAN) || rest.starts_with(&SERVICE_VLAN))
}
