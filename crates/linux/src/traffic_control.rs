//! Attaching programs to traffic control so that none outlives the process.
//!
//! From Linux 6.6 on a program is attached by a link (tcx), which the kernel closes with the process. Before, it is
//! attached by a filter, which stays until somebody removes it. So the filter does not run the program itself but a
//! [`Trampoline`] of a few instructions, which jumps to the program in an array and else lets the packet pass. The
//! kernel empties such an array as soon as no process has it open: after the end of a daemon, however it ends, the
//! programs and their maps are gone, and what is left passes every packet. The guardian removes it
//! ([`remove_left_filters`]), or else the next daemon at the interface.

mod owner;

use crate::netlink::filters::{ListedFilter, Side};
use crate::netlink::{InterfaceIndex, NetlinkError, RouteSocket};
use crate::sys::bpf::{self, Hook};
use owner::Owner;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The priority of filters that have to be first, and of those that follow others.
const FIRST: u16 = 1;
const LAST: u16 = 0xc000;
/// The handle of the first filter of this program at a priority: "outl", so that nobody else replaces it by chance.
const HANDLE: u32 = u32::from_be_bytes(*b"outl");
/// Filters of this program that there may be at one priority.
const MOST_FILTERS: u32 = 16;

/// The place of a program among those of others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    /// Before all that are there.
    First,
    /// Behind all that are there.
    Last,
}

/// A loaded program's way to interfaces.
#[derive(Debug)]
pub(crate) struct Way {
    trampoline: Option<Trampoline>,
}

impl Way {
    /// The best way that this kernel has. Needs `CAP_BPF` where it has no links.
    pub(crate) fn of(program: BorrowedFd<'_>) -> io::Result<Self> {
        let trampoline = match bpf::has_tcx(program) {
            true => None,
            false => Some(Trampoline::to(program)?),
        };
        Ok(Self { trampoline })
    }

    /// The way by a filter, also where the kernel has links.
    #[cfg(test)]
    pub(crate) fn by_filter(program: BorrowedFd<'_>) -> io::Result<Self> {
        let trampoline = Some(Trampoline::to(program)?);
        Ok(Self { trampoline })
    }

    /// The kernel's name of the way.
    pub(crate) const fn name(&self) -> &'static str {
        match self.trampoline {
            None => "tcx",
            Some(_) => "cls_bpf",
        }
    }

    /// Lets packets of an interface go through `program`, of which this is the way. Needs `CAP_NET_ADMIN`.
    pub(crate) fn attach(
        &self,
        program: BorrowedFd<'_>,
        spot: &mut Spot,
        hook: Hook,
        order: Order,
    ) -> io::Result<Attachment> {
        let Some(trampoline) = &self.trampoline else {
            let link = bpf::attach_tcx(program, spot.interface.0, hook, order == Order::First)?;
            return Ok(Attachment::Link { _link: link });
        };
        let clsact = match &spot.clsact {
            Some(clsact) => Arc::clone(clsact),
            None => Arc::new(Clsact::at(spot.interface).map_err(as_io)?),
        };
        spot.clsact = Some(Arc::clone(&clsact));
        let (side, program) = (side_of(hook), trampoline.program.as_fd());
        let filter = clsact.add(side, order, program)?;
        let filter = Filter {
            clsact,
            side,
            filter,
        };
        Ok(Attachment::Filter { _filter: filter })
    }
}

/// An interface at which programs are to be attached.
#[derive(Debug)]
pub(crate) struct Spot {
    interface: InterfaceIndex,
    clsact: Option<Arc<Clsact>>,
}

impl Spot {
    /// The interface of the calling thread's network namespace.
    pub(crate) const fn at(interface: InterfaceIndex) -> Self {
        Self {
            interface,
            clsact: None,
        }
    }
}

/// An attached program. Dropping it detaches the program.
#[derive(Debug)]
pub(crate) enum Attachment {
    /// By a link.
    Link {
        /// Only held.
        _link: OwnedFd,
    },
    /// By a filter.
    Filter {
        /// Only held.
        _filter: Filter,
    },
}

/// A program that jumps to another one as long as a process has their array open.
#[derive(Debug)]
struct Trampoline {
    program: OwnedFd,
    /// Only held: with its last descriptor it is emptied.
    _array: OwnedFd,
}

