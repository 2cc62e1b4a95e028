//! Facts about a machine, as far as the choice of role and place needs them.

/// A machine's network, and the programs that look after it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Machine {
    /// The kernel's release, as `uname -r` tells it.
    pub(crate) kernel: String,
    /// True where the kernel describes its types (BTF), which the agent needs.
    pub(crate) has_kernel_types: bool,
    /// Memory in bytes, where the kernel tells it.
    pub(crate) memory: Option<u64>,
    /// True with a battery or a case that is carried.
    pub(crate) is_portable: bool,
    /// True within a container.
    pub(crate) is_container: bool,
    /// True where even the superuser may not configure networks.
    pub(crate) is_confined: bool,
    /// True where the kernel forwards packets of others.
    pub(crate) forwards: bool,
    /// True where a rule translates addresses to those of an interface.
    pub(crate) masquerades: bool,
    /// Programs of the firewall that are installed.
    pub(crate) firewall: Vec<&'static str>,
    /// Programs that tell of links, or start daemons.
    pub(crate) services: Services,
    /// All but the loopback, in the order of their names.
    pub(crate) interfaces: Vec<Interface>,
}

/// Programs that tell of links, or start daemons.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Services {
    /// True where systemd starts daemons.
    pub(crate) systemd: bool,
    /// True where NetworkManager runs.
    pub(crate) network_manager: bool,
    /// True where systemd-networkd runs.
    pub(crate) networkd: bool,
    /// True where ModemManager is installed.
    pub(crate) modem_manager: bool,
    /// True where `wg` is installed, which tells of WireGuard's peers.
    pub(crate) wireguard_tools: bool,
    /// Interfaces that hostapd makes access points of.
    pub(crate) access_points: Vec<String>,
}

/// An interface of the machine.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// True where a default route leads through it.
    pub(crate) is_default: bool,
    /// True where a route to a network leads through it.
    pub(crate) has_network: bool,
    /// The bridge or bond that it is a port of.
    pub(crate) master: Option<String>,
    /// Ports of a bridge.
    pub(crate) ports: Vec<String>,
}

/// The link that an interface leads to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Ethernet,
    WiFi,
    Modem,
    WireGuard,
    /// Any other tunnel of IP packets.
    Tunnel,
    Bridge,
    /// An interface of no device: a pair's end, a VLAN, a bond, a dummy.
    Virtual,
}

impl Kind {
    /// The link's kind in words.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "Ethernet",
            Self::WiFi => "Wi-Fi",
            Self::Modem => "modem",
            Self::WireGuard => "WireGuard",
            Self::Tunnel => "tunnel",
            Self::Bridge => "bridge",
            Self::Virtual => "virtual",
        }
    }
}

impl Machine {
    /// The interface of that name.
    pub(crate) fn interface(&self, name: &str) -> Option<&Interface> {
        let mut all = self.interfaces.iter();
        all.find(|interface| interface.name == name)
    }

    /// True for a bridge that has a device among its ports, unlike one of containers.
    pub(crate) fn bridges_devices(&self, bridge: &Interface) -> bool {
        let mut ports = bridge.ports.iter().filter_map(|port| self.interface(port));
        ports.any(|port| matches!(port.kind, Kind::Ethernet | Kind::WiFi))
    }

    /// True where the agent beside the host's own TCP runs: Linux 5.19 and newer with BTF.
    pub(crate) fn can_run_agent(&self) -> bool {
        self.has_kernel_types && self.kernel_version() >= (5, 19)
    }

    /// The first two numbers of the kernel's release; zeros where there are none.
    fn kernel_version(&self) -> (u32, u32) {
        let mut numbers = self.kernel.split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next().and_then(|text| text.parse().ok());
        (next().unwrap_or(0), next().unwrap_or(0))
    }
}
