//! What the original operator's own tests state, row by row: done alike, or where and why not.
//!
//! ```text
//!  gateway                    the_first_host_is_the_gateway_and_one_address_has_none
//!  loopbacks                  loopbacks_are_given_as_there_except_that_a_node_that_is_gone_keeps_nothing
//!  export items               announcement_policies_are_unknown_and_low_level_lines_say_what_they_say
//!  names                      no_name_is_shortened_and_so_none_can_meet_another
//!  duplicate lines            facts::one_cidr_with_other_bounds_or_another_action_is_legal_…
//!  identity of a VRF          facts::a_written_identity_counts_before_the_platforms_…
//!  imports as static routes   imports_are_imports_and_never_static_routes
//!  skipping revisions         nodes::the_same_content_is_the_same_revision_and_a_failed_one_is_not_begun_again
//!  counters                   nodes::a_node_counts_as_there_except_that_silence_is_no_excuse
//!  redundant configurations   nodes::a_node_that_is_gone_has_no_configuration
//!  nodes that are not ready   nodes::a_node_that_is_not_ready_is_compiled_and_waited_for
//!  tc mirror                  a_mirror_is_one_line_for_the_agent_whatever_filters_it_makes_of_it
//!  routing by source          sources_lead_where_the_end_to_end_tests_say, defects::sources_are_looked_up_…
//!  Calico                     pools_have_the_names_and_blocks_of_the_originals
//!  agent's status             nodes::the_last_word_of_an_agent_is_read_as_it_is_meant
//! ```
//!
//! Every difference stands in docs/concepts/intent-differences.md; the last test here reads that page.

mod nodes;

use std::fs;

use mooring_api::kinds::schiff::{ActionType, Filter, MirrorAcl, NodeNetworkConfigSpec};
use mooring_intent::{Answers, Compiled, Inputs, Prior, allocate, wants};

use crate::properties::bytes;
use crate::{codes, documents, text};

const GROUP: &str = "apiVersion: network.t-caas.telekom.com/v1alpha1";

fn object(kind: &str, name: &str, spec: &str) -> String {
    format!(
        "---\n{{{GROUP}, kind: {kind}, metadata: {{name: {name}, labels: {{zone: {name}}}}}, spec: {{{spec}}}}}\n"
    )
}

fn node(name: &str) -> String {
    format!("---\n{{apiVersion: v1, kind: Node, metadata: {{name: '{name}'}}}}\n")
}

fn destination(name: &str, vni: u16, rest: &str) -> String {
    let spec = format!("vrf: {name}, vni: {vni}, routeTarget: '64500:{vni}', {rest}");
    object("Destination", name, &spec)
}

fn low_level(name: &str, seq: u8, rest: &str) -> String {
    let spec = format!("vrf: red, vni: 100, routeTarget: '64500:100', seq: {seq}, {rest}");
    object("VRFRouteConfiguration", name, &spec)
}

fn told<'a>(compiled: &'a Compiled, node: &str) -> &'a NodeNetworkConfigSpec {
    &compiled.nodes[node].network
}

/// Lines as `+10.0.0.0/24 ge 32 le 32 [communities]`; a minus rejects.
fn lines(filter: &Filter) -> Vec<String> {
    let shown = filter.items.iter().map(|item| {
        let prefix = item.matcher.prefix.as_ref().unwrap();
        let bound = |word: &str, bound: Option<u8>| match bound {
            Some(bound) => format!(" {word} {bound}"),
            None => String::new(),
        };
        let sign = if item.action.kind == ActionType::Accept {
            "+"
        } else {
            "-"
        };
        let modify = item.action.modify_route.as_ref();
        let said = modify.map(|m| format!(" {:?}", m.add_communities));
        let (ge, le) = (bound("ge", prefix.ge), bound("le", prefix.le));
        format!(
            "{sign}{}{ge}{le}{}",
            prefix.prefix,
            said.unwrap_or_default()
        )
    });
    shown.collect()
}

