//! Tells a segment where an address lives now: gratuitous ARP and unsolicited neighbour advertisements.
//!
//! Called by every main plugin after it has configured an interface, and by the agent when it repeats them. A workload that
//! comes back with its address and a new MAC is otherwise unreachable until its neighbours' caches age, half an hour with
//! some switches. `arp_notify` alone is not enough: it fires on link-up, and carrier may come later.
//!
//! ```text
//!  wait for carrier (bounded) ─► ARP request form + ARP reply form, or NA, per address
//!                                └ by BPF, else by a packet socket (inject.rs says why)
//! ```
//!
//! Easy to get wrong: an IPv6 address whose duplicate detection still runs must not be announced. The caller passes only
//! settled ones; for a plugin `configure` gives it nothing else.

pub(crate) mod frame;
mod inject;
pub(crate) mod packet;
#[cfg(test)]
mod tests;

use std::io;
use std::net::IpAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use mooring_api::net::Link;

use crate::{Netlink, NetlinkError, Netns, NetnsError};

/// How long an announcement waits for carrier.
pub(crate) const CARRIER: Duration = Duration::from_millis(200);

/// How often it looks. Carrier of a virtual link is there at once; that of hardware takes tens of milliseconds.
const LOOK: Duration = Duration::from_millis(5);

/// What became of an announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// So many frames went out.
    Sent(usize),
    /// The link has no neighbours to tell: no ARP, no Ethernet, or no address was given.
    Nobody,
    /// No carrier came in time, so nothing was sent.
    NoCarrier,
}

/// Why nothing was announced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnnounceError {
    /// The namespace.
    #[error("cannot announce addresses of {link}")]
    Netns {
        /// The link.
        link: String,
        /// Why.
        source: NetnsError,
    },
    /// The link could not be read.
    #[error("cannot announce addresses of {link}")]
    Link {
        /// The link.
        link: String,
        /// Why.
        source: NetlinkError,
    },
    /// The link is not there.
    #[error("cannot announce addresses of {link}: no such link")]
    Absent {
        /// The link.
        link: String,
    },
    /// Sending.
    #[error("cannot send an announcement of {address} out of {link}")]
    Send {
        /// The link.
        link: String,
        /// The address.
        address: IpAddr,
        /// Why.
        source: io::Error,
    },
}

/// Announces `addresses` out of the link `name` in `netns`, after carrier, for which it waits 200 ms at most.
pub fn announce(
    netns: &Netns,
    name: &str,
    addresses: &[IpAddr],
) -> Result<Announced, AnnounceError> {
    if addresses.is_empty() {
        return Ok(Announced::Nobody);
    }
    let mut netlink = netns.netlink().map_err(|source| AnnounceError::Netns {
        link: name.to_owned(),
        source,
    })?;
    announce_with(netns, &mut netlink, name, addresses)
}

/// The same with a socket that is already open in the namespace.
pub fn announce_with(
    netns: &Netns,
    netlink: &mut Netlink,
    name: &str,
    addresses: &[IpAddr],
) -> Result<Announced, AnnounceError> {
    if addresses.is_empty() {
        return Ok(Announced::Nobody);
    }
    let link = || name.to_owned();
    let read = |source| AnnounceError::Link {
        link: link(),
        source,
    };
    let Some(seen) = with_carrier(netlink, name, CARRIER).map_err(read)? else {
        return Err(AnnounceError::Absent { link: link() });
    };
    if has_neighbours(&seen) && !seen.carrier {
        return Ok(Announced::NoCarrier);
    }
    announce_from(netns, &seen, addresses)
}

/// The same out of a link that is known to have carrier: nobody is asked.
pub fn announce_from(
    netns: &Netns,
    link: &Link,
    addresses: &[IpAddr],
) -> Result<Announced, AnnounceError> {
    let Some(mac) = link.mac.filter(|_| has_neighbours(link)) else {
        return Ok(Announced::Nobody);
    };
    if addresses.is_empty() {
        return Ok(Announced::Nobody);
    }
    let outcome = netns.run(|| {
        let mut out = Out::open(link.index);
        let mut sent = 0;
        for &address in addresses {
            for frame in frame::announcements(mac, address) {
                out.send(&frame).map_err(|e| (address, e))?;
                sent += 1;
            }
        }
        Ok(sent)
    });
    let name = || link.name.clone();
    outcome
        .map_err(|source| AnnounceError::Netns {
            link: name(),
            source,
        })?
        .map(Announced::Sent)
        .map_err(|(address, source)| AnnounceError::Send {
            link: name(),
            address,
            source,
        })
}

/// The link, once it has carrier or the bound has passed; `None` when there is no such link.
pub(crate) fn with_carrier(
    netlink: &mut Netlink,
    name: &str,
    bound: Duration,
) -> Result<Option<Link>, NetlinkError> {
    let began = Instant::now();
    loop {
        let link = netlink.link(name)?;
        match &link {
            // A link that is administratively down gets no carrier by waiting.
            Some(seen) if seen.up && !seen.carrier && began.elapsed() < bound => sleep(LOOK),
            _ => return Ok(link),
        }
    }
}

/// Whether neighbours learn where an address of this link is.
pub(crate) fn has_neighbours(link: &Link) -> bool {
    const ETHERNET: u16 = 1;
    link.arp && link.hardware == ETHERNET
}

/// The way out of one link: BPF until it fails once, then a packet socket.
struct Out {
    index: u32,
    injector: Option<inject::Injector>,
    packet: Option<packet::Packet>,
}

impl Out {
    fn open(index: u32) -> Self {
        Self {
            index,
            injector: inject::Injector::to(index).ok(),
            packet: None,
        }
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        if let Some(injector) = &self.injector
            && injector.send(frame).is_ok()
        {
            return Ok(());
        }
        self.injector = None;
        let packet = match self.packet.take() {
            Some(packet) => packet,
            None => packet::Packet::open(self.index, false)?,
        };
        self.packet.insert(packet).send(frame)
    }
}
