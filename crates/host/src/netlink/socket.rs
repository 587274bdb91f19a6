//! The blocking netlink socket: requests out, answers in, in order.
//!
//! Used by [`super::Netlink`] alone. It asks for strict checking (a filter that the kernel does not know is an error, not
//! a full dump), for the kernel's own words in errors, and for errors without the request echoed.
//!
//! Easy to get wrong: the kernel goes on with the next message of a send after one failed, so a batch is no transaction;
//! and a dump that was disturbed is marked on any of its parts, not at the end.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket as Raw, SocketAddr, protocols::NETLINK_ROUTE};
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::time::TimeVal;

use super::NetlinkError;
use super::wire;

/// How often a disturbed dump is tried, as the reference plugins do.
const ATTEMPTS: u32 = 5;
/// Messages per send: their answers fit into the default receive buffer many times over.
const PER_SEND: usize = 64;
/// The kernel answers while it handles the send; this only ends a wait that a defect would make endless.
const BOUND: Duration = Duration::from_secs(20);

const NOOP: u16 = 1;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const OVERRUN: u16 = 4;
/// The error carries attributes behind the request's header.
const ACK_TLVS: u16 = 0x200;
/// The error holds the request's header only.
const CAPPED: u16 = 0x100;
const HEADER: usize = 16;

/// A request that is ready to go, and what to call it in an error.
pub(super) struct Request {
    pub(super) message: RouteNetlinkMessage,
    pub(super) flags: u16,
    pub(super) operation: String,
}

pub(super) struct Socket {
    raw: Raw,
    sequence: u32,
    buffer: Vec<u8>,
}

/// A message as it came: its kind, and what follows its header.
pub(super) struct Message<'a> {
    pub(super) kind: u16,
    pub(super) body: &'a [u8],
    flags: u16,
    sequence: u32,
}

impl Socket {
    pub(super) fn open() -> io::Result<Self> {
        let mut raw = Raw::new(NETLINK_ROUTE)?;
        raw.bind_auto()?;
        raw.connect(&SocketAddr::new(0, 0))?;
        // Older kernels do without: errors have fewer words then, and filters are applied by the reader.
        if_known(raw.set_ext_ack(true))?;
        if_known(raw.set_cap_ack(true))?;
        if_known(raw.set_netlink_get_strict_chk(true))?;
        let bound = TimeVal::new(BOUND.as_secs().cast_signed(), 0);
        nix::sys::socket::setsockopt(&raw.as_fd(), ReceiveTimeout, &bound)?;
        Ok(Self {
            raw,
            sequence: 0,
            buffer: Vec::with_capacity(32 * 1024),
        })
    }

    /// Sends all requests and gives the kernel's verdict on each, in order. Requests go in few sends.
    pub(super) fn execute(&mut self, requests: Vec<Request>) -> Vec<Result<(), NetlinkError>> {
        let mut verdicts = Vec::with_capacity(requests.len());
        let mut rest = requests.into_iter().peekable();
        while rest.peek().is_some() {
            let chunk: Vec<_> = rest.by_ref().take(PER_SEND).collect();
            let done = self.execute_chunk(&chunk, &mut verdicts);
            if let Err(source) = done {
                // What was not answered has an unknown fate, and nothing more is sent.
                let unanswered = chunk.into_iter().chain(rest);
                let skip = verdicts.len() % PER_SEND;
                for request in unanswered.skip(skip) {
                    verdicts.push(Err(NetlinkError::Socket {
                        operation: request.operation,
                        source: io::Error::new(source.kind(), source.to_string()),
                    }));
                }
                break;
            }
        }
        verdicts
    }

