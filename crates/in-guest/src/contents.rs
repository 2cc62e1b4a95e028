//! The file system of a guest for tests: the executable, the command, and what both need.

use anyhow::Context;
use outlast_guest::{Image, Kernel, State};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Memory of a guest: it holds all files, too.
const MEMORY_MIB: u32 = 2_048;
/// Programs that tests start, where this machine has them.
const PROGRAMS: &[&str] = &[
    "awk",
    "basename",
    "bash",
    "cat",
    "chmod",
    "chown",
    "cmp",
    "cp",
    "curl",
    "cut",
    "date",
    "dd",
    "diff",
    "dirname",
    "dumpcap",
    "env",
    "ethtool",
    "expr",
    "false",
    "find",
    "getent",
    "grep",
    "head",
    "hostname",
    "id",
    "install",
    "ip",
    "iperf3",
    "kill",
    "ln",
    "ls",
    "mkdir",
    "mkfifo",
    "mknod",
    "mktemp",
    "mount",
    "mv",
    "nft",
    "nproc",
    "nsenter",
    "pgrep",
    "ping",
    "pkill",
    "printf",
    "ps",
    "readlink",
    "redis-cli",
    "redis-server",
    "rm",
    "rsync",
    "sed",
    "seq",
    "setpriv",
    "sleep",
    "sort",
    "ss",
    "ssh",
    "ssh-keygen",
    "sshd",
    "stat",
    "stty",
    "sysctl",
    "systemd-analyze",
    "tail",
    "tc",
    "tee",
    "test",
    "timeout",
    "touch",
    "tr",
    "true",
    "tshark",
    "tty",
    "umount",
    "uname",
    "unshare",
    "wc",
    "wg",
    "xargs",
];
/// Kernel modules that many tests use. None that gives every namespace an interface, as those of most tunnels do.
const MODULES: &[&str] = &[
    "8021q",
    "bridge",
    "cls_bpf",
    "esp4",
    "inet_diag",
    "macvlan",
    "nf_conntrack",
    "nf_tables",
    "nfnetlink",
    "nfnetlink_queue",
    "nft_chain_nat",
    "nft_ct",
    "nft_masq",
    "nft_nat",
    "nft_queue",
    "sch_fq_codel",
    "sch_ingress",
    "sch_netem",
    "tcp_diag",
    "udp_diag",
    "unix_diag",
    "wireguard",
    "xfrm_user",
];
/// Files of this machine's that those programs read.
const FILES: [&str; 6] = [
    "/etc/group",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/protocols",
    "/etc/services",
];
/// Directories of the repository that tests read from.
const DIRECTORIES: [&str; 3] = ["crates/outlast/tests", "examples", "packaging"];
const PYTHON: &str = "/usr/bin/python3";
/// Debian's directory of Python modules from other packages, and the beginnings of those that tests use.
const PACKAGES: (&str, [&str; 4]) = (
    "/usr/lib/python3/dist-packages",
    ["decorator", "prometheus_client", "seccomp", "websockets"],
);
/// Python's directory of compiled modules.
const CACHE: &str = "__pycache__";
/// Parts of Python's library that no program of a test's imports.
const NOT_OF_PYTHON: [&str; 8] = [
    CACHE,
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "test",
    "tkinter",
    "turtledemo",
];

/// The repository that this program was built from.
pub(crate) fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// The state of a guest on `kernel` that has `tests` and all that they need.
pub(crate) fn state(kernel: &Kernel, tests: &Path) -> anyhow::Result<State> {
    let work = TempDir::new().context("cannot make a temporary directory")?;
    let this = std::env::current_exe().context("cannot find this program's file")?;
    let mut image = Image::new(&this)
        .with_memory_mib(MEMORY_MIB)
        .with_modules_loaded(MODULES);
    // `target/debug/outlast` stands above `target/debug/deps/TESTS`.
    let command = tests.ancestors().nth(2).map(|place| place.join("outlast"));
    let command = command.filter(|command| command.is_file());
    for program in command.iter().map(PathBuf::as_path).chain([tests]) {
        image = image.with_program_at(program.to_owned(), &stripped(program, work.path())?);
    }
    for name in PROGRAMS {
        if let Some(program) = find(name) {
            image = image.with_program(&program);
        }
    }
    if let Some(shell) = find("sh") {
        image = image.with_program_at("/bin/sh".into(), &shell);
    }
    let repository = repository();
    let directories = DIRECTORIES.map(|directory| repository.join(directory));
    for file in FILES.iter().map(PathBuf::from).chain(directories) {
        if file.exists() {
            image = image.with_file_at(file.clone(), &file);
        }
    }
    image = with_python(image).context("cannot read Python's library")?;
    Ok(State::of(kernel, &image)?)
}

/// The program without what only debuggers read, which is most of it; the program itself where it cannot be stripped.
fn stripped(program: &Path, work: &Path) -> anyhow::Result<PathBuf> {
    let name = program.file_name().context("a program has a name")?;
    let small = work.join(name);
    let done = Command::new("strip")
        .arg("-o")
        .args([&small, program])
        .status();
    match done {
        Ok(status) if status.success() => Ok(small),
        _ => Ok(program.to_owned()),
    }
}

/// The first program of that name on the path.
fn find(name: &str) -> Option<PathBuf> {
    let places = std::env::var_os("PATH")?;
    let sbin = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut all = std::env::split_paths(&places)
        .chain(sbin)
        .map(|place| place.join(name));
    all.find(|path| path.is_file())
}

/// Adds Python and its library. Compiled modules go where their sources were: as such they need not be as old as those,
/// and no file in an image has a time.
fn with_python(mut image: Image) -> io::Result<Image> {
    let python = Path::new(PYTHON);
    let Ok(real) = python.canonicalize() else {
        return Ok(image);
    };
    image = image.with_program_at(PYTHON.into(), &real);
    let library = Path::new("/usr/lib").join(real.file_name().unwrap_or_default());
    image = with_modules(image, &library, &|name| !NOT_OF_PYTHON.contains(&name))?;
    let (packages, wanted) = PACKAGES;
    match Path::new(packages) {
        packages if packages.is_dir() => with_modules(image, packages, &|name| {
            wanted.iter().any(|wanted| name.starts_with(wanted))
        }),
        _ => Ok(image),
    }
}

/// Adds the modules in a directory: those at its top whose names are wanted, with all that is in them.
fn with_modules(
    mut image: Image,
    directory: &Path,
    is_wanted: &dyn Fn(&str) -> bool,
) -> io::Result<Image> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if !entry.file_name().to_str().is_some_and(is_wanted) {
            continue;
        }
        if path.is_dir() {
            image = with_modules(image, &path, &|name| name != CACHE)?;
            continue;
        }
        image = match path.extension().and_then(OsStr::to_str) {
            Some("so") => image.with_program(&path),
            Some("py") => match compiled(&path) {
                Some(compiled) => image.with_file_at(path.with_extension("pyc"), &compiled),
                None => image.with_file_at(path.clone(), &path),
            },
            _ => image,
        };
    }
    Ok(image)
}

/// The compiled form of a module of Python's, if there is one.
fn compiled(source: &Path) -> Option<PathBuf> {
    let cache = source.parent()?.join(CACHE);
    let stem = format!("{}.cpython-", source.file_stem()?.to_str()?);
    let entries = fs::read_dir(cache).ok()?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.find(|path| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let version = name
            .strip_prefix(&stem)
            .and_then(|rest| rest.strip_suffix(".pyc"));
        version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit()))
    })
}
