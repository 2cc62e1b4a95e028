//! What the daemon is to do: the command line, and a file for what it leaves open.

mod endpoint;
mod log;
mod memory;
mod role;

use super::agents::AgentSettings;
use super::agents::settings::Given as GivenAgents;
use super::keys;
use crate::failure::Failure;
use crate::trusted;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
pub use endpoint::Endpoint;
pub use log::{Log, LogFormat, LogLevel};
use memory::Sizes;
use outlast_base::time::Duration;
use outlast_base::units::{BitRate, ByteCount};
use outlast_compression::Part;
use outlast_gateway::gateway::{DampingConfig, SilenceConfig};
use outlast_gateway::limits::Limits;
use outlast_gateway::mechanisms::path::{Level, PathMechanismKind};
use outlast_scenario::keys::Key;
use outlast_scenario::{Reader, parse_file};
pub use role::PathRole;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where configuration files are, unless somebody says otherwise.
const DIRECTORY: &str = "/etc/outlast";
/// The one that is for every interface that has none of its own.
const COMMON: &str = "config.toml";

/// Where control sockets are, unless somebody says otherwise: one per interface.
pub const RUNTIME_DIRECTORY: &str = "/run/outlast";
/// The extension of the names of control sockets.
pub const CONTROL_EXTENSION: &str = "sock";

/// The mark of packets that the daemon sends, unless somebody says otherwise: "outl".
const MARK: u32 = 0x6f75_746c;

/// Everything that is decided before the daemon begins.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// The interface that leads to the disconnecting link.
    pub interface: String,
    /// What is done for the connections that cross.
    pub mechanism: Mechanism,
    pub(crate) data_path: DataPathChoice,
    /// The link's rate; `None`: not known.
    pub rate: Option<BitRate>,
    /// Whether a supervisor host shares that rate out among connections.
    pub(crate) shares_rate: bool,
    /// Who asks whether payload is compressed on the link; `None`: nobody, and it is not.
    pub(crate) compression: Option<Part>,
    /// Where the control socket listens.
    pub control: PathBuf,
    pub(crate) access: Access,
    /// Where metrics are served, if they are.
    pub metrics: Option<Endpoint>,
    /// The NFQUEUE to take; `None`: the first one that is free.
    pub(crate) queue: Option<u16>,
    pub(crate) mark: u32,
    /// Hard caps on tables and buffers.
    pub limits: Limits,
    /// What the kernel's part keeps copies in of what went towards the link last.
    pub(crate) recorder: ByteCount,
    pub(crate) indicators: Watched,
    /// Neighbours, and the journal of what is frozen.
    pub(crate) agents: Option<AgentSettings>,
    /// When silence is suspicious, if it counts.
    silence: SilenceConfig,
    /// How indicators that flap are damped, if they are.
    pub(crate) damping: Option<DampingConfig>,
    /// What is told on standard error, and how.
    pub log: Log,
}

/// Who may use the control socket.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Access {
    /// A name or a number.
    pub(crate) owner: Option<String>,
    /// A name or a number.
    pub(crate) group: Option<String>,
    /// Permission bits.
    pub(crate) mode: Option<u32>,
}

/// Which indicators tell the link's state. `outlast notify` always does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Watched {
    pub(crate) carrier: bool,
    pub(crate) address: bool,
    pub(crate) route: bool,
    pub(crate) neighbour: bool,
    pub(crate) silence: bool,
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            carrier: true,
            address: true,
            route: true,
            neighbour: true,
            silence: true,
        }
    }
}

/// How indicators that flap are damped; `None`: each is believed at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Damping(Option<DampingConfig>);

impl Default for Damping {
    fn default() -> Self {
        Self(Some(DampingConfig::default()))
    }
}

/// Hard caps; by default those for this machine's memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Caps(Limits);

impl Default for Caps {
    fn default() -> Self {
        Self(Sizes::of_this_machine().limits)
    }
}

/// How packets get to the gateway.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum DataPathChoice {
    /// By eBPF where kernel, permissions and mechanism allow it, or else by NFQUEUE.
    #[default]
    Auto,
    /// Only packets of a link that is down get to the gateway; all others stay in the kernel.
    Ebpf,
    /// All packets get to the gateway, by an NFQUEUE.
    Nfqueue,
}

/// A path mechanism by its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mechanism(pub(crate) PathMechanismKind);

