//! `sbr`: packets leave by the interface that has their source address.
//!
//! Chained behind a plugin that made an interface with addresses; `plan` decides, this acts. Everything lives in the
//! pod's namespace and ends with it; what DEL removes are the rules, which would otherwise catch the packets of the next
//! interface with that address. Easy to get wrong: at DEL the interface may be gone, with its addresses and tables, and
//! the rules not.

mod plan;

use std::fs::File;
use std::net::IpAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use mooring_api::Cidr;
use mooring_api::net::Rule;
use mooring_attach::cni::{CniError, CniResult, Ip};
use mooring_host::{Change, Netlink, NetlinkError, Netns, fault};
use serde::Deserialize;

use crate::call::Call;
use crate::plugin::Plugin;
use crate::plugins::bridge::pod;
use plan::{FIRST, PROTOCOL, Plan, Seen, Wanted, plan, single};

const LOCK_BOUND: Duration = Duration::from_secs(10);

pub(crate) struct Sbr;

impl Plugin for Sbr {
    fn about(&self) -> &'static str {
        "routes by source address, a table per address"
    }

    fn add(&self, call: &Call) -> Result<CniResult, CniError> {
        let wanted = wanted(call)?;
        let prev = call.prev()?;
        let ips = ips(prev, call.ifname());
        if ips.is_empty() {
            let why = format!("no IP addresses supplied on interface {}", call.ifname());
            return Err(CniError::config("prevResult", why));
        }
        let path = call.netns()?;
        let (_, mut pod) = pod(call)?;
        let _lock = lock(path)?;
        let plan = {
            let link = pod.link(call.ifname()).map_err(failed)?;
            let missing =
                || CniError::internal(format!("cannot find network interface {}", call.ifname()));
            let seen = Seen {
                index: link.ok_or_else(missing)?.index,
                ips: &ips,
                routes: &pod.routes(None).map_err(failed)?,
                rules: &pod.rules().map_err(failed)?,
            };
            plan(seen, &wanted)
        };
        apply(call, &mut pod, plan)?;
        Ok(prev.clone())
    }

    fn del(&self, call: &Call) -> Result<(), CniError> {
        let Some(path) = call.request.netns.as_deref() else {
            return Ok(());
        };
        let mut pod = match Netns::open(path).and_then(|netns| netns.netlink()) {
            Ok(pod) => pod,
            Err(e) if e.is_gone() => return Ok(()),
            Err(e) => return Err(CniError::netns(path.display(), "cannot be used").because(&e)),
        };
        let _lock = lock(path)?;
        // A value that cannot be read now could not be read by the ADD either.
        let table = wanted(call).ok().and_then(|wanted| wanted.table);
        let prev = call.config().prev.as_ref();
        let mut own: Vec<Cidr> = prev
            .map(|prev| ips(prev, call.ifname()))
            .unwrap_or_default()
            .iter()
            .map(|ip| single(ip.address.addr()))
            .collect();
        if let Some(link) = pod.link(call.ifname()).map_err(failed)? {
            let addrs = pod.addrs(Some(link.index)).map_err(failed)?;
            own.extend(addrs.iter().map(|a| single(a.address.addr())));
        }
        let routes = pod.routes(None).map_err(failed)?;
        let filled = |table: u32| routes.iter().any(|r| r.table == table);
        let dead: Vec<Rule> = pod
            .rules()
            .map_err(failed)?
            .into_iter()
            .filter(|rule| is_dead(rule, &own, table, filled))
            .collect();
        let outcomes = dead.into_iter().map(|rule| {
            let outcome = absent(pod.apply(&[Change::DelRule(rule)]));
            fault::point("sbr-rule-removed");
            outcome
        });
        let errors: Vec<CniError> = outcomes.filter_map(Result::err).map(failed).collect();
        CniError::all(errors).map_or(Ok(()), Err)
    }

    fn check(&self, call: &Call) -> Result<(), CniError> {
        let wanted = wanted(call)?;
        let (_, mut pod) = pod(call)?;
        let rules = pod.rules().map_err(failed)?;
        let routes = pod.routes(None).map_err(failed)?;
        for ip in ips(call.prev()?, call.ifname()) {
            let src = single(ip.address.addr());
            let fits = |r: &&Rule| {
                r.src == Some(src) && wanted.table.map_or(r.table >= FIRST, |t| r.table == t)
            };
            let Some(rule) = rules.iter().find(fits) else {
                return Err(CniError::internal(format!(
                    "no rule routes by the source {src}"
                )));
            };
            let filled = routes.iter().any(|r| r.table == rule.table);
            if wanted.table.is_none() && !filled {
                let msg = format!("the table {} of {src} has no routes", rule.table);
                return Err(CniError::internal(msg));
            }
        }
        Ok(())
    }

    /// What an ADD works on is there when an earlier plugin has made it; here only the keys can be wrong.
    fn status(&self, call: &Call) -> Result<(), CniError> {
        wanted(call).map(drop)
    }
}

