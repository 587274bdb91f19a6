//! What only programs of the node can show: rules in nftables, ports of Open vSwitch. Both outlive the pods' interfaces.
//!
//! Easy to get wrong: a node without the program has neither, and that is no trouble; one whose program does not answer may have both.

use std::collections::BTreeSet;
use std::path::PathBuf;

use mooring_attach::cni::member;
use serde_json::Value;

use super::super::attachments::Attachment;
use super::{Kept, Seen, Sort, View, Who, best, listed};
use crate::nft::note::{self, Note};
use crate::nft::{NftError, Rule, masquerade, spoof};
use crate::ovs::{self, Database, OTHER_OWNER, OWNER, OvsError, Port};
use crate::{Life, Netlink, Netns, Paths};

/// How the two sorts of rules are called, after their keys in a configuration.
pub(in crate::doctor) const SPOOF: &str = "macspoofchk";
pub(in crate::doctor) const MASQUERADE: &str = "ipMasq";

/// Rules in nftables.
pub(super) fn rules(view: &View<'_>, seen: &mut Seen) {
    if crate::nft::present().is_err() {
        return;
    }
    match of_rules(view) {
        Ok(kept) => seen.kept.extend(kept),
        Err(error) => seen.silent.push(format!("nftables: {error}")),
    }
}

/// The notes that our own plugin made, with their files.
pub(in crate::doctor) fn notes(view: &View<'_>) -> Vec<(PathBuf, Note)> {
    let files = listed(&note::dir(&view.paths.own)).into_iter();
    let read = |path: PathBuf| Some((path.clone(), Note::parse(&std::fs::read(&path).ok()?)?));
    files.filter_map(read).collect()
}

/// Everybody's rules.
pub(in crate::doctor) fn of_rules(view: &View<'_>) -> Result<Vec<Kept>, NftError> {
    let mut kept = Vec::new();
    let notes = notes(view);
    let noted = notes.iter().map(|(_, note)| note);
    let noted: Vec<_> = noted
        .map(|note| (note.container.as_str(), note.ifname.as_str()))
        .collect();
    let mut node = Netns::current().ok().and_then(|netns| netns.netlink().ok());
    for rule in spoof::NAT.all_rules()? {
        let Some(id) = jump(&rule) else { continue };
        kept.push(Kept {
            who: Who::of_id(id, view.ids().chain(noted.iter().copied())),
            life: by_interface(&mut node, &rule),
            note: id.to_owned(),
            ..Kept::new(Sort::Rule, SPOOF, "bridge nat")
        });
    }
    let checks = masquerade::TABLE.rules(masquerade::CHECKS)?;
    let comments: BTreeSet<String> = checks.into_iter().map(|rule| rule.comment).collect();
    for comment in comments {
        let Some((who, life)) = by_comment(view, &comment) else {
            continue;
        };
        kept.push(Kept {
            who,
            life,
            note: comment,
            ..Kept::new(Sort::Rule, MASQUERADE, "inet cni_plugins_masquerade")
        });
    }
    Ok(kept)
}

/// The attachment whose chain a rule leads to.
pub(in crate::doctor) fn jump(rule: &Rule) -> Option<&str> {
    let is_base = rule.chain == spoof::BASE;
    rule.comment
        .strip_prefix(spoof::COMMENT)
        .filter(|_| is_base)
}

/// A rule is made after the interface that it names, so without that nobody needs it.
pub(in crate::doctor) fn by_interface(node: &mut Option<Netlink>, rule: &Rule) -> Life {
    match (node, rule.iifname.as_deref()) {
        (Some(node), Some(name)) => match node.link(name) {
            Ok(None) => Life::gone("its interface is gone"),
            Ok(Some(_)) => Life::Alive,
            Err(_) => Life::Unknown,
        },
        _ => Life::Unknown,
    }
}

/// Whose a masqueraded address is. The end of the comment may be cut: then all whose ids begin so are asked.
pub(in crate::doctor) fn by_comment(view: &View<'_>, comment: &str) -> Option<(Who, Life)> {
    let (network, ifname, container) = masquerade::owner(comment)?;
    let is_it = |a: &&Attachment| {
        a.network == network && a.ifname == ifname && a.container.starts_with(container)
    };
    let found: Vec<&Attachment> = view.attachments.iter().filter(is_it).collect();
    let whole = found.first().map_or(container, |a| a.container.as_str());
    let who = Who::new(network, whole, ifname);
    Some((who, best(found.into_iter())))
}

/// Ports of Open vSwitch, in every database that is known.
pub(super) fn ports(view: &View<'_>, seen: &mut Seen) {
    if !ovs::is_installed() {
        return;
    }
    let own = view.known.iter();
    let own = own.filter_map(|known| member(&known.plugin, "socket_file").and_then(Value::as_str));
    let own = own.filter(|text| !text.is_empty()).map(ovs::remote);
    let remotes: BTreeSet<Option<String>> = own.map(Some).chain([None]).collect();
    let mut known = BTreeSet::new();
    for remote in remotes {
        match find_ports(remote.clone()) {
            Ok(ports) => {
                // The program's own database may be one of those that are named.
                let new = ports
                    .into_iter()
                    .filter(|port| known.insert(port.name.clone()));
                let path = PathBuf::from(remote.unwrap_or_default());
                seen.kept
                    .extend(new.map(|port| port_of(view, port, path.clone())));
            }
            Err(error) => seen.silent.push(error.to_string()),
        }
    }
}

/// The ports that somebody marked as a pod's.
pub(in crate::doctor) fn find_ports(remote: Option<String>) -> Result<Vec<Port>, OvsError> {
    let database = Database::new(remote).briefly();
    let mut ports = database.ports(&[("owner", OWNER)])?;
    ports.extend(database.ports(&[("owner", OTHER_OWNER)])?);
    Ok(ports)
}

fn port_of(view: &View<'_>, port: Port, path: PathBuf) -> Kept {
    let who = Who::new(&port.network, &port.container, &port.ifname);
    Kept {
        life: by_namespace(view.paths, &port),
        who: if who.container.is_empty() {
            by_path(view, &port).unwrap_or(who)
        } else {
            who
        },
        note: port.netns,
        ..Kept::new(Sort::Port, port.name, path)
    }
}

/// ovs-cni knows namespaces and no containers.
fn by_path(view: &View<'_>, port: &Port) -> Option<Who> {
    let mut all = view.attachments.iter();
    let a = all.find(|a| a.netns.as_os_str() == port.netns.as_str() && a.ifname == port.ifname)?;
    Some(Who::new(&a.network, &a.container, &a.ifname))
}

pub(in crate::doctor) fn by_namespace(paths: &Paths, port: &Port) -> Life {
    super::devices::allocation(paths, port.netns.as_ref())
}
