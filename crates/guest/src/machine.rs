//! An emulated machine: a QEMU process and its console.
//!
//! Repeatable to the byte, it needs: a clock that counts instructions at a fixed rate (`-icount shift=N,sleep=off`), a
//! fixed seed and a fixed date, one processor, and no device that a thread of the host's completes (no disk, no network
//! card, no virtio). QEMU's main loop must run before its processor's thread on the same processor of the host's: else it
//! may read the clock while the guest's processor has halted and not yet counted its last instructions.

use crate::monitor::{Monitor, Silence};
use crate::processor::Processor;
use crate::{Architecture, GuestError, Kernel, Limits};
use outlast_linux::priority;
use outlast_linux::process::end_with_this_thread;
use rustix::process::Pid;
use serde_json::json;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The option on the kernel's command line that tells a guest's memory, in MiB.
pub(crate) const MEMORY_OPTION: &str = "mem=";
/// Length of the console's end that an error shows, in bytes.
const CONSOLE_END: usize = 2_000;
/// Pause between two looks at whether somebody has asked for an end.
const LOOK: Duration = Duration::from_millis(100);
/// Longest time in which the emulator reads or writes a state.
const STATE_PATIENCE: Duration = Duration::from_secs(120);

/// Properties of a machine that its image chooses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Hardware {
    pub(crate) memory_mib: u32,
    /// An instruction takes 2 to the power of so many nanoseconds of the guest's time.
    pub(crate) clock_shift: u32,
}

impl Default for Hardware {
    fn default() -> Self {
        Self {
            memory_mib: 1_024,
            clock_shift: 1,
        }
    }
}

/// The files that a machine is made of.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) hardware: Hardware,
    pub(crate) initial: &'a Path,
    /// The guest's memory.
    pub(crate) memory: &'a Path,
    pub(crate) mailbox: &'a Path,
    pub(crate) console: PathBuf,
}

/// Beginning of a machine: from nothing, or from a state.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Beginning {
    /// It boots, and what it does to its memory stays in the file.
    Boot,
    /// It waits for its saved state; the file with its memory stays as it is.
    Saved,
}

/// A running machine. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Machine {
    emulator: Child,
    monitor: Monitor,
    console: PathBuf,
    complaints: PathBuf,
}

/// The emulator of an architecture, and the package that has it.
pub(crate) fn emulator(architecture: Architecture) -> (&'static str, &'static str) {
    match architecture {
        Architecture::Amd64 => ("qemu-system-x86_64", "qemu-system-x86"),
        Architecture::Arm64 => ("qemu-system-aarch64", "qemu-system-arm"),
    }
}

/// First line of the emulator's `--version`; saved states are bound to it.
pub(crate) fn version(architecture: Architecture) -> Result<String, GuestError> {
    let (program, package) = emulator(architecture);
    let said = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    let said = said.map_err(|error| missing(program, package, error))?;
    Ok(String::from_utf8_lossy(&said.stdout)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned())
}

fn missing(program: &str, package: &'static str, error: io::Error) -> GuestError {
    if error.kind() == io::ErrorKind::NotFound {
        GuestError::Program {
            program: program.to_owned(),
            package,
        }
    } else {
        GuestError::Emulator(error.to_string())
    }
}

