//! A node in the middle of a change: attached by one implementation, detached by the other, and plugins of both that call
//! each other.
//!
//! Easy to get wrong: the runtime keeps the result and hands it to whoever is installed later, so both sides read each
//! other's results as well as each other's files.

use serde_json::{Value, json};

use crate::conformance::bed::{Attachment, Bed, Shown as _};
use crate::conformance::peer::Peer;
use crate::conformance::shape::{VERSIONS, Wrong, result, silent, want};

/// What one implementation attached, the other detaches.
fn switched(
    bed: &Bed<'_>,
    from: &Peer,
    to: &Peer,
    version: &str,
    set: impl Fn(&mut Attachment),
) -> Result<(), Wrong> {
    let node = names(&bed.node.links());
    let mut attachment = bed.attachment(version);
    set(&mut attachment);
    let before = attachment.pod.link("net1");
    let value = result(&bed.call_of(from, bed.plugin, "ADD", &attachment), version)?;
    if version >= "0.4.0" {
        attachment.config["prevResult"] = value;
        if checks(to) {
            silent(&bed.call_of(to, bed.plugin, "CHECK", &attachment))
                .map_err(|wrong| format!("CHECK: {wrong}"))?;
        }
    }
    silent(&bed.call_of(to, bed.plugin, "DEL", &attachment))?;
    let held = bed.held();
    want(held.is_empty(), format!("held: {held:?}"))?;
    match before {
        // Chained: the interface is as it was.
        Some(before) => {
            let now = attachment.pod.link("net1").ok_or("net1 is gone")?;
            for key in ["mtu", "address", "addr_info"] {
                want(
                    now[key] == before[key],
                    format!("{key} is {}, it was {}", now[key], before[key]),
                )?;
            }
        }
        None => want(attachment.pod.link("net1").is_none(), "net1 is still there")?,
    }
    let mut left = names(&bed.node.links());
    // What was there, and what belongs to the network rather than to the pod.
    left.retain(|name| {
        !node.contains(name)
            && name != "br1"
            && !name.starts_with("dev")
            && !name.starts_with("peer")
            && !name.starts_with("hand")
    });
    want(left.is_empty(), format!("left on the node: {left:?}"))?;
    let files = files(&bed.data());
    want(files.is_empty(), format!("left on disk: {files:?}"))
}

/// Debian's CHECK refuses what its own ADD has made: `docs/reference/conformance.md`, `check`.
fn checks(peer: &Peer) -> bool {
    !peer.name.starts_with("Debian")
}

fn names(links: &[Value]) -> Vec<String> {
    let name = |link: &Value| link["ifname"].as_str().unwrap_or_default().to_owned();
    links.iter().map(name).collect()
}

