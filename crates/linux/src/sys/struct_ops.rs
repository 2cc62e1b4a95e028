//! Programs that take the place of functions of the kernel's structures (`struct_ops`), which `aya` lacks.

use super::bpf::{Instruction, bpf};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::io;

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_BTF_LOAD: libc::c_int = 18;
const BPF_LINK_CREATE: libc::c_int = 28;

const BPF_PROG_TYPE_STRUCT_OPS: u32 = 27;
const BPF_MAP_TYPE_STRUCT_OPS: u32 = 26;
const BPF_STRUCT_OPS: u32 = 44;
/// The structure is in use for as long as a link is there (Linux 6.4).
const BPF_F_LINK: u32 = 1 << 13;

/// `union bpf_attr` for `BPF_PROG_LOAD`, up to the last field that is not zero.
#[repr(C)]
#[derive(Default)]
struct LoadProgram {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
    prog_ifindex: u32,
    expected_attach_type: u32,
    prog_btf_fd: u32,
    func_info_rec_size: u32,
    func_info: u64,
    func_info_cnt: u32,
    line_info_rec_size: u32,
    line_info: u64,
    line_info_cnt: u32,
    attach_btf_id: u32,
}

/// `union bpf_attr` for `BPF_BTF_LOAD`, up to the last field that is not zero.
#[repr(C)]
struct LoadTypes {
    btf: u64,
    btf_log_buf: u64,
    btf_size: u32,
    btf_log_size: u32,
}

/// `union bpf_attr` for `BPF_MAP_CREATE`, up to the last field that is not zero.
#[repr(C)]
#[derive(Default)]
struct CreateMap {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; 16],
    map_ifindex: u32,
    btf_fd: u32,
    btf_key_type_id: u32,
    btf_value_type_id: u32,
    btf_vmlinux_value_type_id: u32,
    padding: u32,
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

/// `union bpf_attr` for `BPF_LINK_CREATE` with a structure.
#[repr(C)]
struct CreateLink {
    map_fd: u32,
    target_fd: u32,
    attach_type: u32,
    flags: u32,
}

/// Loads a program in place of the function that is member number `member` of the kernel's structure of type
/// `structure`.
pub(crate) fn load_program(
    program: &[Instruction],
    structure: u32,
    member: u32,
) -> io::Result<OwnedFd> {
    let attributes = LoadProgram {
        prog_type: BPF_PROG_TYPE_STRUCT_OPS,
        insn_cnt: length(program.len())?,
        insns: program.as_ptr().expose_provenance() as u64,
        license: c"Dual MIT/GPL".as_ptr().expose_provenance() as u64,
        expected_attach_type: member,
        attach_btf_id: structure,
        ..LoadProgram::default()
    };
    bpf(BPF_PROG_LOAD, &attributes)
}

/// Loads types (BTF).
pub(crate) fn load_types(types: &[u8]) -> io::Result<OwnedFd> {
    let attributes = LoadTypes {
        btf: types.as_ptr().expose_provenance() as u64,
        btf_log_buf: 0,
        btf_size: length(types.len())?,
        btf_log_size: 0,
    };
    bpf(BPF_BTF_LOAD, &attributes)
}

/// A place for a structure of the kernel's: `value` is it as the kernel's type `value_type` has it, with the descriptors of
/// programs where that has functions. `types` are any types that were loaded.
pub(crate) fn prepare(types: BorrowedFd<'_>, value_type: u32, value: &[u8]) -> io::Result<OwnedFd> {
    let attributes = CreateMap {
        map_type: BPF_MAP_TYPE_STRUCT_OPS,
        key_size: 4,
        value_size: length(value.len())?,
        max_entries: 1,
        map_flags: BPF_F_LINK,
        btf_fd: types.as_raw_fd().cast_unsigned(),
        btf_vmlinux_value_type_id: value_type,
        ..CreateMap::default()
    };
    let map = bpf(BPF_MAP_CREATE, &attributes)?;
    let key = 0_u32;
    let attributes = UpdateElement {
        map_fd: map.as_raw_fd().cast_unsigned(),
        padding: 0,
        key: (&raw const key).expose_provenance() as u64,
        value: value.as_ptr().expose_provenance() as u64,
        flags: 0,
    };
    // SAFETY: `attributes` is a prefix of `union bpf_attr` for the command, readable for the length given; key and
    // value are readable for as many bytes as the map was made with, and valid until the call returns.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_UPDATE_ELEM,
            std::ptr::from_ref(&attributes),
            size_of::<UpdateElement>(),
        )
    };
    match result {
        0 => Ok(map),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Puts a structure into use until the descriptor is dropped.
pub(crate) fn link(map: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let attributes = CreateLink {
        map_fd: map.as_raw_fd().cast_unsigned(),
        target_fd: 0,
        attach_type: BPF_STRUCT_OPS,
        flags: 0,
    };
    bpf(BPF_LINK_CREATE, &attributes)
}

fn length(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(|_| io::ErrorKind::InvalidInput.into())
}
