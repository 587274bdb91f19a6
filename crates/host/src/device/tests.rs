use mooring_api::net::{Addr, Snapshot};

use super::*;
use crate::Change;
use crate::record::Record;

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
        Selector::Path("/sys/devices/pci0000:00/0000:09:00.0/mlx5_core.sf.4".into()),
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
fn a_function_is_one_nics_alone_or_none() {
    let above = || "0000:01:00.0".parse().ok();
    let function = |bus| find::function_of(bus, above);
    for own in [None, Some("virtio3"), Some("0000:01:00.0")] {
        assert_eq!(function(own), above(), "{own:?}");
    }
    for shared in ["mlx5_core.sf.4", "1-2:1.0"] {
        assert_eq!(function(Some(shared)), None, "{shared}");
    }
}

#[test]
fn what_shares_a_function_has_a_record_of_its_own() {
    let part = |bus: &str, number| Identity {
        pci: None,
        bus: Some(bus.to_owned()),
        port: None,
        port_number: number,
        ..device()
    };
    let keys = [
        part("mlx5_core.sf.4", 0).key(),
        part("mlx5_core.sf.5", 0).key(),
        part("1-2:1.0", 0).key(),
        part("1-2:1.0", 1).key(),
    ];
    assert_eq!(
        keys,
        [
            "bus-mlx5_core.sf.4",
            "bus-mlx5_core.sf.5",
            "bus-1-2:1.0",
            "bus-1-2:1.0-1"
        ]
    );
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

#[test]
fn a_route_that_never_comes_back_is_given_up_at_the_third_time_and_an_address_never() {
    let dir = tempfile::tempdir().expect("a directory");
    let records = Records::new(dir.path());
    let route = mooring_api::net::Route::to("198.51.100.0/24".parse().expect("a prefix"));
    let address = Addr::new(3, "192.0.2.1/24".parse().expect("an address"));
    let times = |key: &str, left: &[Change<'_>]| {
        let held = records.lock(key).expect("locked");
        let mut record = Record::sample();
        let tries: Vec<bool> = (0..5)
            .map(|_| home::judge(&held, &mut record, left).is_ok())
            .collect();
        let kept = held.read().expect("read").map(|r| r.tries);
        (tries, kept)
    };
    let (tries, kept) = times("route", &[Change::AddRoute(route.clone())]);
    assert_eq!(tries, [false, false, true, true, true]);
    assert_eq!(kept, Some(5));
    let (tries, _) = times(
        "address",
        &[Change::AddRoute(route), Change::SetAddr(address)],
    );
    assert_eq!(tries, [false; 5]);
    let (tries, kept) = times("nothing", &[]);
    assert_eq!(tries, [true; 5]);
    assert_eq!(kept, None);
}
