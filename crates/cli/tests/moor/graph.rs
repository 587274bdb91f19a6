//! `moor graph`: the picture, in its three forms.

use serde_json::Value;

use crate::plan::{network, put};
use crate::{fresh, moor, stdout};

#[test]
fn the_picture_is_svg_dot_and_json_of_the_same_things() {
    let dir = network();
    let draw = |form: &str| {
        let (text, code) = stdout(moor(dir.path()).args(["graph", "-f", "network", "-o", form]));
        assert_eq!(code, 0, "{text}");
        text
    };
    let svg = draw("svg");
    assert!(
        svg.starts_with("<svg xmlns") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    assert_eq!(svg.matches("<rect").count(), 5);
    assert!(draw("dot").contains("\"Destination/secure\" -> \"VRF/secure\" [label=\"is\"];"));
    let graph: Value = serde_json::from_str(&draw("json")).unwrap();
    assert_eq!(graph["nodes"].as_array().unwrap().len(), 5);
    assert_eq!(graph["edges"].as_array().unwrap().len(), 5);
}

#[test]
fn what_is_not_in_force_is_dashed_and_the_exit_code_says_so() {
    let dir = network();
    let wrong = "apiVersion: network.t-caas.telekom.com/v1alpha1\nkind: PodNetwork\nmetadata:\n  name: pods\nspec:\n  \
                 network:\n    ipv4:\n      subnet: 203.0.113.0/24\n  destinations:\n    matchLabels:\n      zone: none\n";
    put(dir.path(), "pods.yaml", wrong);
    let (dot, code) = stdout(moor(dir.path()).args(["graph", "-f", "network", "-o", "dot"]));
    assert!(dot.contains("\"PodNetwork/pods\" [style=dashed];"), "{dot}");
    assert_eq!(code, 1);
    moor(fresh().path())
        .arg("graph")
        .assert()
        .code(2)
        .stdout_eq("");
}
