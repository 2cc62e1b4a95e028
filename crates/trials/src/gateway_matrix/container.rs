//! A container on the mobile host: a namespace behind a bridge, whose packets leave with the host's own
//! address.

use super::programs::{Missing, find};
use super::trial::TrialError;
use outlast_lab::LabError;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{InterfaceSettings, NetlinkError, Prefix, Route, RouteSocket};
use outlast_linux::process;
use outlast_linux::sysctl;
use outlast_testbed::site::{LINK, Site};
use rustix::fd::AsFd;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

/// Of the bridge, on the host.
const BRIDGE: &str = "containers0";
/// The bridge's port.
const PORT: &str = "container0";
/// Of the container itself.
const ETH: &str = "eth0";
const HOST: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);
const OWN: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 2);
/// Longest prefix in which both are.
const PREFIX: u8 = 24;

/// A container on the mobile host of `site`, whose hosts' connections have that congestion control.
pub(super) fn on_mobile(site: &Site, congestion: &str) -> Result<Namespace, TrialError> {
    let container = Namespace::new().map_err(LabError::from)?;
    let on_host = || -> Result<(), LabError> {
        sysctl::write("net.ipv4.ip_forward", "1")?;
        let mut route = RouteSocket::open()?;
        route.add_bridge(BRIDGE)?;
        route.add_veth(PORT, ETH, Some(container.as_fd()))?;
        let [bridge, port] = [route.interface(BRIDGE)?, route.interface(PORT)?];
        route.attach(port, bridge)?;
        up(&mut route, BRIDGE)?;
        up(&mut route, PORT)?;
        give(&mut route, BRIDGE, HOST)?;
        Ok(())
    };
    site.mobile.run(on_host).map_err(LabError::from)??;
    let inside = || -> Result<(), LabError> {
        let mut route = RouteSocket::open()?;
        up(&mut route, "lo")?;
        up(&mut route, ETH)?;
        give(&mut route, ETH, OWN)?;
        let interface = route.interface(ETH)?;
        route.add_route(&Route {
            destination: Prefix {
                address: Ipv4Addr::UNSPECIFIED.into(),
                length: 0,
            },
            interface,
            gateway: Some(HOST.into()),
            congestion_control: Some(congestion),
        })?;
        Ok(())
    };
    container.run(inside).map_err(LabError::from)??;
    masquerade(&site.mobile)?;
    Ok(container)
}

fn up(route: &mut RouteSocket, name: &str) -> Result<(), NetlinkError> {
    let interface = route.interface(name)?;
    let settings = InterfaceSettings {
        up: Some(true),
        ..InterfaceSettings::default()
    };
    route.configure(interface, &settings)
}

fn give(route: &mut RouteSocket, name: &str, address: Ipv4Addr) -> Result<(), NetlinkError> {
    let interface = route.interface(name)?;
    let prefix = Prefix {
        address: IpAddr::from(address),
        length: PREFIX,
    };
    route.add_address(interface, prefix)
}

/// What `host` forwards over the link bears the host's address.
fn masquerade(host: &Namespace) -> Result<(), TrialError> {
    let rules = format!(
        "add table ip nat\n\
         add chain ip nat out {{ type nat hook postrouting priority srcnat; }}\n\
         add rule ip nat out oifname \"{LINK}\" masquerade\n"
    );
    let nft = find("nft", "nftables").map_err(TrialError::Missing)?;
    let mut command = Command::new(nft);
    command.arg(rules);
    let network = host.as_fd().try_clone_to_owned().map_err(io_error)?;
    process::place(&mut command, None, network);
    let said = command.output().map_err(io_error)?;
    match said.status.success() {
        true => Ok(()),
        false => Err(TrialError::Program {
            what: "nft does not translate addresses",
            said: String::from_utf8_lossy(&said.stderr).trim().to_owned(),
        }),
    }
}

/// What a container needs that is not installed.
pub(super) fn missing() -> Option<Missing> {
    find("nft", "nftables").err()
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "make a container",
        source,
    }
}
