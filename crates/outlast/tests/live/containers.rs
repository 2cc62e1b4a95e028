//! A daemon in a container, and who asks it from outside: the kernel knows no process number of theirs
//! there.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::{Daemon, LINK, Path, skip};
use crate::support::Place;
use outlast_linux::process;
use rustix::fd::AsFd;
use std::process::Command;

#[test]
fn the_superuser_outside_of_the_daemons_container_may_give_orders() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    let contain = ["--pid", "--fork", "--kill-child"];
    if !Command::new("unshare")
        .args(contain)
        .arg("true")
        .status()
        .is_ok_and(|s| s.success())
    {
        return skip("no PID namespaces by unshare");
    }
    let control = place.path().join("control.sock");
    let inner = place.command(["run", "--interface", LINK, "--control"]);
    let mut command = Command::new("unshare");
    command
        .args(contain)
        .arg(inner.get_program())
        .args(inner.get_args())
        .arg(&control);
    command.current_dir(place.path());
    let network = path
        .gateway
        .as_fd()
        .try_clone_to_owned()
        .expect("descriptor");
    process::place(&mut command, None, network);
    let Some(daemon) = Daemon::begin(command, control) else {
        return;
    };
    let said = daemon.ask(&place, &["notify", "down"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = daemon.kill();
    assert!(!said.contains("cannot tell who a client is"), "{said}");
}
