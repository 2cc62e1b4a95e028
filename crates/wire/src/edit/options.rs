//! TCP options of a packet that is being edited.

use super::{Edit, EditError, Edited, Target, write};
use crate::build;
use crate::checksum::{Sum, updated};
use crate::tcp::options::split_option;
use crate::tcp::{HEADER_LEN, MAX_OPTIONS_LEN, TcpOption, TcpOptions, kind};
use crate::{Transport, ip};
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use bytes::BytesMut;
use core::net::IpAddr;
use core::ops::Range;

type Area = ArrayVec<u8, MAX_OPTIONS_LEN>;

impl Edit {
    /// Replaces the option of this kind, the one that counts if there are more, or adds it. An
    /// experimental option replaces only one of the same kind and 16-bit identifier.
    ///
    /// One of equal length is replaced in place. Else the new one comes behind the others, and
    /// the packet's length may change by up to 40 bytes: mind the link's MTU.
    ///
    /// # Errors
    ///
    /// [`EditError::NotTcp`], [`EditError::Authenticated`]; [`EditError::OptionValue`] for an
    /// empty SACK option, a user timeout of zero or above 32767, or an experimental option of
    /// another kind; [`EditError::NoRoom`], [`EditError::TooLong`],
    /// [`EditError::MalformedOptions`] if the options cannot grow. A modelled packet has room for
    /// one experimental option only.
    pub fn set_option(&mut self, option: &TcpOption) -> Edited<'_> {
        self.tcp()?;
        if !option.is_legal() {
            return Err(EditError::OptionValue);
        }
        match &self.target {
            Target::Modelled(_) => self.set_modelled_option(option)?,
            Target::Captured { .. } => self.set_captured_option(option)?,
        }
        Ok(self)
    }

    /// Takes out every option of this kind. In a packet with bytes no-operations take its place,
    /// so that its length stays.
    ///
    /// # Errors
    ///
    /// [`EditError::NotTcp`], [`EditError::Authenticated`]; [`EditError::NoOption`] if there was
    /// none.
    pub fn clear_option(&mut self, kind: u8) -> Edited<'_> {
        self.tcp()?;
        if let Target::Modelled(_) = &self.target {
            if !self.tcp()?.options.clear(kind) {
                return Err(EditError::NoOption(kind));
            }
            self.relayout_modelled();
            return Ok(self);
        }
        let mut cleared = false;
        let area = Area::try_from(self.area()).unwrap_or_default();
        for found in options_in(&area).filter(|found| area[found.start] == kind) {
            self.write_transport(HEADER_LEN + found.start, &[kind::NOP; 40][..found.len()]);
            cleared = true;
        }
        if !cleared {
            return Err(EditError::NoOption(kind));
        }
        self.read_options();
        Ok(self)
    }

    fn set_modelled_option(&mut self, option: &TcpOption) -> Result<(), EditError> {
        let options = &mut self.tcp()?.options;
        let mut new = options.clone();
        if let (TcpOption::Experimental(new), Some(old)) = (option, &options.experimental)
            && !is_same_experiment(&new.to_bytes(), &old.to_bytes())
        {
            return Err(EditError::NoRoom);
        }
        new.set(option);
        if new.clone().fitted() != new {
            return Err(EditError::NoRoom);
        }
        *options = new;
        self.relayout_modelled();
        Ok(())
    }

    /// Brings the lengths in line with the options.
    fn relayout_modelled(&mut self) {
        if let Transport::Tcp(tcp) = &self.header.transport {
            let payload_len = self.header.payload_len as usize;
            self.header = build::tcp_header(self.header.ip, tcp.clone(), payload_len);
        }
    }

    fn set_captured_option(&mut self, option: &TcpOption) -> Result<(), EditError> {
        let new = option.to_bytes();
        let area = Area::try_from(self.area()).unwrap_or_default();
        let is_old = |found: &Range<usize>| match option {
            TcpOption::Experimental(_) => is_same_experiment(&area[found.clone()], &new),
            _ => area[found.start] == new[0],
        };
        let mut old = options_in(&area).filter(is_old);
        let counting = match option {
            TcpOption::Experimental(_) => old.next(),
            _ => old.last(),
        };
        match counting.filter(|found| found.len() == new.len()) {
            Some(found) => self.write_transport(HEADER_LEN + found.start, &new),
            None => {
                let others = |found: &Range<usize>| !is_old(found);
                let new_area = rebuilt(&area, others, &new)?;
                self.replace_area(&new_area)?;
            }
        }
        self.read_options();
        Ok(())
    }

    /// The options as they are in the packet's bytes.
    fn area(&self) -> &[u8] {
        let Target::Captured {
            bytes,
            transport_at,
            ..
        } = &self.target
        else {
            return &[];
        };
        let end = self
            .header
            .total_len
            .saturating_sub(self.header.payload_len) as usize;
        bytes
            .get(transport_at + HEADER_LEN..end)
            .unwrap_or_default()
    }

    fn read_options(&mut self) {
        let options = TcpOptions::parse(self.area());
        if let Transport::Tcp(tcp) = &mut self.header.transport {
            tcp.options = options;
        }
    }

    /// Puts other options, padded, into the place of those that are there.
    fn replace_area(&mut self, new: &Area) -> Result<(), EditError> {
        let old_len = self.area().len();
        let total_len = u64::from(self.header.total_len) + new.len() as u64 - old_len as u64;
        let total_len = u32::try_from(total_len).map_err(|_| EditError::TooLong)?;
        let is_ipv4 = matches!(self.header.ip.source, IpAddr::V4(_));
        let Target::Captured {
            bytes,
            transport_at,
            ..
        } = &mut self.target
        else {
            return Ok(());
        };
        let at = *transport_at;
        let (length_at, length) = match is_ipv4 {
            true => (2, total_len as usize),
            false => (4, total_len as usize - 40),
        };
        let told = [bytes[length_at], bytes[length_at + 1]] != [0, 0];
        let length = match u16::try_from(length) {
            Ok(length) => length,
            Err(_) if told => return Err(EditError::TooLong),
            Err(_) => 0,
        };
        let payload_at = at + HEADER_LEN + old_len;
        let mut out = BytesMut::with_capacity(total_len as usize);
        out.extend_from_slice(&bytes[..at + HEADER_LEN]);
        out.extend_from_slice(new);
        out.extend_from_slice(&bytes[payload_at..]);
        // A data offset that changes leaves its reserved bits; at most fifteen words.
        out[at + 12] = out[at + 12] & 0x0f | (((HEADER_LEN + new.len()) / 4) as u8) << 4;
        let segment_len = |bytes: &[u8]| {
            let length = bytes.len() - at;
            Sum::default()
                .word((length >> 16) as u16)
                .word(length as u16)
        };
        // Payload moves by whole words: only header and length count.
        let old_sum = segment_len(bytes).bytes(&bytes[at..payload_at]);
        let new_sum = segment_len(&out).bytes(&out[at..at + HEADER_LEN + new.len()]);
        if told {
            let (old, new) = write(&mut out, length_at, &length.to_be_bytes());
            if is_ipv4 {
                let checksum = updated([out[10], out[11]], old, new);
                out[10..12].copy_from_slice(&checksum);
            }
        } else if !is_ipv4 {
            ip::write_jumbo_len(&mut out, total_len - 40);
        }
        *bytes = out;
        self.header.total_len = total_len;
        self.update_transport(old_sum, new_sum);
        Ok(())
    }
}

