//! What the guide tells people to write compiles, and becomes what it says.

use std::fs;

use mooring_intent::{Answers, Prior};
use mooring_testkit::workspace_root;

use crate::{documents, run};

#[test]
fn everything_that_the_guide_writes_compiles_to_what_it_says() {
    let page = fs::read_to_string(workspace_root().join("docs/guides/writing-intents.md")).unwrap();
    let mut objects = Vec::new();
    for block in page.split("```yaml\n").skip(1) {
        let (text, _) = block.split_once("```").unwrap();
        objects.extend(documents(text));
    }
    assert_eq!(objects.len(), 4);
    objects.extend(documents(
        "{apiVersion: v1, kind: Node, metadata: {name: a, labels: {node-restriction.kubernetes.io/worker-group: wg1}}}",
    ));
    let compiled = run(&objects, &Answers::default(), &Prior::default()).0;
    assert_eq!(compiled.findings, []);
    let vlans = &compiled.nodes["a"].netplan.desired_state.network.vlans;
    assert_eq!(vlans["l2.mynet"]["addresses"][0], "203.0.113.2/25");
    let names: Vec<String> = compiled
        .platform
        .iter()
        .map(|o| {
            format!(
                "{}/{}",
                o["kind"].as_str().unwrap(),
                o["metadata"]["name"].as_str().unwrap()
            )
        })
        .collect();
    for wanted in [
        "IPAddressPool/prod-access-ingress",
        "BGPAdvertisement/prod-access-ingress",
        "Egress/prod-access-egress",
    ] {
        assert!(names.iter().any(|n| n == wanted), "{wanted}: {names:?}");
    }
}