impl Trampoline {
    fn to(program: BorrowedFd<'_>) -> io::Result<Self> {
        let array = bpf::create_program_array()?;
        let trampoline = bpf::load_trampoline(array.as_fd())?;
        bpf::put_program(array.as_fd(), program)?;
        Ok(Self {
            program: trampoline,
            _array: array,
        })
    }
}

/// The filters of an interface. Dropped, it removes the queueing discipline that Outlast has made for them, unless
/// others have filters there by now.
#[derive(Debug)]
struct Clsact {
    interface: InterfaceIndex,
    kernel: Mutex<Kernel>,
}

#[derive(Debug)]
struct Kernel {
    /// Speaks about the namespace in which the interface is, whoever drops this.
    route: RouteSocket,
    /// The queueing discipline is this process's, or that of one which has ended.
    is_made: bool,
}

impl Clsact {
    fn at(interface: InterfaceIndex) -> Result<Self, NetlinkError> {
        let mut route = RouteSocket::open()?;
        let is_made = route.add_clsact(interface)?;
        Ok(Self {
            interface,
            kernel: Mutex::new(Kernel { route, is_made }),
        })
    }

    fn kernel(&self) -> MutexGuard<'_, Kernel> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a filter, and removes those that ended processes have left at that side.
    fn add(&self, side: Side, order: Order, program: BorrowedFd<'_>) -> io::Result<ListedFilter> {
        let kernel = &mut *self.kernel();
        let route = &mut kernel.route;
        let found = Found::at(route, self.interface, side).map_err(as_io)?;
        kernel.is_made |= found.is_made;
        if order == Order::First && found.is_somebody_first {
            // It might end the line, and this program would see nothing.
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        let mut filter = ListedFilter {
            priority: match order {
                Order::First => FIRST,
                Order::Last => LAST,
            },
            handle: HANDLE,
            name: Some(Owner::this_process(kernel.is_made)?.to_string()),
        };
        loop {
            match route.add_filter(self.interface, side, &filter, program) {
                Ok(()) => return Ok(filter),
                Err(NetlinkError::Refused { source, .. })
                    if source.kind() == io::ErrorKind::AlreadyExists
                        && filter.handle < HANDLE + MOST_FILTERS =>
                {
                    filter.handle += 1;
                }
                Err(error) => return Err(as_io(error)),
            }
        }
    }
}

/// The filters of one side, as they were found.
struct Found {
    /// An ended process of Outlast's has made the queueing discipline.
    is_made: bool,
    /// Another program's filter has the first priority.
    is_somebody_first: bool,
}

impl Found {
    /// Looks at the filters of one side, and removes those of ended processes.
    fn at(
        route: &mut RouteSocket,
        interface: InterfaceIndex,
        side: Side,
    ) -> Result<Self, NetlinkError> {
        let mut found = Self {
            is_made: false,
            is_somebody_first: false,
        };
        for filter in route.filters(interface, side)? {
            match filter.name.as_deref().and_then(Owner::named) {
                Some(owner) if owner.has_ended() => {
                    // Perhaps somebody was faster.
                    let _ = route.remove_filter(interface, side, &filter);
                    found.is_made |= owner.has_made_clsact;
                }
                Some(_) => {}
                None => found.is_somebody_first |= filter.priority <= FIRST,
            }
        }
        Ok(found)
    }
}

/// Removes the filters that ended processes have left at an interface.
pub(crate) fn remove_left_filters(interface: InterfaceIndex) -> Result<(), NetlinkError> {
    let mut route = RouteSocket::open()?;
    let mut is_made = false;
    for side in [Side::Ingress, Side::Egress] {
        is_made |= Found::at(&mut route, interface, side)?.is_made;
    }
    let kernel = Mutex::new(Kernel { route, is_made });
    // Removes the queueing discipline if nobody needs it.
    drop(Clsact { interface, kernel });
    Ok(())
}

impl Drop for Clsact {
    fn drop(&mut self) {
        let kernel = self.kernel.get_mut();
        let Kernel { route, is_made } = kernel.unwrap_or_else(PoisonError::into_inner);
        let mut is_empty = |side| {
            let filters = route.filters(self.interface, side);
            filters.is_ok_and(|filters| filters.is_empty())
        };
        if *is_made && is_empty(Side::Ingress) && is_empty(Side::Egress) {
            // The interface may be gone.
            let _ = route.remove_clsact(self.interface);
        }
    }
}

/// A filter of this process. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Filter {
    clsact: Arc<Clsact>,
    side: Side,
    filter: ListedFilter,
}