#[test]
fn the_first_host_is_the_gateway_and_one_address_has_none() {
    let rows = [
        ("ipv4: {subnet: 10.0.1.0/24}", Some("10.0.1.1/24")),
        (
            "ipv4: {subnet: 198.51.100.224/27}",
            Some("198.51.100.225/27"),
        ),
        ("subnet: '2001:db8::/64'", Some("2001:db8::1/64")),
        ("ipv4: {subnet: 10.0.0.0/31}", Some("10.0.0.0/31")),
        ("subnet: '2001:db8::/127'", Some("2001:db8::/127")),
        ("ipv4: {subnet: 10.0.0.7/32}", None),
        ("subnet: '2001:db8::7/128'", None),
    ];
    for (network, wanted) in rows {
        let spec = format!(
            "network: {{vlanID: 10, vni: 1010, {network}}}, interfaceName: s, destinations: {{matchLabels: {{zone: red}}}}"
        );
        let all = [
            node("a"),
            destination("red", 100, ""),
            object("Layer2Attachment", "s", &spec),
        ];
        let compiled = text(&all.concat());
        let layer2 = told(&compiled, "a").layer2s.get("10");
        let found = layer2
            .and_then(|l| l.irb.as_ref())
            .map(|irb| irb.ip_addresses.clone());
        assert_eq!(found, wanted.map(|w| vec![w.to_owned()]), "{network}");
        let refused = codes(&compiled).contains(&"InvalidGateway".to_owned());
        assert_eq!(refused, wanted.is_none(), "{network}");
    }
}

#[test]
fn loopbacks_are_given_as_there_except_that_a_node_that_is_gone_keeps_nothing() {
    let with = |nodes: &[&str], subnet: &str| {
        let nodes: String = nodes.iter().map(|n| node(n)).collect();
        let lists =
            format!("import: [], export: [], loopbacks: [{{name: lo.x, subnet: {subnet}}}]");
        nodes + &low_level("red", 10, &lists)
    };
    let given = |nodes: &[&str], subnet: &str, before: &Answers| {
        let inputs = Inputs::read(&documents(&with(nodes, subnet)));
        let (answers, findings) = allocate(&wants(&inputs), before);
        assert_eq!(findings, []);
        let shown: Vec<String> = answers
            .iter()
            .map(|(key, what)| format!("{} {}", key.rsplit('/').next().unwrap(), what.network()))
            .collect();
        (answers, shown)
    };
    let subnet = "10.99.0.0/29";
    let (both, shown) = given(&["b", "a"], subnet, &Answers::default());
    assert_eq!(shown, ["a 10.99.0.1", "b 10.99.0.2"]);
    // What is there is kept.
    let (three, shown) = given(&["b", "0", "a"], subnet, &both);
    assert_eq!(shown, ["0 10.99.0.3", "a 10.99.0.1", "b 10.99.0.2"]);
    // What lies outside of another subnet is given anew.
    let (_, shown) = given(&["a", "b"], "10.98.0.0/29", &both);
    assert_eq!(shown, ["a 10.98.0.1", "b 10.98.0.2"]);
    // There, the address of an absent node stays reserved for ever. Here a node that is not ready is still there, and keeps it;
    // one that was removed gives it back, and the next one may have it.
    let (gone, shown) = given(&["0", "b"], subnet, &three);
    assert_eq!(shown, ["0 10.99.0.3", "b 10.99.0.2"]);
    let (_, shown) = given(&["0", "b", "c"], subnet, &gone);
    assert_eq!(shown, ["0 10.99.0.3", "b 10.99.0.2", "c 10.99.0.1"]);
    let bad = text(&with(&["a"], "10.99.0.0/33"));
    assert_eq!(codes(&bad), ["InvalidField"]);
}