impl Mechanism {
    /// All that the daemon offers.
    const ALL: [PathMechanismKind; 12] = [
        PathMechanismKind::None,
        PathMechanismKind::SmartLink(Level::One),
        PathMechanismKind::SmartLink(Level::Two),
        PathMechanismKind::SmartLink(Level::Three),
        PathMechanismKind::SmartLink(Level::Four),
        PathMechanismKind::Hold,
        PathMechanismKind::RetransmissionCache,
        PathMechanismKind::ZeroWindowAck,
        PathMechanismKind::AcknowledgeAhead,
        PathMechanismKind::MTcp,
        PathMechanismKind::MTcpAdaptive,
        PathMechanismKind::Auto,
    ];

    /// Takes one from the command line, and tells what there are.
    pub fn parser() -> impl TypedValueParser<Value = Self> {
        let value = |kind: PathMechanismKind| {
            let info = kind.info();
            PossibleValue::new(info.name).help(info.summary)
        };
        PossibleValuesParser::new(Self::ALL.map(value)).try_map(|name| name.parse::<Self>())
    }
}

impl FromStr for Mechanism {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.info().name == name);
        found.map(Self).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|kind| kind.info().name).collect();
            format!(
                "\"{name}\" is no mechanism of `outlast run`; there are {}",
                names.join(", ")
            )
        })
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the command line says; it goes before the file.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// What the daemon is.
    pub role: PathRole,
    /// The interface that leads to the disconnecting link.
    pub interface: Option<String>,
    /// What to do for the connections that cross.
    pub mechanism: Option<Mechanism>,
    /// How packets get to the gateway.
    pub data_path: Option<DataPathChoice>,
    /// Where the control socket is to listen.
    pub control: Option<PathBuf>,
    /// Which file to read.
    pub config: Option<PathBuf>,
    /// How much to tell on standard error.
    pub log_level: Option<LogLevel>,
    /// In which form.
    pub log_format: Option<LogFormat>,
}

impl Given {
    /// The file that is read: the one that was named, or else the interface's own, or else the
    /// common one. `None` if there is none.
    pub fn file(&self) -> Option<PathBuf> {
        if let Some(config) = &self.config {
            // Whoever reads of it is elsewhere.
            return Some(std::path::absolute(config).unwrap_or_else(|_| config.clone()));
        }
        let own = self.interface.as_ref().map(|name| format!("{name}.toml"));
        let names = own.into_iter().chain([COMMON.to_owned()]);
        names
            .map(|name| Path::new(DIRECTORY).join(name))
            .find(|path| is_something(path))
    }

    /// The settings, from the command line, the file and defaults.
    pub fn settle(&self) -> Result<Settings, Failure> {
        let file = match self.file() {
            Some(path) => File::load(&path)?,
            None => File::default(),
        };
        file.complete(self)
    }
}

/// The configuration file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct File {
    interface: Option<String>,
    mechanism: Option<Mechanism>,
    data_path: Option<DataPathChoice>,
    rate: Option<BitRate>,
    shares_rate: bool,
    compression: Option<Part>,
    control: Option<PathBuf>,
    access: Access,
    metrics: Option<Endpoint>,
    queue: Option<u16>,
    mark: Option<u32>,
    limits: Caps,
    indicators: Watched,
    agents: GivenAgents,
    silence: SilenceConfig,
    damping: Damping,
    log: Log,
}

impl File {
    /// Reads the file at `path`.
    fn load(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let text = trusted::read_configuration(path)
            .map_err(|reason| Failure::Usage(format!("cannot read `{name}`: {reason}")))?;
        Ok(parse_file(
            keys::FILE,
            &keys::TOP,
            &text,
            &name,
            Self::take,
        )?)
    }

    fn take(top: &Reader<'_>) -> Self {
        use clap::ValueEnum;
        let mechanism = top.choice(&keys::MECHANISM);
        Self {
            interface: interface(top),
            mechanism: mechanism.and_then(|name| name.parse().ok()),
            data_path: top
                .choice(&keys::DATA_PATH)
                .and_then(|name| DataPathChoice::from_str(name, false).ok()),
            rate: top
                .quantity(&keys::RATE)
                .and_then(BitRate::from_bits_per_second),
            shares_rate: shares_rate(top),
            compression: compression(top),
            control: top.text(&keys::CONTROL).map(PathBuf::from),
            access: Access {
                owner: top.text(&keys::CONTROL_OWNER),
                group: top.text(&keys::CONTROL_GROUP),
                mode: mode(top),
            },
            metrics: Endpoint::read(top, &keys::METRICS),
            queue: top
                .integer(&keys::QUEUE)
                .and_then(|number| u16::try_from(number).ok()),
            mark: top
                .integer(&keys::MARK)
                .and_then(|mark| u32::try_from(mark).ok()),
            limits: limits(&top.table(&keys::LIMITS_TABLE, &keys::LIMITS)),
            indicators: watched(&top.table(&keys::INDICATORS_TABLE, &keys::INDICATORS)),
            agents: GivenAgents::take(top),
            silence: silence(&top.table(&keys::SILENCE_TABLE, &keys::SILENCES)),
            damping: damping(&top.table(&keys::DAMPING_TABLE, &keys::DAMPING)),
            log: Log::read(&top.table(&keys::LOG_TABLE, &keys::LOG)),
        }
    }

