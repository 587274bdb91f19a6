//! Cleans what is provably dead, each sort with the code that its plugin uses, and under the same locks.
//!
//! Easy to get wrong: between the look and the fix an owner may have been replaced. So nothing is removed by what the look
//! saw: everything that knows its owner's namespace decides again under its lock, and an address goes only while its file
//! still says the same owner.

use std::time::Duration;

use mooring_api::{Code, Finding};

use super::kept::{Kept, Sort};
use super::{Doctor, Report};
use crate::device::Mover;
use crate::file::{self, Lock};
use crate::host_local::{self, Content};
use crate::record::Boot;
use crate::{Life, Netlink, Netns, Shims, Vlans};

/// How long an address store's lock is waited for.
const BOUND: Duration = Duration::from_secs(30);

type Done = Result<String, Finding>;

/// One line per thing that was cleaned, or why it was not.
pub(super) fn fix(doctor: &Doctor, report: &Report) -> Vec<Done> {
    let dead = |sort: Sort| {
        let dead = |k: &&Kept| k.sort == sort && matches!(k.life, Life::Gone { .. });
        report.kept.iter().filter(dead).collect::<Vec<_>>()
    };
    let mut done = Vec::new();
    if !dead(Sort::Device).is_empty() {
        devices(doctor, &mut done);
    }
    if !dead(Sort::Vlan).is_empty() || !dead(Sort::Shim).is_empty() {
        done.push(links(doctor, &dead(Sort::Vlan), &dead(Sort::Shim)));
    }
    done.extend(dead(Sort::Address).into_iter().map(address));
    // A VF's mark and tuning's values bind nobody who lives: their plugins pass over them.
    let marks = dead(Sort::Function).into_iter().chain(dead(Sort::Tuning));
    done.extend(marks.map(remove));
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
    let help = "see what it is with moor node doctor; what is kept stays as it is until then";
    Finding::error(Code::StateLeftOver, text).help(help)
}

fn devices(doctor: &Doctor, done: &mut Vec<Done>) {
    let paths = &doctor.paths;
    let mover = Mover::new(paths.own.join("devices"), &paths.sys, &paths.proc);
    let boot = Boot::read(&paths.proc);
    let (mover, boot) = match (mover, boot) {
        (Ok(mover), Ok(boot)) => (mover, boot),
        (Err(error), _) => return done.push(Err(failed("devices", &error))),
        (_, Err(error)) => return done.push(Err(failed("devices", &error))),
    };
    let returned = mover.give_back_invalid(|record| {
        let owner = &record.owner;
        let life = Life::of(
            &owner.netns,
            Some(owner.netns_id),
            Some(&record.boot),
            &boot.id,
        );
        !matches!(life, Life::Gone { .. })
    });
    match returned {
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
        return Ok(format!("{named} has another owner now and was left alone"));
    }
    file::remove(&kept.path).map_err(|e| failed(&named, &e))?;
    Ok(format!("{named} is free"))
}

fn remove(kept: &Kept) -> Done {
    file::remove(&kept.path).map_err(|error| failed(&kept.named(), &error))?;
    Ok(format!("{} was removed", kept.path.display()))
}
