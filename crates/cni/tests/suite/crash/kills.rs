//! Kill -9, at every point and at swept instants.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::{EVERY, Scene, VERSION, Victim, valid};
use crate::conformance::bed::{Shown as _, name};
use crate::conformance::peer::Peer;
use crate::conformance::shape::{Wrong, brief, result, silent, want};
use crate::hands;

/// What happens between the kill and the last DELs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    Nothing,
    /// The runtime tries again.
    Add,
    /// The pod's namespace is gone before anybody cleans up.
    NetnsEnds,
    /// The runtime says who is alive: the neighbour only.
    Gc,
    /// Another pod comes first.
    Another,
}

const AFTER: [Then; 5] = [
    Then::Nothing,
    Then::Add,
    Then::NetnsEnds,
    Then::Gc,
    Then::Another,
];

/// Whether what `timeout` ran was killed; it ends in the same way, or says so.
fn was_killed(said: &mooring_testkit::Said) -> bool {
    matches!(said.code, None | Some(137))
}

/// One call that dies, and what follows. False: it did not die.
fn die(scene: &Scene<'_>, verb: &str, point: u32, then: Then) -> Result<bool, Wrong> {
    let bed = &scene.bed;
    let mut victim = scene.fresh();
    if verb == "DEL" {
        let value = result(&bed.call("ADD", &victim.attachment), VERSION)?;
        victim.attachment.config["prevResult"] = value;
    }
    let mut dying = victim.attachment.clone();
    dying.variables.insert("MOOR_CNI_DIE_AT", point.to_string());
    let said = bed.call(verb, &dying);
    let died = was_killed(&said);
    want(
        died || said.code == Some(0),
        format!("it failed instead of dying: {}", brief(&said)),
    )?;
    follow(scene, &mut victim, then)?;
    Ok(died)
}

/// What follows a call that was cut short, up to two DELs after which nothing may be left.
fn follow(scene: &Scene<'_>, victim: &mut Victim, then: Then) -> Result<(), Wrong> {
    let bed = &scene.bed;
    let mut alive = true;
    match then {
        Then::Nothing => {}
        Then::Add => {
            let mut again = victim.attachment.clone();
            // What an earlier plugin of the list says is there at every ADD; one's own result is not.
            if !matches!(bed.plugin, "tuning" | "sbr") {
                again
                    .config
                    .as_object_mut()
                    .map(|config| config.remove("prevResult"));
            }
            let value = result(&bed.call("ADD", &again), VERSION)
                .map_err(|wrong| format!("ADD again: {wrong}"))?;
            again.config["prevResult"] = value;
            silent(&bed.call("CHECK", &again))
                .map_err(|wrong| format!("CHECK after ADD again: {wrong}"))?;
        }
        Then::NetnsEnds => {
            bed.kill(&victim.attachment);
            alive = false;
        }
        Then::Gc => {
            let mut gc = scene.neighbour.clone();
            gc.config
                .as_object_mut()
                .map(|config| config.remove("prevResult"));
            gc.config["cni.dev/valid-attachments"] = valid(&[&scene.neighbour]);
            silent(&bed.call("GC", &gc)).map_err(|wrong| format!("GC: {wrong}"))?;
            scene
                .neighbour_is_well()
                .map_err(|wrong| format!("after GC: {wrong}"))?;
        }
        Then::Another => {
            let mut other = scene.fresh();
            let value = result(&bed.call("ADD", &other.attachment), VERSION)
                .map_err(|wrong| format!("another: {wrong}"))?;
            if !matches!(bed.plugin, "tuning" | "sbr" | "host-local" | "static") {
                let new = other.attachment.pod.addresses("net1");
                let old = victim.attachment.pod.addresses("net1");
                want(
                    new.iter().all(|a| !old.contains(a)),
                    format!("{new:?} is in two pods"),
                )?;
            }
            other.attachment.config["prevResult"] = value;
            silent(&bed.call("DEL", &victim.attachment))
                .map_err(|wrong| format!("DEL beside another: {wrong}"))?;
            silent(&bed.call("CHECK", &other.attachment))
                .map_err(|wrong| format!("another, after the DEL: {wrong}"))?;
            silent(&bed.call("DEL", &other.attachment))?;
            scene
                .clean(&other, true)
                .map_err(|wrong| format!("another: {wrong}"))?;
            bed.kill(&other.attachment);
            unplug(scene, &other);
        }
    }
    for nth in ["first", "second"] {
        silent(&bed.call("DEL", &victim.attachment))
            .map_err(|wrong| format!("the {nth} DEL: {wrong}"))?;
    }
    scene.clean(victim, alive)?;
    if alive {
        bed.kill(&victim.attachment);
    }
    unplug(scene, victim);
    Ok(())
}