    /// The settings, where `given` leaves them open.
    fn complete(self, given: &Given) -> Result<Settings, Failure> {
        let interface = given.interface.clone().or(self.interface).ok_or_else(|| {
            Failure::Usage(format!(
                "which interface leads to the disconnecting link? Name it with --interface, or as \
                 `interface` in {DIRECTORY}/{COMMON}"
            ))
        })?;
        let control = given.control.clone().or(self.control);
        let mechanism = given.role.settle(given.mechanism.or(self.mechanism))?;
        Ok(Settings {
            mechanism,
            data_path: given.data_path.or(self.data_path).unwrap_or_default(),
            rate: self.rate,
            shares_rate: self.shares_rate,
            compression: self.compression,
            control: control.unwrap_or_else(|| control_of(&interface)),
            access: self.access,
            metrics: self.metrics,
            agents: self.agents.complete(&interface),
            interface,
            queue: self.queue,
            mark: self.mark.unwrap_or(MARK),
            limits: self.limits.0,
            recorder: Sizes::of_this_machine().recorder,
            indicators: self.indicators,
            silence: self.silence,
            damping: self.damping.0,
            log: Log {
                level: given.log_level.unwrap_or(self.log.level),
                format: given.log_format.unwrap_or(self.log.format),
            },
        })
    }
}

impl Settings {
    /// Checks what the daemon would need of this machine, without taking any of it.
    ///
    /// # Errors
    ///
    /// If the control socket's owner is unknown, if the data path and the mechanism do not go
    /// together, or if the neighbours' key or journal cannot be used.
    pub fn check(&self) -> Result<(), Failure> {
        super::control::check(&self.access)?;
        super::path::check(self)?;
        self.agents.as_ref().map_or(Ok(()), AgentSettings::check)
    }

    /// When silence is suspicious; `None` if it does not count.
    pub(crate) fn silence(&self) -> Option<SilenceConfig> {
        self.indicators.silence.then_some(self.silence)
    }

    /// What holds and has no effect, for who may have meant something else. It is no mistake: a
    /// reload changes the mechanism and cannot take `[agents]` away, and what an earlier daemon has
    /// left frozen is ended in order.
    pub fn warnings(&self) -> Vec<String> {
        let hands_over = matches!(
            self.mechanism.0,
            PathMechanismKind::ZeroWindowAck
                | PathMechanismKind::MTcp
                | PathMechanismKind::MTcpAdaptive
        );
        let idle = self.agents.is_some() && !hands_over;
        let warning = idle.then(|| {
            format!(
                "`[agents]` has nothing to do with mechanism {}: only zero-window-ack, m-tcp \
                 and m-tcp-adaptive hand connections over. What neighbours want to hand over is \
                 refused, and what an earlier daemon has left frozen is reset",
                self.mechanism
            )
        });
        let supervises = matches!(
            self.mechanism.0,
            PathMechanismKind::MTcp | PathMechanismKind::MTcpAdaptive
        );
        let shares_nothing = (self.shares_rate && !supervises).then(|| {
            format!(
                "`share_rate` has nothing to do with mechanism {}: only m-tcp and m-tcp-adaptive share \
                 a rate out",
                self.mechanism
            )
        });
        warning.into_iter().chain(shares_nothing).collect()
    }

