//! The `bpf` system call, as far as the capability probe needs it, and for what `aya` lacks.

use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::io;

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_TEST_RUN: libc::c_int = 10;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_TCX_INGRESS: u32 = 46;

/// `struct bpf_insn`.
#[repr(C)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// `union bpf_attr` for `BPF_PROG_LOAD`, up to the last field that is not zero.
#[repr(C)]
struct LoadProgram {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
}

/// `union bpf_attr` for `BPF_LINK_CREATE` with a tcx attach type.
#[repr(C)]
struct CreateLink {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
    relative_fd: u32,
    padding: u32,
    expected_revision: u64,
}

/// `union bpf_attr` for `BPF_PROG_TEST_RUN`, up to the last field that is not zero.
#[repr(C)]
struct TestRun {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
}

/// Lets `frame` go through a traffic-control program, which may not change it.
pub(crate) fn run_once(program: BorrowedFd<'_>, frame: &[u8]) -> io::Result<()> {
    let data_size_in =
        u32::try_from(frame.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut attributes = TestRun {
        prog_fd: program.as_raw_fd().cast_unsigned(),
        retval: 0,
        data_size_in,
        data_size_out: 0,
        data_in: frame.as_ptr().expose_provenance() as u64,
        data_out: 0,
    };
    // SAFETY: `attributes` is a prefix of `union bpf_attr` for the command, readable and writable
    // for the length given; `data_in` is readable for `data_size_in` bytes, and nothing is
    // written through `data_out`, which is none.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_TEST_RUN,
            std::ptr::from_mut(&mut attributes),
            size_of::<TestRun>(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Loads a traffic-control program that passes every packet on.
pub(crate) fn load_pass_through() -> io::Result<OwnedFd> {
    // r0 = -1 (TCX_NEXT); exit
    let program = [
        Instruction {
            code: 0xb7,
            registers: 0,
            offset: 0,
            immediate: -1,
        },
        Instruction {
            code: 0x95,
            registers: 0,
            offset: 0,
            immediate: 0,
        },
    ];
    let attributes = LoadProgram {
        prog_type: BPF_PROG_TYPE_SCHED_CLS,
        insn_cnt: 2,
        insns: program.as_ptr().expose_provenance() as u64,
        license: c"Dual MIT/GPL".as_ptr().expose_provenance() as u64,
    };
    bpf(BPF_PROG_LOAD, &attributes)
}

/// Attaches `program` to what interface `index` receives (tcx, Linux 6.6); dropping the
/// descriptor detaches it.
pub(crate) fn attach_tcx(program: BorrowedFd<'_>, index: u32) -> io::Result<OwnedFd> {
    let attributes = CreateLink {
        prog_fd: program.as_raw_fd().cast_unsigned(),
        target_ifindex: index,
        attach_type: BPF_TCX_INGRESS,
        flags: 0,
        relative_fd: 0,
        padding: 0,
        expected_revision: 0,
    };
    bpf(BPF_LINK_CREATE, &attributes)
}

/// A command that answers with a descriptor.
fn bpf<A>(command: libc::c_int, attributes: &A) -> io::Result<OwnedFd> {
    // SAFETY: `attributes` is a prefix of `union bpf_attr` for the command, readable for the
    // length given, and the pointers in it are valid until the call returns. Both commands only
    // read it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attributes),
            size_of::<A>(),
        )
    };
    let fd = i32::try_from(fd).unwrap_or(-1);
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us; nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
