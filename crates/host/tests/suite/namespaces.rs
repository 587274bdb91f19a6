use std::path::Path;

use mooring_host::{Netns, sysctl};
use mooring_testkit::Sandbox;

use super::open;

#[test]
fn a_path_and_a_process_lead_to_the_same_namespace() {
    let Some(sandbox) = Sandbox::new("one namespace by two paths") else {
        return;
    };
    let netns = sandbox.netns("pod");
    let by_path = open(&netns);
    let script = ["-c", "echo $$; stat -L -c '%d %i' /proc/self/ns/net"];
    let said = netns.run("sh", &script);
    let (_, shown) = said.stdout.trim().split_once('\n').unwrap();
    let id = by_path.id();
    assert_eq!(shown, format!("{} {}", id.dev, id.inode));
    assert_ne!(id, Netns::current().unwrap().id());
    let own = format!("/proc/{}/ns/net", std::process::id());
    assert_eq!(
        Netns::open(own).unwrap().id(),
        Netns::current().unwrap().id()
    );
}

#[test]
fn work_inside_leaves_the_caller_where_it_was() {
    let Some(sandbox) = Sandbox::new("work inside a namespace") else {
        return;
    };
    let pod = open(&sandbox.netns("pod"));
    let before = Netns::current().unwrap().id();
    let inside = pod.run(|| Netns::current().unwrap().id()).unwrap();
    assert_eq!(inside, pod.id());
    assert_eq!(Netns::current().unwrap().id(), before);
    assert!(!pod.is_current());
    let (ask, asked) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        asked.recv().unwrap();
        Netns::current().unwrap().id()
    });
    let seen = pod.run(|| {
        ask.send(()).unwrap();
        other.join().unwrap()
    });
    assert_eq!(seen.unwrap(), before, "other threads stay where they are");
    let nested = pod.run(|| pod.run(|| Netns::current().unwrap().id()).unwrap());
    assert_eq!(nested.unwrap(), pod.id());
    let panicked = std::panic::catch_unwind(|| pod.run(|| panic!("inside")));
    assert!(panicked.is_err(), "a panic goes on in the caller");
    assert_eq!(Netns::current().unwrap().id(), before);
}

#[test]
fn what_a_namespace_leaves_behind_is_told_apart_from_one() {
    let directory = tempfile::tempdir().unwrap();
    let remains = directory.path().join("cni-1");
    std::fs::File::create(&remains).unwrap();
    let pipe = directory.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRUSR).unwrap();
    for (path, text) in [
        (pipe.as_path(), "a file of another kind"),
        (remains.as_path(), "an empty file"),
        (directory.path(), "a directory"),
        (
            Path::new("/proc/self/ns/mnt"),
            "a namespace of another kind",
        ),
        (Path::new("/dev/null"), "a file of another kind"),
    ] {
        let error = Netns::open(path).unwrap_err();
        assert!(error.is_gone(), "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
    for absent in [
        "/run/netns/moor-nobody",
        "/proc/4194999/ns/net",
        "/dev/null/x",
    ] {
        let error = Netns::open(absent).unwrap_err();
        assert!(error.is_gone(), "{absent}: {error:?}");
    }
}

#[test]
fn a_temporary_namespace_is_empty_and_lives_with_its_value() {
    if Sandbox::new("a temporary namespace").is_none() {
        return;
    }
    let netns = Netns::temporary().unwrap();
    let mut netlink = netns.netlink().unwrap();
    let links = netlink.links().unwrap();
    assert_eq!(links.len(), 1, "{links:?}");
    assert_eq!(links[0].name, "lo");
    assert_eq!(links[0].hardware, 772);
    assert!(!links[0].up);
    assert_ne!(netns.id(), Netns::current().unwrap().id());
}

#[test]
fn a_sysctl_is_that_of_its_namespace_and_a_name_may_have_dots() {
    let Some(sandbox) = Sandbox::new("sysctls of a namespace") else {
        return;
    };
    let netns = sandbox.netns("pod");
    netns.ip("link add net.1 type veth peer name other");
    let pod = open(&netns);
    let key = "net/ipv4/conf/net.1/arp_notify";
    assert_eq!(sysctl::read(&pod, key).unwrap(), "0");
    sysctl::write(&pod, key, "1").unwrap();
    let said = netns.run("cat", &[format!("/proc/sys/{key}")]);
    assert_eq!(said.stdout, "1\n");
    assert!(!Path::new("/proc/sys").join(key).exists(), "not in ours");
    sysctl::write_all(&pod, &[(key, "0"), ("net/ipv4/conf/other/arp_notify", "1")]).unwrap();
    assert_eq!(sysctl::read(&pod, key).unwrap(), "0");
    assert_eq!(
        sysctl::read(&pod, "net/ipv4/conf/other/arp_notify").unwrap(),
        "1"
    );
    let absent = sysctl::read(&pod, "net/ipv4/conf/none/arp_notify").unwrap_err();
    assert!(absent.is_absent(), "{absent}");
    for bad in ["", "/etc/passwd", "net/../../etc/passwd"] {
        let error = sysctl::write(&pod, bad, "1").unwrap_err();
        assert!(!error.is_absent(), "{error}");
        assert!(error.to_string().contains("is no sysctl key"), "{error}");
    }
}
