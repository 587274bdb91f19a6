//! The work of `up` and `down`, in the process that has the testkit.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use mooring_testkit::{ControlPlane, Detached};

use crate::shell::{output, root};

/// Of the controller: leases and certificates are there.
const NAMESPACE: &str = "mooring-system";
/// Of the configuration that the chart makes.
const WEBHOOK: &str = "mooring-webhook";
/// How long the controller may take until it is ready.
const BOUND: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn up(dir: &Path) -> Result<()> {
    let before = Detached::of(dir);
    if !before.is_empty() && before.iter().all(Detached::is_running) {
        println!("It is up already.");
        return tell(dir);
    }
    if before.iter().any(Detached::is_running) {
        let ended = before.iter().filter(|process| !process.is_running());
        let names: Vec<&str> = ended.map(|process| process.name.as_str()).collect();
        bail!(
            "{} has ended, the others run; logs are in {}; `cargo xtask down` clears it away",
            names.join(", "),
            dir.display()
        );
    }
    if !before.is_empty() {
        // After a restart of the machine, for example.
        println!("An earlier one has ended; its data goes.");
        remove(dir)?;
    }
    let started = start(dir);
    if started.is_err() {
        for process in Detached::of(dir) {
            // The first error is the one to tell; logs stay for it.
            let _ = process.stop();
        }
    }
    started?;
    tell(dir)
}

fn start(dir: &Path) -> Result<()> {
    // The administrator's token is in it.
    let mut private = fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    let made = private.create(dir);
    made.with_context(|| format!("cannot make {}", dir.display()))?;
    println!("Starting etcd, kube-apiserver and kube-controller-manager …");
    let plane = ControlPlane::start_detached(dir)?;
    println!("Applying deploy/crds …");
    plane.install_crds(&root().join("deploy/crds"));
    plane.kubectl(&["create", "namespace", NAMESPACE]).ok();
    println!("Starting moor-controller …");
    let (port, webhook) = (free()?, free()?);
    admit_through(&plane, webhook)?;
    let args = [
        "--roles=ipam,packages,sync,webhook".to_owned(),
        format!("--kubeconfig={}", plane.kubeconfig().display()),
        format!("--namespace={NAMESPACE}"),
        format!("--listen={port}"),
        format!("--webhook-listen={webhook}"),
        format!("--webhook-names={}", webhook.ip()),
        format!("--webhook-configuration={WEBHOOK}"),
    ];
    let controller = plane.run_detached("moor-controller", &controller()?, &args)?;
    wait_until_ready(&controller, port)
        .with_context(|| format!("see {}", dir.join("moor-controller.log").display()))
}

/// The program that was built with this one.
fn controller() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    // A test's own program is one directory further down.
    let dirs = own.ancestors().skip(1).take(2);
    let places: Vec<PathBuf> = dirs.map(|dir| dir.join("moor-controller")).collect();
    let found = places.iter().find(|path| path.is_file()).cloned();
    found.with_context(|| format!("{} is not built", places[0].display()))
}

/// The chart's own configuration, so that the same objects are asked about, with our address in the Service's place.
fn admit_through(plane: &ControlPlane, webhook: SocketAddr) -> Result<()> {
    let helm = crate::setup::place("helm")?.join("bin/helm");
    let chart = root().join("deploy/chart/mooring");
    let objects = output(
        Command::new(helm)
            .args(["template", "mooring"])
            .arg(chart)
            .args(["--namespace", NAMESPACE, "--set", "webhook.enabled=true"])
            .args(["--show-only", "templates/webhook.yaml"]),
    )?;
    plane
        .kubectl_stdin(&["apply", "--server-side", "-f", "-"], &objects)
        .ok();
    let url = format!("https://{webhook}/validate");
    let client = serde_json::json!({ "url": url });
    let patch = serde_json::json!([
        { "op": "replace", "path": "/webhooks/0/clientConfig", "value": client }
    ]);
    let kind = "validatingwebhookconfigurations";
    let patch = patch.to_string();
    plane
        .kubectl(&["patch", kind, WEBHOOK, "--type=json", "-p", &patch])
        .ok();
    Ok(())
}

/// An address of this machine that nobody listens on.
fn free() -> Result<SocketAddr> {
    let port = mooring_testkit::free_port().context("no port is free")?;
    Ok((Ipv4Addr::LOCALHOST, port).into())
}

fn wait_until_ready(controller: &Detached, address: SocketAddr) -> Result<()> {
    let end = Instant::now() + BOUND;
    loop {
        ensure!(
            controller.is_running(),
            "moor-controller has ended by itself"
        );
        let seen = match ready(address) {
            Ok(answer) if answer.contains(" 200 ") => return Ok(()),
            Ok(answer) => answer,
            Err(error) => error.to_string(),
        };
        ensure!(
            Instant::now() < end,
            "moor-controller is not ready after {} s: {seen}",
            BOUND.as_secs()
        );
        std::thread::sleep(PAUSE);
    }
}