#[test]
fn announcement_policies_are_unknown_and_low_level_lines_say_what_they_say() {
    let exports = |rest: &str| {
        let compiled = text(&(node("a") + rest));
        let wrong: Vec<_> = compiled.findings.iter().filter(|f| f.is_error()).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        lines(&told(&compiled, "a").fabric_vrfs["red"].evpn_export_filter)
    };
    let red = destination("red", 100, "prefixes: [172.16.0.0/12]");
    let to_red = "destinations: {matchLabels: {zone: red}}";
    // Without a policy: one line of the subnet and all inside it. So it is here for pods, whose blocks the CNI announces. A segment
    // exports its subnet alone, since its hosts go by EVPN; a VRFAttachment its subnet, and the hosts that it has.
    let pods = object(
        "PodNetwork",
        "p",
        &format!("network: {{ipv4: {{subnet: 10.1.0.0/24}}}}, {to_red}"),
    );
    assert_eq!(exports(&(red.clone() + &pods)), ["+10.1.0.0/24 le 32"]);
    let segment = format!(
        "network: {{vlanID: 10, vni: 1010, ipv4: {{subnet: 10.1.0.0/24}}}}, interfaceName: s, {to_red}"
    );
    let segment = object("Layer2Attachment", "s", &segment);
    assert_eq!(exports(&(red.clone() + &segment)), ["+10.1.0.0/24"]);
    let attachment = format!(
        "network: {{ipv4: {{subnet: 10.1.0.0/24}}}}, {to_red}, connections: [{{name: in, direction: inbound, addresses: [10.1.0.9]}}]"
    );
    let attachment = object("VRFAttachment", "v", &attachment);
    assert_eq!(
        exports(&(red.clone() + &attachment)),
        ["+10.1.0.9/32", "+10.1.0.0/24"]
    );
    // The kind is of another group, and means nothing here.
    let policy = "---\n{apiVersion: network-connector.sylvaproject.org/v1alpha1, kind: AnnouncementPolicy, metadata: {name: p, namespace: d}, \
                  spec: {vrfRef: red, hostRoutes: {communities: ['64500:1']}, aggregate: {enabled: false}}}\n";
    let without = node("a") + &red + &pods;
    let with = format!("{without}{policy}");
    assert_eq!(bytes(&text(&without)), bytes(&text(&with)));
    // What it says there is said by lines here: hosts with a community, then all that is shorter.
    let hosts = low_level(
        "hosts",
        10,
        "communities: ['64500:1'], import: [], export: [{cidr: 10.1.0.0/24, action: permit, ge: 32, le: 32}]",
    );
    let rest = |action: &str| {
        let list = format!("import: [], export: [{{cidr: 10.1.0.0/24, action: {action}, le: 31}}]");
        low_level("rest", 20, &list)
    };
    let mut both = exports(&(hosts.clone() + &rest("permit")));
    both.sort();
    let host = "+10.1.0.0/24 ge 32 le 32 [\"64500:1\"]";
    assert_eq!(both, [host, "+10.1.0.0/24 le 31"]);
    // Without the aggregate the rest is rejected, and then the order counts.
    assert_eq!(
        exports(&(hosts + &rest("deny"))),
        [host, "-10.1.0.0/24 le 31"]
    );
}