/// Where the options in `area` lie, up to the end of the list or a length that is impossible.
fn options_in(area: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    core::iter::from_fn(move || {
        loop {
            match *area.get(at)? {
                kind::END => return None,
                kind::NOP => at += 1,
                _ => {
                    let (data, _) = split_option(&area[at..])?;
                    let found = at..at + 2 + data.len();
                    at = found.end;
                    return Some(found);
                }
            }
        }
    })
}

/// `area` without the options that are not `kept`, and with `new` behind the others.
fn rebuilt(
    area: &[u8],
    kept: impl Fn(&Range<usize>) -> bool,
    new: &[u8],
) -> Result<Area, EditError> {
    let end = options_in(area).last().map_or(0, |found| found.end);
    if area[end..]
        .iter()
        .find(|&&byte| byte != kind::NOP)
        .is_some_and(|&byte| byte != kind::END)
    {
        return Err(EditError::MalformedOptions);
    }
    // With its padding if there is room for it, else without.
    let mut padded: Vec<u8> = area[..end].to_vec();
    let mut packed = Vec::new();
    for found in options_in(area) {
        if kept(&found) {
            packed.extend_from_slice(&area[found]);
        } else {
            padded[found].fill(kind::NOP);
        }
    }
    let room = MAX_OPTIONS_LEN.saturating_sub(new.len());
    let mut out = if padded.len() <= room { padded } else { packed };
    out.extend_from_slice(new);
    out.resize(out.len().next_multiple_of(4), kind::NOP);
    Area::try_from(&out[..]).map_err(|_| EditError::NoRoom)
}

/// Whether two options are experimental, of the same kind and 16-bit identifier (RFC 6994).
fn is_same_experiment(a: &[u8], b: &[u8]) -> bool {
    a[0] == b[0] && a.get(2..4) == b.get(2..4)
}
