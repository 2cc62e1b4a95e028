//! Foreign agents and a home link: a mobile host without any other address moves between two cells and
//! its home, and a host beside it that has no Mobile IP does the same.

mod kernel;
mod programs;

use super::{Daemon, HOME_ADDRESS, masquerade, sockets};
use crate::hip::{PATIENCE, Sender, connect, ip, read, skip};
use crate::path::metrics::ask;
use crate::support::{Place, report, status_at};
use outlast_base::time::Duration;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;

/// On the home link.
const CORRESPONDENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 50, 0, 9));
/// At home, too, and without Mobile IP.
const PLAIN: &str = "10.50.0.6/24";

/// Two cells, a home link, and whoever is there.
struct Hosts {
    /// Switches of the three links, and the router between the agents.
    core: Namespace,
    mobile: Namespace,
    plain: Namespace,
    agents: [Namespace; 2],
    home_agent: Namespace,
    correspondent: Namespace,
}

/// Where the mobile host can be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cell {
    A,
    B,
    Home,
}

impl Cell {
    const fn switch(self) -> &'static str {
        match self {
            Self::A => "cell_a",
            Self::B => "cell_b",
            Self::Home => "home",
        }
    }

    /// Where hosts have addresses of their own; at home the mobile host has its home address alone.
    const fn network(self) -> Option<&'static str> {
        match self {
            Self::A => Some("10.1.0"),
            Self::B => Some("10.2.0"),
            Self::Home => None,
        }
    }

    /// Where the mobile node says that it is.
    const fn place(self) -> &'static str {
        match self {
            Self::A => "10.1.9.2 of agent 10.1.0.1",
            Self::B => "10.2.9.2 of agent 10.2.0.1",
            Self::Home => "home",
        }
    }
}

impl Cell {
    /// What the mobile node's log says when it is registered there.
    fn registered(self) -> String {
        format!("registered at=\"{}\"", self.place())
    }
}

/// Which care-of address the mobile host has in a cell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CareOf {
    /// The foreign agent's.
    ForeignAgent,
    /// One of the cell's network.
    CoLocated,
    /// One of the cell's network, which nobody else knows: the router translates addresses.
    Translated,
}

impl CareOf {
    const fn is_co_located(self) -> bool {
        !matches!(self, Self::ForeignAgent)
    }

    /// What the mobile node's log says when it is registered in a cell.
    fn registered(self, cell: Cell) -> String {
        match cell.network() {
            Some(network) if self.is_co_located() => format!("registered at=\"{network}.7\""),
            _ => cell.registered(),
        }
    }
}

impl Hosts {
    /// Lets addresses of the cells be used, or translates them; whether that can be done.
    fn prepare(&self, care_of: CareOf) -> bool {
        match care_of {
            CareOf::ForeignAgent => true,
            CareOf::CoLocated => {
                let routes = [
                    "route add 10.1.0.0/24 via 10.1.9.2",
                    "route add 10.2.0.0/24 via 10.2.9.2",
                ];
                ip(&self.core, &routes);
                true
            }
            CareOf::Translated => {
                let [a, b] = &self.agents;
                let can =
                    masquerade(a, "10.1.0.0/24", "up0") && masquerade(b, "10.2.0.0/24", "up0");
                if !can {
                    skip("there is no nft, or no address translation");
                }
                can
            }
        }
    }

    /// Moves the mobile host, which is told by its link, and gives it what address it has there.
    fn hand_off(&self, cell: Cell, care_of: CareOf) {
        ip(&self.core, &["link set mobile0 down"]);
        if care_of.is_co_located() {
            ip(&self.mobile, &["address flush dev link0 scope global"]);
        }
        let attach = format!("link set mobile0 master {}", cell.switch());
        ip(&self.core, &[&attach, "link set mobile0 up"]);
        if care_of.is_co_located() {
            join_network(&self.mobile, cell, 7);
        }
    }

    /// Moves the host without Mobile IP to a cell, where it gets an address as the mobile host does.
    fn move_plain(&self, care_of: CareOf) {
        ip(&self.core, &["link set plain0 master cell_a"]);
        if care_of.is_co_located() {
            ip(&self.plain, &["address flush dev link0 scope global"]);
            join_network(&self.plain, Cell::A, 8);
        }
    }
}

