//! TCP and SCTP by one hand: a one-to-one SCTP socket is read and written like a TCP one.

use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use mooring_host::Netns;
use mooring_testkit::Netns as Testns;
use nix::sys::socket::sockopt::{ReceiveTimeout, ReuseAddr, SendTimeout};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockProtocol, SockType, SockaddrIn, bind, connect, listen,
    setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike as _};

use super::at;

/// How long a socket waits before the test fails.
const BOUND: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    Tcp,
    Sctp,
}

impl Carrier {
    /// A listener in a namespace.
    #[track_caller]
    pub(super) fn listen(self, netns: &Testns, address: &str, port: u16) -> TcpListener {
        let open = || {
            let fd = self.socket()?;
            setsockopt(&fd, ReuseAddr, &true)?;
            bind(fd.as_raw_fd(), &v4(at(address, port)))?;
            listen(&fd, Backlog::new(8)?)?;
            Ok::<_, nix::Error>(fd)
        };
        let fd = inside(netns, open);
        TcpListener::from(fd.unwrap_or_else(|e| panic!("listen at {address}: {e}")))
    }

    /// A connection from a namespace.
    #[track_caller]
    pub(super) fn connect(self, netns: &Testns, address: &str, port: u16) -> TcpStream {
        let open = || {
            let fd = self.socket()?;
            connect(fd.as_raw_fd(), &v4(at(address, port)))?;
            Ok::<_, nix::Error>(fd)
        };
        let fd = inside(netns, open);
        TcpStream::from(fd.unwrap_or_else(|e| panic!("connect to {address}: {e}")))
    }

    /// How often a namespace has sent the first packet of a connection again.
    pub(super) fn first_packets_lost(self, netns: &Testns) -> u64 {
        match self {
            Self::Tcp => counter(netns, "/proc/net/netstat", "TcpExt:", "TCPSynRetrans"),
            Self::Sctp => {
                let said = netns.run("cat", &["/proc/net/sctp/snmp"]);
                let mut lines = said.ok().lines();
                let lost = lines.find_map(|l| l.strip_prefix("SctpT1InitExpireds"));
                lost.unwrap().trim().parse().unwrap()
            }
        }
    }

    /// Whether an error is the other side's word that it knows nothing of the connection.
    pub(super) fn is_refusal(self, error: &std::io::Error) -> bool {
        use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        match self {
            Self::Tcp => error.kind() == ConnectionReset,
            // An ABORT ends the stream, or breaks it where something was still to be sent.
            Self::Sctp => matches!(error.kind(), ConnectionReset | UnexpectedEof | BrokenPipe),
        }
    }

    fn socket(self) -> nix::Result<OwnedFd> {
        let protocol = match self {
            Self::Tcp => SockProtocol::Tcp,
            Self::Sctp => SockProtocol::Sctp,
        };
        let fd = socket(
            AddressFamily::Inet,
            SockType::Stream,
            SockFlag::SOCK_CLOEXEC,
            protocol,
        )?;
        let bound = TimeVal::milliseconds(i64::try_from(BOUND.as_millis()).unwrap());
        setsockopt(&fd, SendTimeout, &bound)?;
        setsockopt(&fd, ReceiveTimeout, &bound)?;
        Ok(fd)
    }
}

/// The next connection, and who made it.
#[track_caller]
pub(super) fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    let (stream, peer) = listener.accept().unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    (stream, peer)
}

/// A counter of the kernel for a namespace: a line of names, and a line of values below it.
#[track_caller]
pub(super) fn counter(netns: &Testns, file: &str, group: &str, name: &str) -> u64 {
    let said = netns.run("cat", &[file]);
    let mut lines = said.ok().lines().filter(|line| line.starts_with(group));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    let found = pairs.find(|(n, _)| *n == name);
    found.unwrap().1.parse().unwrap()
}

fn inside<T: Send>(netns: &Testns, f: impl FnOnce() -> T + Send) -> T {
    Netns::open(netns.path()).unwrap().run(f).unwrap()
}

fn v4(address: SocketAddr) -> SockaddrIn {
    match address {
        SocketAddr::V4(address) => {
            SockaddrIn::from(SocketAddrV4::new(*address.ip(), address.port()))
        }
        SocketAddr::V6(_) => panic!("{address} is of IPv6"),
    }
}