impl Drop for Filter {
    fn drop(&mut self) {
        let route = &mut self.clsact.kernel().route;
        // The interface may be gone.
        let _ = route.remove_filter(self.clsact.interface, self.side, &self.filter);
    }
}

const fn side_of(hook: Hook) -> Side {
    match hook {
        Hook::Ingress => Side::Ingress,
        Hook::Egress => Side::Egress,
    }
}

fn as_io(error: NetlinkError) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lack::errno;
    use crate::netlink::InterfaceSettings;
    use crate::sys::bpf::Word;
    use crate::testing::fresh_namespace;
    use std::net::UdpSocket;
    use std::time::Duration;

    const LOOPBACK: InterfaceIndex = InterfaceIndex(1);

    /// Runs `work` in a namespace of its own with a program and its way by a filter.
    fn with_program(work: impl FnOnce(BorrowedFd<'_>, &Way) + Send) {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let made = bpf::load_program(Word::Next).and_then(|program| {
            let way = Way::by_filter(program.as_fd())?;
            Ok((program, way))
        });
        match made {
            Ok((program, way)) => namespace
                .run(|| work(program.as_fd(), &way))
                .expect("enter"),
            Err(error) => outlast_skip::skip(error),
        }
    }

    fn filters(side: Side) -> Vec<ListedFilter> {
        let mut route = RouteSocket::open().expect("netlink");
        route.filters(LOOPBACK, side).expect("list")
    }

    fn has_clsact() -> bool {
        let is_new = RouteSocket::open()
            .expect("netlink")
            .add_clsact(LOOPBACK)
            .expect("clsact");
        if is_new {
            let mut route = RouteSocket::open().expect("netlink");
            route.remove_clsact(LOOPBACK).expect("remove");
        }
        !is_new
    }

    fn left_over(name: &str, priority: u16) -> ListedFilter {
        ListedFilter {
            priority,
            handle: 1,
            name: Some(name.into()),
        }
    }

    #[test]
    fn an_attachment_takes_away_all_that_it_brought() {
        with_program(|program, way| {
            let mut spot = Spot::at(LOOPBACK);
            let attached = [Hook::Egress, Hook::Ingress].map(|hook| {
                way.attach(program, &mut spot, hook, Order::First)
                    .expect("attach")
            });
            drop(spot);
            assert_eq!(filters(Side::Egress).len(), 1);
            let others = way.attach(program, &mut Spot::at(LOOPBACK), Hook::Ingress, Order::Last);
            let mine = filters(Side::Ingress);
            let priorities: Vec<_> = mine.iter().map(|filter| filter.priority).collect();
            assert_eq!(priorities, [FIRST, LAST], "{mine:?}");
            drop(others.expect("attach"));
            drop(attached);
            assert!(!has_clsact());
        });
    }

    #[test]
    fn two_of_one_process_stand_beside_each_other() {
        with_program(|program, way| {
            let attach = || {
                way.attach(program, &mut Spot::at(LOOPBACK), Hook::Egress, Order::First)
                    .expect("attach")
            };
            let (one, other) = (attach(), attach());
            assert_eq!(filters(Side::Egress).len(), 2);
            drop(one);
            assert_eq!(filters(Side::Egress).len(), 1);
            drop(other);
        });
    }

    /// Leaves filters to be found, and attaches a program and detaches it.
    fn come_after(filters: &[(&str, u16)], program: BorrowedFd<'_>, way: &Way) {
        let mut route = RouteSocket::open().expect("netlink");
        route.add_clsact(LOOPBACK).expect("clsact");
        for (name, priority) in filters {
            let filter = left_over(name, *priority);
            let added = route.add_filter(LOOPBACK, Side::Egress, &filter, program);
            added.expect("add");
        }
        let mut spot = Spot::at(LOOPBACK);
        let attached = way.attach(program, &mut spot, Hook::Egress, Order::First);
        attached.expect("attach");
    }

    #[test]
    fn what_an_ended_process_has_left_is_removed() {
        with_program(|program, way| {
            let ended = Owner::this_process(true).expect("proc").that_has_ended();
            come_after(&[(&ended.to_string(), FIRST)], program, way);
            assert!(!has_clsact());
        });
    }

    #[test]
    fn it_is_removed_also_where_nobody_begins() {
        with_program(|program, _| {
            remove_left_filters(LOOPBACK).expect("there is none");
            let ended = Owner::this_process(true).expect("proc").that_has_ended();
            let alive = Owner::this_process(true).expect("proc");
            for (owner, remaining) in [(alive, 1), (ended, 0)] {
                let mut route = RouteSocket::open().expect("netlink");
                route.add_clsact(LOOPBACK).expect("clsact");
                let filter = left_over(&owner.to_string(), FIRST);
                let added = route.add_filter(LOOPBACK, Side::Egress, &filter, program);
                added.expect("add");
                remove_left_filters(LOOPBACK).expect("list");
                assert_eq!(filters(Side::Egress).len(), remaining);
                let _ = route.remove_filter(LOOPBACK, Side::Egress, &filter);
            }
            assert!(!has_clsact());
        });
    }

    #[test]
    fn what_others_have_made_stays() {
        with_program(|program, way| {
            let ended = Owner::this_process(false).expect("proc").that_has_ended();
            come_after(&[(&ended.to_string(), FIRST)], program, way);
            assert!(has_clsact(), "it was there before");
            let ended = Owner::this_process(true).expect("proc").that_has_ended();
            let filters_there = [(&*ended.to_string(), FIRST), ("somebody", 7)];
            come_after(&filters_there, program, way);
            assert_eq!(filters(Side::Egress), [left_over("somebody", 7)]);
        });
    }

    #[test]
    fn nobody_is_first_where_somebody_else_is() {
        with_program(|program, way| {
            let mut route = RouteSocket::open().expect("netlink");
            route.add_clsact(LOOPBACK).expect("clsact");
            let theirs = left_over("somebody", 1);
            route
                .add_filter(LOOPBACK, Side::Egress, &theirs, program)
                .expect("add");
            let attach = |order| way.attach(program, &mut Spot::at(LOOPBACK), Hook::Egress, order);
            let refused = attach(Order::First).expect_err("somebody is first");
            assert_eq!(refused.kind(), io::ErrorKind::ResourceBusy);
            attach(Order::Last).expect("behind it");
        });
    }

    /// As when a daemon is killed, and its filter stays.
    #[test]
    fn without_a_process_the_filter_that_is_left_passes_every_packet() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let work = || {
            let mut route = RouteSocket::open().expect("netlink");
            let up = InterfaceSettings {
                up: Some(true),
                ..InterfaceSettings::default()
            };
            route.configure(LOOPBACK, &up).expect("up");
            let socket = UdpSocket::bind("127.0.0.1:0").expect("bind");
            let patience = Duration::from_millis(50);
            socket.set_read_timeout(Some(patience)).expect("set");
            let passes = || {
                // A dropped packet may be told to its sender.
                let _ = socket.send_to(b"x", socket.local_addr().expect("bound"));
                socket.recv(&mut [0]).is_ok()
            };
            let made = bpf::load_program(Word::Drop).and_then(|program| {
                let way = Way::by_filter(program.as_fd())?;
                Ok((program, way))
            });
            let (program, way) = match made {
                Ok(made) => made,
                Err(error) => return outlast_skip::skip(error),
            };
            assert!(passes());
            let mut spot = Spot::at(LOOPBACK);
            let attached = way.attach(program.as_fd(), &mut spot, Hook::Egress, Order::Last);
            let _stays = attached.expect("attach");
            assert!(!passes(), "the program drops");
            drop(way);
            // The kernel empties the array a little later.
            assert!((0..100).any(|_| passes()), "nobody drops any more");
            assert_eq!(filters(Side::Egress).len(), 1);
        };
        namespace.run(work).expect("enter");
    }

    #[test]
    fn a_missing_interface_is_told_by_its_number() {
        with_program(|program, way| {
            let mut spot = Spot::at(InterfaceIndex(4711));
            let refused = way.attach(program, &mut spot, Hook::Egress, Order::First);
            let error = refused.expect_err("there is none");
            assert_eq!(errno(&error), Some(libc::ENODEV), "{error}");
        });
    }
}