/// Files that are not locks and cursors.
fn files(dir: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                todo.push(path);
            } else if name != "lock" && !name.starts_with("last_reserved_ip.") {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Both directions, in every version that both speak.
fn both_ways(plugin: &'static str, set: impl Fn(&mut Attachment) + Copy) {
    let ours = Peer::ours();
    let what = format!("switching {plugin}");
    let others = [
        (Peer::debian(&what), "1.0.0"),
        (Peer::reference(&what), "1.1.0"),
    ];
    let (mut wrong, mut done) = (Vec::new(), 0);
    for (other, newest) in &others {
        let Some(other) = other else { continue };
        for (from, to) in [(other, &ours), (&ours, other)] {
            let Some(bed) = Bed::new(&ours, plugin) else {
                return;
            };
            // The oldest, what most people write, and the newest: with all of them every shape of a result is there.
            for version in VERSIONS
                .iter()
                .filter(|v| **v <= *newest && **v != "0.2.0" && **v != "0.3.0")
            {
                done += 1;
                if let Err(said) = switched(&bed, from, to, version, set) {
                    wrong.push(format!(
                        "{} then {} in {version}: {said}",
                        from.name, to.name
                    ));
                }
                bed.sweep();
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{plugin} was switched {done} times");
}

#[test]
fn host_local_is_switched_over_and_back() {
    both_ways("host-local", |_| {});
}

#[test]
fn macvlan_is_switched_over_and_back() {
    both_ways("macvlan", |_| {});
}

#[test]
fn bridge_is_switched_over_and_back() {
    both_ways("bridge", |attachment| {
        attachment.config["isGateway"] = json!(true);
    });
}

#[test]
fn tuning_is_switched_over_and_back() {
    // An attribute that the kernel does not put back by itself.
    both_ways("tuning", |attachment| {
        attachment.config["promisc"] = json!(true);
    });
}

#[test]
fn sbr_is_switched_over_and_back() {
    both_ways("sbr", |_| {});
}

/// ADD, CHECK and DEL by one directory, in which plugins of both implementations lie.
fn together(
    bed: &Bed<'_>,
    main: &Peer,
    version: &str,
    set: impl Fn(&mut Attachment),
) -> Result<(), Wrong> {
    let mut attachment = bed.attachment(version);
    set(&mut attachment);
    let value = result(&bed.call("ADD", &attachment), version)?;
    let given = value["ip4"]["ip"]
        .as_str()
        .or(value["ips"][0]["address"].as_str());
    let seen = attachment.pod.addresses("net1");
    want(
        seen.first().map(String::as_str) == given,
        format!("{given:?} became {seen:?}"),
    )?;
    if version >= "0.4.0" {
        attachment.config["prevResult"] = value;
        if checks(main) {
            silent(&bed.call("CHECK", &attachment)).map_err(|wrong| format!("CHECK: {wrong}"))?;
        }
    }
    silent(&bed.call("DEL", &attachment))?;
    let held = bed.held();
    want(held.is_empty(), format!("held: {held:?}"))
}

fn with_ipam(attachment: &mut Attachment, ipam: &str) {
    let kind = if ipam.ends_with("static") {
        "static"
    } else {
        "host-local"
    };
    if kind == "static" {
        attachment.config["ipam"] = json!({"addresses": [{"address": "10.77.5.2/24", "gateway": "10.77.5.1"}],
            "routes": [{"dst": "192.0.2.0/24"}]});
    }
    attachment.config["ipam"]["type"] = json!(ipam);
}

#[test]
fn our_ipam_serves_the_plugins_of_others_and_theirs_serves_ours() {
    let ours = Peer::ours();
    let what = "IPAM of one implementation under plugins of the other";
    let others = [
        (Peer::debian(what), "1.0.0"),
        (Peer::reference(what), "1.1.0"),
    ];
    let (mut wrong, mut done) = (Vec::new(), 0);
    for (other, newest) in &others {
        let Some(other) = other else { continue };
        let theirs_with_our_ipam = Peer::mixed(
            "theirs with our IPAM",
            other,
            &ours,
            &["static", "host-local"],
        );
        let ours_with_their_ipam = Peer::mixed("ours with their IPAM", &ours, &ours, &[]);
        for plugin in ["static", "host-local"] {
            // Under its own name ours would serve itself, without an exec.
            let link = ours_with_their_ipam.program(&format!("their-{plugin}"));
            std::os::unix::fs::symlink(other.program(plugin), link).unwrap();
        }
        for plugin in ["macvlan", "bridge"] {
            let sides = [
                (&theirs_with_our_ipam, other, ""),
                (&ours_with_their_ipam, &ours, "their-"),
            ];
            for (peer, main, whose) in sides {
                let Some(bed) = Bed::new(peer, plugin) else {
                    return;
                };
                for version in VERSIONS.iter().filter(|version| **version <= *newest) {
                    for ipam in ["static", "host-local"].map(|ipam| format!("{whose}{ipam}")) {
                        done += 1;
                        let outcome = together(&bed, main, version, |a| with_ipam(a, &ipam));
                        bed.sweep();
                        if let Err(said) = outcome {
                            wrong.push(format!(
                                "{} ({}) {plugin} {ipam} {version}: {said}",
                                peer.name, other.name
                            ));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{done} pairs");
}
