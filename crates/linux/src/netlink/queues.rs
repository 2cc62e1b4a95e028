//! What each of an interface's queues has sent.

use super::{InterfaceIndex, NetlinkError, Request, RouteSocket};
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcHeader, TcMessage, TcStats2};

/// The queueing discipline of which each queue of the device has a child.
const MULTI_QUEUE: &str = "mq";

impl RouteSocket {
    /// Gives each queue in which `interface` sends a queueing discipline of its own, as a network
    /// card's have: from now on it is counted what goes through them.
    ///
    /// # Errors
    /// When the interface has one queue only, or without `CAP_NET_ADMIN`.
    pub fn count_by_queue(&mut self, interface: InterfaceIndex) -> Result<(), NetlinkError> {
        let mut message = TcMessage::with_index(index_of(interface));
        message.header.parent = TcHandle::ROOT;
        message
            .attributes
            .push(TcAttribute::Kind(MULTI_QUEUE.into()));
        let request = Request::new(
            NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE,
            format!("count by queue at {interface}"),
        );
        self.change(RouteNetlinkMessage::NewQueueDiscipline(message), request)
    }

    /// Packets that `interface` has sent by each of its queues since
    /// [`count_by_queue`](Self::count_by_queue), in no particular order.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn sent_by_queue(&mut self, interface: InterfaceIndex) -> Result<Vec<u32>, NetlinkError> {
        let index = index_of(interface);
        let question = TcMessage::with_index(index);
        let answers = self.dump(RouteNetlinkMessage::GetQueueDiscipline(question))?;
        let children = answers.into_iter().filter_map(|answer| match answer {
            RouteNetlinkMessage::NewQueueDiscipline(message) => Some(message),
            _ => None,
        });
        let children =
            children.filter(|child| child.header.index == index && is_child(&child.header));
        Ok(children.map(|child| packets(&child)).collect())
    }
}

/// The kernel's numbers of interfaces are signed here.
pub(super) const fn index_of(interface: InterfaceIndex) -> i32 {
    interface.0.cast_signed()
}

fn is_child(header: &TcHeader) -> bool {
    ![TcHandle::ROOT, TcHandle::INGRESS, TcHandle::CLSACT].contains(&header.parent)
}

fn packets(discipline: &TcMessage) -> u32 {
    let mut packets = 0;
    for attribute in &discipline.attributes {
        let TcAttribute::Stats2(all) = attribute else {
            continue;
        };
        for one in all {
            if let TcStats2::Basic(basic) = one {
                packets = basic.packets;
            }
        }
    }
    packets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::InterfaceSettings;
    use crate::testing::fresh_namespace;

    #[test]
    fn each_queue_counts_for_itself_and_who_has_one_does_not() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let work = || {
            let mut route = RouteSocket::open().expect("netlink");
            let up = InterfaceSettings {
                up: Some(true),
                ..InterfaceSettings::default()
            };
            route
                .add_veth_with_queues("one", "other", None, 4)
                .expect("veth");
            let [one, other] = ["one", "other"].map(|name| route.interface(name).expect("made"));
            route.count_by_queue(one).expect("four queues");
            for interface in [one, other] {
                route.configure(interface, &up).expect("up");
            }
            assert_eq!(route.sent_by_queue(one).expect("netlink").len(), 4);
            route.add_veth("single", "second", None).expect("veth");
            let single = route.interface("single").expect("made");
            assert!(route.count_by_queue(single).is_err());
            assert!(route.add_veth_with_queues("no", "none", None, 0).is_err());
        };
        namespace.run(work).expect("enter");
    }
}