#[test]
fn no_name_is_shortened_and_so_none_can_meet_another() {
    let of = |vrf: &str| {
        let red = destination("red", 100, "prefixes: [10.0.0.0/8]")
            .replace("vrf: red", &format!("vrf: {vrf}"));
        let segment = "network: {vlanID: 10, vni: 1010, ipv4: {subnet: 192.0.2.0/24}}, interfaceName: s, \
                       destinations: {matchLabels: {zone: red}}";
        text(&(node("a") + &red + &object("Layer2Attachment", "s", segment)))
    };
    for short in ["widget", "sandbox", "xaax", "abcdefghijkl"] {
        let compiled = of(short);
        let names: Vec<&String> = told(&compiled, "a").fabric_vrfs.keys().collect();
        assert_eq!(names, [short]);
    }
    // There these become fifteen characters, or nothing, or each other. Twelve are what a local VRF with `s-` and an agent's devices
    // leave room for; whoever has a longer name writes a shorter one.
    for long in [
        "abcdefghijklm",
        "wwww_vvvv_bbbb_c",
        "xxxxxxxx_yyyyyyyy",
        "bcdafg_hjklmnpqr",
        "bcdefg_hjklmnpqr",
    ] {
        let compiled = of(long);
        let about: Vec<_> = compiled
            .findings
            .iter()
            .filter(|f| f.field.as_deref() == Some("spec.vrf"))
            .collect();
        assert!(
            about.iter().any(|f| f.is_error()),
            "{long}: {:#?}",
            compiled.findings
        );
        assert!(told(&compiled, "a").fabric_vrfs.is_empty(), "{long}");
        let low = low_level("l", 10, "import: [], export: []")
            .replace("vrf: red", &format!("vrf: {long}"));
        let compiled = text(&(node("a") + &low));
        assert!(
            compiled.findings.iter().any(mooring_api::Finding::is_error),
            "{long}"
        );
        assert!(told(&compiled, "a").fabric_vrfs.is_empty(), "{long}");
    }
    // A local VRF of one is called after it, one of several after its content; both fit a device.
    let forced = destination("blue", 200, "sbr: {enabled: true}, prefixes: [10.0.0.0/8]");
    let out = "network: {ipv4: {subnet: 192.0.2.0/24}}, destinations: {matchExpressions: [{key: zone, operator: Exists}]}, \
               connections: [{name: out, direction: outbound}]";
    let out = object("VRFAttachment", "v", out);
    let locals = |all: &str| -> Vec<String> {
        let compiled = text(all);
        told(&compiled, "a").local_vrfs.keys().cloned().collect()
    };
    let one = node("a") + &forced + &out;
    assert_eq!(locals(&one), ["s-blue"]);
    let several = locals(&(one + &destination("red", 100, "prefixes: [172.16.0.0/12]")));
    let [several] = several.as_slice() else {
        panic!("{several:?}")
    };
    assert!(
        several.starts_with("s-") && several.len() == 15,
        "{several}"
    );
}

#[test]
fn imports_are_imports_and_never_static_routes() {
    // There a switch makes of every permitted import a static route of the cluster, and keeps it out of BGP. Agents take imports with
    // filters, so there is one way here.
    let lists = "import: [{cidr: 10.0.0.0/8, action: permit}], export: []";
    let compiled = text(&(node("a") + &low_level("red", 10, lists)));
    let cluster = told(&compiled, "a").cluster_vrf.as_ref().unwrap();
    assert_eq!(cluster.vrf_imports.len(), 1);
    assert_eq!(cluster.vrf_imports[0].from_vrf, "red");
    assert_eq!(lines(&cluster.vrf_imports[0].filter), ["+10.0.0.0/8"]);
    assert!(cluster.static_routes.is_empty());
    let statics = cluster.redistribute.as_ref().unwrap().statics.as_ref();
    assert_eq!(lines(statics.unwrap()), [""; 0]);
    assert_eq!(statics.unwrap().default_action.kind, ActionType::Accept);
}