/// The rule of an address that is or was the interface's; or one of ours whose table has nothing any more.
fn is_dead(rule: &Rule, own: &[Cidr], table: Option<u32>, filled: impl Fn(u32) -> bool) -> bool {
    let mine = rule.src.is_some_and(|src| own.contains(&src));
    let fits = table.is_none_or(|table| rule.table == table);
    (mine && fits) || (rule.protocol == PROTOCOL && rule.src.is_some() && !filled(rule.table))
}

fn apply(call: &Call, pod: &mut Netlink, plan: Plan) -> Result<(), CniError> {
    let routes: Vec<Change> = plan.routes.into_iter().map(Change::SetRoute).collect();
    pod.apply(&routes).map_err(failed)?;
    fault::point("sbr-routes");
    let rules: Vec<Change> = plan.rules.into_iter().map(Change::AddRule).collect();
    pod.apply(&rules).map_err(failed)?;
    fault::point("sbr-rules");
    for hint in plan.hints {
        // The kernel refuses an address that is still being probed; packets find a source without the hint too.
        if let Err(e) = pod.apply(&[Change::SetRoute(hint)]) {
            call.log(format_args!("no source hint: {e}"));
        }
    }
    for route in plan.moved {
        absent(pod.apply(&[Change::DelRoute(route)])).map_err(failed)?;
    }
    fault::point("sbr-moved");
    Ok(())
}

fn absent(outcome: Result<(), NetlinkError>) -> Result<(), NetlinkError> {
    match outcome {
        Err(e) if e.is_absent() => Ok(()),
        other => other,
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Keys {
    table: Option<i64>,
    gateways: Vec<String>,
    add_source_hints: bool,
}

fn wanted(call: &Call) -> Result<Wanted, CniError> {
    let keys: Keys = call.config().keys()?;
    let table = keys.table.map(|table| {
        let fits = u32::try_from(table).ok().filter(|t| *t > 0);
        fits.ok_or_else(|| CniError::config("table", format!("{table} is no routing table")))
    });
    let mut gateways: Vec<IpAddr> = Vec::new();
    for (nth, text) in keys.gateways.iter().enumerate() {
        let field = format!("gateways[{nth}]");
        let bad = |_| CniError::config(&field, format!("{text:?} is no address"));
        let addr: IpAddr = text.parse().map_err(bad)?;
        if let Some(other) = gateways.iter().find(|g| g.is_ipv4() == addr.is_ipv4()) {
            let why = format!("{addr} and {other} are of one family; one each is used");
            return Err(CniError::config(&field, why));
        }
        gateways.push(addr);
    }
    Ok(Wanted {
        table: table.transpose()?,
        gateways,
        source_hints: keys.add_source_hints,
    })
}

/// The addresses of the interface, and those that name none; each once.
fn ips(prev: &CniResult, ifname: &str) -> Vec<Ip> {
    let mut ips: Vec<Ip> = Vec::new();
    for ip in &prev.ips {
        let named = ip.interface.and_then(|nth| prev.interfaces.get(nth));
        let ours = named.is_none_or(|interface| interface.name == ifname);
        if ours && !ips.iter().any(|known| known.address == ip.address) {
            ips.push(ip.clone());
        }
    }
    ips
}

/// One process at a time counts free tables. The lock is on the namespace's own file, where the reference plugin's is,
/// and leaves nothing behind.
fn lock(netns: &Path) -> Result<File, CniError> {
    let busy = |why: String| {
        let msg = format!("the namespace {} is busy", netns.display());
        CniError::try_again(msg).with_details(why)
    };
    let file = File::open(netns).map_err(|e| busy(e.to_string()))?;
    let deadline = Instant::now() + LOCK_BOUND;
    while let Err(e) = file.try_lock() {
        if Instant::now() >= deadline {
            return Err(busy(e.to_string()));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(file)
}

fn failed(error: NetlinkError) -> CniError {
    CniError::internal("source-based routing failed").because(&error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(src: &str, table: u32, protocol: u8) -> Rule {
        let mut rule = Rule::from(src.parse().unwrap(), table);
        rule.protocol = protocol;
        rule
    }

    #[test]
    fn a_rule_is_dead_by_its_address_or_when_ours_leads_to_an_empty_table() {
        let own = ["10.1.0.5/32".parse().unwrap()];
        let filled = |table: u32| table != 100;
        for (rule, table, dead) in [
            (rule("10.1.0.5/32", 101, 0), None, true),
            (rule("10.1.0.5/32", 101, 0), Some(500), false),
            (rule("10.1.0.5/32", 500, 0), Some(500), true),
            (rule("10.1.0.6/32", 101, PROTOCOL), None, false),
            (rule("10.1.0.6/32", 100, PROTOCOL), None, true),
            (rule("10.1.0.6/32", 100, 0), None, false),
            (rule("10.1.0.0/24", 101, 0), None, false),
        ] {
            assert_eq!(is_dead(&rule, &own, table, filled), dead, "{rule:?}");
        }
    }
}
