//! A packet socket on one link: sends frames, and receives them for a bounded time.
//!
//! Called by `announce` (where BPF is not to be had) and by `probe`. Easy to get wrong: it belongs to the namespace of the
//! thread that opens it, and closing it takes the kernel 10 ms and more.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use nix::libc;
use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockType, SockaddrLike as _, bind, recv, send,
    setsockopt, socket,
};
use nix::sys::time::TimeVal;

/// Every protocol, in network order.
const ALL: u16 = 0x0003_u16.to_be();

/// An open one.
pub(crate) struct Packet(OwnedFd);

impl Packet {
    /// On the link of that index in the thread's namespace. Only one that listens sees frames.
    pub(crate) fn open(index: u32, listens: bool) -> io::Result<Self> {
        // Protocol 0: nothing is received between here and bind, so nothing of another link.
        let fd = socket(
            AddressFamily::Packet,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            None,
        )?;
        bind(fd.as_raw_fd(), &link(index, if listens { ALL } else { 0 })?)?;
        Ok(Self(fd))
    }

    /// Sends one frame.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        send(self.0.as_raw_fd(), frame, MsgFlags::empty())?;
        Ok(())
    }

    /// The next frame, cut to the buffer, or `None` when none came in time.
    pub(crate) fn next<'a>(
        &self,
        buffer: &'a mut [u8],
        wait: Duration,
    ) -> io::Result<Option<&'a [u8]>> {
        // A timeout of zero means for ever.
        let wait = wait.max(Duration::from_millis(1));
        let micros = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
        let bound = TimeVal::new(micros / 1_000_000, micros % 1_000_000);
        setsockopt(&self.0, ReceiveTimeout, &bound)?;
        match recv(self.0.as_raw_fd(), buffer, MsgFlags::empty()) {
            Ok(size) => Ok(buffer.get(..size)),
            // Interrupted is as good as late: the caller looks at its clock.
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => Ok(None),
            // The link went down while we listened: that is silence too.
            Err(nix::Error::ENETDOWN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn link(index: u32, protocol: u16) -> io::Result<LinkAddr> {
    let address = libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).map_err(io::Error::other)?,
        sll_protocol: protocol,
        sll_ifindex: i32::try_from(index).map_err(io::Error::other)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the pointer is to a whole, initialised `sockaddr_ll` whose family says so, and it is copied before the call
    // ends.
    #[expect(unsafe_code, reason = "nix has no constructor for a link address")]
    let address = unsafe { LinkAddr::from_raw((&raw const address).cast(), None) };
    address.ok_or_else(|| io::Error::other("not a link address"))
}
