//! Cleans what is provably dead, each sort with the code that its plugin uses, and under the same locks.
//!
//! Easy to get wrong: between the look and the fix an owner may have been replaced. So nothing is removed by what the look
//! saw: everything decides again under its lock, and an address goes only while its file still says the same owner.

use std::time::Duration;

use mooring_api::{Code, Finding};

use super::kept::{Kept, Sort, View, devices, programs};
use super::{Doctor, Report, attachments, configurations, kept};
use crate::device::Mover;
use crate::file::{self, Lock};
use crate::foreign::amd::File;
use crate::foreign::sriov::{Cached, Files};
use crate::host_local::{self, Content};
use crate::nft::{self, NftError, Rule, masquerade, spoof};
use crate::ovs::Database;
use crate::pci::Bdf;
use crate::record::{Boot, Records};
use crate::{Life, Netlink, Netns, Paths, Shims, Vlans};

/// How long a lock is waited for.
const BOUND: Duration = Duration::from_secs(30);

type Done = Result<String, Finding>;

/// One line per thing that was cleaned, or why it was not.
pub(super) fn fix(doctor: &Doctor, report: &Report) -> Vec<Done> {
    let dead = |sort: Sort| {
        let dead = |k: &&Kept| k.sort == sort && k.is_garbage();
        report.kept.iter().filter(dead).collect::<Vec<_>>()
    };
    let mut done = Vec::new();
    if !dead(Sort::Device).is_empty() {
        home(doctor, &mut done);
    }
    if !dead(Sort::Vlan).is_empty() || !dead(Sort::Shim).is_empty() {
        done.push(links(doctor, &dead(Sort::Vlan), &dead(Sort::Shim)));
    }
    done.extend(dead(Sort::Address).into_iter().map(address));
    done.extend(with_devices(doctor));
    let tuning = dead(Sort::Tuning).into_iter().map(|k| tuning(doctor, k));
    done.extend(tuning);
    let rules = dead(Sort::Rule);
    done.extend(rules.iter().map(|k| rule(doctor, k)));
    if !rules.is_empty() {
        done.extend(again(doctor, |view| notes(view, &rules)).err().map(Err));
    }
    done.extend(dead(Sort::Port).into_iter().map(|k| port(&doctor.paths, k)));
    done
}

fn failed(what: &str, why: &dyn std::error::Error) -> Finding {
    let mut text = format!("{what} could not be cleaned: {why}");
    let mut source = why.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    let help = "remove the cause, then run the doctor with --fix again; what is kept stays as it is until then";
    Finding::error(Code::StateLeftOver, text).help(help)
}

fn left_alone(kept: &Kept) -> String {
    format!("{} has another owner now and was left alone", kept.named())
}

