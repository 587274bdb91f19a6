//! The IPAM plugin `host-local`: one address of each range set, unique on this node, kept in files.
//!
//! ```text
//!  ADD     config ─► files without names, synced ─► lock ─► held ─► decide::grant ─► name each
//!  DEL     lock ─► what is the attachment's ─► release            config and ranges do not matter
//!  GC      lock ─► decide::stale ─► release
//! ```
//!
//! Called by the frame, for itself or on behalf of a main plugin. A drop-in for the reference: same keys, same files, same
//! order of addresses; more than it: STATUS, GC, an ADD that is repeated gets its addresses again, several addresses in
//! `CNI_ARGS`, no file without owner. Easy to get wrong: an address is unique on *this node* only.

mod config;
mod decide;
mod range;
mod resolv;
mod store;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::path::Path;

use mooring_attach::cni::{CniError, CniResult, Dns, Ip, Request};
use mooring_host::host_local::Owner;

use self::config::Settings;
pub(super) use self::config::one_per_family;
use self::decide::{Grant, Refusal};
use self::store::{Store, StoreError};
use crate::call::Call;
use crate::plugin::Plugin;

/// The plugin.
#[derive(Debug)]
pub(crate) struct HostLocal;

impl Plugin for HostLocal {
    fn about(&self) -> &'static str {
        "addresses from ranges, unique on this node"
    }

    fn add(&self, call: &Call<'_>) -> Result<CniResult, CniError> {
        let settings = Settings::new(call.request)?;
        let dns = settings.resolv_conf.as_deref().map(resolv_conf);
        let dns = dns.transpose()?.unwrap_or_default();
        let owner = owner(call.request);
        let mut store = Store::create(&place(call), &owner, settings.sets.len())?;
        let ips = reserve(&mut store, &settings, &owner)?;
        Ok(CniResult {
            ips,
            routes: settings.routes,
            dns,
            ..CniResult::default()
        })
    }

    fn del(&self, call: &Call<'_>) -> Result<(), CniError> {
        let Some(store) = Store::open(&place(call))? else {
            return Ok(());
        };
        let owner = owner(call.request);
        if let Some(addrs) = known(&store, call.request, &owner) {
            return release(&store, &addrs);
        }
        let held = store.held()?;
        let addrs: Vec<IpAddr> = decide::owned(&held, &owner).into_iter().copied().collect();
        release(&store, &addrs)
    }

    fn check(&self, call: &Call<'_>) -> Result<(), CniError> {
        let prev = call.prev()?;
        let sets = config::sets(&call.request.config)?;
        let owner = owner(call.request);
        let container = &owner.container;
        let missing = |what: String| {
            CniError::internal(format!(
                "host-local: Failed to find address added by container {container}"
            ))
            .with_details(what)
        };
        let Some(store) = Store::open(&place(call))? else {
            return Err(missing("this network has no addresses here".to_owned()));
        };
        let held = store.held()?;
        let owned = decide::owned(&held, &owner);
        for (number, set) in sets.iter().enumerate() {
            if !owned.iter().any(|addr| set.contains(**addr)) {
                return Err(missing(format!(
                    "it holds none of range set {number}: {set}"
                )));
            }
        }
        for addr in prev.ips.iter().map(|ip| ip.address.addr()) {
            // Addresses of others in the chain are not ours to judge.
            if sets.iter().any(|set| set.contains(addr)) && !owned.contains(&&addr) {
                return Err(missing(format!("it does not hold {addr}")));
            }
        }
        Ok(())
    }

    fn status(&self, call: &Call<'_>) -> Result<(), CniError> {
        let sets = config::sets(&call.request.config)?;
        let Some(store) = Store::open(&place(call))? else {
            return Ok(());
        };
        match decide::full(&sets, &store.held()?) {
            Some(refusal) => Err(CniError::unavailable(refusal.to_string())),
            None => Ok(()),
        }
    }

    fn gc(&self, call: &Call<'_>) -> Result<(), CniError> {
        let Some(store) = Store::open(&place(call))? else {
            return Ok(());
        };
        let valid = &call.request.config.valid;
        let valid: Vec<Owner> = valid
            .iter()
            .map(|a| Owner::new(&a.container, &a.ifname))
            .collect();
        let held = store.held()?;
        let addrs: Vec<IpAddr> = decide::stale(&held, &valid).into_iter().copied().collect();
        release(&store, &addrs)
    }
}

