//! What `moor render` writes, run by the reference CNI plugins: two clusters on one switch do not collide.
//!
//! ```text
//!   pods  gnb ─┐                     ┌─ amf
//!   nodes  my-ran eth1 ── br0 ── eth1 my-core        each a namespace; macvlan on eth1
//!                          │
//!                        probe (arping), or a router
//! ```
//!
//! The plugins are called as Multus calls them: the configuration of the NAD with its name, and for a NAD with the
//! `ips` capability the addresses of the pod's annotation, as `runtimeConfig` and in `CNI_ARGS`. Easy to get wrong: host-local
//! keeps its files on the machine's disk; every node here has a directory of its own instead.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use mooring_testkit::{Netns, Sandbox, component, copy_tree};
use serde_json::{Value, json};

use crate::{examples, moor};

/// Programs from Debian, where `cargo xtask setup` unpacked them.
struct Tools {
    plugins: PathBuf,
    arping: PathBuf,
    ping: PathBuf,
}

impl Tools {
    fn find(what: &str) -> Option<Self> {
        let find = |package: &str, places: &[&str]| {
            let root = component(package, what)?;
            let place = places.iter().map(|p| root.join(p)).find(|p| p.exists());
            assert!(place.is_some(), "{} has none of {places:?}", root.display());
            place
        };
        Some(Self {
            plugins: find("containernetworking-plugins", &["usr/lib/cni"])?,
            arping: find("iputils-arping", &["usr/bin/arping", "usr/sbin/arping"])?,
            ping: find("iputils-ping", &["bin/ping", "usr/bin/ping"])?,
        })
    }
}