/// Gives a host an address of a cell, and the route.
fn join_network(host: &Namespace, cell: Cell, number: u8) {
    if let Some(network) = cell.network() {
        ip(
            host,
            &[
                &format!("address add {network}.{number}/24 dev link0 scope global"),
                &format!("route replace default via {network}.1"),
            ],
        );
    }
}

impl Hosts {
    fn new() -> Option<Self> {
        let new = || {
            Namespace::new()
                .inspect_err(|error| skip(&error.to_string()))
                .ok()
        };
        let hosts = Self {
            core: new()?,
            mobile: new()?,
            plain: new()?,
            agents: [new()?, new()?],
            home_agent: new()?,
            correspondent: new()?,
        };
        let cable = |from: &str, to: &str, other: &Namespace| {
            let other: OwnedFd = other.as_fd().try_clone_to_owned().expect("a descriptor");
            let make = || {
                let mut routes = RouteSocket::open().expect("netlink");
                routes
                    .add_veth(from, to, Some(other.as_fd()))
                    .expect("a cable");
            };
            hosts.core.run(make).expect("enter");
        };
        // The kernel tells of a cable whose ends have the same number, here the first one, up to a second late.
        cable("corr0", "link0", &hosts.correspondent);
        cable("mobile0", "link0", &hosts.mobile);
        cable("plain0", "link0", &hosts.plain);
        let [a, b] = &hosts.agents;
        let agents = [
            ("a", a, "10.1.9", "10.1.0.1/24", Cell::A),
            ("b", b, "10.2.9", "10.2.0.1/24", Cell::B),
            ("h", &hosts.home_agent, "10.9.0", "10.50.0.1/24", Cell::Home),
        ];
        for (name, host, network, address, cell) in agents {
            let switch = cell.switch();
            cable(&format!("{name}up"), "up0", host);
            cable(&format!("{name}link"), "link0", host);
            ip(
                &hosts.core,
                &[
                    &format!("link add {switch} type bridge"),
                    &format!("link set {switch} up"),
                    &format!("link set {name}link master {switch} up"),
                    &format!("link set {name}up up"),
                    &format!("address add {network}.1/24 dev {name}up"),
                ],
            );
            ip(
                host,
                &[
                    "link set lo up",
                    "link set up0 up",
                    "link set link0 up",
                    &format!("address add {network}.2/24 dev up0"),
                    &format!("address add {address} dev link0"),
                    &format!("route add default via {network}.1"),
                ],
            );
        }
        for host in [&hosts.core, &hosts.home_agent, a, b] {
            let forward = || {
                outlast_linux::sysctl::write("net.ipv4.ip_forward", "1").expect("a router");
            };
            host.run(forward).expect("enter");
        }
        ip(
            &hosts.core,
            &[
                "route add 10.50.0.0/24 via 10.9.0.2",
                "link set corr0 master home up",
                "link set plain0 master home up",
            ],
        );
        for (host, address) in [
            (&hosts.correspondent, "10.50.0.9/24"),
            (&hosts.plain, PLAIN),
        ] {
            ip(
                host,
                &[
                    "link set lo up",
                    "link set link0 up",
                    &format!("address add {address} dev link0"),
                    "route add default via 10.50.0.1",
                ],
            );
        }
        ip(&hosts.mobile, &["link set lo up", "link set link0 up"]);
        Some(hosts)
    }

    /// Has the mobile host hear another cell; its link goes down meanwhile only if it `is_told`.
    fn move_to(&self, cell: Cell, is_told: bool) {
        let attach = format!("link set mobile0 master {}", cell.switch());
        let lines = match is_told {
            true => vec!["link set mobile0 down", &attach, "link set mobile0 up"],
            false => vec![&*attach, "link set mobile0 up"],
        };
        ip(&self.core, &lines);
    }

    fn start(&self, place: &Place, detection: &str) -> Daemons {
        self.start_for(place, detection, CareOf::ForeignAgent)
    }

    /// Starts all roles that a kind of care-of address needs.
    fn start_for(&self, place: &Place, detection: &str, care_of: CareOf) -> Daemons {
        configure(place, detection);
        self.start_configured(place, care_of)
    }