/// The first line of what `/readyz` answers.
fn ready(address: SocketAddr) -> std::io::Result<String> {
    use std::io::{Read as _, Write as _};
    let mut socket = std::net::TcpStream::connect_timeout(&address, BOUND)?;
    socket.set_read_timeout(Some(BOUND))?;
    socket.write_all(b"GET /readyz HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    Ok(answer)
}

fn tell(dir: &Path) -> Result<()> {
    let kubectl = crate::setup::place("kubectl")?.join("bin");
    let kubeconfig = dir.join("admin.kubeconfig");
    println!();
    for Detached { name, pid, .. } in Detached::of(dir) {
        println!("  {name}  pid {pid}");
    }
    println!("  logs and data in {}", dir.display());
    println!("\nNext:");
    println!("  export KUBECONFIG={}", kubeconfig.display());
    println!("  export PATH={}:$PATH", kubectl.display());
    println!("  kubectl api-resources --api-group=ipam.resource.nephio.org");
    println!("  kubectl get ipprefixes,ipclaims -A");
    println!("  cargo xtask down");
    Ok(())
}

pub(super) fn down(dir: &Path) -> Result<()> {
    let all = Detached::of(dir);
    if all.is_empty() {
        println!("Nothing is up in {}.", dir.display());
        return Ok(());
    }
    // Clients before servers: by name, from the end, that is moor-controller, the two of Kubernetes, etcd.
    for process in all.iter().rev() {
        process.stop()?;
        println!("  stopped {}", process.name);
    }
    remove(dir)
}

fn remove(dir: &Path) -> Result<()> {
    fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::Stdio;

    use mooring_testkit::component;

    use super::*;

    /// Whatever a test ends with, nothing stays.
    struct Ended<'a>(&'a Path);

    impl Drop for Ended<'_> {
        fn drop(&mut self) {
            for process in Detached::of(self.0) {
                let _ = process.stop();
            }
        }
    }

    fn pids(dir: &Path) -> Vec<(String, u32)> {
        let all = Detached::of(dir).into_iter();
        all.map(|process| (process.name.clone(), process.pid))
            .collect()
    }

    #[test]
    fn what_comes_up_serves_claims_refuses_what_is_wrong_and_goes_down() {
        let what = "cargo xtask up";
        let needed = ["etcd", "kube-apiserver", "kube-controller-manager", "helm"];
        let Some(kubectl) = component("kubectl", what) else {
            return;
        };
        if needed.iter().any(|name| component(name, what).is_none()) {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("up");
        let _ended = Ended(&dir);
        up(&dir).unwrap();
        let kubectl = |words: &[&str], stdin: &str| {
            let mut child = Command::new(kubectl.join("bin/kubectl"))
                .env("KUBECONFIG", dir.join("admin.kubeconfig"))
                .args(words)
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut pipe = child.stdin.take().unwrap();
            pipe.write_all(stdin.as_bytes()).unwrap();
            drop(pipe);
            let ended = child.wait_with_output().unwrap();
            let said = String::from_utf8(ended.stderr).unwrap();
            (ended.status.success(), said)
        };
        let pool = "apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPPrefix
metadata: {name: NAME, namespace: default}
spec: {kind: network, prefix: PREFIX, networkInstance: {name: vpc}}
";
        let named = |name: &str, prefix: &str| pool.replace("NAME", name).replace("PREFIX", prefix);
        let apply = ["apply", "-f", "-"];
        assert!(kubectl(&apply, &named("one", "10.0.0.0/24")).0);
        let claim = "apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPClaim
metadata: {name: a, namespace: default}
spec: {kind: network, networkInstance: {name: vpc}}
";
        assert!(kubectl(&apply, claim).0);
        let wait = [
            "wait",
            "--for=condition=Ready",
            "ipclaim/a",
            "--timeout=60s",
        ];
        let (ready, said) = kubectl(&wait, "");
        assert!(ready, "{said}");
        // Until the API server has read where to ask, it asks nobody.
        let end = Instant::now() + BOUND;
        let try_it = ["apply", "--dry-run=server", "-f", "-"];
        loop {
            let (admitted, said) = kubectl(&try_it, &named("two", "10.0.0.128/25"));
            if !admitted {
                assert!(said.contains("OverlappingPrefixes"), "{said}");
                break;
            }
            assert!(Instant::now() < end, "nobody refuses it");
            std::thread::sleep(PAUSE);
        }
        // Once more is no other one, and what has ended is told.
        let before = pids(&dir);
        up(&dir).unwrap();
        assert_eq!(pids(&dir), before);
        let all = Detached::of(&dir);
        let controller = all.iter().find(|one| one.name == "moor-controller");
        controller.unwrap().stop().unwrap();
        let said = up(&dir).unwrap_err().to_string();
        assert!(said.contains("moor-controller has ended"), "{said}");
        down(&dir).unwrap();
        assert!(!dir.exists());
        assert!(all.iter().all(|process| !process.is_running()));
        down(&dir).unwrap();
    }
}
