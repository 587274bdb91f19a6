//! Calls at the wrong time: too late, twice, too early, at once, and after a reboot.

use serde_json::json;

use super::{EVERY, Scene, VERSION};
use crate::conformance::bed::Shown as _;
use crate::conformance::peer::Peer;
use crate::conformance::shape::{Wrong, result, silent, want};
use crate::hands;

/// Runs a story for every plugin and says what is wrong with all of them.
fn each(plugins: &[&'static str], story: impl Fn(&Scene<'_>) -> Result<(), Wrong> + Sync) {
    let ours = Peer::ours();
    let told = hands::each(plugins, |plugin| {
        let scene = Scene::new(&ours, plugin)?;
        let told = story(&scene);
        Some(told.map_err(|said| format!("{plugin}: {said}")))
    });
    let wrong = told.into_iter().flatten().filter_map(Result::err);
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_late_del_of_an_old_sandbox_takes_nothing_from_the_new_one() {
    each(&EVERY, |scene| {
        let old = scene.fresh();
        let mut first = old.attachment.clone();
        first.config["prevResult"] = result(&scene.bed.call("ADD", &first), VERSION)?;
        let given = addresses(&first.config["prevResult"]);
        silent(&scene.bed.call("DEL", &first))?;
        // The successor has its own namespace, and the device and the address of the old one.
        let mut next = scene.fresh();
        let mut new = next.attachment.clone();
        take_over(&mut new, &old.attachment);
        if new.config.get("ipam").is_some() {
            new.config["args"] = json!({"cni": {"ips": given}});
        }
        new.config["prevResult"] = result(&scene.bed.call("ADD", &new), VERSION)?;
        if new.config.get("ipam").is_some() {
            let now = addresses(&new.config["prevResult"]);
            want(now == given, format!("{now:?} instead of {given:?}"))?;
        }
        let seen = new.pod.addresses("net1");
        silent(&scene.bed.call("DEL", &first)).map_err(|wrong| format!("the late DEL: {wrong}"))?;
        silent(&scene.bed.call("CHECK", &new)).map_err(|wrong| format!("the new one: {wrong}"))?;
        want(
            new.pod.addresses("net1") == seen,
            "the new one lost its addresses",
        )?;
        silent(&scene.bed.call("DEL", &new))?;
        next.attachment.device = None;
        scene.clean(&next, true)?;
        scene.clean(&old, true)
    });
}

/// The device of an earlier attachment, for a later one.
fn take_over(new: &mut super::Attachment, old: &super::Attachment) {
    for key in ["device", "deviceID"] {
        if let Some(device) = old.config.get(key) {
            new.config[key] = device.clone();
        }
    }
}

fn addresses(result: &serde_json::Value) -> Vec<String> {
    let ips = result["ips"].as_array().into_iter().flatten();
    ips.filter_map(|ip| ip["address"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn a_del_comes_twice_at_the_same_time() {
    each(&EVERY, |scene| {
        for _ in 0..3 {
            let victim = scene.fresh();
            let mut attached = victim.attachment.clone();
            attached.config["prevResult"] = result(&scene.bed.call("ADD", &attached), VERSION)?;
            let said = at_once(
                scene,
                &[("DEL", &attached), ("DEL", &attached), ("DEL", &attached)],
            );
            for one in &said {
                silent(one)?;
            }
            scene.clean(&victim, true)?;
        }
        Ok(())
    });
}

#[test]
fn a_del_comes_before_the_add_has_finished() {
    each(&EVERY, |scene| {
        for _ in 0..6 {
            let victim = scene.fresh();
            let said = at_once(
                scene,
                &[("ADD", &victim.attachment), ("DEL", &victim.attachment)],
            );
            silent(&said[1]).map_err(|wrong| format!("the DEL beside the ADD: {wrong}"))?;
            // Whoever was first: the runtime's last word is DEL.
            silent(&scene.bed.call("DEL", &victim.attachment))?;
            scene.clean(&victim, true)?;
        }
        Ok(())
    });
}

#[test]
fn an_add_comes_twice_at_the_same_time() {
    each(&EVERY, |scene| {
        for _ in 0..3 {
            let victim = scene.fresh();
            let said = at_once(
                scene,
                &[("ADD", &victim.attachment), ("ADD", &victim.attachment)],
            );
            want(
                said.iter().any(|one| one.code == Some(0)),
                format!("neither succeeded: {said:?}"),
            )?;
            let own = scene
                .bed
                .held()
                .into_values()
                .filter(|by| by.starts_with(&format!("{}\r", victim.attachment.container)));
            want(own.count() <= 1, "two addresses for one attachment")?;
            silent(&scene.bed.call("DEL", &victim.attachment))?;
            scene.clean(&victim, true)?;
        }
        Ok(())
    });
}

/// Calls that run at once.
fn at_once(scene: &Scene<'_>, calls: &[(&str, &super::Attachment)]) -> Vec<mooring_testkit::Said> {
    let (peer, plugin) = (scene.bed.peer, scene.bed.plugin);
    let caller = scene.bed.caller();
    std::thread::scope(|threads| {
        let running: Vec<_> = calls
            .iter()
            .map(|(verb, attachment)| {
                let caller = &caller;
                threads.spawn(move || {
                    caller.call(
                        peer,
                        plugin,
                        verb,
                        attachment,
                        &attachment.config.to_string(),
                    )
                })
            })
            .collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

#[test]
fn a_reboot_ends_every_interface_and_the_stale_state_is_in_nobodys_way() {
    // sbr and tuning keep nothing that could be stale: their state ends with /run.
    each(
        &[
            "macvlan",
            "bridge",
            "host-device",
            "amd-host-device",
            "sriov",
            "ovs",
            "host-local",
        ],
        |scene| {
            let bed = &scene.bed;
            // Before the reboot the kernel had another boot id; host-device writes it into its records.
            let boot = bed.root().join("proc/sys/kernel/random");
            std::fs::create_dir_all(&boot).map_err(|e| e.to_string())?;
            let mut file =
                std::fs::File::create(boot.join("boot_id")).map_err(|e| e.to_string())?;
            std::io::Write::write_all(&mut file, b"00000000-0000-4000-8000-000000000001\n")
                .map_err(|e| e.to_string())?;
            std::fs::copy("/proc/uptime", bed.root().join("proc/uptime"))
                .map_err(|e| e.to_string())?;
            let old = scene.fresh();
            let mut attached = old.attachment.clone();
            attached.config["prevResult"] = result(&bed.call("ADD", &attached), VERSION)?;
            // The reboot: pods and virtual links are gone, files are not, /run is empty, NICs have their names again.
            bed.kill(&old.attachment);
            let _ = std::fs::remove_dir_all(bed.root().join("proc"));
            let _ = std::fs::remove_dir_all(bed.root().join("run"));
            if let Some(device) = &old.attachment.device {
                bed.boot(device)?;
            }
            // A new pod comes before anybody has cleaned up; it may even want the same device.
            let new = scene.fresh();
            let mut second = new.attachment.clone();
            take_over(&mut second, &old.attachment);
            second.config["prevResult"] = result(&bed.call("ADD", &second), VERSION)
                .map_err(|wrong| format!("the first ADD after it: {wrong}"))?;
            // kubelet's DEL for the sandbox that it finds dead.
            silent(&bed.call("DEL", &attached))
                .map_err(|wrong| format!("the DEL of the old one: {wrong}"))?;
            silent(&bed.call("CHECK", &second)).map_err(|wrong| format!("the new one: {wrong}"))?;
            let held = bed.held();
            want(
                !held
                    .values()
                    .any(|by| by.starts_with(&format!("{}\r", attached.container))),
                format!("held: {held:?}"),
            )?;
            silent(&bed.call("DEL", &second))?;
            if let Some(device) = &old.attachment.device {
                want(
                    bed.node.link(&device.name).is_some(),
                    format!("{} is not back", device.name),
                )?;
            }
            let left = super::mentions(&bed.root(), &attached.container);
            want(left.is_empty(), format!("left: {left:?}"))?;
            scene.neighbour_is_well()
        },
    );
}

#[test]
fn an_add_is_retried_after_the_del_of_a_failed_one() {
    let main = &EVERY[..6];
    each(main, |scene| {
        let victim = scene.fresh();
        let mut broken = victim.attachment.clone();
        broken.config["ipam"]["type"] = json!("not-installed");
        want(
            scene.bed.call("ADD", &broken).code != Some(0),
            "it succeeded",
        )?;
        scene
            .clean(&victim, true)
            .map_err(|wrong| format!("after the failed ADD: {wrong}"))?;
        let mut good = victim.attachment.clone();
        good.config["prevResult"] = result(&scene.bed.call("ADD", &good), VERSION)?;
        // The DEL of the failed one was late.
        silent(&scene.bed.call("CHECK", &good))?;
        silent(&scene.bed.call("DEL", &good))?;
        scene.clean(&victim, true)
    });
}