/// All that decides how a machine of this architecture behaves, but for its files.
pub(crate) fn constants(architecture: Architecture, hardware: Hardware) -> Vec<String> {
    let Hardware {
        memory_mib,
        clock_shift,
    } = hardware;
    let (machine, processor, console) = match architecture {
        Architecture::Amd64 => ("pc", "max", "ttyS0 tsc=reliable"),
        // The architecture's own cipher of pointers takes two and a half times as long to emulate.
        Architecture::Arm64 => ("virt,gic-version=3", "max,pauth-impdef=on", "ttyAMA0"),
    };
    let clock = format!("shift={clock_shift},sleep=off");
    let memory = format!("{}M", u64::from(memory_mib) + (crate::mailbox::ROOM >> 20));
    // Programs have the same addresses each time they are started: what the emulator has translated serves again.
    let command_line = format!(
        "console={console} {MEMORY_OPTION}{memory_mib}M numa=off quiet panic=-1 random.trust_cpu=on norandmaps"
    );
    [
        "-machine",
        machine,
        "-accel",
        "tcg,thread=single",
        "-icount",
        &clock,
        "-seed",
        "7",
        "-rtc",
        "base=2026-01-01T00:00:00,clock=vm",
        "-smp",
        "1",
        "-cpu",
        processor,
        "-m",
        &memory,
        "-nodefaults",
        "-display",
        "none",
        "-no-reboot",
        "-device",
        "pvpanic-pci",
        "-action",
        "panic=pause",
        "-numa",
        "node,memdev=memory",
        "-numa",
        "node,memdev=mailbox",
        "-append",
        &command_line,
    ]
    .map(str::to_owned)
    .into()
}

/// A path as part of an option: commas are doubled.
fn option(before: &str, path: &Path) -> OsString {
    let path = path.to_string_lossy().replace(',', ",,");
    format!("{before}{path}").into()
}