#[test]
fn a_mirror_is_one_line_for_the_agent_whatever_filters_it_makes_of_it() {
    // How many filters a line becomes, on which hook and with which priority, is the agent's. What it needs for that is in the line:
    // who left out the protocol, or the family, finds it left out; a host is a prefix; the direction is the workload's.
    let all = node("a")
        + &destination("red", 100, "prefixes: [10.0.0.0/8]")
        + &destination(
            "mir",
            200,
            "loopbacks: [{name: lo.x, subnet: 10.99.0.0/29}]",
        )
        + &object(
            "Layer2Attachment",
            "s",
            "network: {vlanID: 10, vni: 1010, ipv4: {subnet: 192.0.2.0/24}}, interfaceName: s, destinations: {matchLabels: {zone: red}}",
        )
        + &object(
            "Collector",
            "c",
            "address: 203.0.113.9, protocol: l3gre, mirrorDestination: {name: mir}",
        );
    let mirror = |traffic: &str, direction: &str| {
        let spec = format!(
            "source: {{kind: Layer2Attachment, name: s}}, collector: c, direction: {direction}, trafficMatch: {{{traffic}}}"
        );
        object("TrafficMirror", "t", &spec)
    };
    let acls = |all: &str| -> Vec<MirrorAcl> {
        let compiled = text(all);
        told(&compiled, "a").layer2s["10"].mirror_acls.clone()
    };
    let rows = [
        ("protocol: tcp", "{\"protocol\":\"tcp\"}"),
        ("dstPort: 53", "{\"dstPort\":53}"),
        (
            "srcPrefix: '2001:db8::/32'",
            "{\"srcPrefix\":\"2001:db8::/32\"}",
        ),
        ("srcPrefix: 10.0.0.7", "{\"srcPrefix\":\"10.0.0.7/32\"}"),
        (
            "dstPrefix: '2001:db8::7'",
            "{\"dstPrefix\":\"2001:db8::7/128\"}",
        ),
        ("", "{}"),
    ];
    for (traffic, wanted) in rows {
        for direction in ["ingress", "egress"] {
            let acls = acls(&format!("{all}{}", mirror(traffic, direction)));
            let [acl] = acls.as_slice() else {
                panic!("{traffic}: {acls:#?}")
            };
            assert_eq!(serde_json::to_string(&acl.traffic_match).unwrap(), wanted);
            assert_eq!(serde_json::to_value(acl.direction).unwrap(), direction);
            let there = text(&format!("{all}{}", mirror(traffic, direction)));
            let tunnels = &told(&there, "a").fabric_vrfs["mir"].vrf.gres;
            assert!(tunnels.contains_key(&acl.mirror_destination), "{traffic}");
        }
    }
    // There a line without its tunnel is an agent's error. Here no node is told one.
    let waiting = documents(&format!("{all}{}", mirror("", "ingress")));
    let inputs = Inputs::read(&waiting);
    let without = mooring_intent::compile(&inputs, &Answers::default(), &Prior::default());
    assert!(told(&without, "a").layer2s["10"].mirror_acls.is_empty());
    assert!(codes(&without).contains(&"ClaimPending".to_owned()));
}

#[test]
fn sources_lead_where_the_end_to_end_tests_say() {
    let m2m = destination(
        "m2m",
        100,
        "sbr: {enabled: true}, prefixes: [10.102.0.0/16, 'fda5:25c1:193c::/48']",
    );
    let c2m = destination(
        "c2m",
        200,
        "prefixes: [10.102.1.0/24, 'fda5:25c1:193d::/48']",
    );
    let out = "network: {ipv4: {subnet: 10.250.4.0/24}, subnet: 'fd94:685b:30cf:501::/64'}, \
               destinations: {matchExpressions: [{key: zone, operator: Exists}]}, \
               connections: [{name: out, direction: outbound, addresses: [10.250.4.40, 'fd94:685b:30cf:501::40']}]";
    let out = object("VRFAttachment", "v", out);
    let sources = |compiled: &Compiled| -> Vec<(String, String)> {
        let cluster = told(compiled, "a").cluster_vrf.as_ref().unwrap();
        let rules = cluster.policy_routes.iter();
        rules
            .map(|rule| {
                assert_eq!(rule.traffic_match.dst_prefix, None);
                let source = rule.traffic_match.src_prefix.clone().unwrap();
                (source, rule.next_hop.vrf.clone().unwrap())
            })
            .collect()
    };
    let one = text(&(node("a") + &m2m + &out));
    let both = text(&(node("a") + &m2m + &c2m + &out));
    let joined = told(&both, "a").local_vrfs.keys().next().unwrap().clone();
    for (compiled, into) in [(&one, "s-m2m"), (&both, joined.as_str())] {
        let wanted = ["10.250.4.40/32", "fd94:685b:30cf:501::40/128"]
            .map(|s| (s.to_owned(), into.to_owned()));
        assert_eq!(sources(compiled), wanted);
    }
    // One VRF: there its prefixes as static routes, here all that it has, since it cannot be mistaken.
    let alone = &told(&one, "a").local_vrfs["s-m2m"];
    assert!(alone.static_routes.is_empty());
    let from: Vec<&str> = alone
        .vrf_imports
        .iter()
        .map(|i| i.from_vrf.as_str())
        .collect();
    assert_eq!(from, ["cluster", "m2m"]);
    let routes: Vec<(&str, &str)> = told(&both, "a").local_vrfs[&joined]
        .static_routes
        .iter()
        .map(|r| {
            (
                r.prefix.as_str(),
                r.next_hop.as_ref().unwrap().vrf.as_deref().unwrap(),
            )
        })
        .collect();
    let wanted = [
        ("10.102.0.0/16", "m2m"),
        ("10.102.1.0/24", "c2m"),
        ("fda5:25c1:193c::/48", "m2m"),
        ("fda5:25c1:193d::/48", "c2m"),
    ];
    assert_eq!(routes, wanted);
}

