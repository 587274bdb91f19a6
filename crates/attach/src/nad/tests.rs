//! NADs as people write them, the seeds' among them: what is refused, and which addresses are seen.

use super::*;
use crate::networks;

/// Everything seen, one line each.
fn seen(config: &str) -> String {
    let line = |used: Used| match used.what {
        Use::Address(host) => format!("{} {host}", used.path),
        Use::Range { range, subnet } => format!("{} {range} of {subnet}", used.path),
    };
    let lines: Vec<String> = addresses(config).into_iter().map(line).collect();
    lines.join("\n")
}

#[test]
fn keys_are_found_in_any_case_as_the_plugins_find_them() {
    let config = r#"{"Type": "macvlan", "Master": "eth1", "IPAM": {"TYPE": "host-local", "Ranges": [[{"SubNet": "10.0.0.0/24",
        "rangestart": "10.0.0.10", "RANGEEND": "10.0.0.11"}]], "ROUTES": [{"Dst": "x"}]}}"#;
    assert_eq!(
        seen(config),
        "ipam.ranges[0][0].subnet 10.0.0.10-10.0.0.11 of 10.0.0.0/24"
    );
    let findings = check(config);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(
        findings[0].message.contains("ipam.routes[0].dst"),
        "{}",
        findings[0]
    );
    let fixed = r#"{"type": "macvlan", "Ipam": {"Type": "static", "Addresses": [{"Address": "10.0.0.2/24"}]}}"#;
    assert_eq!(check(fixed), []);
    assert_eq!(seen(fixed), "ipam.addresses[0].address 10.0.0.2/24");
}

#[test]
fn the_seeds_comment_is_named_with_its_line() {
    let config = "{\n  \"type\": \"macvlan\",\n  \"ipam\": {\n    \"type\": \"host-local\",\n    \"ranges\": [[{\n      \
        \"subnet\": \"192.168.100.0/24\",    # NOT in Kubernetes CIDR\n      \"rangeStart\": \"192.168.100.10\"\n    }]]\n  }\n}\n";
    let findings = check(config);
    assert_eq!(findings.len(), 1);
    assert!(
        findings[0]
            .message
            .contains("a comment stands in it, in line 6"),
        "{}",
        findings[0]
    );
    assert_eq!(findings[0].field.as_deref(), Some("spec.config"));
}