impl Machine {
    pub(crate) fn start(parts: &Parts<'_>, beginning: Beginning) -> Result<Self, GuestError> {
        let architecture = parts.kernel.architecture();
        let (program, package) = emulator(architecture);
        let share = if beginning == Beginning::Boot {
            "on"
        } else {
            "off"
        };
        let memory_mib = parts.hardware.memory_mib;
        let memory =
            format!("memory-backend-file,id=memory,size={memory_mib}M,share={share},mem-path=");
        let room = crate::mailbox::ROOM;
        let mailbox = format!("memory-backend-file,id=mailbox,size={room},share=on,mem-path=");
        let complaints = parts.console.with_extension("emulator");
        let stderr = File::create(&complaints).map_err(GuestError::file("make", &complaints))?;
        let mut command = Command::new(program);
        command
            .args(["-qmp", "stdio", "-kernel"])
            .arg(parts.kernel.image())
            .arg("-initrd")
            .arg(parts.initial)
            .arg("-object")
            .arg(option(&memory, parts.memory))
            .arg("-object")
            .arg(option(&mailbox, parts.mailbox))
            .arg("-serial")
            .arg(option("file:", &parts.console))
            .args(constants(architecture, parts.hardware))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr);
        match beginning {
            // It waits for `go_on`.
            Beginning::Boot => command.arg("-S"),
            Beginning::Saved => command.args(["-incoming", "defer"]),
        };
        end_with_this_thread(&mut command);
        // Ctrl-C in a terminal is for this process, which then ends the emulator.
        command.process_group(0);
        let mut emulator = command
            .spawn()
            .map_err(|error| missing(program, package, error))?;
        let pipes = emulator.stdin.take().zip(emulator.stdout.take());
        let (commands, answers) = pipes.expect("both are pipes");
        let monitor = Monitor::new(commands, answers)
            .map_err(|error| GuestError::Emulator(error.to_string()))?;
        let mut machine = Self {
            emulator,
            monitor,
            console: parts.console.clone(),
            complaints,
        };
        machine.ask("qmp_capabilities", json!({}))?;
        // The memory is a file already, and an event tells when a state is complete.
        let on = |name| json!({"capability": name, "state": true});
        machine.ask(
            "migrate-set-capabilities",
            json!({"capabilities": [on("x-ignore-shared"), on("events")]}),
        )?;
        Ok(machine)
    }

    /// Waits until the guest has stopped itself.
    pub(crate) fn wait_for_stop(&mut self, limits: &Limits<'_>) -> Result<(), GuestError> {
        const STOPPED: &str = "GUEST_PANICKED";
        let mut left = limits.real_time;
        let heard = loop {
            let wait = left.min(LOOK);
            let heard = self.monitor.wait_for(&[STOPPED, "SHUTDOWN", "RESET"], wait);
            if limits
                .is_cancelled
                .is_some_and(|is_cancelled| is_cancelled())
            {
                return Err(GuestError::Cancelled);
            }
            left -= wait;
            if !matches!(heard, Err(Silence::Long)) || left.is_zero() {
                break heard;
            }
        };
        let what = match heard {
            Ok(STOPPED) => return Ok(()),
            Ok(_) => "ended before its job",
            Err(Silence::Ended) => "ended with its emulator",
            Err(Silence::Long) => "did not end in time",
        };
        Err(self.lost(what))
    }

    /// Writes the state of all but the memory, which is in its file.
    pub(crate) fn save(mut self, devices: &Path) -> Result<(), GuestError> {
        let to = format!("exec:cat >{}", quoted(devices)?);
        self.ask("migrate", json!({"uri": to}))?;
        self.migrated("write its state")?;
        // Its memory is written out by its end.
        self.ask("quit", json!({}))?;
        let ended = self.emulator.wait();
        ended
            .map(drop)
            .map_err(|error| GuestError::Emulator(error.to_string()))
    }

    /// Reads the state that was saved.
    pub(crate) fn restore(&mut self, devices: &Path) -> Result<(), GuestError> {
        let from = format!("exec:cat {}", quoted(devices)?);
        self.ask("migrate-incoming", json!({"uri": from}))?;
        self.migrated("read its state")
    }

    fn migrated(&mut self, what: &'static str) -> Result<(), GuestError> {
        const DONE: &str = "MIGRATION completed";
        match self
            .monitor
            .wait_for(&[DONE, "MIGRATION failed"], STATE_PATIENCE)
        {
            Ok(DONE) => Ok(()),
            _ => Err(GuestError::Emulator(format!(
                "it cannot {what}: {}",
                self.complaints()
            ))),
        }
    }

    /// Lets the machine go on from where it stopped, on `processor`. True if it is sure to be repeatable: without the right to
    /// real-time priority, runs on a busy host may differ by nanoseconds.
    pub(crate) fn go_on(&mut self, processor: &Processor) -> Result<bool, GuestError> {
        let held = processor.hold(self.emulator.id());
        held.map_err(|error| {
            GuestError::Emulator(format!(
                "its threads cannot be kept on a processor: {error}"
            ))
        })?;
        let main_loop = i32::try_from(self.emulator.id())
            .ok()
            .and_then(Pid::from_raw);
        let first = main_loop.is_some_and(|thread| priority::put_first(thread).is_ok());
        self.ask("cont", json!({}))?;
        Ok(first)
    }

    fn ask(&mut self, command: &str, arguments: serde_json::Value) -> Result<(), GuestError> {
        self.monitor
            .ask(command, arguments)
            .map(drop)
            .map_err(|error| match error {
                GuestError::Emulator(what) => {
                    GuestError::Emulator(format!("{what}: {}", self.complaints()))
                }
                other => other,
            })
    }

    /// The end of what the emulator wrote to its standard error.
    fn complaints(&self) -> String {
        let text = fs::read(&self.complaints).unwrap_or_default();
        String::from_utf8_lossy(&text).trim().to_owned()
    }

    pub(crate) fn lost(&self, what: &'static str) -> GuestError {
        let console = fs::read(&self.console).unwrap_or_default();
        let end = console.len().saturating_sub(CONSOLE_END);
        let mut console = String::from_utf8_lossy(&console[end..]).into_owned();
        console.push_str(&self.complaints());
        GuestError::Lost {
            what,
            console: console.trim().replace('\r', ""),
        }
    }
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> Result<String, GuestError> {
    let path = path.to_str().filter(|path| !path.contains('\''));
    let path = path.ok_or_else(|| {
        GuestError::Emulator("the directory of saved states has an apostrophe in its name".into())
    })?;
    Ok(format!("'{path}'"))
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The one possible failure is that it has ended.
        let _ = self.emulator.kill();
        let _ = self.emulator.wait();
    }
}