/// The switch and two nodes, an example that was rendered for them, and what watches.
struct Lab {
    sandbox: Sandbox,
    tools: Tools,
    fabric: Netns,
    nodes: [(&'static str, Netns); 2],
    work: tempfile::TempDir,
}

/// An interface that a plugin made.
struct Made {
    pod: Netns,
    address: String,
    mac: String,
}

impl Lab {
    /// None where the machine cannot, which was counted.
    fn new(example: &str, adjust: impl FnOnce(&Path)) -> Option<Self> {
        let what = format!("{example} in the reference plugins");
        let tools = Tools::find(&what)?;
        let sandbox = Sandbox::new(&what)?;
        let work = copy_tree(&examples().join("ipam").join(example));
        adjust(work.path());
        for (package, cluster) in [("gnb", "my-ran"), ("amf", "my-core")] {
            let out = format!("out/{cluster}");
            let args = [
                "render",
                package,
                "--mgmt",
                "mgmt",
                "--cluster",
                cluster,
                "--out",
                &out,
            ];
            moor(work.path()).args(args).assert().code(0);
        }
        let fabric = sandbox.fabric("fabric");
        let nodes = ["my-ran", "my-core"].map(|name| (name, sandbox.plugged(&fabric, name)));
        Some(Self {
            sandbox,
            tools,
            fabric,
            nodes,
            work,
        })
    }

    fn rendered(&self, cluster: &str, file: &str) -> Value {
        let path = self.work.path().join("out").join(cluster).join(file);
        serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    /// The configuration of the cluster's NAD, as Multus hands it to the plugin.
    fn config(&self, cluster: &str, ips: &[String]) -> Value {
        let nad = self.rendered(cluster, "networkattachmentdefinition_n2.yaml");
        let text = nad["spec"]["config"].as_str().unwrap();
        let mut config: Value = serde_json::from_str(text).unwrap();
        config["name"] = nad["metadata"]["name"].clone();
        if config["capabilities"]["ips"] == true {
            config["runtimeConfig"] = json!({ "ips": ips });
        }
        if config["ipam"]["type"] == "host-local" {
            let store = self.work.path().join("node").join(cluster);
            config["ipam"]["dataDir"] = json!(store);
        }
        config
    }

    /// The addresses that the workload's annotation asks for.
    fn asked(&self, cluster: &str) -> Vec<String> {
        let deployment = self.rendered(cluster, "deployment.yaml");
        let template = &deployment["spec"]["template"]["metadata"]["annotations"];
        let text = template["k8s.v1.cni.cncf.io/networks"].as_str().unwrap();
        let entries: Value = serde_json::from_str(text).unwrap();
        let ips = entries[0]["ips"].as_array().into_iter().flatten();
        ips.map(|ip| ip.as_str().unwrap().to_owned()).collect()
    }

    fn call(&self, verb: &str, cluster: &str, pod: &Netns, word: &str) -> (Option<i32>, String) {
        let node = &self
            .nodes
            .iter()
            .find(|(name, _)| *name == cluster)
            .unwrap()
            .1;
        let ips = self.asked(cluster);
        let config = self.config(cluster, &ips);
        let mut args = vec![
            "IgnoreUnknown=true".to_owned(),
            format!("K8S_POD_NAME={word}"),
        ];
        if !ips.is_empty() {
            args.push(format!("IP={}", ips.join(",")));
        }
        let variables = [
            ("CNI_COMMAND", verb.to_owned()),
            ("CNI_CONTAINERID", word.to_owned()),
            ("CNI_NETNS", pod.path()),
            ("CNI_IFNAME", "n2".to_owned()),
            ("CNI_ARGS", args.join(";")),
            ("CNI_PATH", self.tools.plugins.display().to_string()),
        ];
        let plugin = self.tools.plugins.join(config["type"].as_str().unwrap());
        let no_args: [&str; 0] = [];
        let said = node.run_with(&plugin, &no_args, &variables, &config.to_string());
        (said.code, said.stdout + &said.stderr)
    }

    /// A pod of a cluster, with the one address it has.
    fn pod(&self, cluster: &str, word: &str) -> Made {
        let pod = self.sandbox.netns(word);
        let (code, text) = self.call("ADD", cluster, &pod, word);
        assert_eq!(code, Some(0), "{text}");
        let seen: Value = serde_json::from_str(&pod.ip("-4 -j addr show dev n2")).unwrap();
        let addresses = seen[0]["addr_info"].as_array().unwrap();
        assert_eq!(addresses.len(), 1, "exactly one address: {seen}");
        let result: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(result["ips"].as_array().unwrap().len(), 1, "{text}");
        let link: Value = serde_json::from_str(&pod.ip("-j link show dev n2")).unwrap();
        Made {
            address: addresses[0]["local"].as_str().unwrap().to_owned(),
            mac: link[0]["address"].as_str().unwrap().to_uppercase(),
            pod,
        }
    }

    fn probe(&self, address: &str) -> Probe<'_> {
        let netns = self.sandbox.plugged(&self.fabric, "probe");
        netns.ip(&format!("addr add {address} dev eth1"));
        let arping = &self.tools.arping;
        Probe { netns, arping }
    }
}

/// Something on the switch that asks.
struct Probe<'a> {
    netns: Netns,
    arping: &'a Path,
}

impl Probe<'_> {
    /// Duplicate address detection: whether nobody has it.
    fn is_free(&self, address: &str) -> bool {
        let said = self.netns.run(
            self.arping,
            &["-D", "-c", "1", "-w", "1", "-I", "eth1", address],
        );
        assert!(matches!(said.code, Some(0 | 1)), "arping: {said:?}");
        said.code == Some(0)
    }

    /// The MACs that answer for an address.
    fn owners(&self, address: &str) -> BTreeSet<String> {
        let said = self.netns.run(
            self.arping,
            &["-b", "-c", "2", "-w", "2", "-I", "eth1", address],
        );
        let macs = said.stdout.lines().filter_map(|line| {
            let (_, rest) = line.strip_prefix("Unicast reply from ")?.split_once('[')?;
            Some(rest.split_once(']')?.0.to_owned())
        });
        macs.collect()
    }
}

