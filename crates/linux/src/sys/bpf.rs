//! The `bpf` system call, as far as the capability probe needs it, and for what `aya` lacks.

use outlast_base::time::Duration;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::io;

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_TEST_RUN: libc::c_int = 10;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_MAP_TYPE_PROG_ARRAY: u32 = 3;
/// Before all programs that are there.
const BPF_F_BEFORE: u32 = 1 << 3;

/// Where a traffic-control program is attached (tcx, Linux 6.6).
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Hook {
    /// What an interface receives: `BPF_TCX_INGRESS`.
    Ingress = 46,
    /// What it sends: `BPF_TCX_EGRESS`.
    Egress = 47,
}

/// `struct bpf_insn`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Instruction {
    pub(crate) code: u8,
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

/// One instruction, of registers by their numbers.
pub(crate) const fn instruction(
    code: u8,
    to: u8,
    from: u8,
    offset: i16,
    immediate: i32,
) -> Instruction {
    let registers = match cfg!(target_endian = "little") {
        true => from << 4 | to,
        false => to << 4 | from,
    };
    Instruction {
        code,
        registers,
        offset,
        immediate,
    }
}

/// `union bpf_attr` for `BPF_MAP_CREATE`, up to the last field that is not zero.
#[repr(C)]
struct CreateMap {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

/// `union bpf_attr` for `BPF_MAP_UPDATE_ELEM`.
#[repr(C)]
struct UpdateElement {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
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
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
}

/// `struct __sk_buff` up to `gso_size`, of which a test run takes some fields.
#[repr(C)]
#[derive(Default)]
struct SocketBuffer {
    len: u32,
    pkt_type: u32,
    mark: u32,
    queue_mapping: u32,
    protocol: u32,
    vlan_present: u32,
    vlan_tci: u32,
    vlan_proto: u32,
    priority: u32,
    ingress_ifindex: u32,
    ifindex: u32,
    tc_index: u32,
    cb: [u32; 5],
    /// From `hash` to `data_meta`.
    addresses: [u32; 19],
    flow_keys: u64,
    tstamp: u64,
    wire_len: u32,
    gso_segs: u32,
    sk: u64,
    gso_size: u32,
    padding: u32,
}

/// What a packet of a test run has beside its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tags {
    pub(crate) mark: u32,
    /// Scratch space of whoever handled it before.
    pub(crate) cb: [u32; 2],
    /// Payload of each packet that it stands for; zero: it stands for itself.
    pub(crate) segment_size: u32,
}

/// Lets `frame` go through a traffic-control program, which may not change it, so many times, but
/// at least once; how long it took each time, on the average.
pub(crate) fn run(
    program: BorrowedFd<'_>,
    frame: &[u8],
    tags: Tags,
    times: u32,
) -> io::Result<Duration> {
    let data_size_in =
        u32::try_from(frame.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let [low, high] = tags.cb;
    let context = SocketBuffer {
        mark: tags.mark,
        cb: [low, high, 0, 0, 0],
        gso_size: tags.segment_size,
        ..SocketBuffer::default()
    };
    let mut attributes = TestRun {
        prog_fd: program.as_raw_fd().cast_unsigned(),
        retval: 0,
        data_size_in,
        data_size_out: 0,
        data_in: frame.as_ptr().expose_provenance() as u64,
        data_out: 0,
        repeat: times,
        duration: 0,
        ctx_size_in: size_of::<SocketBuffer>() as u32,
        ctx_size_out: 0,
        ctx_in: (&raw const context).expose_provenance() as u64,
        ctx_out: 0,
    };
    // SAFETY: `attributes` is a prefix of `union bpf_attr` for the command, readable and writable
    // for the length given; `data_in` and `ctx_in` are readable for as many bytes as is said, and
    // nothing is written through `data_out` and `ctx_out`, which are none.
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
    Ok(Duration::from_nanos(attributes.duration.into()))
}

/// Bytes that the kernel accounts for `map`.
pub(crate) fn memory_of_map(map: BorrowedFd<'_>) -> io::Result<u64> {
    let path = format!("/proc/self/fdinfo/{}", map.as_raw_fd());
    let text = std::fs::read_to_string(path)?;
    let bytes = text.lines().find_map(|line| line.strip_prefix("memlock:"));
    let bytes = bytes.and_then(|bytes| bytes.trim().parse().ok());
    bytes.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// What a traffic-control program says of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Word {
    /// Whoever is attached behind decides (`TCX_NEXT`).
    Next = -1,
    /// It passes, and nobody behind sees it (`TCX_PASS`, `TC_ACT_OK`).
    #[cfg(test)]
    Pass = 0,
    /// It is dropped (`TC_ACT_SHOT`).
    #[cfg(test)]
    Drop = 2,
}

/// Loads a traffic-control program that says the same of every packet.
pub(crate) fn load_program(word: Word) -> io::Result<OwnedFd> {
    // r0 = word; exit
    load(&[
        instruction(0xb7, 0, 0, 0, word as i32),
        instruction(0x95, 0, 0, 0, 0),
    ])
}

/// Loads a traffic-control program that jumps to the program in `array`, and lets whoever is behind decide
/// where there is none.
pub(crate) fn load_trampoline(array: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // The source of an address that is a map's descriptor, and the helper that jumps.
    const PSEUDO_MAP_FD: u8 = 1;
    const TAIL_CALL: i32 = 12;
    // r1 is the packet; r2 = array; r3 = 0; tail call; r0 = Next; exit
    load(&[
        instruction(0x18, 2, PSEUDO_MAP_FD, 0, array.as_raw_fd()),
        instruction(0, 0, 0, 0, 0),
        instruction(0xb7, 3, 0, 0, 0),
        instruction(0x85, 0, 0, 0, TAIL_CALL),
        instruction(0xb7, 0, 0, 0, Word::Next as i32),
        instruction(0x95, 0, 0, 0, 0),
    ])
}

fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let attributes = LoadProgram {
        prog_type: BPF_PROG_TYPE_SCHED_CLS,
        insn_cnt: program.len() as u32,
        insns: program.as_ptr().expose_provenance() as u64,
        license: c"Dual MIT/GPL".as_ptr().expose_provenance() as u64,
    };
    bpf(BPF_PROG_LOAD, &attributes)
}

