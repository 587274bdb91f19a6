//! `pool map`: every sign has a meaning without colour, and the picture stands alone.

use std::fs;

use snapbox::str;

use super::{fleet, json, run};
use crate::{fresh, moor};

#[test]
fn a_map_has_a_sign_for_every_address_and_a_legend() {
    let dir = fleet();
    moor(dir.path())
        .args(["pool", "map", "ran-n2-pool", "--mgmt", "mgmt"])
        .assert()
        .code(0)
        .stderr_eq("")
        .stdout_eq(str![[r#"
192.168.100.0/24 (ran-n2-pool) of n2-network: a cell is one address

192.168.100.0    xgxxxxxxxx········································#·············
192.168.100.64   ····································#···························
192.168.100.128  ································································
192.168.100.192  ········xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx

# held   r reserved   c resting   g gateway   x not handed out   · free

"#]]);
    let (parts, _) = json(dir.path(), &["pool", "map", "ran-n2-pool"]);
    assert_eq!(parts[0]["first"], "192.168.100.50");
    assert!(
        parts[0]["who"][0]
            .as_str()
            .unwrap()
            .contains("my-ran / gnb")
    );
}

/// One wide IPv4 pool and one IPv6 subnet.
fn wide() -> tempfile::TempDir {
    let dir = fresh();
    let mgmt = dir.path().join("mgmt");
    fs::create_dir(&mgmt).unwrap();
    let pool = |name: &str, prefix: &str| {
        format!(
            "---\napiVersion: ipam.resource.nephio.org/v1alpha1\nkind: IPPrefix\nmetadata:\n  name: {name}\n\
             spec:\n  prefix: {prefix}\n  networkInstance:\n    name: {name}\n"
        )
    };
    let text = pool("wide", "10.0.0.0/16") + &pool("six", "fd00:1::/64");
    fs::write(mgmt.join("pools.yaml"), text).unwrap();
    for address in ["10.0.0.9", "10.0.200.7"] {
        let claim = ["claim", address, "--network", "wide", "--address", address];
        assert_eq!(run(dir.path(), &claim).2, 0);
    }
    for address in ["fd00:1::10", "fd00:1::1:0:0:7"] {
        let claim = ["claim", address, "--network", "six", "--address", address];
        assert_eq!(run(dir.path(), &claim).2, 0);
    }
    dir
}

#[test]
fn a_large_pool_is_drawn_in_bounded_width_and_height() {
    let dir = wide();
    let (map, _, code) = run(dir.path(), &["pool", "map", "wide"]);
    assert_eq!(code, 0);
    assert!(map.contains("a cell is 64 addresses"), "{map}");
    assert!(map.lines().count() <= 20, "{map}");
    assert!(map.lines().all(|l| l.chars().count() <= 100), "{map}");
    let rows = map.lines().filter(|l| l.starts_with("10."));
    let signs: String = rows.filter_map(|l| Some(l.split_once("  ")?.1)).collect();
    // Each of the two lies in a cell of its own; the gateway and the edges are not handed out.
    assert_eq!(signs.matches('1').count(), 2, "{map}");
    assert!(signs.matches('·').count() >= 1022, "{map}");
}

#[test]
fn of_an_ipv6_subnet_only_what_is_used_is_drawn() {
    let dir = wide();
    moor(dir.path())
        .args(["pool", "map", "six", "--mgmt", "mgmt"])
        .assert()
        .code(0)
        .stdout_eq(str![[r#"
fd00:1::/64 (six) of six: a cell is one address

fd00:1::        xg··············#···············
…               nothing taken in between
fd00:1:0:0:1::  ·······#························
…               nothing taken behind

# held   r reserved   c resting   g gateway   x not handed out   · free

"#]]);
}

#[test]
fn the_svg_stands_alone_and_tells_every_cell() {
    let dir = fleet();
    let svg = ["pool", "map", "n3-pool", "--svg"];
    let (text, _, code) = run(dir.path(), &[&svg[..], &["-"]].concat());
    assert_eq!(code, 0);
    // 256 cells, 6 of the legend, and the picture itself.
    assert_eq!(text.matches("<title>").count(), 256 + 6 + 1);
    assert_eq!(text.matches("http").count(), 1, "something from elsewhere");
    assert!(!text.contains("href") && !text.contains("<script"));
    assert!(
        text.contains("192.168.251.11: held\n192.168.251.11 my-ran / gnb / ran-gnb / n3"),
        "{text}"
    );
    assert_eq!(text.matches("<g>").count(), text.matches("</g>").count());
    let (_, said, code) = run(dir.path(), &[&svg[..], &["pool.svg"]].concat());
    assert_eq!((code, said.as_str()), (0, "wrote pool.svg\n"));
    assert_eq!(
        fs::read_to_string(dir.path().join("pool.svg")).unwrap(),
        text
    );
}