#[test]
fn static_addresses_of_two_clusters_have_one_owner_each_whatever_carries_them() {
    let lab = Lab::new("declarative-static", |dir| {
        // The AMF's address travels in its pod's annotation, the gNB's stands in the NAD.
        let kptfile = dir.join("amf/Kptfile");
        let text = fs::read_to_string(&kptfile).unwrap();
        let flavour = "    mooring.dev/ipam-flavour: static\n";
        let carrier = "    mooring.dev/ipam-carrier: annotation\n";
        let both = text.replace(flavour, &format!("{flavour}{carrier}"));
        assert_ne!(text, both);
        fs::write(&kptfile, both).unwrap();
    });
    let Some(lab) = lab else { return };
    assert_eq!(lab.asked("my-ran"), [""; 0]);
    assert_eq!(lab.asked("my-core"), ["192.168.100.11/24"]);
    let probe = lab.probe("192.168.100.250/24");
    let addresses = ["192.168.100.10", "192.168.100.11"];
    for address in addresses {
        assert!(probe.is_free(address), "{address} before any pod");
    }
    let gnb = lab.pod("my-ran", "gnb");
    let amf = lab.pod("my-core", "amf");
    assert_eq!([&gnb.address, &amf.address], addresses);
    for made in [&gnb, &amf] {
        assert!(!probe.is_free(&made.address));
        assert_eq!(
            probe.owners(&made.address),
            BTreeSet::from([made.mac.clone()])
        );
    }
    // What a collision would look like: the same address once more, and the probe sees both.
    let clone = lab.sandbox.plugged(&lab.fabric, "clone");
    clone.ip(&format!("addr add {}/24 dev eth1", gnb.address));
    assert_eq!(
        probe.owners(&gnb.address).len(),
        2,
        "the probe sees no collision"
    );

    for (cluster, word, made) in [("my-ran", "gnb", &gnb), ("my-core", "amf", &amf)] {
        let (code, text) = lab.call("DEL", cluster, &made.pod, word);
        assert_eq!(code, Some(0), "{text}");
    }
    assert!(probe.is_free(&amf.address), "after the pod");
}

#[test]
fn partitioned_host_local_ranges_of_two_clusters_never_meet() {
    let Some(lab) = Lab::new("partitioned-host-local", |_| {}) else {
        return;
    };
    let mut made = Vec::new();
    // By turns: each node begins at the start of its own range, and knows nothing of the other.
    for nth in 1..=3 {
        for (cluster, word) in [("my-ran", "gnb"), ("my-core", "amf")] {
            made.push((cluster, lab.pod(cluster, &format!("{word}{nth}"))));
        }
    }
    let probe = lab.probe("192.168.100.250/24");
    let mut seen = BTreeSet::new();
    for (cluster, made) in &made {
        let ipam = &lab.config(cluster, &[])["ipam"]["ranges"][0][0];
        let last = |key: &str| -> u8 {
            let text = ipam[key].as_str().unwrap();
            text.rsplit('.').next().unwrap().parse().unwrap()
        };
        let host: u8 = made.address.rsplit('.').next().unwrap().parse().unwrap();
        let range = last("rangeStart")..=last("rangeEnd");
        assert!(
            range.contains(&host),
            "{} of {cluster} in {range:?}",
            made.address
        );
        assert!(seen.insert(&made.address), "{} twice", made.address);
        assert_eq!(
            probe.owners(&made.address),
            BTreeSet::from([made.mac.clone()])
        );
    }
    assert_eq!(seen.len(), 6);
}

