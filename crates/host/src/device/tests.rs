use mooring_api::net::{Addr, Snapshot};

use super::*;

fn device() -> Identity {
    Identity {
        pci: "0000:01:00.0".parse().ok(),
        bus: Some("mlx5_core.sf.4".to_owned()),
        permanent_mac: "02:00:00:00:00:01".parse().ok(),
        mac: "02:00:00:00:00:02".parse().ok(),
        name: "eth1".to_owned(),
        altnames: vec!["enp1s0".to_owned()],
        ..Identity::default()
    }
}

#[test]
fn a_device_that_is_away_is_selected_by_what_it_was_on_the_host() {
    let yes = [
        Selector::Name("eth1".to_owned()),
        Selector::Name("enp1s0".to_owned()),
        Selector::Mac("02:00:00:00:00:01".parse().expect("a MAC")),
        Selector::Mac("02:00:00:00:00:02".parse().expect("a MAC")),
        Selector::Pci("0000:01:00.0".parse().expect("an address")),
        Selector::Auxiliary("mlx5_core.sf.4".to_owned()),
        Selector::Path("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/virtio3".into()),
    ];
    for selector in yes {
        assert!(selector.selects(&device()), "{selector}");
    }
    let no = [
        Selector::Name("net1".to_owned()),
        Selector::Mac("02:00:00:00:00:03".parse().expect("a MAC")),
        Selector::Pci("0000:01:00.1".parse().expect("an address")),
        Selector::Auxiliary("mlx5_core.sf.5".to_owned()),
        Selector::Path("/sys/devices/pci0000:00/0000:01:00.0/0000:02:00.0".into()),
        Selector::Path("/sys/devices/virtual/net".into()),
    ];
    for selector in no {
        assert!(!selector.selects(&device()), "{selector}");
    }
    let bare = Identity::default();
    assert!(!Selector::Path("/sys/devices/virtual".into()).selects(&bare));
}

#[test]
fn lifetimes_go_on_while_a_device_is_away() {
    let address = |valid, preferred| {
        let mut addr = Addr::new(3, "192.0.2.1/24".parse().expect("an address"));
        addr.valid = valid;
        addr.preferred = preferred;
        addr
    };
    let before = Snapshot {
        addrs: vec![
            address(None, None),
            address(Some(100), Some(50)),
            address(Some(60), Some(50)),
        ],
        ..Snapshot::default()
    };
    let after = home::aged(before, 60);
    assert_eq!(
        after.addrs,
        [address(None, None), address(Some(40), Some(0))]
    );
}
