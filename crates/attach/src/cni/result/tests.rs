use serde_json::{Value, json};

use super::*;

/// Everything a result can say.
fn full() -> CniResult {
    let value = json!({
        "interfaces": [
            {"name": "br0", "mac": "02:00:00:00:00:01"},
            {"name": "net1", "mac": "02:00:00:00:00:02", "mtu": 9000, "sandbox": "/run/netns/pod",
                "socketPath": "/run/vhost.sock", "pciID": "0000:3b:00.1"},
        ],
        "ips": [
            {"interface": 1, "address": "10.1.2.20/24", "gateway": "10.1.2.1"},
            {"interface": 1, "address": "10.1.3.20/24"},
            {"interface": 1, "address": "fd00::20/64", "gateway": "fd00::1"},
        ],
        "routes": [
            {"dst": "0.0.0.0/0"},
            {"dst": "10.5.0.0/16", "gw": "10.1.2.9", "mtu": 1400, "advmss": 1360, "priority": 50,
                "table": 100, "scope": 253},
            {"dst": "fd01::/64", "gw": "fd00::9"},
        ],
        "dns": {"nameservers": ["10.1.2.1"], "domain": "x", "search": ["a.x"], "options": ["ndots:1"]},
    });
    CniResult::parse(&value, Version::NEWEST).expect("a result")
}

fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object().expect("an object");
    object.keys().map(String::as_str).collect()
}

#[test]
fn the_newest_shape_has_everything() {
    let shown = full().to(Version::V1_1_0);
    assert_eq!(
        keys(&shown),
        ["cniVersion", "interfaces", "ips", "routes", "dns"]
    );
    assert_eq!(shown["cniVersion"], "1.1.0");
    assert_eq!(
        keys(&shown["interfaces"][1]),
        ["name", "mac", "mtu", "sandbox", "socketPath", "pciID"]
    );
    assert_eq!(keys(&shown["ips"][0]), ["interface", "address", "gateway"]);
    assert_eq!(shown["routes"][1]["scope"], 253);
    assert_eq!(CniResult::parse(&shown, Version::V1_1_0), Ok(full()));
}

#[test]
fn before_1_0_an_address_has_its_familys_number_and_an_interface_less() {
    for version in [Version::V0_3_0, Version::V0_3_1, Version::V0_4_0] {
        let shown = full().to(version);
        assert_eq!(shown["cniVersion"], version.as_str());
        let families: Vec<&Value> = (0..3).map(|i| &shown["ips"][i]["version"]).collect();
        assert_eq!(families, [&json!("4"), &json!("4"), &json!("6")]);
        assert_eq!(keys(&shown["interfaces"][1]), ["name", "mac", "sandbox"]);
        assert_eq!(shown["ips"][2]["interface"], 1);
        let again = CniResult::parse(&shown, version).expect("our own");
        assert_eq!(
            (again.ips, again.routes, again.dns),
            (full().ips, full().routes, full().dns)
        );
    }
    assert!(
        full().to(Version::V1_0_0)["ips"][0]
            .get("version")
            .is_none()
    );
}

#[test]
fn before_0_3_there_is_one_address_per_family_with_its_routes() {
    for version in [Version::V0_1_0, Version::V0_2_0] {
        let shown = full().to(version);
        assert_eq!(keys(&shown), ["cniVersion", "ip4", "ip6", "dns"]);
        assert_eq!(shown["ip4"]["ip"], "10.1.2.20/24");
        assert_eq!(shown["ip4"]["gateway"], "10.1.2.1");
        assert_eq!(shown["ip4"]["routes"][0], json!({"dst": "0.0.0.0/0"}));
        assert_eq!(shown["ip6"]["routes"][0]["gw"], "fd00::9");
        let again = CniResult::parse(&shown, version).expect("our own");
        assert_eq!(again.ips.len(), 2);
        assert_eq!(again.ips[1].gateway, full().ips[2].gateway);
        // A route without a router was via its family's gateway all along.
        assert_eq!(again.routes[0].gw, full().ips[0].gateway);
        assert_eq!(again.routes.len(), 3);
    }
}

