use super::*;

fn link(name: &str, mac: &str) -> Link {
    Link {
        name: name.to_owned(),
        mac: mac.parse().ok(),
        ..Link::default()
    }
}

fn nic(name: &str, bus: &str, permanent: &str) -> Link {
    Link {
        device: Some(bus.to_owned()),
        permanent_mac: permanent.parse().ok(),
        ..link(name, permanent)
    }
}

#[test]
fn hardware_is_known_by_its_bus_address_whatever_its_name_and_mac_are() {
    let before = nic("eth1", "0000:01:00.0", "02:00:00:00:00:01");
    let identity = Identity::of(&before, "0000:01:00.0".parse().ok());
    let mut fell_back = nic("dev7", "0000:01:00.0", "02:00:00:00:00:01");
    fell_back.mac = "02:aa:aa:aa:aa:aa".parse().ok();
    assert!(identity.is(&fell_back));
    assert!(!identity.is(&nic("eth1", "0000:01:00.1", "02:00:00:00:00:02")));
    assert!(identity.is_hardware());
}

#[test]
fn two_ports_of_one_function_are_two_devices() {
    let mut first = nic("eth1", "0000:01:00.0", "02:00:00:00:00:01");
    first.port_name = Some("p0".to_owned());
    let mut second = first.clone();
    second.port_name = Some("p1".to_owned());
    let bdf: Option<Bdf> = "0000:01:00.0".parse().ok();
    assert!(!Identity::of(&first, bdf.clone()).is(&second));
    assert_ne!(
        Identity::of(&first, bdf.clone()).key(),
        Identity::of(&second, bdf.clone()).key()
    );
    let unnamed = nic("eth1", "0000:01:00.0", "02:00:00:00:00:01");
    let first = Identity::of(&unnamed, bdf);
    let second = Identity {
        port_number: 1,
        ..first.clone()
    };
    assert_ne!(first.key(), second.key());
}

#[test]
fn a_vf_whose_permanent_mac_follows_its_physical_function_is_still_the_same() {
    let before = nic("eth3", "0000:01:10.2", "02:00:00:00:00:01");
    let set = nic("net1", "0000:01:10.2", "02:00:00:00:00:a7");
    assert!(Identity::of(&before, "0000:01:10.2".parse().ok()).is(&set));
}

#[test]
fn a_virtual_device_is_known_by_its_mac_or_by_the_name_it_carries_as_alias() {
    let mut before = link("mv0", "02:00:00:00:00:05");
    before.kind = LinkKind::Veth;
    let identity = Identity::of(&before, None);
    let mut away = before.clone();
    away.name = "net1".to_owned();
    assert!(identity.is(&away));
    away.mac = "02:00:00:00:00:06".parse().ok();
    assert!(!identity.is(&away));
    away.alias = Some("mv0".to_owned());
    assert!(identity.is(&away));
    away.kind = LinkKind::Dummy;
    assert!(!identity.is(&away));
    assert!(!identity.is_hardware());
}

#[test]
fn links_without_a_mac_are_not_all_the_same() {
    let tunnel = |name: &str| Link {
        name: name.to_owned(),
        kind: LinkKind::Other("tun".to_owned()),
        ..Link::default()
    };
    assert!(!Identity::of(&tunnel("tun0"), None).is(&tunnel("tun1")));
    let away = Link {
        alias: Some("tun0".to_owned()),
        ..tunnel("net1")
    };
    assert!(Identity::of(&tunnel("tun0"), None).is(&away));
}

#[test]
fn vlans_of_one_parent_are_different_devices_with_one_mac() {
    let vlan = |id| Link {
        kind: LinkKind::Vlan {
            id,
            protocol: mooring_api::net::VlanProtocol::Dot1q,
        },
        ..link("eth0.1", "02:00:00:00:00:05")
    };
    assert!(Identity::of(&vlan(100), None).is(&vlan(100)));
    assert!(!Identity::of(&vlan(100), None).is(&vlan(200)));
}

#[test]
fn a_key_is_a_file_name() {
    let identity = Identity {
        name: "a/../b c".to_owned(),
        ..Identity::default()
    };
    assert_eq!(identity.key(), "name-a%2f..%2fb%20c");
}

#[test]
fn a_record_is_whole_or_absent_and_goes_twice() {
    let dir = tempfile::tempdir().expect("a directory");
    let records = Records::new(dir.path().join("devices"));
    assert!(records.all().expect("read").is_empty());
    let held = records.lock("pci-0000:01:00.0").expect("locked");
    assert_eq!(held.read().expect("read"), None);
    let mut record = Record::sample();
    record.owner.holder = "c1".to_owned();
    record.owner.ifname = "net1".to_owned();
    record.phase = Phase::Configured;
    held.write(&record).expect("written");
    assert_eq!(held.read().expect("read"), Some(record));
    let found = records.held_by("c1", "net1").expect("read");
    assert_eq!(found.as_deref(), Some("pci-0000:01:00.0"));
    assert_eq!(records.held_by("c1", "net2").expect("read"), None);
    held.remove().expect("removed");
    held.remove().expect("removed");
    assert_eq!(held.read().expect("read"), None);
}

#[test]
fn a_file_that_is_no_record_is_named_and_hides_no_other() {
    let dir = tempfile::tempdir().expect("a directory");
    let records = Records::new(dir.path());
    let torn = records.lock("torn").expect("locked");
    let half = b"{\"format\": 1, \"dev";
    file::write_atomic(dir.path().join("torn.json"), half).expect("written");
    let good = records.lock("good").expect("locked");
    good.write(&Record::sample()).expect("written");
    let keys: Vec<_> = records
        .all()
        .expect("read")
        .into_iter()
        .map(|(k, _)| k)
        .collect();
    assert_eq!(keys, ["good"]);
    let said = torn.read().expect_err("torn").to_string();
    assert!(said.contains("torn.json"), "{said}");
}

#[test]
fn a_form_that_is_not_known_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let records = Records::new(dir.path());
    let held = records.lock("a").expect("locked");
    held.write(&Record {
        format: 2,
        ..Record::sample()
    })
    .expect("written");
    assert!(matches!(held.read(), Err(RecordError::Unreadable { .. })));
}

#[test]
fn this_boot_has_an_id_and_an_age() {
    let boot = Boot::read(Path::new("/proc")).expect("read");
    assert_eq!(boot.id.len(), 36, "{}", boot.id);
    assert!(boot.uptime > 0);
}