#[test]
fn one_subnet_per_cluster_reaches_the_other_through_a_router() {
    let Some(lab) = Lab::new("subnet-per-cluster", |_| {}) else {
        return;
    };
    let gnb = lab.pod("my-ran", "gnb");
    let amf = lab.pod("my-core", "amf");
    assert_eq!(gnb.address, "192.168.100.10");
    assert_eq!(amf.address, "192.168.101.10");
    let ping = |from: &Made, to: &Made| {
        let args = ["-n", "-c", "1", "-W", "2", &to.address];
        from.pod.run(&lab.tools.ping, &args)
    };
    // The routes are there, and nobody is at their end.
    let alone = ping(&gnb, &amf);
    assert_eq!(alone.code, Some(1), "{alone:?}");

    let router = lab.sandbox.plugged(&lab.fabric, "router");
    router.ip("addr add 192.168.100.1/24 dev eth1");
    router.ip("addr add 192.168.101.1/24 dev eth1");
    let said = router.run("sh", &["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for (from, to) in [(&gnb, &amf), (&amf, &gnb)] {
        // A neighbour that did not answer is not asked again at once.
        let mut tries = (0..20).map(|_| ping(from, to));
        let said = tries.find(|said| said.code == Some(0));
        let said = said.expect("within 20 tries the router is found");
        // One less than a neighbour would show: it came through the router.
        assert!(said.stdout.contains("ttl=63"), "{said:?}");
    }
}

/// The NADs of a published package are lists without a name; the runtime runs their plugins one after the other.
#[test]
fn nads_of_the_nephio_dialect_are_taken_by_the_reference_plugins() {
    let what = "the nephio dialect in the reference plugins";
    let (Some(tools), Some(sandbox)) = (Tools::find(what), Sandbox::new(what)) else {
        return;
    };
    let Some(oracles) = mooring_testkit::oracles(what) else {
        return;
    };
    let oracles = oracles.join("nephio");
    let work = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| {
        fs::create_dir_all(work.path().join(to)).unwrap();
        for entry in fs::read_dir(oracles.join(from)).unwrap() {
            let path = entry.unwrap().path();
            let to = work.path().join(to).join(path.file_name().unwrap());
            fs::write(to, fs::read(&path).unwrap()).unwrap();
        }
    };
    copy("networks", "mgmt");
    copy("blueprints/pkg-example-upf-bp", "fleet/free5gc-upf");
    copy("blueprints/pkg-example-smf-bp", "fleet/free5gc-smf");
    let cluster = "apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: edge01\nspec:\n  \
        clusterName: edge01\n  cnis: [macvlan]\n  masterInterface: eth1\n";
    fs::write(work.path().join("mgmt/cluster.yaml"), cluster).unwrap();
    let args = ["render", "fleet", "--mgmt", "mgmt", "--cluster", "edge01"];
    moor(work.path()).args(args).assert().code(0);

    let fabric = sandbox.fabric("fabric");
    let node = sandbox.plugged(&fabric, "node");
    let lists = [
        (
            "upf",
            "free5gc-upf/networkattachmentdefinition_upf-edge01-n4.yaml",
        ),
        (
            "smf",
            "free5gc-smf/networkattachmentdefinition_smf-edge01-n4.yaml",
        ),
    ];
    let read = |file: &str| -> Value {
        let text = fs::read_to_string(work.path().join("fleet").join(file)).unwrap();
        let nad: Value = serde_saphyr::from_str(&text).unwrap();
        let mut list: Value =
            serde_json::from_str(nad["spec"]["config"].as_str().unwrap()).unwrap();
        list["name"] = nad["metadata"]["name"].clone();
        list
    };
    // The VLAN's interface is the node's business; here a NIC stands for it.
    let master = read(lists[0].1)["plugins"][0]["master"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(master.starts_with("eth1."), "{master}");
    node.ip("link set eth1 down");
    node.ip(&format!("link set eth1 name {master}"));
    node.ip(&format!("link set {master} up"));

    let pods = lists.map(|(word, file)| (word, read(file), sandbox.netns(word)));
    let run = |verb: &str, word: &str, list: &Value, pod: &Netns| -> Value {
        let mut plugins = list["plugins"].as_array().unwrap().clone();
        if verb == "DEL" {
            plugins.reverse();
        }
        let mut result = Value::Null;
        for mut plugin in plugins {
            plugin["cniVersion"] = list["cniVersion"].clone();
            plugin["name"] = list["name"].clone();
            if !result.is_null() {
                plugin["prevResult"] = result.clone();
            }
            let variables = [
                ("CNI_COMMAND", verb.to_owned()),
                ("CNI_CONTAINERID", word.to_owned()),
                ("CNI_NETNS", pod.path()),
                ("CNI_IFNAME", "n4".to_owned()),
                ("CNI_PATH", tools.plugins.display().to_string()),
            ];
            let program = tools.plugins.join(plugin["type"].as_str().unwrap());
            let no_args: [&str; 0] = [];
            let said = node.run_with(&program, &no_args, &variables, &plugin.to_string());
            assert_eq!(said.code, Some(0), "{verb} {plugin}: {said:?}");
            if verb == "ADD" {
                result = serde_json::from_str(&said.stdout).unwrap();
            }
        }
        result
    };
    for (word, list, pod) in &pods {
        let result = run("ADD", word, list, pod);
        let wanted = &list["plugins"][0]["ipam"];
        assert_eq!(
            result["ips"][0]["address"], wanted["addresses"][0]["address"],
            "{result}"
        );
        let routes = pod.ip("-4 route show dev n4");
        let route = &wanted["routes"][0];
        let line = format!(
            "{} via {}",
            route["dst"].as_str().unwrap(),
            route["gw"].as_str().unwrap()
        );
        assert!(routes.contains(&line), "{routes} has no {line}");
    }
    let address = |list: &Value| {
        let text = list["plugins"][0]["ipam"]["addresses"][0]["address"]
            .as_str()
            .unwrap();
        text.split('/').next().unwrap().to_owned()
    };
    let [(_, upf, one), (_, smf, two)] = &pods;
    for (from, to) in [(one, smf), (two, upf)] {
        let said = from.run(&tools.ping, &["-n", "-c", "1", "-W", "2", &address(to)]);
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    for (word, list, pod) in &pods {
        run("DEL", word, list, pod);
    }
}

/// The configuration of the NAD that a folder case of the dialect expects.
fn of_case(case: &str) -> Value {
    let path = mooring_testkit::workspace_root()
        .join("crates/package/tests/nephio/nad-fn")
        .join(case)
        .join("_expected.yaml");
    let list: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let items = list["items"].as_array().unwrap();
    let nad = items
        .iter()
        .find(|i| i["kind"] == "NetworkAttachmentDefinition");
    let config = nad.unwrap()["spec"]["config"].as_str().unwrap();
    let list: Value = serde_json::from_str(config).unwrap();
    let mut plugin = list["plugins"][0].clone();
    plugin["cniVersion"] = list["cniVersion"].clone();
    plugin["name"] = json!("case");
    plugin
}

/// What no blueprint has and the dialect writes all the same. The kernel here may know no VLANs: then the plugin is seen to get
/// as far as asking for one.
#[test]
fn bridge_and_vlan_nads_of_the_nephio_dialect_are_taken_by_the_reference_plugins() {
    let what = "bridge and vlan NADs in the reference plugins";
    let (Some(tools), Some(sandbox)) = (Tools::find(what), Sandbox::new(what)) else {
        return;
    };
    let fabric = sandbox.fabric("fabric");
    let node = sandbox.plugged(&fabric, "node");
    node.ip("link set eth1 down");
    node.ip("link set eth1 name ens3");
    node.ip("link set ens3 up");
    let call = |verb: &str, plugin: &Value, pod: &Netns| {
        let variables = [
            ("CNI_COMMAND", verb.to_owned()),
            ("CNI_CONTAINERID", "pod".to_owned()),
            ("CNI_NETNS", pod.path()),
            ("CNI_IFNAME", "n3".to_owned()),
            ("CNI_PATH", tools.plugins.display().to_string()),
        ];
        let program = tools.plugins.join(plugin["type"].as_str().unwrap());
        let no_args: [&str; 0] = [];
        node.run_with(&program, &no_args, &variables, &plugin.to_string())
    };

    let plugin = of_case("bridgeType_with_vlan");
    assert_eq!(plugin["bridge"], "cni20");
    let pod = sandbox.netns("bridged");
    let said = call("ADD", &plugin, &pod);
    assert_eq!(said.code, Some(0), "{said:?}");
    let seen: Value = serde_json::from_str(&pod.ip("-j addr show dev n3")).unwrap();
    let wanted = plugin["ipam"]["addresses"][0]["address"].as_str().unwrap();
    let found = seen[0]["addr_info"][0]["local"].as_str().unwrap();
    assert_eq!(Some(found), wanted.split('/').next());
    assert!(node.ip("link show dev cni20").contains("cni20"));
    assert_eq!(call("DEL", &plugin, &pod).code, Some(0));

    let plugin = of_case("vlanType_with_vlan");
    assert_eq!(
        (&plugin["master"], &plugin["vlanId"]),
        (&json!("ens3"), &json!(20))
    );
    let pod = sandbox.netns("tagged");
    let said = call("ADD", &plugin, &pod);
    match said.code {
        Some(0) => {
            let link = pod.ip("-d link show dev n3");
            assert!(link.contains("id 20"), "{link}");
        }
        // The message came through; only the kernel refused.
        _ => assert!(said.stdout.contains("failed to create vlan"), "{said:?}"),
    }
}
