//! A congestion control that does one thing: it goes back to the initial window when it is chosen.
//!
//! No call sets the congestion window of a connection from outside. A congestion control may when it begins, and one
//! may be made of BPF programs (`struct_ops`, Linux 5.6). So a pass over the sockets chooses this one and puts the former one back
//! while it holds the socket: the connection is in slow start from [`WINDOW`] segments on, up to half of what is outstanding
//! (RFC 5681, equation 4, as after a timeout), and nothing else of it changes. No segment is ever sent under this congestion
//! control. Without a threshold slow start would go on until it fills the queue of a slower path.
//!
//! Its four programs are a few instructions each and are made here, as where the fields of a socket are is found in the
//! kernel's own types (BTF). It has a name of its own among the kernel's congestion controls, and is gone with the process.
//!
//! What breaks it: a kernel before 6.4, and one without BTF.

use crate::sys::bpf::{Instruction, instruction};
use crate::sys::struct_ops;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use std::collections::BTreeMap;
use std::io::{self, Read};

/// Segments (RFC 6928, section 2).
pub(super) const WINDOW: i32 = 10;

/// Bytes of the name of a congestion control, with the last one zero (`TCP_CA_NAME_MAX`).
pub(super) const NAME: usize = 16;
/// Names that are tried: another one of the same is one in four thousand millions.
const NAMES: u32 = 4;

const RANDOM: &str = "/dev/urandom";
const TYPES: &str = "/sys/kernel/btf/vmlinux";
const OPERATIONS: &str = "tcp_congestion_ops";
const VALUE: &str = "bpf_struct_ops_tcp_congestion_ops";
const SOCKET: &str = "tcp_sock";

const LOAD_LONG: u8 = 0x79;
const LOAD_WORD: u8 = 0x61;
const STORE_WORD: u8 = 0x63;
const SET: u8 = 0xb7;
const SHIFT_RIGHT: u8 = 0x77;
const SKIP_IF_GREATER: u8 = 0x25;
const SKIP_UNLESS_GREATER: u8 = 0xb5;
const EXIT: u8 = 0x95;

/// The congestion control, for as long as this is there.
#[derive(Debug)]
pub(super) struct InitialWindow {
    name: [u8; NAME],
    _link: OwnedFd,
}

/// A structure of the kernel's.
#[derive(Debug)]
struct Structure {
    id: u32,
    size: usize,
    /// The number and the offset in bytes of each member.
    members: BTreeMap<String, (u32, usize)>,
}