#[test]
fn pools_have_the_names_and_blocks_of_the_originals() {
    let red = destination("red", 100, "prefixes: [10.0.0.0/8]");
    let to_red = "destinations: {matchLabels: {zone: red}}";
    let out = format!(
        "network: {{ipv4: {{subnet: 192.0.2.0/24}}, subnet: '2001:db8::/64'}}, {to_red}, connections: [{{name: out, direction: outbound}}]"
    );
    let pods = |v4: &str, v6: &str| {
        let spec = format!("network: {{ipv4: {{subnet: {v4}}}, subnet: '{v6}'}}, {to_red}");
        object("PodNetwork", "p", &spec)
    };
    let shown = |rest: &str| -> Vec<(String, u64)> {
        let compiled = text(&(node("a") + &red + rest));
        let pools = compiled.platform.iter().filter(|o| o["kind"] == "IPPool");
        pools
            .map(|pool| {
                let name = pool["metadata"]["name"].as_str().unwrap();
                let (lead, hash) = name.rsplit_once('-').unwrap();
                assert!(
                    hash.len() == 8 && hash.chars().all(|c| c.is_ascii_hexdigit()),
                    "{name}"
                );
                (lead.to_owned(), pool["spec"]["blockSize"].as_u64().unwrap())
            })
            .collect()
    };
    let of = |rows: [(&str, u64); 2]| rows.map(|(name, block)| (name.to_owned(), block));
    assert_eq!(
        shown(&object("VRFAttachment", "v", &out)),
        of([("v-out-v4", 32), ("v-out-v6", 128)])
    );
    assert_eq!(
        shown(&pods("10.250.0.0/24", "fd00::/64")),
        of([("pn-p-v4", 26), ("pn-p-v6", 122)])
    );
    assert_eq!(
        shown(&pods("10.250.0.0/28", "fd00::/125")),
        of([("pn-p-v4", 28), ("pn-p-v6", 125)])
    );
}

#[test]
fn every_row_of_what_differs_names_a_test_that_exists() {
    let root = mooring_testkit::workspace_root();
    let page = fs::read_to_string(root.join("docs/concepts/intent-differences.md")).unwrap();
    let code = mooring_testkit::sources();
    let (mut rows, mut wrong) = (0, Vec::new());
    for row in page.lines().filter(|l| l.starts_with("| ")) {
        let last = row
            .trim_end_matches([' ', '|'])
            .rsplit(" | ")
            .next()
            .unwrap();
        if last == "test" {
            continue;
        }
        rows += 1;
        let names: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        let case = |name: &str| root.join("crates/intent/tests/cases").join(name).is_dir();
        let exists = |name: &&str| code.contains(&format!("fn {name}(")) || case(name);
        if names.is_empty() || !names.iter().all(exists) {
            wrong.push(row);
        }
    }
    assert!(rows > 15, "only {rows} rows were read");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
