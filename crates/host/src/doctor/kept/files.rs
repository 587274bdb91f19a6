//! What is noted in files: users of links that pods share, addresses of host-local, values that tuning restores.
//!
//! Easy to get wrong: host-local and tuning may have been given a directory of their own. The configurations that are known say which.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use mooring_attach::cni::{check_network, member};
use serde_json::Value;

use super::super::configurations::Known;
use super::{Kept, Seen, Sort, View, Who, listed, name_of};
use crate::Life;
use crate::host_local::{self, Content};
use crate::shared::{Objects, SharedError};

/// Users of VLAN sub-interfaces and shims.
pub(super) fn shared(view: &View<'_>, seen: &mut Seen) {
    for (sort, dir) in [(Sort::Vlan, "vlan"), (Sort::Shim, "shim")] {
        let dir = view.paths.own.join(dir);
        if users(view, sort, &dir, seen).is_err() {
            seen.broken.push(dir);
        }
    }
}

fn users(view: &View<'_>, sort: Sort, dir: &Path, seen: &mut Seen) -> Result<(), SharedError> {
    let objects = Objects::new(dir);
    for name in objects.names()? {
        for (file, user) in objects.peek(&name)? {
            let kept = Kept::new(sort, name.clone(), file);
            seen.kept.push(match user {
                None => kept,
                Some(user) => {
                    let id = Some(user.netns_id);
                    let life = Life::of(
                        &view.paths.node,
                        &user.netns,
                        id,
                        Some(&user.boot),
                        &view.boot.id,
                    );
                    let who = Who::new(&user.network, &user.container, &user.ifname);
                    Kept { who, life, ..kept }
                }
            });
        }
    }
    Ok(())
}

/// Addresses of host-local, in the node's own directory and in those that configurations name.
pub(super) fn addresses(view: &View<'_>, seen: &mut Seen) {
    let networks = listed(&view.paths.data.join("networks"));
    let mut places: Vec<PathBuf> = networks.into_iter().filter(|p| p.is_dir()).collect();
    places.extend(view.known.iter().filter_map(own_store));
    places.sort();
    places.dedup();
    for place in places {
        let network = name_of(&place);
        for path in listed(&place) {
            let Ok(address) = name_of(&path).parse::<IpAddr>() else {
                continue;
            };
            let (who, life) = match host_local::content(&path) {
                Content::Gone => continue,
                Content::Nothing => (Who::default(), Life::gone("its file is empty")),
                Content::Unknown => (Who::default(), Life::Unknown),
                Content::Owned(owner) => {
                    let ifname = owner.ifname.unwrap_or_default();
                    let who = Who::new(&network, &owner.container, &ifname);
                    let life = view.by_cache(&who);
                    (who, life)
                }
            };
            let kept = Kept::new(Sort::Address, address.to_string(), path);
            seen.kept.push(Kept { who, life, ..kept });
        }
    }
}

/// The directory of a network's addresses, where its configuration names one.
fn own_store(known: &Known) -> Option<PathBuf> {
    let ipam = member(&known.plugin, "ipam")?.as_object()?;
    let dir = member(ipam, "dataDir")?.as_str()?;
    let is_path = Path::new(dir).is_absolute() && check_network(&known.network).is_ok();
    is_path.then(|| Path::new(dir).join(&known.network))
}

/// Values that tuning restores.
pub(super) fn tuning(view: &View<'_>, seen: &mut Seen) {
    let mut places = vec![view.paths.run.join("tuning")];
    let is_tuning = |known: &&Known| member(&known.plugin, "type") == Some(&"tuning".into());
    let own = view.known.iter().filter(is_tuning);
    let own = own.filter_map(|known| member(&known.plugin, "dataDir").and_then(Value::as_str));
    places.extend(own.map(PathBuf::from).filter(|dir| dir.is_absolute()));
    places.sort();
    places.dedup();
    for path in places.iter().flat_map(|dir| listed(dir)) {
        let Some((container, ifname)) = whose(&path) else {
            continue;
        };
        let who = Who::new("", &container, &ifname);
        seen.kept.push(Kept {
            life: view.by_cache(&who),
            who,
            ..Kept::new(Sort::Tuning, ifname, path)
        });
    }
}

/// Container and interface of a file of tuning. Neither has an underscore at the place where they meet but by its name.
fn whose(path: &Path) -> Option<(String, String)> {
    let name = name_of(path);
    let (container, ifname) = name.strip_suffix(".json")?.rsplit_once('_')?;
    Some((container.to_owned(), ifname.to_owned()))
}