/// Makes an array for one program, which the kernel empties when no process has it open any more.
pub(crate) fn create_program_array() -> io::Result<OwnedFd> {
    let attributes = CreateMap {
        map_type: BPF_MAP_TYPE_PROG_ARRAY,
        key_size: 4,
        value_size: 4,
        max_entries: 1,
    };
    bpf(BPF_MAP_CREATE, &attributes)
}

/// Puts `program` into such an array.
pub(crate) fn put_program(array: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let (place, program) = (0_u32, program.as_raw_fd());
    let attributes = UpdateElement {
        map_fd: array.as_raw_fd().cast_unsigned(),
        padding: 0,
        key: (&raw const place).expose_provenance() as u64,
        value: (&raw const program).expose_provenance() as u64,
        flags: 0,
    };
    call(BPF_MAP_UPDATE_ELEM, &attributes).map(drop)
}

/// True if the kernel attaches traffic-control programs by links (tcx).
pub(crate) fn has_tcx(program: BorrowedFd<'_>) -> bool {
    // There is no interface of that number: whoever knows the command says so.
    let answer = attach_tcx(program, 0, Hook::Ingress, false);
    !answer.is_err_and(|error| error.raw_os_error() == Some(libc::EINVAL))
}

/// Attaches `program` to interface `index`, before all others there or behind them; dropping the descriptor
/// detaches it.
pub(crate) fn attach_tcx(
    program: BorrowedFd<'_>,
    index: u32,
    hook: Hook,
    is_first: bool,
) -> io::Result<OwnedFd> {
    let attributes = CreateLink {
        prog_fd: program.as_raw_fd().cast_unsigned(),
        target_ifindex: index,
        attach_type: hook as u32,
        flags: if is_first { BPF_F_BEFORE } else { 0 },
        relative_fd: 0,
        padding: 0,
        expected_revision: 0,
    };
    bpf(BPF_LINK_CREATE, &attributes)
}

/// A command that answers with a descriptor.
pub(super) fn bpf<A>(command: libc::c_int, attributes: &A) -> io::Result<OwnedFd> {
    let fd = call(command, attributes)?;
    // SAFETY: the kernel has just made this descriptor for us; nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A command that only reads its attributes; answers with a number that is not negative.
fn call<A>(command: libc::c_int, attributes: &A) -> io::Result<i32> {
    // SAFETY: `attributes` is a prefix of `union bpf_attr` for the command, readable for the
    // length given, and the pointers in it are valid until the call returns. All commands only
    // read it.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attributes),
            size_of::<A>(),
        )
    };
    match i32::try_from(answer) {
        Ok(number @ 0..) => Ok(number),
        _ => Err(io::Error::last_os_error()),
    }
}
