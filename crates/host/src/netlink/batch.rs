//! Many changes in one send.

use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage as Message;

use super::socket::{Request, Socket};
use super::{NetlinkError, addr, bridge, link, neighbour, route, rule, vf};
use crate::Change;

/// Changes that go to the kernel together.
pub struct Batch<'a> {
    socket: &'a mut Socket,
    requests: Vec<Request>,
    /// The messages hold numbers of open namespaces; this keeps them borrowed until they are sent.
    namespaces: std::marker::PhantomData<&'a crate::Netns>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(socket: &'a mut Socket) -> Self {
        Self {
            socket,
            requests: Vec::new(),
            namespaces: std::marker::PhantomData,
        }
    }

    /// Adds a change.
    pub fn push(&mut self, change: &Change<'a>) -> &mut Self {
        self.requests.push(request(change));
        self
    }

    /// Sends them; the first refusal is the error. What stands behind it was tried too.
    pub fn send(&mut self) -> Result<(), NetlinkError> {
        self.send_each().into_iter().collect()
    }

    /// Sends them and gives the verdict on each, in order.
    pub fn send_each(&mut self) -> Vec<Result<(), NetlinkError>> {
        self.socket.execute(std::mem::take(&mut self.requests))
    }
}

/// A change as it goes to the kernel. The message holds numbers of open namespaces, so it is sent while the change lives.
pub(super) fn request(change: &Change<'_>) -> Request {
    let (message, flags) = encode(change);
    Request {
        message,
        flags,
        operation: change.to_string(),
    }
}

fn encode(change: &Change<'_>) -> (Message, u16) {
    const NEW: u16 = NLM_F_CREATE | NLM_F_EXCL;
    const REPLACE: u16 = NLM_F_CREATE | NLM_F_REPLACE;
    const APPEND: u16 = NLM_F_CREATE | NLM_F_APPEND;
    match change {
        Change::NewLink(new) => (Message::NewLink(link::make(new, None, None)), NEW),
        Change::NewLinkIn {
            link: new,
            netns,
            peer,
        } => (Message::NewLink(link::make(new, *netns, *peer)), NEW),
        // Not SetLink: that one passes over the options of a kind.
        Change::SetLink { index, change } => (Message::NewLink(link::change(*index, change)), 0),
        Change::Label { name, alias } => (Message::NewLink(link::label(name, alias)), 0),
        Change::DelLink(index) => (Message::DelLink(link::delete(*index)), 0),
        Change::Move { index, netns, name } => {
            let message = link::relocate(*index, netns, name.as_ref());
            (Message::NewLink(message), 0)
        }
        Change::AddAltName { index, name } => {
            let message = link::alt_name(*index, name);
            (Message::NewLinkProp(message), NEW | NLM_F_APPEND)
        }
        Change::DelAltName { index, name } => {
            (Message::DelLinkProp(link::alt_name(*index, name)), 0)
        }
        Change::AddAddr(a) => (Message::NewAddress(addr::add(a)), NEW),
        Change::SetAddr(a) => (Message::NewAddress(addr::add(a)), REPLACE),
        Change::DelAddr(a) => (Message::DelAddress(addr::delete(a)), 0),
        Change::AddRoute(r) => (Message::NewRoute(route::add(r)), NEW),
        Change::AppendRoute(r) => (Message::NewRoute(route::add(r)), APPEND),
        // Neither exclusive nor replacing nor appending: as `ip route prepend` and the reference plugins' RouteAddEcmp.
        Change::PrependRoute(r) => (Message::NewRoute(route::add(r)), NLM_F_CREATE),
        Change::SetRoute(r) => (Message::NewRoute(route::add(r)), REPLACE),
        Change::DelRoute(r) => (Message::DelRoute(route::delete(r)), 0),
        Change::AddRule(r) => (Message::NewRule(rule::encode(r)), NEW),
        Change::DelRule(r) => (Message::DelRule(rule::encode(r)), 0),
        Change::AddNeighbour(n) => (Message::NewNeighbour(neighbour::encode(n)), REPLACE),
        Change::DelNeighbour(n) => (Message::DelNeighbour(neighbour::encode(n)), 0),
        Change::SetVf { pf, vf, change } => (Message::SetLink(vf::change(*pf, *vf, change)), 0),
        Change::BridgePort { index, port } => (Message::SetLink(bridge::port(*index, port)), 0),
        Change::AddBridgeVlan(vlan) => (Message::SetLink(bridge::vlan(vlan)), 0),
        Change::DelBridgeVlan(vlan) => (Message::DelLink(bridge::vlan(vlan)), 0),
    }
}
