//! The form of nfnetlink messages: `nlmsghdr`, `nfgenmsg`, attributes in attributes.

/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Length of `struct nfgenmsg`.
const FAMILY_HEADER: usize = 4;
/// Length of `struct nlattr`.
const ATTRIBUTE_HEADER: usize = 4;
/// `NLA_F_NESTED`.
const NESTED: u16 = 1 << 15;
/// `NLA_TYPE_MASK`: without the two flag bits.
const TYPE: u16 = 0x3fff;

/// A message being written.
#[derive(Debug)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    /// Begins a message. `resource` is a queue number, or the subsystem of a batch.
    pub(super) fn new(kind: u16, flags: u16, sequence: u32, family: u8, resource: u16) -> Self {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend([0; 4]); // the length, once it is known
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]); // port: the kernel fills it in
        bytes.extend([family, 0]); // version 0
        bytes.extend(resource.to_be_bytes());
        Self { bytes }
    }

    /// Adds an attribute.
    #[must_use]
    pub(super) fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.push(kind, value);
        self
    }

    /// Adds an attribute that is a text, with the NUL at its end that the kernel expects.
    #[must_use]
    pub(super) fn with_text(self, kind: u16, text: &str) -> Self {
        let value: Vec<u8> = text.bytes().chain([0]).collect();
        self.with(kind, &value)
    }

    /// Adds an attribute that consists of those that `fill` adds.
    #[must_use]
    pub(super) fn with_nested(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let start = self.bytes.len();
        self.bytes.extend([0; 2]);
        self.bytes.extend((kind | NESTED).to_ne_bytes());
        let mut filled = fill(self);
        let length = filled.bytes.len() - start;
        let length = u16::try_from(length).expect("what this process asks for is short");
        filled.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        filled
    }

    fn push(&mut self, kind: u16, value: &[u8]) {
        let length = u16::try_from(ATTRIBUTE_HEADER + value.len())
            .expect("what this process asks for is short");
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// The message's bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).expect("what this process asks for is short");
        self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
        self.bytes
    }
}

/// A message from the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received<'a> {
    /// Subsystem and type, or `NLMSG_ERROR` and its like.
    pub(super) kind: u16,
    /// The sequence number of the request that it answers.
    pub(super) sequence: u32,
    /// What follows the `nlmsghdr`.
    body: &'a [u8],
}

impl<'a> Received<'a> {
    /// The error number of an `NLMSG_ERROR`; zero for an acknowledgement.
    pub(super) fn error(&self) -> Option<i32> {
        let bytes = self.body.first_chunk::<4>()?;
        Some(-i32::from_ne_bytes(*bytes))
    }

    /// The attributes of a message of netfilter.
    pub(super) fn attributes(&self) -> Attributes<'a> {
        Attributes {
            rest: self.body.get(FAMILY_HEADER..).unwrap_or_default(),
        }
    }
}

/// The messages of one datagram; what is malformed ends them.
pub(super) fn received(mut rest: &[u8]) -> impl Iterator<Item = Received<'_>> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*rest.first_chunk::<4>()?) as usize;
        let message = rest.get(..length)?;
        let kind = u16::from_ne_bytes(message.get(4..6)?.try_into().ok()?);
        let sequence = u32::from_ne_bytes(message.get(8..12)?.try_into().ok()?);
        let body = message.get(HEADER..)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Received {
            kind,
            sequence,
            body,
        })
    })
}

/// The attributes of a message: type and value; what is malformed ends them.
#[derive(Clone, Debug)]
pub(super) struct Attributes<'a> {
    rest: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// The attributes in an attribute.
    pub(super) const fn of(value: &'a [u8]) -> Self {
        Self { rest: value }
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(u16::from_ne_bytes(*self.rest.first_chunk::<2>()?));
        let kind = u16::from_ne_bytes(self.rest.get(2..4)?.try_into().ok()?);
        let value = self.rest.get(ATTRIBUTE_HEADER..length)?;
        self.rest = self
            .rest
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
        Some((kind & TYPE, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let bytes = Message::new(0x0a06, 5, 7, 1, 3)
            .with_text(1, "abc")
            .with_nested(2, |inner| inner.with(1, &[9]).with(2, &[8; 5]))
            .finish();
        assert_eq!(bytes.len() % 4, 0);
        let mut messages = received(&bytes);
        let message = messages.next().expect("one message");
        assert_eq!((message.kind, message.sequence), (0x0a06, 7));
        let attributes: Vec<_> = message.attributes().collect();
        assert_eq!(attributes[0], (1, &b"abc\0"[..]));
        let inner = Attributes {
            rest: attributes[1].1,
        };
        let inner: Vec<_> = inner.collect();
        assert_eq!(inner, [(1, &[9][..]), (2, &[8; 5][..])]);
        assert!(messages.next().is_none());
    }

    #[test]
    fn what_is_cut_short_ends_the_list() {
        let bytes = Message::new(0, 0, 0, 0, 0)
            .with(1, &[1; 8])
            .with(2, &[2; 8])
            .finish();
        for length in 0..bytes.len() {
            let count = received(&bytes[..length]).count();
            assert_eq!(count, 0, "{length} of {} bytes", bytes.len());
        }
        let attributes = Attributes {
            rest: &bytes[HEADER + FAMILY_HEADER..bytes.len() - 1],
        };
        assert_eq!(attributes.count(), 1);
        // A length that leads nowhere.
        assert_eq!(Attributes { rest: &[0; 8] }.count(), 0);
    }
}