    /// Starts all roles that a kind of care-of address needs, as they are configured.
    fn start_configured(&self, place: &Place, care_of: CareOf) -> Daemons {
        let [a, b] = &self.agents;
        let agents = [
            ("home-agent", &self.home_agent, "home-agent.toml"),
            ("foreign-agent", a, "a.toml"),
            ("foreign-agent", b, "b.toml"),
        ];
        let count = if care_of.is_co_located() {
            1
        } else {
            agents.len()
        };
        let start = |&(role, host, config): &(&str, &Namespace, &str)| {
            let daemon = Daemon::start_with(place, host, role, config);
            daemon.await_lines("agent begins", 1);
            daemon
        };
        let agents = agents[..count].iter().map(start).collect();
        let mobile = Daemon::start(place, &self.mobile, "mobile-node");
        Daemons { agents, mobile }
    }
}

struct Daemons {
    /// The home agent, and both foreign agents if the mobile host needs them.
    agents: Vec<Daemon>,
    mobile: Daemon,
}

impl Daemons {
    fn said(&self) -> String {
        let agents = self.agents.iter().map(Daemon::said);
        self.mobile.said() + &agents.collect::<String>()
    }
}

fn configure(place: &Place, detection: &str) {
    // Where the link tells, nobody has to wait for an advertisement.
    let interval_ms = if detection == "link" { 60_000 } else { 1_000 };
    let said = place.run(["mobile-ip", "key", "key", "--spi", "4096"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    place.file(
        "home-agent.toml",
        &format!(
            "[home_agent]\naddress = \"10.50.0.1\"\ninterface = \"link0\"\n\
             interval_ms = {interval_ms}\n{}\n\
             [[home_agent.mobiles]]\nhome_address = \"{HOME_ADDRESS}\"\nkey = \"key\"\n",
            sockets(place, "home-agent")
        ),
    );
    for (name, network) in [("a", "10.1"), ("b", "10.2")] {
        place.file(
            &format!("{name}.toml"),
            &format!(
                "[foreign_agent]\ninterface = \"link0\"\naddress = \"{network}.0.1\"\n\
                 care_of_address = \"{network}.9.2\"\ninterval_ms = {interval_ms}\n{}",
                sockets(place, name)
            ),
        );
    }
    place.file(
        "mobile-node.toml",
        &format!(
            "[mobile_node]\nhome_address = \"{HOME_ADDRESS}\"\nhome_agent = \"10.50.0.1\"\n\
             key = \"key\"\ninterface = \"link0\"\ndetection = \"{detection}\"\n\
             home_network = \"10.50.0.0/24\"\n{}",
            sockets(place, "mobile-node")
        ),
    );
}

/// Reads 200 kB more, however often nothing comes for a while; whether so much came.
fn resume(stream: &mut TcpStream, at: &mut usize) -> bool {
    let begun = clock::now();
    let goal = *at + 200_000;
    while clock::now() - begun < PATIENCE {
        if read(stream, at, goal - *at) {
            return true;
        }
    }
    false
}

/// A capture of messages by `dumpcap`.
struct Capture {
    program: Child,
    file: PathBuf,
}

impl Capture {
    /// Begins to capture in a namespace; `None` if there is no such program.
    fn start(host: &Namespace, file: PathBuf) -> Option<Self> {
        let start = || {
            Command::new("dumpcap")
                .args(["-q", "-i", "any", "-f", "udp port 434 or icmp", "-w"])
                .arg(&file)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
        };
        let Ok(mut program) = host.run(start).expect("enter") else {
            skip("dumpcap and tshark are not installed");
            return None;
        };
        // It names the file when it captures.
        let mut said = program.stderr.take().expect("piped");
        let mut text = Vec::new();
        let mut byte = [0];
        while !text.ends_with(b"File:") {
            let count = said.read(&mut byte).expect("a pipe");
            assert_ne!(count, 0, "{}", String::from_utf8_lossy(&text));
            text.push(byte[0]);
        }
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Some(Self { program, file })
    }

    fn end(mut self) -> PathBuf {
        let pid = Pid::from_child(&self.program);
        kill_process(pid, Signal::INT).expect("it runs");
        self.program.wait().expect("it ends");
        std::mem::take(&mut self.file)
    }
}

/// How many packets of a file match.
fn matching(file: &Path, filter: &str) -> usize {
    let output = Command::new("tshark")
        .args(["-o", "udp.check_checksum:TRUE", "-Y", filter, "-r"])
        .arg(file)
        .output()
        .expect("tshark comes with dumpcap");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).lines().count()
}

/// Has tshark read what was captured, and complain of nothing. A mobile node `solicits` where no
/// advertisement comes first.
fn judge(files: &[PathBuf], solicits: bool) {
    let all = |filter: &str| -> usize { files.iter().map(|file| matching(file, filter)).sum() };
    let complaint = "(mip || icmp.type == 9 || icmp.type == 10) && (_ws.malformed || \
                     _ws.expert.severity >= \"Warning\" || udp.checksum.status == 0 || \
                     icmp.checksum.status == 0)";
    assert_eq!(all(complaint), 0, "{files:?}");
    if solicits {
        assert_ne!(all("icmp.type == 10"), 0, "no solicitation");
    }
    for filter in [
        "icmp.type == 9 && icmp.mip.type == 16",
        "mip.type == 1 && mip.life == 0",
        "mip.type == 1 && mip.life > 0",
        "mip.type == 3 && mip.code == 0",
    ] {
        assert_ne!(all(filter), 0, "{filter}");
    }
}

/// Moves from A to B, home, and to A again with a transfer; no hand-off takes longer than `longest`.
fn roam(detection: &str, longest: Duration) {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    hosts.move_to(Cell::A, false);
    let [a, _] = &hosts.agents;
    let captures = [("a.pcapng", a), ("h.pcapng", &hosts.home_agent)];
    let captures = captures.map(|(name, host)| Capture::start(host, place.path().join(name)));
    let daemons = hosts.start(&place, detection);
    let mobile = &daemons.mobile;
    mobile.await_lines(&Cell::A.registered(), 1);
    let sender = Sender::start(&hosts.correspondent);
    let mut stream = connect(&hosts.mobile, CORRESPONDENT, sender.port);
    let own = stream.local_addr().expect("connected").ip();
    assert_eq!(own, HOME_ADDRESS, "applications use the home address");
    let mut at = 0;
    assert!(read(&mut stream, &mut at, 200_000), "before any move");
    for (cell, times) in [(Cell::B, 1), (Cell::Home, 1), (Cell::A, 2)] {
        hosts.move_to(cell, detection == "link");
        let moved = clock::now();
        mobile.await_lines(&cell.registered(), times);
        let registered = clock::now() - moved;
        let goes_on = resume(&mut stream, &mut at);
        assert!(goes_on, "{detection}, {cell:?}: {}", daemons.said());
        report(&format!(
            "{detection}, to {cell:?}: registered after {} ms, 200 kB more after {} ms",
            registered.as_millis(),
            (clock::now() - moved).as_millis()
        ));
        assert!(
            registered < longest,
            "{detection}, {cell:?}: {}",
            daemons.said()
        );
    }
    sender.is_over.store(true, Ordering::Relaxed);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("to its end");
    sender.thread.join().expect("the sender ends");
    let files: Vec<PathBuf> = captures.into_iter().flatten().map(Capture::end).collect();
    if !files.is_empty() {
        judge(&files, detection == "link");
    }
}

fn status(place: &Place, name: &str) -> Value {
    status_at(&place.path().join(format!("{name}.sock")))
}

/// The samples that a daemon serves.
fn metrics(place: &Place, name: &str) -> String {
    let at = place.path().join(name).with_extension("metrics");
    let stream = UnixStream::connect(at).expect("it listens");
    let (head, body) = ask(stream, "GET /metrics HTTP/1.1\r\nHost: host\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    body
}

/// What all daemons tell of a mobile node that is in a cell.
#[test]
fn status_and_metrics_of_all_roles_follow_a_move_and_reload_says_what_cannot_change() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    hosts.move_to(Cell::A, false);
    let daemons = hosts.start(&place, "eager");
    daemons.mobile.await_lines(&Cell::A.registered(), 1);
    let visitors = |name: &str| status(&place, name)["mobiles"].clone();
    let home = HOME_ADDRESS.to_string();
    let told = &visitors("home-agent")[0];
    assert_eq!(
        (&told["home_address"], &told["at"][0]),
        (&home.clone().into(), &"10.1.9.2".into())
    );
    assert_eq!(visitors("a")[0]["home_address"], home);
    assert_eq!(visitors("b"), Value::Array(Vec::new()));
    let node = status(&place, "mobile-node");
    assert_eq!(node["place"]["at"], Cell::A.place(), "{node:#}");
    assert_eq!(node["place"]["is_registered"], true, "{node:#}");
    for (name, line) in [
        ("home-agent", "outlast_mobile_ip_mobiles 1.0\n"),
        ("a", "outlast_mobile_ip_mobiles 1.0\n"),
        ("b", "outlast_mobile_ip_mobiles 0.0\n"),
        ("mobile-node", "outlast_mobile_ip_registered 1.0\n"),
    ] {
        let body = metrics(&place, name);
        assert!(body.contains(line), "{name}: {body}");
    }

    hosts.move_to(Cell::B, false);
    daemons.mobile.await_lines(&Cell::B.registered(), 1);
    assert_eq!(visitors("home-agent")[0]["at"][0], "10.2.9.2");
    assert_eq!(visitors("b")[0]["home_address"], home);
    hosts.move_to(Cell::Home, false);
    daemons.mobile.await_lines(&Cell::Home.registered(), 1);
    let told = &visitors("home-agent")[0];
    assert_eq!(told["at"], Value::Array(Vec::new()), "{told}");
    assert_eq!(status(&place, "mobile-node")["place"]["at"], "home");
    let text = place.run(["status", "--control", "mobile-node.sock"]).out;
    assert!(text.contains("home, registered"), "{text}");

    let reload = |name: &str| place.run(["reload", "--control", &format!("{name}.sock")]);
    for name in ["home-agent", "a", "mobile-node"] {
        let said = reload(name);
        assert_eq!(said.code, Some(0), "{name}: {said:?}");
        let file = format!("{name}.toml");
        let text = std::fs::read_to_string(place.path().join(&file)).expect("ours");
        let (table, rest) = text.split_once('\n').expect("lines");
        place.file(&file, &format!("{table}\nmtu = 1300\n{rest}"));
        reload(name).refuses(1, &["mtu cannot change"]);
    }
}

/// An advertisement of the other agent's comes within 1.1 s. A busy machine is late.
#[test]
fn eager_detection_keeps_a_connection_through_foreign_agents_and_home() {
    roam("eager", Duration::from_secs(4));
}

/// The old agent's lifetime of 3 s ends, and the other agent is heard already.
#[test]
fn lazy_detection_keeps_a_connection_through_foreign_agents_and_home() {
    roam("lazy", Duration::from_secs(8));
}

/// As lazy detection: the registration is not renewed within the test.
#[test]
fn prefix_matching_keeps_a_connection_through_foreign_agents_and_home() {
    roam("prefix", Duration::from_secs(8));
}

/// The link tells: a solicitation is answered at once, and the next advertisement is a minute away. The
/// kernel may take a second to tell, and the first solicitation may be lost.
#[test]
fn link_indications_keep_a_connection_through_foreign_agents_and_home() {
    roam("link", Duration::from_secs(6));
}

/// The control: the same move without Mobile IP.
#[test]
fn without_mobile_ip_a_host_that_leaves_its_home_loses_its_connection() {
    let Some(hosts) = Hosts::new() else { return };
    let sender = Sender::start(&hosts.correspondent);
    let mut stream = connect(&hosts.plain, CORRESPONDENT, sender.port);
    let mut at = 0;
    assert!(read(&mut stream, &mut at, 200_000), "at home");
    ip(&hosts.core, &["link set plain0 master cell_a"]);
    assert!(
        !read(&mut stream, &mut at, 2_000_000),
        "it goes on without Mobile IP: these tests show nothing"
    );
    ip(&hosts.core, &["link set plain0 master home"]);
    sender.is_over.store(true, Ordering::Relaxed);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("to its end");
    sender.thread.join().expect("the sender ends");
}