/// Takes the device away that a pod had.
fn unplug(scene: &Scene<'_>, victim: &Victim) {
    if let Some(device) = &victim.attachment.device {
        scene.bed.unplug(device);
    }
}

/// Which of the things that may follow a kill do follow one at a point.
#[derive(Clone, Copy)]
enum Follow {
    /// All, one after the other.
    All,
    /// Two, others at the next point: where a program starts slowly, and the code between the points is another plugin's too.
    InTurn,
}

impl Follow {
    fn laps(self) -> usize {
        match self {
            Self::All => AFTER.len(),
            Self::InTurn => 2,
        }
    }

    fn then(self, lap: usize, point: u32) -> Then {
        match self {
            Self::All => AFTER[lap],
            Self::InTurn => AFTER[(2 * lap + point as usize) % AFTER.len()],
        }
    }
}

/// Every point of ADD and DEL, with what may follow.
fn matrix(plugin: &'static str, at_least: [u32; 2], follow: Follow) {
    let ours = Peer::ours();
    let laps = |verb| (0..follow.laps()).map(move |lap| (verb, lap));
    let jobs: Vec<(&str, usize)> = ["ADD", "DEL"].into_iter().flat_map(laps).collect();
    let done = hands::each(&jobs, |(verb, lap)| {
        every_point(&ours, plugin, verb, |point| follow.then(*lap, point))
    });
    let Some(done) = done.into_iter().collect::<Option<Vec<Lap>>>() else {
        return;
    };
    for (verb, least) in ["ADD", "DEL"].into_iter().zip(at_least) {
        let own = jobs.iter().zip(&done).filter(|((of, _), _)| *of == verb);
        let points = own.map(|(_, lap)| lap.points).max().unwrap_or_default();
        println!("{plugin} {verb}: {points} points");
        assert!(
            points >= least,
            "{plugin} {verb} has only {points} points, of {least}"
        );
    }
    let deaths: u32 = done.iter().map(|lap| lap.deaths).sum();
    println!("{plugin}: died {deaths} times");
    let wrong: Vec<String> = done.into_iter().flat_map(|lap| lap.wrong).collect();
    assert!(
        wrong.is_empty(),
        "{plugin}, {deaths} deaths:\n{}",
        wrong.join("\n")
    );
}

/// What came of one call killed at each of its points.
#[derive(Default)]
struct Lap {
    points: u32,
    deaths: u32,
    wrong: Vec<String>,
}

/// One node for all points: what a kill leaves would be in the way of the next. None is a counted skip.
fn every_point(
    ours: &Peer,
    plugin: &'static str,
    verb: &str,
    follow: impl Fn(u32) -> Then,
) -> Option<Lap> {
    let mut lap = Lap::default();
    let mut scene = Scene::new(ours, plugin)?;
    for point in 1.. {
        assert!(point < 60, "{plugin} {verb} never survives");
        let then = follow(point);
        match die(&scene, verb, point, then) {
            Ok(true) => {
                lap.deaths += 1;
                lap.points = point;
            }
            Ok(false) => break,
            Err(said) => {
                let wrong = format!("{verb} dies at {point}, then {then:?}: {said}");
                lap.wrong.push(wrong);
                scene = Scene::new(ours, plugin)?;
            }
        }
    }
    Some(lap)
}

#[test]
fn macvlan_killed_at_every_point() {
    matrix("macvlan", [5, 4], Follow::All);
}

#[test]
fn bridge_killed_at_every_point() {
    matrix("bridge", [6, 2], Follow::All);
}

#[test]
fn host_device_killed_at_every_point() {
    matrix("host-device", [8, 5], Follow::All);
}

#[test]
fn tuning_killed_at_every_point() {
    matrix("tuning", [2, 1], Follow::All);
}

#[test]
fn sbr_killed_at_every_point() {
    matrix("sbr", [3, 1], Follow::All);
}

#[test]
fn host_local_killed_at_every_point() {
    matrix("host-local", [2, 1], Follow::All);
}

#[test]
fn amd_host_device_killed_at_every_point() {
    matrix("amd-host-device", [6, 4], Follow::InTurn);
}

