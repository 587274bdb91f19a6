//! `render` in the nephio dialect, over the published blueprints: to completion, to the same bytes, in any order, from anywhere.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failed set-up is a failed test, which makes its own inputs"
)]

mod links;
mod orders;
mod place;
mod published;
mod subnets;

use mooring_api::Code;
use place::{Place, conditions, waits_for};

#[test]
fn upf_and_smf_render_to_completion_and_the_du_says_what_it_waits_for() {
    let Some(place) = Place::new("UPF, SMF and DU as one fleet") else {
        return;
    };
    for (blueprint, package) in [
        ("upf", "free5gc-upf"),
        ("smf", "free5gc-smf"),
        ("du", "oai-du"),
    ] {
        place.blueprint(blueprint, &format!("fleet/{package}"));
    }
    let report = place.render("fleet", |_| {});
    assert_eq!(report.packages.len(), 3);
    for (package, ready) in [
        ("free5gc-upf", true),
        ("free5gc-smf", true),
        ("oai-du", false),
    ] {
        let stated = conditions(&place.path("fleet").join(package));
        assert_eq!(
            stated["nephio.org.Specializer.specialize"], ready,
            "{package}: {stated:?}"
        );
        let open = stated.values().filter(|met| !**met).count();
        assert_eq!(open, if ready { 0 } else { 3 }, "{package}: {stated:?}");
    }
    assert_eq!(
        waits_for(&report),
        ["waiting for package oai-ran-cucp: it is not there"]
    );

    let smf = place.object("fleet/free5gc-smf/smfdeployment.yaml");
    assert_eq!(
        smf["spec"]["parametersRefs"][0]["name"],
        "smf-edge01-upf-edge01"
    );
    let config = place.object("fleet/free5gc-smf/config_smf-edge01-upf-edge01.yaml");
    let upf = place.object("fleet/free5gc-upf/upfdeployment.yaml");
    assert_eq!(config["spec"]["config"], upf);

    let again = place.render("fleet", |_| {});
    assert!(!again.is_changed(), "{:?}", again.changes);
    assert_eq!(again.findings, report.findings);
}

#[test]
fn the_same_fleet_in_another_place_has_the_same_bytes() {
    let Some(one) = Place::new("the same bytes twice") else {
        return;
    };
    let Some(two) = Place::new("the same bytes twice") else {
        return;
    };
    for place in [&one, &two] {
        for blueprint in ["upf", "smf"] {
            place.blueprint(blueprint, &format!("fleet/free5gc-{blueprint}"));
        }
        place.render("fleet", |r| r.entropy = [3; 16]);
    }
    mooring_testkit::assert_same_tree(&one.path("fleet"), &two.path("fleet"));
    // Not only where nothing was there before: what a run finds in OUT gives the same again.
    let mut outs = Vec::new();
    for _ in 0..2 {
        one.blueprint("upf", "in/free5gc-upf");
        one.render("in", |r| r.out = Some(one.path("out")));
        outs.push(mooring_testkit::hash_tree(&one.path("out")));
    }
    assert_eq!(outs[0], outs[1]);
}

#[test]
fn any_cluster_name_renders_once_and_the_package_may_move() {
    let Some(place) = Place::new("any cluster name") else {
        return;
    };
    let names = [
        "edge01",
        "edge-cluster-1",
        "edge",
        "1.2-b.c",
        "edge-cluster",
        "a-example",
    ];
    for name in names {
        place.cluster(name);
    }
    place.blueprint("upf", "upf");
    for name in names {
        let first = place.render("upf", |r| r.cluster = Some(name.into()));
        let told = first
            .findings
            .iter()
            .any(|f| f.code == Code::DelimiterInValue);
        assert_eq!(told, name.contains('-'), "{name}");
        let upf = place.object("upf/upfdeployment.yaml");
        assert_eq!(upf["metadata"]["name"], format!("upf-{name}"));
        let stated = conditions(&place.path("upf"));
        let subject = format!("workload.nephio.org/v1alpha1.NFDeployment.upf-{name}");
        assert!(stated[&subject], "{name}: {stated:?}");
        for _ in 0..2 {
            let again = place.render("upf", |r| r.cluster = Some(name.into()));
            assert!(!again.is_changed(), "{name}: {:?}", again.changes);
        }
        // What it held elsewhere went back: three addresses, here and nowhere else.
        assert_eq!(place.clusters_with_addresses(), [(name.to_owned(), 3)]);
        let claims = place.files("upf", "ipclaim_");
        let here = |file: &&String| file.contains(&format!("_upf-{name}-"));
        assert_eq!(claims.iter().filter(here).count(), 6, "{claims:?}");
        assert_eq!(claims.len(), 6, "{claims:?}");
    }
}

#[test]
fn a_broken_pipeline_is_an_error_at_its_line_and_nothing_is_written() {
    let Some(place) = Place::new("broken pipelines") else {
        return;
    };
    for (from, to, code) in [
        (
            "configPath: apply-replacements-owner.yaml",
            "configPath: nowhere.yaml",
            Code::InvalidField,
        ),
        (
            "docker.io/nephio/dnn-fn:latest",
            "docker.io/nephio/starlark:latest",
            Code::UnknownFunction,
        ),
        (
            "- image: docker.io/nephio/nad-fn:latest",
            "- image: docker.io/nephio/nad-fn:latest\n      selectors: [{kind: X}]",
            Code::UnknownFunction,
        ),
        (
            "configPath: package-context.yaml",
            "configMap: {other: x}",
            Code::InvalidField,
        ),
    ] {
        place.blueprint("upf", "upf");
        place.edit("upf/Kptfile", from, to);
        let before = mooring_testkit::hash_tree(&place.path("upf"));
        let report = place.try_render("upf", |_| {});
        let found = report.findings.iter().find(|f| f.is_error()).unwrap();
        assert_eq!(found.code, code, "{found:?}");
        assert_eq!(mooring_testkit::hash_tree(&place.path("upf")), before);
        assert_eq!(place.clusters_with_addresses(), []);
    }
}