    /// What `next` has otherwise although a running daemon cannot change it.
    pub(crate) fn fixed_differences(&self, next: &Self) -> Vec<&'static str> {
        let differences = [
            (keys::INTERFACE.name, self.interface != next.interface),
            (keys::DATA_PATH.name, self.data_path != next.data_path),
            (keys::COMPRESSION.name, self.compression != next.compression),
            (keys::CONTROL.name, self.control != next.control),
            (
                keys::CONTROL_OWNER.name,
                self.access.owner != next.access.owner,
            ),
            (
                keys::CONTROL_GROUP.name,
                self.access.group != next.access.group,
            ),
            (
                keys::CONTROL_MODE.name,
                self.access.mode != next.access.mode,
            ),
            (keys::QUEUE.name, self.queue != next.queue),
            (keys::MARK.name, self.mark != next.mark),
            ("log.format", self.log.format != next.log.format),
        ];
        let of_agents =
            AgentSettings::fixed_differences(self.agents.as_ref(), next.agents.as_ref());
        let mut all = named(&differences);
        all.extend(named(&of_agents));
        all
    }

    /// What `next` has otherwise and a running daemon can change.
    pub(crate) fn free_differences(&self, next: &Self) -> Vec<&'static str> {
        let differences = [
            (keys::MECHANISM.name, self.mechanism != next.mechanism),
            (keys::RATE.name, self.rate != next.rate),
            (keys::SHARE_RATE.name, self.shares_rate != next.shares_rate),
            (keys::METRICS.name, self.metrics != next.metrics),
            (keys::LIMITS.name, self.limits != next.limits),
            (keys::INDICATORS.name, self.indicators != next.indicators),
            (keys::SILENCES.name, self.silence != next.silence),
            (keys::DAMPING.name, self.damping != next.damping),
            ("agents", self.agents != next.agents),
            ("log.level", self.log.level != next.log.level),
        ];
        named(&differences)
    }
}

fn named(differences: &[(&'static str, bool)]) -> Vec<&'static str> {
    let differing = differences.iter().filter(|(_, differs)| *differs);
    differing.map(|(name, _)| *name).collect()
}

/// Whether there is something at `path`, or there may be: what cannot be read is told of, and not taken
/// for a file that nobody has written.
fn is_something(path: &Path) -> bool {
    let absent = io::ErrorKind::NotFound;
    path.symlink_metadata()
        .map_or_else(|error| error.kind() != absent, |_| true)
}

/// The kernel's rules for a name (`dev_valid_name`), so that a misspelt one is not waited for.
fn is_interface_name(name: &str) -> bool {
    let is_sound = (1..16).contains(&name.len()) && name != "." && name != "..";
    is_sound && !name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace())
}

/// What the names of interfaces are like.
const INTERFACE_NAMES: &str = "1 to 15 bytes, without `/`, `:` and blanks, and is no `.` or `..`";

/// An interface as the command line names it.
pub fn interface_name(text: &str) -> Result<String, String> {
    match is_interface_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "an interface's name has {INTERFACE_NAMES}, as `ip link` shows it"
        )),
    }
}

fn interface(top: &Reader<'_>) -> Option<String> {
    let name = top.text(&keys::INTERFACE)?;
    if is_interface_name(&name) {
        return Some(name);
    }
    top.note(
        top.span_of(&keys::INTERFACE).unwrap_or_default(),
        format!("`{name}` cannot be an interface's name"),
        INTERFACE_NAMES,
        "write a name as `ip link` shows it",
    );
    None
}

fn shares_rate(top: &Reader<'_>) -> bool {
    let shares_rate = top.switch(&keys::SHARE_RATE).unwrap_or_default();
    if shares_rate
        && top.quantity(&keys::RATE).is_none()
        && let Some(span) = top.span_of(&keys::SHARE_RATE)
    {
        top.note(
            span,
            "a rate that is not known cannot be shared out",
            "needs `rate`",
            "write the link's `rate` beside it",
        );
    }
    shares_rate
}

fn compression(top: &Reader<'_>) -> Option<Part> {
    match top.choice(&keys::COMPRESSION)? {
        "offer" => Some(Part::Offers),
        "accept" => Some(Part::Accepts),
        _ => None,
    }
}

fn mode(top: &Reader<'_>) -> Option<u32> {
    const READ_AND_WRITE: u32 = 0o666;
    let text = top.text(&keys::CONTROL_MODE)?;
    let mode = u32::from_str_radix(&text, 8);
    if let Ok(mode) = mode
        && mode & !READ_AND_WRITE == 0
    {
        return Some(mode);
    }
    top.note(
        top.span_of(&keys::CONTROL_MODE).unwrap_or_default(),
        format!("`control_mode = \"{text}\"` is no mode of a socket"),
        "allowed: 0000 to 0666, octal, without execution",
        "write `control_mode = \"0660\"` for owner and group, or `\"0666\"` for everybody",
    );
    None
}