/// Configuration, and a part of each finding.
const REFUSED: &[(&str, &[&str])] = &[
    (
        "{\"type\": \"macvlan\",\n}",
        &["a comma stands before a closing bracket, in line 2"],
    ),
    (
        "{\"type\": \"macvlan\", // x\n}",
        &["a comment stands in it, in line 1"],
    ),
    ("{\n\"type\": \"macvlan\",\n...\n}", &["in line 3"]),
    ("{", &["EOF"]),
    ("[]", &["it is not an object"]),
    ("{}", &["type is missing"]),
    (r#"{"type": ""}"#, &["type is missing"]),
    (r#"{"plugins": []}"#, &["plugins is empty"]),
    (r#"{"plugins": {}}"#, &["plugins is not a list"]),
    (
        r#"{"plugins": [{"type": "macvlan"}, 3, {}]}"#,
        &["plugins[1] is 3", "plugins[2].type is missing"],
    ),
    (r#"{"type": "x", "ipam": []}"#, &["ipam is not an object"]),
    (
        r#"{"type": "x", "ipam": {"range": "1"}}"#,
        &["ipam.type is missing"],
    ),
    (
        r#"{"type": "x", "ipam": {"type": "static", "addresses": {}}}"#,
        &["ipam.addresses is not a list"],
    ),
    (
        r#"{"type": "x", "ipam": {"type": "static", "addresses": [
            {"address": "10.0.0.2"}, {"address": "nonsense/24"}, {"gateway": "10.0.0.1"}, 5,
            {"address": "10.0.0.2/24", "gateway": "10.0.1.1"}, {"address": "10.0.0.2/24", "gateway": "gw"}]}}"#,
        &[
            "addresses[0].address \"10.0.0.2\" has no length",
            "addresses[1].address \"nonsense/24\" is not an address",
            "addresses[2].address \"\" is not an address",
            "addresses[3] is not an object",
            "addresses[4].gateway 10.0.1.1 is outside 10.0.0.0/24",
            "addresses[5].gateway \"gw\" is not an address",
        ],
    ),
    (
        r#"{"type": "x", "ipam": {"type": "static", "routes": [{"dst": "10.0.0.0"}, {"dst": "10.0.0.0/8", "gw": "x"}]}}"#,
        &["routes[0].dst", "routes[1].gw"],
    ),
    (
        r#"{"type": "x", "ipam": {"type": "host-local"}}"#,
        &["neither ranges nor subnet"],
    ),
    (
        r#"{"type": "x", "ipam": {"type": "host-local", "ranges": [{"subnet": "10.0.0.0/24"}, [{}, {"subnet": "10.0.0.1/24"},
            {"subnet": "10.0.0.0/31"}, {"subnet": "10.0.0.0/24", "rangeStart": "10.0.1.1", "gateway": "10.0.2.1"}]]}}"#,
        &[
            "ranges[0] is not a list",
            "ranges[1][0].subnet is missing",
            "ranges[1][1].subnet cannot be used",
            "ranges[1][2].subnet 10.0.0.0/31 is too small",
            "ranges[1][3].rangeStart \"10.0.1.1\" is not inside",
            "ranges[1][3].gateway 10.0.2.1 is outside",
        ],
    ),
    (
        r#"{"type": "x", "ipam": {"type": "whereabouts", "ranges": []}}"#,
        &["neither range nor ipRanges"],
    ),
    (
        r#"{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "192.168.100.0/24", "etcd_host": "shared:2379"}}"#,
        &["names an etcd"],
    ),
];

#[test]
fn what_a_plugin_refuses_is_said_with_its_path() {
    for (config, expected) in REFUSED {
        let findings = check(config);
        assert_eq!(findings.len(), expected.len(), "{config}: {findings:#?}");
        for (finding, part) in findings.iter().zip(*expected) {
            assert!(
                finding.message.contains(part),
                "{part}: {}",
                finding.message
            );
        }
    }
}

#[test]
fn what_plugins_take_is_not_refused() {
    for config in [
        "",
        r#"{"type": "macvlan", "master": "eth1", "ipam": {"type": "static"}}"#,
        r#"{"type": "calico", "ipam": {"type": "calico-ipam"}}"#,
        r#"{"cniVersion": "0.3.1", "plugins": [{"type": "macvlan", "capabilities": {"ips": true},
            "ipam": {"type": "static", "addresses": [{"address": "10.0.0.3/24", "gateway": "10.0.0.1"}]}},
            {"type": "tuning", "capabilities": {"mac": true}, "ipam": {}}]}"#,
        r#"{"type": "macvlan", "ipam": {"type": "infoblox", "network": "192.168.100.0/24"}}"#,
        r#"{"type": "macvlan", "ipam": {"type": "host-local", "subnet": "192.168.100.0/24"}}"#,
        r#"{"type": "macvlan", "ipam": {"type": "static", "addresses": null, "routes": [{"dst": "0.0.0.0/0", "gw": ""}]}}"#,
    ] {
        assert_eq!(check(config), [], "{config}");
    }
}