/// Everything that is known, as it is now.
fn again<T>(
    doctor: &Doctor,
    act: impl FnOnce(&View<'_>) -> Result<T, Finding>,
) -> Result<T, Finding> {
    let boot = Boot::read(&doctor.paths.proc).map_err(|e| failed("nothing", &e))?;
    let (attachments, _) = attachments::read(&doctor.paths);
    let known = configurations::known(&doctor.conf_dir, &attachments);
    act(&View::new(&doctor.paths, &boot, &attachments, &known))
}

fn home(doctor: &Doctor, done: &mut Vec<Done>) {
    let paths = &doctor.paths;
    let mover = Mover::new(paths.own.join("devices"), &paths.sys, &paths.proc);
    let boot = Boot::read(&paths.proc);
    let (mover, boot) = match (mover, boot) {
        (Ok(mover), Ok(boot)) => (mover, boot),
        (Err(error), _) => return done.push(Err(failed("devices", &error))),
        (_, Err(error)) => return done.push(Err(failed("devices", &error))),
    };
    let is_valid = |record: &_| !matches!(kept::life(record, paths, &boot), Life::Gone { .. });
    match mover.give_back_invalid(is_valid) {
        Ok(returned) => {
            let home = returned
                .home
                .iter()
                .map(|name| format!("device {name} is home again"));
            let gone = returned
                .forgotten
                .iter()
                .map(|name| format!("device {name} is forgotten: it is not on this node any more"));
            done.extend(home.chain(gone).map(Ok));
        }
        Err(error) => done.push(Err(failed("a device", &error))),
    }
}

/// What other plugins would look for goes with its device, also with one that came home a moment ago; so it is looked for anew.
fn with_devices(doctor: &Doctor) -> Vec<Done> {
    let seen = again(doctor, |view| Ok(kept::observe(view, false).kept));
    let seen = match seen {
        Ok(seen) => seen,
        Err(finding) => return vec![Err(finding)],
    };
    let dead = |sort: Sort| {
        seen.iter()
            .filter(move |k| k.sort == sort && k.is_garbage())
    };
    let mut done: Vec<Done> = dead(Sort::Cache).map(|k| cache(doctor, k)).collect();
    done.extend(dead(Sort::Function).map(|k| function(doctor, k)));
    if dead(Sort::Mapping).next().is_some() {
        let records = Records::new(doctor.paths.own.join("devices"));
        match File::new(&doctor.paths).sweep(&records) {
            Ok(struck) => {
                let struck = struck.iter();
                done.extend(struck.map(|device| Ok(format!("AMD mapping {device} was struck"))));
            }
            Err(error) => done.push(Err(failed("AMD's mapping", &error))),
        }
    }
    done
}

/// The files of a VF, locked.
fn files(doctor: &Doctor, kept: &Kept, cache: &str) -> Result<(Files, Lock), Finding> {
    let device: Bdf = kept.name.parse().map_err(|e| failed(&kept.named(), &e))?;
    let files = Files::new(&doctor.paths.data, cache, &device);
    let lock = files.lock().map_err(|e| failed(&kept.named(), &e))?;
    Ok((files, lock))
}

fn cache(doctor: &Doctor, kept: &Kept) -> Done {
    let id = kept.path.file_name().unwrap_or_default().to_string_lossy();
    let (files, _lock) = files(doctor, kept, &id)?;
    let bytes = file::read(&files.cache).map_err(|e| failed(&kept.named(), &e))?;
    let now = Cached::parse(&bytes.unwrap_or_default());
    let is_dead = again(doctor, |view| Ok(devices::of_cache(view, &id).is_none()))?;
    match now {
        Ok(now) if now.recorded && now.device.as_str() == kept.name && is_dead => remove(kept),
        _ => Ok(left_alone(kept)),
    }
}

fn function(doctor: &Doctor, kept: &Kept) -> Done {
    let (files, _lock) = files(doctor, kept, "")?;
    let netns = files.allocated_to();
    let netns = netns.map_err(|e| failed(&kept.named(), &e))?;
    match devices::allocation(&doctor.paths, &netns.unwrap_or_default()) {
        Life::Gone { .. } => remove(kept),
        _ => Ok(left_alone(kept)),
    }
}

/// Sub-interfaces and shims go with their last user that lives.
fn links(doctor: &Doctor, vlans: &[&Kept], shims: &[&Kept]) -> Done {
    let locks = &doctor.paths.own;
    let open = || -> Result<Netlink, crate::NetnsError> { Netns::current()?.netlink() };
    let mut node = open().map_err(|error| failed("VLANs and shims", &error))?;
    // No network is spoken for: only users that are gone count as garbage.
    let everybody = |_: &str, _: &str| true;
    Vlans::new(locks.join("vlan"))
        .collect(&mut node, "", &everybody)
        .map_err(|error| failed("a VLAN", &error))?;
    Shims::new(locks.join("shim"))
        .collect(&mut node, "", &everybody)
        .map_err(|error| failed("a shim", &error))?;
    let count = vlans.len() + shims.len();
    Ok(format!(
        "{count} users of VLANs and shims that are gone were taken away"
    ))
}

fn address(kept: &Kept) -> Done {
    let named = kept.named();
    let network = kept.path.parent().unwrap_or(&kept.path);
    let _lock = Lock::exclusive(network.join("lock"), BOUND).map_err(|e| failed(&named, &e))?;
    let same = match host_local::content(&kept.path) {
        Content::Gone => return Ok(format!("{named} is free")),
        Content::Nothing => kept.who.container.is_empty(),
        Content::Owned(owner) => {
            owner.container == kept.who.container
                && owner.ifname.unwrap_or_default() == kept.who.ifname
        }
        Content::Unknown => false,
    };
    if !same {
        return Ok(left_alone(kept));
    }
    file::remove(&kept.path).map_err(|e| failed(&named, &e))?;
    Ok(format!("{named} is free"))
}

/// Under tuning's own lock. Its owner is asked for again: a runtime may have begun the same attachment anew.
fn tuning(doctor: &Doctor, kept: &Kept) -> Done {
    let lock = doctor.paths.own.join("tuning.lock");
    let _lock = Lock::exclusive(lock, BOUND).map_err(|e| failed(&kept.named(), &e))?;
    match again(doctor, |view| Ok(view.by_cache(&kept.who)))? {
        Life::Gone { .. } => remove(kept),
        _ => Ok(left_alone(kept)),
    }
}

fn remove(kept: &Kept) -> Done {
    file::remove(&kept.path).map_err(|error| failed(&kept.named(), &error))?;
    Ok(format!("{} was removed", kept.path.display()))
}

/// What names an attachment that is gone, in one transaction.
fn rule(doctor: &Doctor, kept: &Kept) -> Done {
    let cleaned = again(doctor, |view| {
        Ok(nft::again(|| match kept.name.as_str() {
            programs::SPOOF => spoofing(&kept.note),
            _ => masquerading(&kept.note, view),
        }))
    })?;
    let named = format!("rule {} of {}", kept.name, kept.who);
    match cleaned {
        Ok(true) => Ok(format!("{named} was removed")),
        Ok(false) => Ok(left_alone(kept)),
        Err(error) => Err(failed(&named, &error)),
    }
}

/// Forgets those of the cleaned who have no rule any more; for the others a DEL looks there.
fn notes(view: &View<'_>, cleaned: &[&Kept]) -> Result<(), Finding> {
    let left = programs::of_rules(view).map_err(|e| failed("notes of rules", &e))?;
    for (path, note) in programs::notes(view) {
        let is_its = |k: &Kept| k.who.container == note.container && k.who.ifname == note.ifname;
        if cleaned.iter().any(|k| is_its(k)) && !left.iter().any(is_its) {
            file::remove(&path).map_err(|e| failed("the note of a rule", &e))?;
        }
    }
    Ok(())
}

fn spoofing(id: &str) -> Result<bool, NftError> {
    let mut node = Netns::current().ok().and_then(|n| n.netlink().ok());
    let mut jumps = spoof::NAT.rules(spoof::BASE)?;
    jumps.retain(|rule| programs::jump(rule) == Some(id));
    let mut is_dead =
        |rule: &Rule| matches!(programs::by_interface(&mut node, rule), Life::Gone { .. });
    if jumps.is_empty() || !jumps.iter().all(&mut is_dead) {
        return Ok(false);
    }
    nft::apply(&spoof::removal(&spoof::chain(id), &jumps))?;
    Ok(true)
}

fn masquerading(comment: &str, view: &View<'_>) -> Result<bool, NftError> {
    let life = programs::by_comment(view, comment).map(|(_, life)| life);
    let mut rules = masquerade::TABLE.rules(masquerade::CHECKS)?;
    rules.retain(|rule| rule.comment == comment);
    if rules.is_empty() || !matches!(life, Some(Life::Gone { .. })) {
        return Ok(false);
    }
    let commands = rules.iter().map(|rule| masquerade::TABLE.delete_rule(rule));
    nft::apply(&commands.collect::<Vec<_>>())?;
    Ok(true)
}

fn port(paths: &Paths, kept: &Kept) -> Done {
    let named = kept.named();
    let remote = kept.path.to_str().filter(|text| !text.is_empty());
    let remote = remote.map(ToOwned::to_owned);
    let ports = programs::find_ports(remote.clone()).map_err(|e| failed(&named, &e))?;
    let same = ports.into_iter().find(|port| port.name == kept.name);
    match same {
        Some(port) if matches!(programs::by_namespace(paths, &port), Life::Gone { .. }) => {
            let removed = Database::new(remote).del_port(&port.name);
            removed.map_err(|e| failed(&named, &e))?;
            Ok(format!("{named} was removed"))
        }
        _ => Ok(left_alone(kept)),
    }
}
