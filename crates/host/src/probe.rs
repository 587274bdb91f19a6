//! Asks a segment whether somebody has an address already: ARP probes (RFC 5227), neighbour solicitations (RFC 4862).
//!
//! Called by a main plugin whose network says `probe: block(ms)`, before it gives the addresses to the interface; the agent
//! will call it for `async`. All addresses are asked for at once, three times within the bound, and the first answer ends it.
//!
//! Easy to get wrong: silence is no proof (a host may sleep, a switch may learn), and without carrier it is not even a hint.
//! The link must be up and must not have the addresses yet, or we would hear ourselves.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::{Duration, Instant};

use mooring_api::{BadValue, Mac};

use crate::announce::packet::Packet;
use crate::announce::{CARRIER, frame, has_neighbours, with_carrier};
use crate::{NetlinkError, Netns, NetnsError};

/// How often an address is asked for.
const TIMES: u32 = 3;

/// The part of a frame that can say something: all of ARP, and discovery with a few options.
const HEAD: usize = 256;

/// What a network wants to know about an address before it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// Nothing.
    #[default]
    Off,
    /// Asked in the background and reported. That takes the agent; without it, nothing is asked.
    Async,
    /// Asked for that long, and refused when somebody answers.
    Block(Duration),
}

impl Probe {
    /// How long `block` without a number asks.
    pub const BLOCK: Duration = Duration::from_millis(200);
    /// The longest one: runtimes give a plugin a few seconds for everything.
    pub const LONGEST: Duration = Duration::from_secs(10);
}

impl FromStr for Probe {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        let bad = |why| BadValue::new("a probe", s, why);
        let form = "write off, async, block or block(ms), such as block(200)";
        match s {
            "" | "off" => Ok(Self::Off),
            "async" => Ok(Self::Async),
            "block" => Ok(Self::Block(Self::BLOCK)),
            _ => {
                let inner = s.strip_prefix("block(").and_then(|r| r.strip_suffix(')'));
                let millis: u64 = inner
                    .map(|text| text.strip_suffix("ms").unwrap_or(text))
                    .and_then(|text| text.parse().ok())
                    .ok_or_else(|| bad(form))?;
                let bound = Duration::from_millis(millis);
                if bound.is_zero() || bound > Self::LONGEST {
                    return Err(bad("it must last between 1 and 10000 ms"));
                }
                Ok(Self::Block(bound))
            }
        }
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Async => f.write_str("async"),
            Self::Block(bound) => write!(f, "block({})", bound.as_millis()),
        }
    }
}

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nobody answered.
    Silence,
    /// Nobody was asked: no address was given, the link has no neighbours (no ARP, no Ethernet), or it has no carrier.
    NotAsked,
    /// Somebody has one of the addresses.
    Taken(Taken),
}

/// Somebody else has the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The address.
    pub address: IpAddr,
    /// Who answered.
    pub by: Mac,
}

/// Why nothing could be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The namespace.
    #[error("cannot probe on {link}")]
    Netns {
        /// The link.
        link: String,
        /// Why.
        source: NetnsError,
    },
    /// The link could not be read.
    #[error("cannot probe on {link}")]
    Link {
        /// The link.
        link: String,
        /// Why.
        source: NetlinkError,
    },
    /// The link is not there.
    #[error("cannot probe on {link}: no such link")]
    Absent {
        /// The link.
        link: String,
    },
    /// Sending or receiving.
    #[error("cannot probe on {link}")]
    Packet {
        /// The link.
        link: String,
        /// Why.
        source: io::Error,
    },
}

/// Asks for `addresses` on the link `name`, which is up, for `bound`. The first answer ends it.
pub fn probe(
    netns: &Netns,
    name: &str,
    addresses: &[IpAddr],
    bound: Duration,
) -> Result<Heard, ProbeError> {
    if addresses.is_empty() {
        return Ok(Heard::NotAsked);
    }
    let link = || name.to_owned();
    let in_netns = |source| ProbeError::Netns {
        link: link(),
        source,
    };
    let mut netlink = netns.netlink().map_err(in_netns)?;
    let read = |source| ProbeError::Link {
        link: link(),
        source,
    };
    let Some(seen) = with_carrier(&mut netlink, name, CARRIER).map_err(read)? else {
        return Err(ProbeError::Absent { link: link() });
    };
    let Some(mac) = seen.mac.filter(|_| has_neighbours(&seen) && seen.carrier) else {
        return Ok(Heard::NotAsked);
    };
    let heard = netns.run(|| {
        let packet = Packet::open(seen.index, true)?;
        ask(&packet, mac, addresses, bound)
    });
    let heard = heard
        .map_err(in_netns)?
        .map_err(|source| ProbeError::Packet {
            link: link(),
            source,
        })?;
    Ok(heard.map_or(Heard::Silence, Heard::Taken))
}

fn ask(
    packet: &Packet,
    mac: Mac,
    addresses: &[IpAddr],
    bound: Duration,
) -> io::Result<Option<Taken>> {
    let began = Instant::now();
    let mut buffer = [0; HEAD];
    for nth in 1..=TIMES {
        for &address in addresses {
            packet.send(&frame::question(mac, address))?;
        }
        let until = bound * nth / TIMES;
        while let Some(left) = until.checked_sub(began.elapsed()) {
            let Some(frame) = packet.next(&mut buffer, left)? else {
                continue;
            };
            let claims = |&address: &IpAddr| {
                let by = frame::claimant(frame, address, mac)?;
                Some(Taken { address, by })
            };
            if let Some(taken) = addresses.iter().find_map(claims) {
                return Ok(Some(taken));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_key_reads_and_prints() {
        for (text, probe) in [
            ("off", Probe::Off),
            ("async", Probe::Async),
            ("block(200)", Probe::Block(Duration::from_millis(200))),
            ("block(1)", Probe::Block(Duration::from_millis(1))),
        ] {
            assert_eq!(text.parse::<Probe>().unwrap(), probe);
            assert_eq!(probe.to_string(), text);
        }
        assert_eq!(
            "block".parse::<Probe>().unwrap(),
            Probe::Block(Probe::BLOCK)
        );
        let with_unit = "block(50ms)".parse::<Probe>().unwrap();
        assert_eq!(with_unit, Probe::Block(Duration::from_millis(50)));
        for bad in [
            "on",
            "block()",
            "block(0)",
            "block(-1)",
            "block(10001)",
            "Block",
            "block(5",
        ] {
            assert!(bad.parse::<Probe>().is_err(), "{bad}");
        }
    }
}