#[test]
fn sriov_killed_at_every_point() {
    matrix("sriov", [6, 4], Follow::InTurn);
}

#[test]
fn ovs_killed_at_every_point() {
    matrix("ovs", [4, 1], Follow::InTurn);
}

/// Kernels that this machine's is not.
mod uml {
    use super::{Follow, matrix};

    #[test]
    #[ignore = "kernel: uml"]
    fn ipvlan_killed_at_every_point() {
        matrix("ipvlan", [5, 4], Follow::InTurn);
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn vlan_killed_at_every_point() {
        matrix("vlan", [5, 4], Follow::InTurn);
    }
}

/// Kills somewhere between the points: at instants that are swept over the length of a call. Where exactly a kill lands
/// differs from run to run; what must hold afterwards does not.
#[test]
fn every_plugin_killed_at_swept_instants() {
    const ROUNDS: u32 = 24;
    let ours = Peer::ours();
    let done = hands::each(&EVERY, |plugin| {
        let scene = Scene::new(&ours, plugin)?;
        let (mut wrong, mut cut) = (None, 0);
        for round in 0..ROUNDS {
            let verb = if round % 2 == 0 { "ADD" } else { "DEL" };
            let mut victim = scene.fresh();
            if verb == "DEL" {
                let value = result(&scene.bed.call("ADD", &victim.attachment), VERSION);
                victim.attachment.config["prevResult"] =
                    value.unwrap_or_else(|w| panic!("{plugin}: {w}"));
            }
            let after = Duration::from_micros(u64::from(round) * 700);
            cut += u32::from(kill_after(&scene, &victim, verb, after));
            let then = AFTER[round as usize % AFTER.len()];
            if let Err(said) = follow(&scene, &mut victim, then) {
                wrong = Some(format!(
                    "{plugin} {verb} killed in round {round}, then {then:?}: {said}"
                ));
                break;
            }
        }
        Some((cut, wrong))
    });
    let Some(done) = done.into_iter().collect::<Option<Vec<_>>>() else {
        return;
    };
    let cut: u32 = done.iter().map(|(cut, _)| cut).sum();
    println!("{cut} calls were cut short");
    let wrong: Vec<String> = done.into_iter().filter_map(|(_, wrong)| wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cut > 30, "only {cut} calls were cut short");
}

/// Starts a call and kills it after a while; whether it was still running.
fn kill_after(scene: &Scene<'_>, victim: &Victim, verb: &str, after: Duration) -> bool {
    let bed = &scene.bed;
    let attachment = &victim.attachment;
    let mut child = Command::new("ip")
        .args(["netns", "exec", &name(&bed.node)])
        .arg(bed.peer.program(bed.plugin))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("CNI_COMMAND", verb)
        .env("CNI_CONTAINERID", &attachment.container)
        .env("CNI_IFNAME", &attachment.ifname)
        .env("CNI_NETNS", attachment.pod.path())
        .env("CNI_PATH", &bed.peer.dir)
        .env("MOOR_CNI_ROOT", bed.root())
        .envs(bed.variables())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let text = attachment.config.to_string();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    // Not a wait for something: the instant of the kill is what is varied.
    std::thread::sleep(after);
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

#[test]
fn a_killed_add_of_two_address_families_leaves_no_half() {
    let ours = Peer::ours();
    let Some(scene) = Scene::new(&ours, "host-local") else {
        return;
    };
    for point in 1.. {
        let mut victim = scene.fresh();
        victim.attachment.config["ipam"]["ranges"] = json!([[{"subnet": "fd77::/64"}]]);
        let mut dying = victim.attachment.clone();
        dying.variables.insert("MOOR_CNI_DIE_AT", point.to_string());
        let died = was_killed(&scene.bed.call("ADD", &dying));
        // Half of it is adopted, the other half is added.
        let value = result(&scene.bed.call("ADD", &victim.attachment), VERSION).unwrap();
        assert_eq!(value["ips"].as_array().map(Vec::len), Some(2), "{value}");
        let own = scene
            .bed
            .held()
            .into_values()
            .filter(|by| by.starts_with(&victim.attachment.container));
        assert_eq!(own.count(), 2, "after a kill at {point}");
        follow(&scene, &mut victim, Then::Nothing).unwrap();
        if !died {
            assert!(point > 4, "two addresses are four points, not {point}");
            return;
        }
    }
}