    fn execute_chunk(
        &mut self,
        chunk: &[Request],
        verdicts: &mut Vec<Result<(), NetlinkError>>,
    ) -> io::Result<()> {
        let first = self.sequence.wrapping_add(1);
        let mut bytes = Vec::with_capacity(chunk.len() * 128);
        for request in chunk {
            self.frame_change(&mut bytes, request);
        }
        self.send(&bytes)?;
        let mut answered = 0;
        while answered < chunk.len() {
            self.receive()?;
            for message in messages(&self.buffer) {
                let Some(request) = chunk.get(answered) else {
                    break;
                };
                let expected = first.wrapping_add(u32::try_from(answered).unwrap_or(u32::MAX));
                // What is left of an earlier, abandoned request is not ours.
                if message.sequence != expected || message.kind != ERROR {
                    continue;
                }
                verdicts.push(verdict(&message, &request.operation));
                answered += 1;
            }
        }
        Ok(())
    }

    /// Asks for one object; the answer's body goes through `read`.
    pub(super) fn get<T>(
        &mut self,
        request: RouteNetlinkMessage,
        operation: &str,
        read: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, NetlinkError> {
        self.execute_and_get(&[], request, operation, read)
    }

    /// Changes and then a question, in one send: nothing of ours, and no kill, comes between them. The first refusal is the
    /// answer; the question is asked all the same, because what it finds behind a refusal belongs to somebody else.
    pub(super) fn execute_and_get<T>(
        &mut self,
        changes: &[Request],
        question: RouteNetlinkMessage,
        operation: &str,
        read: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, NetlinkError> {
        let fail = |source| NetlinkError::Socket {
            operation: operation.to_owned(),
            source,
        };
        let first = self.sequence.wrapping_add(1);
        let mut bytes = Vec::with_capacity((changes.len() + 1) * 128);
        for change in changes {
            self.frame_change(&mut bytes, change);
        }
        self.sequence = self.sequence.wrapping_add(1);
        frame(&mut bytes, question, NLM_F_REQUEST, self.sequence);
        self.send(&bytes).map_err(fail)?;
        // The kernel answers in order: when the question is answered, every verdict is in.
        let mut refused = None;
        loop {
            self.receive().map_err(fail)?;
            for message in messages(&self.buffer) {
                if message.sequence != self.sequence {
                    let nth = usize::try_from(message.sequence.wrapping_sub(first));
                    let change = nth.ok().and_then(|nth| changes.get(nth));
                    if let Some(change) = change.filter(|_| message.kind == ERROR) {
                        refused = refused.or(verdict(&message, &change.operation).err());
                    }
                    continue;
                }
                let answer = match message.kind {
                    ERROR => match verdict(&message, operation) {
                        Err(e) => Err(e),
                        Ok(()) => continue,
                    },
                    NOOP => continue,
                    _ => read(message.body).ok_or_else(|| NetlinkError::Answer {
                        operation: operation.to_owned(),
                        what: "it lacks what every such object has".to_owned(),
                    }),
                };
                return refused.map_or(answer, Err);
            }
        }
    }

    fn frame_change(&mut self, bytes: &mut Vec<u8>, change: &Request) {
        self.sequence = self.sequence.wrapping_add(1);
        let flags = NLM_F_REQUEST | NLM_F_ACK | change.flags;
        frame(bytes, change.message.clone(), flags, self.sequence);
    }

    /// Asks for a table; each entry's body goes through `read`, and those it answers `None` for are left out. A dump that
    /// was disturbed starts again, a few times.
    pub(super) fn dump<T>(
        &mut self,
        request: RouteNetlinkMessage,
        operation: &str,
        mut read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>, NetlinkError> {
        for _ in 0..ATTEMPTS {
            let mut entries = Vec::new();
            let whole = self.dump_once(request.clone(), operation, |body| {
                entries.extend(read(body));
            })?;
            if whole {
                return Ok(entries);
            }
        }
        Err(NetlinkError::Interrupted {
            operation: operation.to_owned(),
            attempts: ATTEMPTS,
        })
    }

    /// One dump; says whether it was undisturbed.
    fn dump_once(
        &mut self,
        request: RouteNetlinkMessage,
        operation: &str,
        mut take: impl FnMut(&[u8]),
    ) -> Result<bool, NetlinkError> {
        let fail = |source| NetlinkError::Socket {
            operation: operation.to_owned(),
            source,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let mut bytes = Vec::new();
        frame(
            &mut bytes,
            request,
            NLM_F_REQUEST | NLM_F_DUMP,
            self.sequence,
        );
        self.send(&bytes).map_err(fail)?;
        let mut whole = true;
        loop {
            self.receive().map_err(fail)?;
            for message in messages(&self.buffer) {
                if message.sequence != self.sequence {
                    continue;
                }
                whole &= message.flags & NLM_F_DUMP_INTR == 0;
                match message.kind {
                    DONE => {
                        // A dump may fail half way: the number stands where a count would.
                        verdict(&message, operation)?;
                        return Ok(whole);
                    }
                    ERROR => verdict(&message, operation)?,
                    OVERRUN => whole = false,
                    NOOP => {}
                    _ => take(message.body),
                }
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sent = self.raw.send(bytes, 0)?;
        if sent == bytes.len() {
            Ok(())
        } else {
            Err(io::Error::other("the kernel took half a message"))
        }
    }

    /// One datagram, whole however large: a PF with many VFs needs more than any fixed buffer.
    fn receive(&mut self) -> io::Result<()> {
        loop {
            self.buffer.clear();
            let flags = nix::libc::MSG_PEEK | nix::libc::MSG_TRUNC;
            let length = match self.raw.recv(&mut self.buffer, flags) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                peeked => peeked?,
            };
            self.buffer.clear();
            self.buffer.reserve(length);
            match self.raw.recv(&mut self.buffer, 0) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                // Netlink has no end; a closed descriptor of another kind would be read for ever.
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => return Ok(()),
            }
        }
    }
}

/// An option that this kernel does not know is no failure.
fn if_known(set: io::Result<()>) -> io::Result<()> {
    match set {
        Err(e) if e.raw_os_error() == Some(nix::libc::ENOPROTOOPT) => Ok(()),
        set => set,
    }
}

/// Appends a message with its header, padded.
fn frame(bytes: &mut Vec<u8>, message: RouteNetlinkMessage, flags: u16, sequence: u32) {
    let mut header = NetlinkHeader::default();
    header.flags = flags;
    header.sequence_number = sequence;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
    message.finalize();
    let start = bytes.len();
    bytes.resize(start + wire::aligned(message.buffer_len()), 0);
    let end = start + message.buffer_len();
    message.serialize(&mut bytes[start..end]);
}

/// The messages of a datagram.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = usize::try_from(wire::u32(bytes)?).ok()?;
        let message = Message {
            kind: wire::u16(bytes.get(4..)?)?,
            flags: wire::u16(bytes.get(6..)?)?,
            sequence: wire::u32(bytes.get(8..)?)?,
            body: bytes.get(HEADER..length)?,
        };
        bytes = bytes.get(wire::aligned(length)..).unwrap_or_default();
        Some(message)
    })
}

/// The verdict of an error message: number 0 is the ACK.
fn verdict(message: &Message<'_>, operation: &str) -> Result<(), NetlinkError> {
    let number = wire::i32(message.body).unwrap_or(0);
    if number >= 0 {
        return Ok(());
    }
    Err(NetlinkError::Refused {
        operation: operation.to_owned(),
        said: said(message),
        source: io::Error::from_raw_os_error(-number),
    })
}

/// The kernel's own words.
fn said(message: &Message<'_>) -> Option<String> {
    const TEXT: u16 = 1;
    if message.flags & ACK_TLVS == 0 {
        return None;
    }
    let mut at = 4;
    if message.kind == ERROR {
        let echoed = message.body.get(4..)?;
        at += if message.flags & CAPPED == 0 {
            wire::aligned(usize::try_from(wire::u32(echoed)?).ok()?)
        } else {
            HEADER
        };
    }
    wire::attributes(message.body.get(at..)?)
        .find(|(kind, _)| *kind == TEXT)
        .map(|(_, text)| wire::string(text))
}

/// The bytes that a request has on the wire, for the tests of the encoders.
#[cfg(test)]
pub(super) fn bytes_of(message: RouteNetlinkMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame(&mut bytes, message, 0, 0);
    bytes.split_off(HEADER)
}

#[cfg(test)]
mod tests;