#[test]
fn a_result_without_addresses_is_one_in_every_version() {
    let link = CniResult {
        interfaces: full().interfaces,
        ..CniResult::default()
    };
    for version in Version::ALL {
        let shown = link.to(version);
        assert_eq!(shown["cniVersion"], version.as_str());
        assert!(CniResult::parse(&shown, version).is_ok_and(|again| again.ips.is_empty()));
    }
    assert_eq!(keys(&link.to(Version::V0_2_0)), ["cniVersion"]);
}

#[test]
fn empty_parts_are_not_written() {
    for version in Version::ALL {
        assert_eq!(
            CniResult::default().to(version),
            json!({"cniVersion": version.as_str()})
        );
    }
}

#[test]
fn what_older_go_programs_write_is_read() {
    let value = json!({
        "cniVersion": "0.3.1",
        "interfaces": [{"name": "net1", "mac": "", "sandbox": ""}],
        "ips": [{"version": "4", "interface": null, "address": "10.1.2.3/24", "gateway": ""}],
        "routes": [{"dst": "10.1.2.3/8", "gw": null}],
        "dns": {},
    });
    let result = CniResult::parse(&value, Version::V0_3_1).expect("a result");
    assert_eq!(
        (
            result.interfaces[0].mac.clone(),
            result.interfaces[0].sandbox.clone()
        ),
        (None, None)
    );
    assert_eq!(
        (result.ips[0].interface, result.ips[0].gateway),
        (None, None)
    );
    assert_eq!(result.routes[0].dst.to_string(), "10.0.0.0/8");
    assert!(result.dns.is_empty());
}

#[test]
fn an_answers_own_version_comes_before_the_configurations() {
    let old = br#"{"cniVersion": "0.2.0", "ip4": {"ip": "10.1.2.3/24"}}"#;
    let read = CniResult::parse_answer(old, Version::V1_0_0).expect("old");
    assert_eq!(read.ips.len(), 1);
    let silent = br#"{"ip4": {"ip": "10.1.2.3/24"}}"#;
    assert_eq!(
        CniResult::parse_answer(silent, Version::V0_1_0).map(|r| r.ips.len()),
        Ok(1)
    );
    assert_eq!(
        CniResult::parse_answer(silent, Version::V1_0_0).map(|r| r.ips.len()),
        Ok(0)
    );
    assert_eq!(
        CniResult::parse_answer(br#"{"cniVersion": "7.0.0"}"#, Version::V1_0_0).map_err(|e| e.code),
        Err(1)
    );
    assert_eq!(
        CniResult::parse_answer(b"", Version::V1_0_0).map_err(|e| e.code),
        Err(6)
    );
}

#[test]
fn every_address_is_the_interfaces_that_it_is_assigned_to() {
    let mut result = full();
    result.ips[0].interface = None;
    assert_eq!(result.ips_of(1).count(), 3, "the first is anybody's");
    result.assign(0);
    assert_eq!(result.ips_of(0).count(), 3);
    assert_eq!(result.ips_of(1).count(), 0);
}

#[test]
fn members_that_nobody_knows_end_with_the_result_that_has_them() {
    let value = json!({"cniVersion": "1.0.0", "extra": 1, "ips": [{"address": "10.1.2.20/24", "extra": 2}],
        "interfaces": [{"Name": "net1", "extra": 3}]});
    let result = CniResult::parse(&value, Version::V1_0_0).expect("a result");
    let known = json!({"cniVersion": "1.0.0", "ips": [{"address": "10.1.2.20/24"}], "interfaces": [{"name": "net1"}]});
    assert_eq!(result.to(Version::V1_0_0), known);
}