fn limits(table: &Reader<'_>) -> Caps {
    let Caps(plain) = Caps::default();
    let count = |key: &'static Key, default: usize| {
        let number = table.integer(key);
        number.map_or(default, |n| usize::try_from(n).unwrap_or(usize::MAX))
    };
    let bytes = |key: &'static Key, default| table.quantity(key).map_or(default, ByteCount);
    let time =
        |key: &'static Key, default| table.quantity(key).map_or(default, Duration::from_nanos);
    Caps(Limits {
        flows: count(&keys::FLOWS, plain.flows),
        held_per_flow: bytes(&keys::HELD_PER_FLOW, plain.held_per_flow),
        held_in_all: bytes(&keys::HELD_IN_ALL, plain.held_in_all),
        other_packets: count(&keys::OTHER_PACKETS, plain.other_packets),
        other_bytes: bytes(&keys::OTHER_BYTES, plain.other_bytes),
        other_age: time(&keys::OTHER_AGE, plain.other_age),
        peers: count(&keys::PEERS, plain.peers),
        closed_timeout: time(&keys::CLOSED_TIMEOUT, plain.closed_timeout),
        opening_timeout: time(&keys::OPENING_TIMEOUT, plain.opening_timeout),
        established_timeout: time(&keys::ESTABLISHED_TIMEOUT, plain.established_timeout),
    })
}

fn watched(table: &Reader<'_>) -> Watched {
    let plain = Watched::default();
    Watched {
        carrier: table.switch(&keys::CARRIER).unwrap_or(plain.carrier),
        address: table.switch(&keys::ADDRESS).unwrap_or(plain.address),
        route: table.switch(&keys::ROUTE).unwrap_or(plain.route),
        neighbour: table.switch(&keys::NEIGHBOUR).unwrap_or(plain.neighbour),
        silence: table.switch(&keys::SILENCE).unwrap_or(plain.silence),
    }
}

fn silence(table: &Reader<'_>) -> SilenceConfig {
    let plain = SilenceConfig::default();
    let time =
        |key: &'static Key, default| table.quantity(key).map_or(default, Duration::from_nanos);
    let probes = table.integer(&keys::PROBES_PER_SECOND);
    SilenceConfig {
        shortest: time(&keys::SHORTEST_SILENCE, plain.shortest),
        probes_per_second: probes.map_or(plain.probes_per_second, |n| {
            u32::try_from(n).unwrap_or(u32::MAX)
        }),
        full_pace_for: time(&keys::FULL_PACE_FOR, plain.full_pace_for),
        given_up_after: time(&keys::GIVEN_UP_AFTER, plain.given_up_after),
    }
}

fn damping(table: &Reader<'_>) -> Damping {
    let plain = DampingConfig::default();
    let time =
        |key: &'static Key, default| table.quantity(key).map_or(default, Duration::from_nanos);
    let penalty = |key: &'static Key, default| {
        let number = table.integer(key);
        number.map_or(default, |n| u32::try_from(n).unwrap_or(u32::MAX))
    };
    let config = DampingConfig {
        half_life: time(&keys::HALF_LIFE, plain.half_life),
        cut_off: penalty(&keys::CUT_OFF, plain.cut_off),
        reuse: penalty(&keys::REUSE, plain.reuse),
        hold_down: time(&keys::HOLD_DOWN, plain.hold_down),
    };
    if config.reuse >= config.cut_off {
        let span = table.span_of(&keys::REUSE);
        table.note(
            span.or_else(|| table.span_of(&keys::CUT_OFF))
                .unwrap_or_default(),
            format!(
                "`reuse = {}` is no less than `cut_off = {}`",
                config.reuse, config.cut_off
            ),
            "a penalty could not be forgiven before it counts",
            "write a `reuse` of half the `cut_off`",
        );
    }
    let is_on = table.switch(&keys::DAMPING_ENABLED).unwrap_or(true);
    Damping(is_on.then_some(config))
}

/// Where the daemon of `interface` listens, unless somebody says otherwise.
pub fn control_of(interface: &str) -> PathBuf {
    Path::new(RUNTIME_DIRECTORY).join(format!("{interface}.{CONTROL_EXTENSION}"))
}

/// Whether who looks for daemons would take a socket at `path` for one's control socket.
pub(crate) fn may_be_control(path: &Path) -> bool {
    path.parent() == Some(Path::new(RUNTIME_DIRECTORY))
        && path
            .extension()
            .is_some_and(|kind| kind == CONTROL_EXTENSION)
}

#[cfg(test)]
mod tests;
