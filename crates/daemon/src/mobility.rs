//! The roles `home-agent`, `foreign-agent`, `mobile-node` and `correspondent`: descriptors, clock and timer around the
//! pure machines of Mobile IP ([`outlast_mobility`]).
//!
//! A mobile node's applications use its home address, which a TUN device bears. What they send goes
//! through a tunnel to the home agent, and from there on. What is for them comes to the home agent by
//! ordinary routing, and through the tunnel back. The tunnel is IP in IP, or UDP behind an address
//! translator.
//!
//! On a link of its own, a foreign agent takes the tunnel's end from the mobile node, and a home agent
//! answers ARP for those that are away.
//!
//! Where a home agent's or a mobile node's addresses are of IPv6, the role is that of Mobile IPv6.

mod access;
mod aftermath;
mod carriers;
mod data_path;
mod datagrams;
mod endpoint;
mod foreign_agent;
mod gateway;
mod home_agent;
mod home_network;
pub mod key;
mod metrics;
mod mobile_node;
mod operating;
mod settings;
mod status;
mod trigger;
mod v6;

use crate::failure::Failure;
use foreign_agent::Foreign;
use home_agent::Home;
use mobile_node::Mobile;
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_mobility::NtpClock;
use rustix::rand::{GetRandomFlags, getrandom};
use settings::{ForeignAgentSettings, HomeAgentSettings, MobileNodeSettings};
pub use status::MobileIpStatus;
use std::path::Path;

/// The Unix epoch in NTP's time, in seconds.
const UNIX_EPOCH_NTP: u64 = 2_208_988_800;

/// What a role with Mobile IP is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Tunnels what is for mobile nodes to where they are.
    HomeAgent,
    /// Ends tunnels for mobile nodes on its link.
    ForeignAgent,
    /// Keeps its address wherever it is.
    MobileNode,
    /// Reaches mobile nodes of Mobile IPv6 where they are.
    Correspondent,
}

impl Kind {
    /// The table of the configuration file.
    #[must_use]
    pub const fn table(self) -> &'static str {
        match self {
            Self::HomeAgent => "home_agent",
            Self::ForeignAgent => "foreign_agent",
            Self::MobileNode => "mobile_node",
            Self::Correspondent => "correspondent",
        }
    }
}

/// Runs the role until it is asked to end; `control` goes before the configuration file's.
pub fn run(kind: Kind, config: &Path, control: Option<&Path>) -> Result<(), Failure> {
    if is_of_ipv6(kind, config)? {
        return run_v6(kind, config, control);
    }
    match kind {
        Kind::HomeAgent => {
            let settings = HomeAgentSettings::load(config)?;
            let (mut endpoint, mut home) = Home::start(&settings, control)?;
            endpoint.run(&mut home, config)
        }
        Kind::ForeignAgent => {
            let settings = ForeignAgentSettings::load(config)?;
            let (mut endpoint, mut foreign) = Foreign::start(&settings, control)?;
            endpoint.run(&mut foreign, config)
        }
        Kind::MobileNode => {
            let settings = MobileNodeSettings::load(config)?;
            let (mut endpoint, mut mobile) = Mobile::start(settings, control)?;
            mobile.relocate(clock::now(), &mut endpoint)?;
            endpoint.run(&mut mobile, config)
        }
        Kind::Correspondent => return run_v6(kind, config, control),
    }
    .map_err(Failure::Run)
}

/// Whether a role's addresses are of IPv6. Foreign agents are of Mobile IPv4 alone, correspondents of
/// Mobile IPv6.
fn is_of_ipv6(kind: Kind, config: &Path) -> Result<bool, Failure> {
    let key = match kind {
        Kind::HomeAgent => "address",
        Kind::ForeignAgent => return Ok(false),
        Kind::Correspondent => return Ok(true),
        Kind::MobileNode => "home_address",
    };
    v6::is_of_ipv6(config, kind.table(), key)
}

fn run_v6(kind: Kind, config: &Path, control: Option<&Path>) -> Result<(), Failure> {
    match kind {
        Kind::HomeAgent => {
            let settings = v6::HomeAgentSettings::load(config)?;
            let (mut endpoint, mut home) = v6::Home::start(&settings, control)?;
            endpoint.run(&mut home, config)
        }
        Kind::Correspondent => {
            let settings = v6::CorrespondentSettings::load(config)?;
            let (mut endpoint, mut peer) = v6::Peer::start(&settings, control)?;
            endpoint.run(&mut peer, config)
        }
        Kind::ForeignAgent | Kind::MobileNode => {
            let settings = v6::MobileNodeSettings::load(config)?;
            let (mut endpoint, mut mobile) = v6::Mobile::start(settings, control)?;
            mobile.relocate(clock::now(), &mut endpoint)?;
            endpoint.run(&mut mobile, config)
        }
    }
    .map_err(Failure::Run)
}

/// Reads the configuration and says what would hold.
pub fn check(kind: Kind, config: &Path) -> Result<String, Failure> {
    if is_of_ipv6(kind, config)? {
        return check_v6(kind, config);
    }
    let shown = config.display();
    match kind {
        Kind::HomeAgent => {
            let settings = HomeAgentSettings::load(config)?;
            let mobiles = settings.associations()?.len();
            Ok(format!(
                "{shown}: sound\n  address {}\n  device  {}\n  mobiles {mobiles}\n",
                settings.address, settings.device,
            ))
        }
        Kind::ForeignAgent => {
            let settings = ForeignAgentSettings::load(config)?;
            settings.mobiles()?;
            settings.home_agents()?;
            Ok(format!(
                "{shown}: sound\n  interface       {}\n  address         {}\n  care-of address {}\n  device          {}\n",
                settings.interface, settings.address, settings.care_of_address, settings.device,
            ))
        }
        Kind::Correspondent => check_v6(kind, config),
        Kind::MobileNode => {
            let settings = MobileNodeSettings::load(config)?;
            settings.association()?;
            settings.foreign_association()?;
            Ok(format!(
                "{shown}: sound\n  home address {}\n  home agent   {}\n  device       {}\n",
                settings.home_address, settings.home_agent, settings.device,
            ))
        }
    }
}

fn check_v6(kind: Kind, config: &Path) -> Result<String, Failure> {
    let summary = match kind {
        Kind::HomeAgent => v6::HomeAgentSettings::load(config)?.summary()?,
        Kind::Correspondent => v6::CorrespondentSettings::load(config)?.summary(),
        Kind::ForeignAgent | Kind::MobileNode => v6::MobileNodeSettings::load(config)?.summary()?,
    };
    Ok(format!("{}: sound\n{summary}", config.display()))
}

/// The machine's wall clock, as registrations are stamped with it.
fn ntp_clock(now: Instant) -> NtpClock {
    let unix = clock::unix_offset() + Duration::from_nanos(now.as_nanos());
    let fraction = (u64::from(unix.subsec_nanos()) << 32) / 1_000_000_000;
    let seconds = unix.as_secs().wrapping_add(UNIX_EPOCH_NTP);
    NtpClock::new(now, (seconds << 32) | fraction)
}

/// Randomness that nobody outside can know.
fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], Failure> {
    let mut bytes = [0; LENGTH];
    getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(|errno| Failure::Run(anyhow::Error::new(errno).context("no randomness")))?;
    Ok(bytes)
}
