//! From the reference plugins to ours and back, with pods running: interfaces, addresses and rules in both directions.

use std::path::Path;

use serde_json::{Value, json};

use super::{assert_clean, gateway};
use crate::conformance::peer::Peer;
use crate::stage::{Stage, Tools};

fn config(backend: Option<&str>) -> Value {
    let mut config = gateway();
    // The newest that Debian's speak.
    config["cniVersion"] = json!("1.0.0");
    config["macspoofchk"] = json!(true);
    config["ipMasq"] = json!(true);
    if let Some(backend) = backend {
        config["ipMasqBackend"] = json!(backend);
    }
    config
}

fn rules_of_pods(stage: &Stage) -> Vec<String> {
    let rules = stage.rules();
    let masquerades = stage.run("iptables-save", &["-t", "nat"]).stdout;
    let lines = masquerades
        .lines()
        .filter(|l| l.contains("CNI-"))
        .map(str::to_owned);
    let parts = ["cni-br-iface-", "\"masquerade\"", "macspoofchk-"];
    let found = parts
        .into_iter()
        .filter(|p| rules.contains(p))
        .map(str::to_owned);
    lines.chain(found).collect()
}

fn both_ways(what: &str, peer: &Path, backend: Option<&str>, back: bool) {
    let (Some(stage), Some(tools)) = (Stage::new(what), Tools::nft(what)) else {
        return;
    };
    let stage = stage.with(tools);
    let pod = stage.pod("c1", config(backend)).served_by(peer);
    let result = pod.add();
    assert!(!rules_of_pods(&stage).is_empty());
    let ours = stage
        .pod_in(pod.netns.clone(), "c1", config(backend))
        .with("prevResult", result);
    ours.del();
    assert_eq!(pod.link(), None);
    assert_eq!(rules_of_pods(&stage), [""; 0]);
    assert_clean(&stage, "their ADD, our DEL");
    if back {
        let result = ours.add();
        let theirs = pod.with("prevResult", result);
        theirs.del();
        assert_eq!(theirs.link(), None);
        assert_eq!(rules_of_pods(&stage), [""; 0]);
        assert_clean(&stage, "our ADD, their DEL");
    }
}

#[test]
fn what_the_current_reference_plugin_made_with_nftables_is_removed_by_ours_and_the_other_way_round()
{
    let what = "switching from the reference bridge plugin";
    if let Some(peer) = Peer::reference(what) {
        both_ways(what, &peer.dir, Some("nftables"), true);
    }
}

#[test]
fn what_the_current_reference_plugin_made_with_iptables_is_removed_by_ours() {
    let what = "switching from the reference bridge plugin with iptables";
    if let Some(peer) = Peer::reference(what) {
        both_ways(what, &peer.dir, Some("iptables"), false);
    }
}

#[test]
fn what_debians_plugin_made_is_removed_by_ours() {
    let what = "switching from Debian's bridge plugin";
    if let Some(peer) = Peer::debian(what) {
        both_ways(what, &peer.dir, None, false);
    }
}
