use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;

fn bdf(s: &str) -> Bdf {
    s.parse().expect("a PCI address")
}

/// A tree as the kernel shows it: `bus/pci/devices/<bdf>` is a link into `devices`.
fn device(root: &Path, name: &str) -> PathBuf {
    let real = root.join("devices/pci0000:00").join(name);
    fs::create_dir_all(&real).expect("a directory");
    let bus = root.join("bus/pci/devices");
    fs::create_dir_all(&bus).expect("a directory");
    symlink(&real, bus.join(name)).expect("a link");
    real
}

fn interface(device: &Path, name: &str, port: &str) {
    let dir = device.join("net").join(name);
    fs::create_dir_all(&dir).expect("a directory");
    crate::file::write_atomic(dir.join("dev_port"), port.as_bytes()).expect("a file");
}

#[test]
fn an_address_is_parsed_at_the_door() {
    assert_eq!(bdf("0000:3B:00.1").as_str(), "0000:3b:00.1");
    assert_eq!(bdf("10000:e1:00.0").as_str(), "10000:e1:00.0");
    for bad in [
        "",
        "3b:00.1",
        "0000:3b:00",
        "0000:3b:00.10",
        "../../etc",
        "0000:3b:0/.1",
        "0000:3g:00.1",
    ] {
        assert!(bad.parse::<Bdf>().is_err(), "{bad}");
    }
}

#[test]
fn a_function_with_two_ports_answers_the_first_port_first() {
    let dir = tempfile::tempdir().expect("a directory");
    let nic = device(dir.path(), "0000:01:00.0");
    interface(&nic, "aaa", "1\n");
    interface(&nic, "zzz", "0\n");
    let devices = Devices::new(dir.path());
    assert_eq!(
        devices
            .interfaces_of_pci(&bdf("0000:01:00.0"))
            .expect("read"),
        ["zzz", "aaa"]
    );
}

#[test]
fn a_virtio_nic_is_found_one_directory_deeper() {
    let dir = tempfile::tempdir().expect("a directory");
    let nic = device(dir.path(), "0000:02:00.0");
    interface(&nic.join("virtio3"), "eth7", "0");
    let class = dir.path().join("class/net");
    fs::create_dir_all(&class).expect("a directory");
    symlink(nic.join("virtio3/net/eth7"), class.join("eth7")).expect("a link");
    symlink(nic.join("virtio3"), nic.join("virtio3/net/eth7/device")).expect("a link");
    let devices = Devices::new(dir.path());
    assert_eq!(
        devices
            .interfaces_of_pci(&bdf("0000:02:00.0"))
            .expect("read"),
        ["eth7"]
    );
    assert_eq!(devices.pci_of("eth7"), Some(bdf("0000:02:00.0")));
    assert_eq!(devices.pci_of("lo"), None);
}

#[test]
fn an_absent_device_has_no_interfaces() {
    let dir = tempfile::tempdir().expect("a directory");
    let devices = Devices::new(dir.path());
    assert!(!devices.has_pci(&bdf("0000:01:00.0")));
    assert!(
        devices
            .interfaces_of_pci(&bdf("0000:01:00.0"))
            .expect("read")
            .is_empty()
    );
}

#[test]
fn a_vf_knows_its_physical_function_and_its_number() {
    let dir = tempfile::tempdir().expect("a directory");
    let pf = device(dir.path(), "0000:01:00.0");
    interface(&pf, "enp1s0", "0");
    for (n, name) in ["0000:01:10.0", "0000:01:10.2", "0000:01:10.4"]
        .iter()
        .enumerate()
    {
        let vf = device(dir.path(), name);
        symlink(&pf, vf.join("physfn")).expect("a link");
        symlink(&vf, pf.join(format!("virtfn{n}"))).expect("a link");
    }
    let devices = Devices::new(dir.path());
    let found = devices.vf_of(&bdf("0000:01:10.4")).expect("read");
    let wanted = VfOf {
        pf: bdf("0000:01:00.0"),
        names: vec!["enp1s0".to_owned()],
        index: 2,
    };
    assert_eq!(found, Some(wanted));
    assert_eq!(devices.vf_of(&bdf("0000:01:00.0")).expect("read"), None);
}

#[test]
fn a_driver_of_user_space_is_told_from_one_of_the_kernel() {
    let dir = tempfile::tempdir().expect("a directory");
    for (name, driver) in [
        ("0000:01:00.0", "vfio-pci"),
        ("0000:02:00.0", "ionic"),
        ("0000:03:00.0", "igb_uio"),
    ] {
        let nic = device(dir.path(), name);
        let bound = dir.path().join("bus/pci/drivers").join(driver);
        fs::create_dir_all(&bound).expect("a directory");
        symlink(bound, nic.join("driver")).expect("a link");
    }
    device(dir.path(), "0000:04:00.0");
    let devices = Devices::new(dir.path());
    let user = |s: &str| devices.userspace_driver(&bdf(s)).expect("read");
    assert_eq!(user("0000:01:00.0").as_deref(), Some("vfio-pci"));
    assert_eq!(user("0000:02:00.0"), None);
    assert_eq!(user("0000:03:00.0").as_deref(), Some("igb_uio"));
    assert_eq!(user("0000:04:00.0"), None);
}

#[test]
fn an_auxiliary_device_and_a_kernel_path_stay_inside_the_tree() {
    let dir = tempfile::tempdir().expect("a directory");
    let sf = dir.path().join("bus/auxiliary/devices/mlx5_core.sf.4");
    interface(&sf, "enp8s0f0s4", "0");
    let nic = dir.path().join("devices/pci0000:00/0000:05:00.0");
    interface(&nic, "eth5", "0");
    let devices = Devices::new(dir.path());
    assert!(devices.has_auxiliary("mlx5_core.sf.4"));
    assert_eq!(
        devices
            .interfaces_of_auxiliary("mlx5_core.sf.4")
            .expect("read"),
        ["enp8s0f0s4"]
    );
    assert!(!devices.has_auxiliary(".."));
    assert!(!devices.has_auxiliary("../pci"));
    let path = |s: &str| devices.interfaces_of_path(Path::new(s)).expect("read");
    assert_eq!(path("/sys/devices/pci0000:00/0000:05:00.0"), ["eth5"]);
    assert!(path("/sys/class/net/eth5").is_empty());
    assert!(path("/sys/devices/../devices/pci0000:00/0000:05:00.0").is_empty());
}
