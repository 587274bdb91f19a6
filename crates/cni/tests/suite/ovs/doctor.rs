//! Ports that outlive their pods, as the doctor sees them.

use super::switch::Switch;
use super::{config, port};
use crate::doctor::{kept, report};

#[test]
fn a_port_that_outlives_its_namespace_is_found_and_removed_and_a_living_pods_stays() {
    let Some((stage, switch)) = Switch::stage("moor-cni doctor and Open vSwitch") else {
        return;
    };
    let (alive, dead) = (stage.pod("alive", config()), stage.pod("dead", config()));
    let living = alive.add();
    let left = dead.add();
    let (well, wrong) = report(&stage, &[]);
    assert!(!wrong, "{well:#}");
    let row = |port: &str, life: &str| format!("port {port} {life}");
    assert!(kept(&well, "dead").contains(&row(port(&left), "alive")));
    dead.end();
    assert_eq!(switch.ports(&stage).len(), 2, "the database keeps it");
    let (sick, wrong) = report(&stage, &[]);
    assert!(wrong, "{sick:#}");
    assert!(
        kept(&sick, "dead").contains(&row(port(&left), "gone")),
        "{sick:#}"
    );
    assert!(kept(&sick, "alive").contains(&row(port(&living), "alive")));
    let (fixed, wrong) = report(&stage, &["--fix"]);
    assert!(!wrong, "{fixed:#}");
    assert_eq!(switch.ports(&stage), [port(&living)]);
    alive.del();
}