#[test]
fn addresses_are_seen_in_a_plugin_and_in_a_list() {
    let ipam = r#""ipam": {"type": "static", "addresses": [{"address": "10.0.0.3/24"}, {"address": "bad"}, {"address": "fd00::3/64"}]}"#;
    assert_eq!(
        seen(&format!("{{\"type\": \"macvlan\", {ipam}}}")),
        "ipam.addresses[0].address 10.0.0.3/24\nipam.addresses[2].address fd00::3/64"
    );
    assert_eq!(
        seen(&format!(
            "{{\"plugins\": [{{\"type\": \"x\"}}, {{\"type\": \"macvlan\", {ipam}}}]}}"
        )),
        "plugins[1].ipam.addresses[0].address 10.0.0.3/24\nplugins[1].ipam.addresses[2].address fd00::3/64"
    );
    assert_eq!(seen("not json"), "");
}

#[test]
fn host_local_hands_out_all_but_the_gateway() {
    assert_eq!(
        seen(
            r#"{"type": "macvlan", "ipam": {"type": "host-local", "subnet": "192.168.100.0/24",
            "ranges": [[{"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.10", "rangeEnd": "10.0.0.99", "gateway": "10.0.0.50"}]]}}"#
        ),
        "ipam.subnet 192.168.100.2-192.168.100.254 of 192.168.100.0/24\n\
         ipam.ranges[0][0].subnet 10.0.0.10-10.0.0.49 of 10.0.0.0/24\n\
         ipam.ranges[0][0].subnet 10.0.0.51-10.0.0.99 of 10.0.0.0/24"
    );
}

#[test]
fn whereabouts_hands_out_all_but_the_exclusions() {
    assert_eq!(
        seen(
            r#"{"type": "macvlan", "ipam": {"type": "whereabouts", "range": "10.0.0.7/28", "gateway": "10.0.0.1",
            "exclude": ["10.0.0.4/30", "10.0.0.14", "10.0.0.5/32", "192.168.0.0/16"]}}"#
        ),
        "ipam.range 10.0.0.1-10.0.0.3 of 10.0.0.0/28\nipam.range 10.0.0.8-10.0.0.13 of 10.0.0.0/28"
    );
    assert_eq!(
        seen(
            r#"{"type": "macvlan", "ipam": {"type": "whereabouts", "ipRanges": [
            {"range": "10.0.0.10-10.0.0.20/24"}, {"range": "fd00::/120", "range_start": "fd00::5", "range_end": "fe00::1"}]}}"#
        ),
        "ipam.ipRanges[0].range 10.0.0.10-10.0.0.20 of 10.0.0.0/24\n\
         ipam.ipRanges[1].range fd00::5-fd00::ff of fd00::/120"
    );
}

#[test]
fn what_we_build_passes_our_own_check_and_shows_its_addresses() {
    use crate::config::{Conf, Dns, Ipam, Plugin, build, text};
    let plugin = Plugin::Sriov {
        vlan: None,
        mtu: Some(9000),
    };
    let ipam = Ipam::Static {
        addresses: vec![(
            "10.1.3.20/24".parse().unwrap(),
            Some("10.1.3.1".parse().unwrap()),
        )],
        routes: vec![],
        dns: Dns::default(),
    };
    let config = text(&build("n3", &Conf { plugin, ipam }).unwrap());
    assert_eq!(check(&config), []);
    assert_eq!(
        seen(&config),
        "plugins[0].ipam.addresses[0].address 10.1.3.20/24"
    );
}

#[test]
fn an_address_in_both_carriers_is_refused_unless_the_annotation_replaces() {
    let entry = |text| networks::parse(text).unwrap().entries.remove(0);
    let asks = entry(r#"[{"name": "n2", "ips": ["10.0.0.3/24"]}]"#);
    let ipam = r#""ipam": {"type": "static", "addresses": [{"address": "10.0.0.3/24"}]}"#;
    let both = format!("{{\"type\": \"macvlan\", {ipam}}}");
    let findings = check_selection(&both, &asks);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].message.contains("the pod would get both"));
    assert_eq!(check_selection(&both, &entry("n2")), []);
    let replacing =
        format!("{{\"type\": \"macvlan\", \"capabilities\": {{\"ips\": true}}, {ipam}}}");
    assert_eq!(check_selection(&replacing, &asks), []);
}