impl InitialWindow {
    /// Makes it known to the kernel.
    ///
    /// # Errors
    /// Without root, or on a kernel that lacks something.
    pub(super) fn begin() -> io::Result<Self> {
        let types = std::fs::read(TYPES)?;
        let found = structures(&types, &[OPERATIONS, VALUE, SOCKET]);
        let found = found.ok_or_else(|| io::Error::other("the kernel's types cannot be read"))?;
        let of = |name: &str| found.get(name).ok_or_else(|| unknown(name));
        let (operations, value, socket) = (of(OPERATIONS)?, of(VALUE)?, of(SOCKET)?);
        let window = socket.offset("snd_cwnd")?;
        let threshold = socket.offset("snd_ssthresh")?;
        let outstanding = socket.offset("packets_out")?;
        let programs = [
            ("init", begin_slowly(window, threshold, outstanding)),
            ("ssthresh", tell(window)),
            ("undo_cwnd", tell(window)),
            ("cong_avoid", do_nothing()),
        ];
        let data = usize::try_from(value.offset("data")?).map_err(io::Error::other)?;
        let mut bytes = vec![0; value.size];
        let mut loaded = Vec::new();
        for (name, program) in programs {
            let (number, offset) = operations.member(name)?;
            let program = struct_ops::load_program(&program, operations.id, number)?;
            let descriptor = u64::from(program.as_raw_fd().cast_unsigned());
            put(&mut bytes, data + offset, &descriptor.to_ne_bytes())?;
            loaded.push(program);
        }
        let (_, name_at) = operations.member("name")?;
        let any_types = struct_ops::load_types(&any_types())?;
        for _ in 0..NAMES {
            // The kernel knows one name once in all its namespaces, and process numbers are those of one.
            let mut random = [0; 4];
            std::fs::File::open(RANDOM)?.read_exact(&mut random)?;
            let name = name(u32::from_ne_bytes(random));
            put(&mut bytes, data + name_at, &name)?;
            let map = struct_ops::prepare(any_types.as_fd(), value.id, &bytes)?;
            match struct_ops::link(map.as_fd()) {
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
                link => return Ok(Self { name, _link: link? }),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// As sockets choose it.
    pub(super) const fn name(&self) -> [u8; NAME] {
        self.name
    }

    /// As `net.ipv4.tcp_available_congestion_control` lists it.
    pub(super) fn shown_name(&self) -> &str {
        let length = self.name.iter().position(|byte| *byte == 0);
        let text = self.name.get(..length.unwrap_or(NAME)).unwrap_or_default();
        str::from_utf8(text).unwrap_or_default()
    }
}

impl Structure {
    fn member(&self, name: &str) -> io::Result<(u32, usize)> {
        let member = self.members.get(name).copied();
        member.ok_or_else(|| unknown(name))
    }

    fn offset(&self, name: &str) -> io::Result<i16> {
        let (_, offset) = self.member(name)?;
        i16::try_from(offset).map_err(io::Error::other)
    }
}

fn unknown(name: &str) -> io::Error {
    io::Error::other(format!("the kernel's types have no {name}"))
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) -> io::Result<()> {
    let place = bytes.get_mut(at..at + what.len());
    place
        .ok_or(io::ErrorKind::InvalidData)?
        .copy_from_slice(what);
    Ok(())
}

fn name(random: u32) -> [u8; NAME] {
    let text = format!("outlast{random:08x}");
    let mut name = [0; NAME];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

/// `tp->snd_cwnd = min(tp->snd_cwnd, WINDOW); tp->snd_ssthresh = max(tp->packets_out / 2, WINDOW);`
fn begin_slowly(window: i16, threshold: i16, outstanding: i16) -> Vec<Instruction> {
    vec![
        instruction(LOAD_LONG, 1, 1, 0, 0),
        instruction(LOAD_WORD, 2, 1, window, 0),
        instruction(SKIP_UNLESS_GREATER, 2, 0, 2, WINDOW),
        instruction(SET, 2, 0, 0, WINDOW),
        instruction(STORE_WORD, 1, 2, window, 0),
        instruction(LOAD_WORD, 2, 1, outstanding, 0),
        instruction(SHIFT_RIGHT, 2, 0, 0, 1),
        instruction(SKIP_IF_GREATER, 2, 0, 1, WINDOW),
        instruction(SET, 2, 0, 0, WINDOW),
        instruction(STORE_WORD, 1, 2, threshold, 0),
        instruction(SET, 0, 0, 0, 0),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}

/// `return tp->snd_cwnd;`
fn tell(window: i16) -> Vec<Instruction> {
    vec![
        instruction(LOAD_LONG, 1, 1, 0, 0),
        instruction(LOAD_WORD, 0, 1, window, 0),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}

fn do_nothing() -> Vec<Instruction> {
    vec![instruction(SET, 0, 0, 0, 0), instruction(EXIT, 0, 0, 0, 0)]
}

/// Types that the kernel takes: an integer.
fn any_types() -> Vec<u8> {
    let strings = b"\0int\0";
    let integer = [1_u32, 1 << 24, 4, 32];
    let mut bytes = Vec::new();
    bytes.extend(0xeb9f_u16.to_ne_bytes());
    bytes.extend([1, 0]);
    let types_length = size_of_val(&integer) as u32;
    let header = [24, 0, types_length, types_length, strings.len() as u32];
    for word in header.into_iter().chain(integer) {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(strings);
    bytes
}

/// The structures of those names among types as the kernel writes them (BTF); `None` for bytes that are none.
fn structures(types: &[u8], names: &[&str]) -> Option<BTreeMap<String, Structure>> {
    let word = |at: usize| Some(u32::from_ne_bytes(types.get(at..at + 4)?.try_into().ok()?));
    let place = |at: usize| usize::try_from(word(at)?).ok();
    let header = place(4)?;
    let (first, length) = (header + place(8)?, place(12)?);
    let strings = header + place(16)?;
    let text = |offset: u32| {
        let rest = types.get(strings + usize::try_from(offset).ok()?..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        str::from_utf8(&rest[..end]).ok()
    };
    let mut found = BTreeMap::new();
    let (mut at, mut id) = (first, 0);
    while at < first + length {
        id += 1;
        let (information, size) = (word(at + 4)?, place(at + 8)?);
        let (kind, count) = (information >> 24 & 0x1f, (information & 0xffff) as usize);
        let name = text(word(at)?)?;
        at += 12;
        if kind == STRUCTURE && names.contains(&name) {
            let is_packed = information >> 31 == 1;
            let member = |number: usize| {
                let at = at + 12 * number;
                let bits = word(at + 8)?;
                let bits = if is_packed { bits & 0x00ff_ffff } else { bits };
                let numbered = (u32::try_from(number).ok()?, (bits / 8) as usize);
                Some((text(word(at)?)?.to_owned(), numbered))
            };
            let members = (0..count).map(member).collect::<Option<_>>()?;
            found.insert(name.to_owned(), Structure { id, size, members });
        }
        at += length_of(kind, count)?;
    }
    Some(found)
}

const STRUCTURE: u32 = 4;

/// How many bytes follow the head of a type (`include/uapi/linux/btf.h`).
fn length_of(kind: u32, count: usize) -> Option<usize> {
    Some(match kind {
        // Pointers, forward declarations, names, qualifiers, functions, floats, tags of types.
        2 | 7..=12 | 16 | 18 => 0,
        // Integers, variables' linkage, tags of declarations.
        1 | 14 | 17 => 4,
        // Arrays.
        3 => 12,
        // Structures, unions, sections, enumerations of 64 bits.
        4 | 5 | 15 | 19 => 12 * count,
        // Enumerations, prototypes.
        6 | 13 => 8 * count,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_and_damaged_ones_are_none() {
        assert!(structures(&any_types(), &["int"]).is_some_and(|found| found.is_empty()));
        let whole = any_types();
        for length in 0..whole.len() - 5 {
            assert!(structures(&whole[..length], &["int"]).is_none(), "{length}");
        }
    }

    #[test]
    fn names_fit() {
        let names = [name(7), name(u32::MAX)];
        assert_eq!(&names[0], b"outlast00000007\0");
        assert!(names.iter().all(|name| name[NAME - 1] == 0));
    }
}