fn place(call: &Call<'_>) -> std::path::PathBuf {
    config::place(&call.request.config, &call.paths.data.join("networks"))
}

fn owner(request: &Request) -> Owner {
    Owner::new(&request.container, request.ifname())
}

/// Decides and writes; what was written is taken back where the rest fails.
fn reserve(store: &mut Store, settings: &Settings, owner: &Owner) -> Result<Vec<Ip>, CniError> {
    /// How often an address may be lost to somebody who writes without the lock.
    const TRIES: u32 = 8;
    for _ in 0..TRIES {
        let held = store.held()?;
        let grants = decide::grant(&settings.sets, &settings.requested, owner, &held, |set| {
            store.last(set)
        })?;
        let mut written = Vec::new();
        let outcome = write(store, &grants, owner, &mut written);
        match outcome {
            Ok(true) => {
                let ip = |grant: &Grant| Ip::new(grant.address, Some(grant.gateway));
                return Ok(grants.iter().map(ip).collect());
            }
            // The cause is worth more than what the clean-up says.
            Ok(false) => drop(release(store, &written)),
            Err(error) => {
                drop(release(store, &written));
                return Err(error.into());
            }
        }
    }
    Err(CniError::try_again(
        "host-local: another program takes the addresses of this network without its lock",
    ))
}

/// False: an address was taken meanwhile.
fn write(
    store: &mut Store,
    grants: &[Grant],
    owner: &Owner,
    written: &mut Vec<IpAddr>,
) -> Result<bool, StoreError> {
    for grant in grants.iter().filter(|grant| grant.new) {
        let addr = grant.address.addr();
        if !store.reserve(addr, owner, grant.set)? {
            return Ok(false);
        }
        written.push(addr);
    }
    Ok(true)
}

/// All of them, also after a failure.
fn release(store: &Store, addrs: &[IpAddr]) -> Result<(), CniError> {
    let failed = addrs.iter().filter_map(|addr| store.release(*addr).err());
    match CniError::all(failed.map(CniError::from).collect()) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The attachment's addresses without reading every file of the network: an address of each set is in prevResult, and
/// its file is the attachment's. Then there is no other, since a set gives an attachment one.
fn known(store: &Store, request: &Request, owner: &Owner) -> Option<Vec<IpAddr>> {
    let prev = request.config.prev.as_ref()?;
    let addrs = prev.ips.iter().map(|ip| ip.address.addr());
    let addrs: Vec<IpAddr> = addrs
        .filter(|addr| store.owner(*addr).as_ref() == Some(owner))
        .collect();
    let sets = config::sets(&request.config).ok()?;
    let all = sets
        .iter()
        .all(|set| addrs.iter().any(|addr| set.contains(*addr)));
    all.then_some(addrs)
}

fn resolv_conf(path: &Path) -> Result<Dns, CniError> {
    let text = std::fs::read_to_string(path);
    let text =
        text.map_err(|e| CniError::io(format!("cannot read resolvConf {}", path.display()), e))?;
    Ok(resolv::parse(&text))
}

impl From<Refusal> for CniError {
    fn from(refusal: Refusal) -> Self {
        let msg = refusal.to_string();
        match refusal {
            Refusal::Exhausted { .. } => Self::try_again(msg),
            Refusal::Taken { by: Some(by), .. } => {
                let ifname = by.ifname.unwrap_or_default();
                Self::try_again(msg)
                    .with_details(format!("held by container {} {ifname}", by.container))
            }
            Refusal::Taken { by: None, .. } => Self::try_again(msg),
            Refusal::Another { .. } => {
                Self::try_again(msg).with_details("a DEL of this attachment frees it")
            }
            Refusal::Gateway { .. } | Refusal::Outside(_) => Self::new(Self::CONFIG, msg),
        }
    }
}

impl From<StoreError> for CniError {
    fn from(error: StoreError) -> Self {
        let msg = error.to_string();
        let source = std::error::Error::source(&error);
        let code = match &error {
            StoreError::Lock(_) => Self::TRY_AGAIN,
            StoreError::Io { .. } => Self::IO,
        };
        let out = Self::new(code, format!("host-local: {msg}"));
        match source {
            Some(source) => out.because(source),
            None => out,
        }
    }
}
