//! Filters of traffic control that run BPF programs (`cls_bpf`), at both ends of an interface (`clsact`).

use super::queues::index_of;
use super::{InterfaceIndex, NetlinkError, Request, RouteSocket};
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{
    TcAttribute, TcBpfFlags, TcFilterBpf, TcFilterBpfOption, TcHandle, TcMessage, TcOption,
};
use rustix::fd::{AsRawFd, BorrowedFd};
use std::io;

/// The queueing discipline at which an interface has filters for what it receives and for what it sends.
const CLSACT: &str = "clsact";

/// The direction of a filter's packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    /// The interface receives them.
    Ingress,
    /// The interface sends them.
    Egress,
}

impl Side {
    /// The number by which filters of the side are attached.
    const fn parent(self) -> TcHandle {
        TcHandle {
            major: TcHandle::CLSACT.major,
            minor: match self {
                Self::Ingress => TcHandle::MIN_INGRESS,
                Self::Egress => TcHandle::MIN_EGRESS,
            },
        }
    }
}

/// A filter of an interface, whosever it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ListedFilter {
    /// Its place: the lowest is first.
    pub(crate) priority: u16,
    /// Its number among filters of the same priority.
    pub(crate) handle: u32,
    /// The name that its owner gave it; none where it runs no BPF program.
    pub(crate) name: Option<String>,
}

impl RouteSocket {
    /// Lets an interface have filters; returns whether it could have none before.
    pub(crate) fn add_clsact(&mut self, interface: InterfaceIndex) -> Result<bool, NetlinkError> {
        let request = Request::new(
            NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
            format!("have filters at {interface}"),
        );
        match self.change(
            RouteNetlinkMessage::NewQueueDiscipline(clsact(interface)),
            request,
        ) {
            Ok(()) => Ok(true),
            Err(NetlinkError::Refused { source, .. })
                if source.kind() == io::ErrorKind::AlreadyExists =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Removes all filters of an interface, and what [`Self::add_clsact`] has made.
    pub(crate) fn remove_clsact(&mut self, interface: InterfaceIndex) -> Result<(), NetlinkError> {
        let request = Request::new(NLM_F_ACK, format!("have no filters at {interface}"));
        self.change(
            RouteNetlinkMessage::DelQueueDiscipline(clsact(interface)),
            request,
        )
    }

    /// Adds a filter that lets all packets of one side go through `program`.
    pub(crate) fn add_filter(
        &mut self,
        interface: InterfaceIndex,
        side: Side,
        filter: &ListedFilter,
        program: BorrowedFd<'_>,
    ) -> Result<(), NetlinkError> {
        let mut message = filter_message(interface, side);
        message.header.handle = filter.handle.into();
        message.header.info |= u32::from(filter.priority) << 16;
        let name = filter.name.clone().unwrap_or_default();
        message.attributes = vec![
            TcAttribute::Kind(TcFilterBpf::KIND.into()),
            TcAttribute::Options(
                [
                    TcFilterBpfOption::ProgFd(program.as_raw_fd().cast_unsigned()),
                    TcFilterBpfOption::ProgName(name),
                    TcFilterBpfOption::Flags(TcBpfFlags::DirectAction),
                ]
                .map(TcOption::Bpf)
                .into(),
            ),
        ];
        let request = Request::new(
            NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
            format!("add a filter to {interface}"),
        );
        self.change(RouteNetlinkMessage::NewTrafficFilter(message), request)
    }

    /// Removes one filter of one side.
    pub(crate) fn remove_filter(
        &mut self,
        interface: InterfaceIndex,
        side: Side,
        filter: &ListedFilter,
    ) -> Result<(), NetlinkError> {
        let mut message = filter_message(interface, side);
        message.header.handle = filter.handle.into();
        message.header.info |= u32::from(filter.priority) << 16;
        message.attributes = vec![TcAttribute::Kind(TcFilterBpf::KIND.into())];
        let request = Request::new(NLM_F_ACK, format!("remove a filter from {interface}"));
        self.change(RouteNetlinkMessage::DelTrafficFilter(message), request)
    }

    /// All filters of one side, the first first.
    pub(crate) fn filters(
        &mut self,
        interface: InterfaceIndex,
        side: Side,
    ) -> Result<Vec<ListedFilter>, NetlinkError> {
        let mut question = TcMessage::with_index(index_of(interface));
        question.header.parent = side.parent();
        let answers = self.dump(RouteNetlinkMessage::GetTrafficFilter(question))?;
        let filters = answers.into_iter().filter_map(|answer| match answer {
            // The head of each priority has no number.
            RouteNetlinkMessage::NewTrafficFilter(filter)
                if filter.header.handle != TcHandle::UNSPEC =>
            {
                Some(listed(filter))
            }
            _ => None,
        });
        Ok(filters.collect())
    }
}

fn clsact(interface: InterfaceIndex) -> TcMessage {
    let mut message = TcMessage::with_index(index_of(interface));
    message.header.parent = TcHandle::CLSACT;
    message.header.handle = TcHandle {
        major: TcHandle::CLSACT.major,
        minor: 0,
    };
    message.attributes.push(TcAttribute::Kind(CLSACT.into()));
    message
}

/// Names a side and packets of all protocols.
fn filter_message(interface: InterfaceIndex, side: Side) -> TcMessage {
    let mut message = TcMessage::with_index(index_of(interface));
    message.header.parent = side.parent();
    message.header.info = u16::to_be(libc::ETH_P_ALL as u16).into();
    message
}

fn listed(filter: TcMessage) -> ListedFilter {
    let options = filter
        .attributes
        .into_iter()
        .filter_map(|attribute| match attribute {
            TcAttribute::Options(options) => Some(options),
            _ => None,
        });
    let name = options.flatten().find_map(|option| match option {
        TcOption::Bpf(TcFilterBpfOption::ProgName(name)) => Some(name),
        _ => None,
    });
    ListedFilter {
        priority: (filter.header.info >> 16) as u16,
        handle: filter.header.handle.into(),
        name,
    }
}
