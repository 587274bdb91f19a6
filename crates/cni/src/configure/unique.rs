//! Whether an address is known to be nobody else's: what the configuration says, what the segment answers, what is announced.
//!
//! ```text
//!  keys `probe`, `enabledad` ──┐
//!  what the plugin knows ──────┼─► settled: used at once, announced at once, no detection
//!  what a blocking probe heard ┘   optimistic: used at once, the kernel detects behind it; not announced
//! ```
//!
//! The keys are those of every main plugin: `dispatch` reads them before anything is touched, [`super::configure`] obeys them.
//!
//! Easy to get wrong: an IPv6 address whose detection runs must not be announced. RFC 4429 takes the override flag away, and without it
//! nobody who remembers another MAC learns the new one. Worse, where a port sends frames back (hairpin) the kernel takes our own
//! announcement for another host's and gives the address up: only its questions carry a nonce. Neighbours learn such an address from the
//! first question that the pod asks them, which the kernel keeps back until detection has passed.

use std::net::IpAddr;

use mooring_api::net::Link;
use mooring_attach::cni::{CniError, Config, Ip};
use mooring_host::{Announced, Heard, Netlink, Netns, Probe, announce_from, announce_with, probe};
use serde::Deserialize;

use crate::call::Call;

/// Whether an IPv6 address may be used at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dad {
    /// At once, while the kernel asks whether somebody else has it.
    Optimistic,
    /// At once, and nobody asks: it is known to be unique.
    Settled,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Keys {
    probe: String,
    enabledad: Option<bool>,
}

/// What the configuration wants to know about its addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    probe: Probe,
    /// `None` leaves it to the plugin.
    detection: Option<bool>,
}

impl Wish {
    /// The keys; a bad value is refused by its name.
    pub(crate) fn read(config: &Config) -> Result<Self, CniError> {
        let keys: Keys = config.keys()?;
        let probe = keys.probe.parse();
        Ok(Self {
            probe: probe.map_err(|e| CniError::config("probe", e))?,
            detection: keys.enabledad,
        })
    }

    /// What becomes of detection. `detect` is what the plugin does by itself, `asked` that a probe has just heard nobody. The
    /// configuration's word is the last one.
    pub(super) fn dad(self, detect: bool, asked: bool) -> Dad {
        if self.detection.unwrap_or(detect && !asked) {
            Dad::Optimistic
        } else {
            Dad::Settled
        }
    }

    /// Whether the segment is asked before the addresses are used.
    pub(super) fn blocks(self) -> bool {
        matches!(self.probe, Probe::Block(_))
    }

    /// Asks the segment through a link that is up and has not got the addresses; whether somebody could be asked. An answer is an
    /// error.
    pub(super) fn ask(self, (netns, name): (&Netns, &str), ips: &[&Ip]) -> Result<bool, CniError> {
        let Probe::Block(bound) = self.probe else {
            return Ok(false);
        };
        let heard = probe(netns, name, &addresses(ips), bound);
        let heard =
            heard.map_err(|e| CniError::internal("cannot probe the addresses").because(&e))?;
        match heard {
            Heard::Silence => Ok(true),
            Heard::NotAsked => Ok(false),
            Heard::Taken(taken) => Err(CniError::try_again(format!(
                "address {} is in use: {} answered on {name}",
                taken.address, taken.by
            ))
            .with_details(
                "find that host and take the address from it, or give this attachment another one",
            )),
        }
    }
}

/// Addresses that are in use for good, which is why they may be announced. Only [`super::configure`] makes one.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "neighbours that remember another MAC have to be told"]
pub(crate) struct Ready(Vec<IpAddr>);

impl Ready {
    pub(super) fn of(ips: &[&Ip], dad: Dad) -> Self {
        let mut ready = addresses(ips);
        ready.retain(|address| address.is_ipv4() || dad == Dad::Settled);
        Self(ready)
    }

    /// Tells the segment whose they are now, after carrier. One that is not heard costs time, not the attachment.
    pub(crate) fn tell(&self, call: &Call, netns: &Netns, inside: &mut Netlink) {
        log(call, announce_with(netns, inside, call.ifname(), &self.0));
    }

    /// The same out of a link that is known to have carrier.
    pub(crate) fn tell_from(&self, call: &Call, netns: &Netns, link: &Link) {
        log(call, announce_from(netns, link, &self.0));
    }
}

fn log<E: std::fmt::Display>(call: &Call, told: Result<Announced, E>) {
    if let Err(error) = told {
        call.log(error);
    }
}

fn addresses(ips: &[&Ip]) -> Vec<IpAddr> {
    ips.iter().map(|ip| ip.address.addr()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mooring_attach::cni::Verb;

    use super::*;

    fn wish(keys: &str) -> Result<Wish, CniError> {
        let text = format!(r#"{{"cniVersion": "1.1.0", "name": "net", "type": "any"{keys}}}"#);
        Wish::read(&Config::parse(Verb::Add, text.as_bytes()).unwrap())
    }

    #[test]
    fn the_keys_are_read_and_a_bad_value_is_named() {
        assert_eq!(wish("").unwrap(), Wish::default());
        assert_eq!(
            wish(r#", "probe": null, "enabledad": null"#).unwrap(),
            Wish::default()
        );
        let read = wish(r#", "probe": "block(50)", "enabledad": false"#).unwrap();
        assert_eq!(read.probe, Probe::Block(Duration::from_millis(50)));
        assert_eq!(read.detection, Some(false));
        for (keys, named) in [
            (r#", "probe": "nonsense""#, "probe:"),
            (r#", "probe": 5"#, "probe:"),
            (r#", "enabledad": "yes""#, "enabledad:"),
        ] {
            let error = wish(keys).unwrap_err();
            assert_eq!(error.code, CniError::CONFIG, "{keys}");
            assert!(error.msg.contains(named), "{keys}: {error}");
        }
    }

    #[test]
    fn detection_is_left_out_where_the_configuration_the_plugin_or_the_segment_settled_it() {
        use Dad::{Optimistic, Settled};
        for (said, detect, asked, wanted) in [
            (None, true, false, Optimistic),
            (None, true, true, Settled),
            (None, false, false, Settled),
            (None, false, true, Settled),
            (Some(true), true, true, Optimistic),
            (Some(true), false, false, Optimistic),
            (Some(false), true, false, Settled),
            (Some(false), false, false, Settled),
        ] {
            let wish = Wish {
                detection: said,
                ..Wish::default()
            };
            let seen = wish.dad(detect, asked);
            assert_eq!(seen, wanted, "{said:?} {detect} {asked}");
        }
    }

    #[test]
    fn an_address_whose_detection_runs_is_not_announced() {
        let ips = ["10.1.2.20/24", "2001:db8::20/64"];
        let ips = ips.map(|address| Ip::new(address.parse().unwrap(), None));
        let ips: Vec<&Ip> = ips.iter().collect();
        let texts = |dad| -> Vec<String> {
            let Ready(ready) = Ready::of(&ips, dad);
            ready.iter().map(ToString::to_string).collect()
        };
        assert_eq!(texts(Dad::Optimistic), ["10.1.2.20"]);
        assert_eq!(texts(Dad::Settled), ["10.1.2.20", "2001:db8::20"]);
    }
}
