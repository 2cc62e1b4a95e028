//! Requests to the kernel and its answers.

use super::{NetlinkError, RouteSocket};
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;

impl RouteSocket {
    pub(super) fn change(
        &mut self,
        ask: RouteNetlinkMessage,
        request: Request,
    ) -> Result<(), NetlinkError> {
        match self.exchange(ask, request)? {
            None => Ok(()),
            Some(answer) => Err(NetlinkError::Malformed(format!(
                "{answer:?} instead of an acknowledgement"
            ))),
        }
    }

    /// Asks for all objects of a kind.
    pub(crate) fn dump(
        &mut self,
        ask: RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>, NetlinkError> {
        let request = Request::new(NLM_F_DUMP, "list the network's state".into());
        self.send(ask, request.flags)?;
        let mut answers = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full().map_err(NetlinkError::Socket)?;
            let mut rest = datagram.as_slice();
            while !rest.is_empty() {
                let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(|error| NetlinkError::Malformed(error.to_string()))?;
                let length = (answer.header.length as usize).next_multiple_of(4);
                rest = rest.get(length..).unwrap_or_default();
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                match answer.payload {
                    NetlinkPayload::InnerMessage(inner) => answers.push(inner),
                    NetlinkPayload::Done(_) => return Ok(answers),
                    NetlinkPayload::Error(error) => {
                        return Err(NetlinkError::Refused {
                            request: request.what,
                            source: error.to_io(),
                        });
                    }
                    other => return Err(NetlinkError::Malformed(format!("{other:?}"))),
                }
            }
        }
    }

    fn send(&mut self, ask: RouteNetlinkMessage, flags: u16) -> Result<(), NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(ask));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(NetlinkError::Socket)?;
        Ok(())
    }

    /// Sends `ask` and waits for its answer: a message, or `None` for a bare acknowledgement.
    pub(super) fn exchange(
        &mut self,
        ask: RouteNetlinkMessage,
        request: Request,
    ) -> Result<Option<RouteNetlinkMessage>, NetlinkError> {
        self.send(ask, request.flags)?;
        loop {
            let (answer, _) = self.socket.recv_from_full().map_err(NetlinkError::Socket)?;
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
                .map_err(|error| NetlinkError::Malformed(error.to_string()))?;
            if answer.header.sequence_number != self.sequence {
                continue;
            }
            return match answer.payload {
                NetlinkPayload::InnerMessage(inner) => Ok(Some(inner)),
                NetlinkPayload::Error(error) if error.code.is_none() => Ok(None),
                NetlinkPayload::Error(error) => Err(NetlinkError::Refused {
                    request: request.what,
                    source: error.to_io(),
                }),
                other => Err(NetlinkError::Malformed(format!("{other:?}"))),
            };
        }
    }
}

/// Flags of a request, and what it asks for in words.
pub(super) struct Request {
    flags: u16,
    what: String,
}

impl Request {
    pub(super) fn new(flags: u16, what: String) -> Self {
        Self { flags, what }
    }
}
