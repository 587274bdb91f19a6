//! The cases: what the specification, and nodes that crash, ask of every plugin.
//!
//! A case is a function that says what is wrong, so that one run shows all failures of an implementation and not only
//! the first. Easy to get wrong: a case leaves nothing behind that another one could see; the bed is swept after each.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::bed::{Attachment, Bed, Shown as _, shown};
use super::shape::{VERSIONS, Wrong, brief, error, refused, result, silent, want};

use When::{From, In};
use Who::{Chained, Children, Everybody, Holding, Main, One};

/// One question to a plugin.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The rule, in one sentence.
    pub(crate) rule: &'static str,
    /// Who is asked.
    who: Who,
    /// In which versions of the configuration.
    when: When,
    run: fn(&Bed<'_>, &str) -> Result<(), Wrong>,
}

#[derive(Clone, Copy)]
enum Who {
    Everybody,
    /// Those that make an interface.
    Main,
    /// Those that hold addresses of host-local: themselves, or by delegation.
    Holding,
    Chained,
    /// Those whose interface has a parent.
    Children,
    One(&'static str),
}

#[derive(Clone, Copy)]
enum When {
    /// All from this one on.
    From(&'static str),
    /// This one only: the rule does not depend on it.
    In(&'static str),
}

/// In how many versions a rule is asked that holds in several.
#[derive(Clone, Copy)]
pub(crate) enum Which {
    All,
    /// The oldest and the newest.
    Ends,
}

impl Case {
    /// Whether a plugin is asked.
    pub(crate) fn is_for(&self, plugin: &str) -> bool {
        let chained = matches!(plugin, "tuning" | "sbr");
        let ipam = matches!(plugin, "static" | "host-local");
        match self.who {
            Everybody => true,
            Main => !chained && !ipam,
            Holding => !chained && plugin != "static",
            Chained => chained,
            Children => matches!(plugin, "macvlan" | "ipvlan" | "vlan"),
            One(name) => name == plugin,
        }
    }

    /// The versions in which it is asked, of those that the implementation speaks.
    pub(crate) fn versions(&self, spoken: &[&'static str], which: Which) -> Vec<&'static str> {
        let wanted = |version: &&&str| match self.when {
            From(first) => **version >= first,
            In(only) => **version == only,
        };
        let all: Vec<&'static str> = spoken.iter().filter(wanted).copied().collect();
        match (which, &*all) {
            (Which::Ends, [first, .., last]) => vec![first, last],
            _ => all,
        }
    }

    pub(crate) fn run(&self, bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
        bed.pool(matches!(self.who, Holding));
        (self.run)(bed, version)
    }
}

const fn case(
    name: &'static str,
    who: Who,
    when: When,
    rule: &'static str,
    run: fn(&Bed<'_>, &str) -> Result<(), Wrong>,
) -> Case {
    Case {
        name,
        rule,
        who,
        when,
        run,
    }
}

const ANY: When = In("1.0.0");
const ALL: When = From("0.1.0");

/// All of them, in the order in which the documents show them.
pub(crate) const CASES: &[Case] = &[
    case(
        "versions",
        Everybody,
        ANY,
        "VERSION lists every version from 0.1.0 to 1.1.0",
        versions,
    ),
    case(
        "command",
        Everybody,
        ANY,
        "an unknown command is code 4",
        command,
    ),
    case(
        "variables",
        Everybody,
        ANY,
        "missing variables are code 4, and all of them are named",
        variables,
    ),
    case(
        "container-id",
        Everybody,
        ANY,
        "a container id that is a path is code 4",
        container_id,
    ),
    case(
        "interface-name",
        Everybody,
        ANY,
        "a name that no interface can have is code 4",
        interface_name,
    ),
    case(
        "network-name",
        Everybody,
        ANY,
        "a network without a sound name is code 7",
        network_name,
    ),
    case(
        "bad-version",
        Everybody,
        ANY,
        "a version that is not spoken is code 1",
        bad_version,
    ),
    case(
        "bad-json",
        Everybody,
        ANY,
        "a configuration that is no JSON is code 6",
        bad_json,
    ),
    case(
        "old-check",
        Everybody,
        In("0.3.1"),
        "CHECK before 0.4.0 is code 1",
        old_check,
    ),
    case(
        "old-gc",
        Everybody,
        ANY,
        "GC and STATUS before 1.1.0 are code 1",
        old_gc,
    ),
    case(
        "error-version",
        Everybody,
        ANY,
        "an error says cniVersion",
        error_version,
    ),
    case(
        "add",
        Everybody,
        ALL,
        "ADD answers in the shape of the version, and the kernel shows the same",
        add,
    ),
    case(
        "add-unknown-keys",
        Everybody,
        ALL,
        "keys that nobody knows are no error",
        add_unknown_keys,
    ),
    case(
        "add-no-netns",
        Main,
        ANY,
        "ADD into a namespace that is not there fails and holds no address",
        add_no_netns,
    ),
    case(
        "add-file-netns",
        Main,
        ANY,
        "ADD into a file that is no namespace fails and holds no address",
        add_file_netns,
    ),
    case(
        "add-full",
        Holding,
        ANY,
        "ADD without a free address says so in the known words and leaves no interface",
        add_full,
    ),
    case(
        "add-no-ipam",
        Main,
        ANY,
        "ADD with an IPAM plugin that is not installed leaves no interface",
        add_no_ipam,
    ),
    case(
        "add-twice",
        Main,
        ANY,
        "a second ADD does not take the address from the first",
        add_twice,
    ),
    case(
        "add-others",
        Holding,
        ANY,
        "five pods get five addresses",
        add_others,
    ),
    case(
        "del",
        Everybody,
        ALL,
        "DEL says nothing, and interface and address are gone",
        del,
    ),
    case(
        "del-twice",
        Everybody,
        ALL,
        "a second DEL succeeds",
        del_twice,
    ),
    case(
        "del-unknown",
        Everybody,
        ALL,
        "DEL of what never was succeeds",
        del_unknown,
    ),
    case(
        "del-without-netns",
        Everybody,
        ALL,
        "DEL without CNI_NETNS succeeds and frees the address",
        del_without_netns,
    ),
    case(
        "del-dead-netns",
        Everybody,
        ALL,
        "DEL after the namespace ended succeeds and frees the address",
        del_dead_netns,
    ),
    case(
        "del-without-result",
        Everybody,
        From("0.4.0"),
        "DEL without prevResult succeeds and frees the address",
        del_without_result,
    ),
    case(
        "del-without-master",
        Children,
        ANY,
        "DEL succeeds when the parent interface is gone",
        del_without_master,
    ),
    case(
        "check",
        Everybody,
        From("0.4.0"),
        "CHECK of what ADD made says nothing",
        check,
    ),
    case(
        "check-no-result",
        Everybody,
        ANY,
        "CHECK without prevResult fails",
        check_no_result,
    ),
    case(
        "check-no-link",
        Main,
        ANY,
        "CHECK fails when the interface is gone",
        check_no_link,
    ),
    case(
        "check-no-address",
        Main,
        ANY,
        "CHECK fails when an address is gone",
        check_no_address,
    ),
    case(
        "check-no-hold",
        Holding,
        ANY,
        "CHECK fails when the address is held by nobody",
        check_no_hold,
    ),
    case(
        "check-mtu",
        One("tuning"),
        ANY,
        "CHECK fails when what tuning set was changed",
        check_mtu,
    ),
    case(
        "check-rule",
        One("sbr"),
        ANY,
        "CHECK fails when the rules of sbr are gone",
        check_rule,
    ),
    case(
        "status",
        Everybody,
        From("1.1.0"),
        "STATUS says nothing when an ADD could succeed",
        status,
    ),
    case(
        "status-full",
        Holding,
        From("1.1.0"),
        "STATUS is code 50 when no address is free",
        status_full,
    ),
    case(
        "gc",
        Holding,
        From("1.1.0"),
        "GC frees what no valid attachment holds, and nothing else",
        gc,
    ),
    case(
        "gc-nothing",
        Everybody,
        From("1.1.0"),
        "GC says nothing when there is nothing to do",
        gc_nothing,
    ),
    case(
        "chain-result",
        Chained,
        From("0.3.0"),
        "a chained ADD gives back what it was given",
        chain_result,
    ),
    case(
        "chain-no-result",
        Chained,
        ANY,
        "a chained ADD without prevResult fails",
        chain_no_result,
    ),
];

/// An ADD that must work, with its result; later calls of the attachment carry it as a runtime's would.
fn added(bed: &Bed<'_>, version: &str) -> Result<(Attachment, Value), Wrong> {
    let mut attachment = bed.attachment(version);
    let value = result(&bed.call("ADD", &attachment), version)?;
    if version >= "0.4.0" {
        attachment.config["prevResult"] = value.clone();
    }
    Ok((attachment, value))
}

/// The addresses of a result, in whatever version.
fn addresses(result: &Value) -> Vec<String> {
    let old = ["ip4", "ip6"]
        .iter()
        .filter_map(|key| result[*key]["ip"].as_str());
    let newer = result["ips"].as_array().into_iter().flatten();
    let newer = newer.filter_map(|ip| ip["address"].as_str());
    old.chain(newer).map(str::to_owned).collect()
}

fn has_nothing(attachment: &Attachment) -> Result<(), Wrong> {
    let links = attachment.pod.links();
    let names: Vec<&str> = links
        .iter()
        .filter_map(|link| link["ifname"].as_str())
        .collect();
    want(names == ["lo"], format!("the pod has {}", names.join(" ")))
}

fn holds_nothing(bed: &Bed<'_>) -> Result<(), Wrong> {
    let held = bed.held();
    want(held.is_empty(), format!("held: {held:?}"))
}

/// The device of the attachment is the node's again, with all that it had.
fn is_home(bed: &Bed<'_>, attachment: &Attachment) -> Result<(), Wrong> {
    let Some(device) = &attachment.device else {
        return Ok(());
    };
    let (mut seen, mut before) = (bed.seen(device).unwrap_or_default(), device.before.clone());
    if bed.plugin == "host-device" {
        // Its own notes may stay: no rule is about them.
        for picture in [&mut seen, &mut before] {
            picture
                .as_object_mut()
                .map(|picture| picture.remove("alias"));
        }
    }
    want(
        seen == before,
        format!("{} was {before} and is {seen}", device.name),
    )
}

fn versions(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let said = bed.call("VERSION", &bed.attachment(version));
    let value: Value = serde_json::from_str(&said.stdout)
        .map_err(|e| format!("no JSON ({e}): {}", brief(&said)))?;
    let listed = value["supportedVersions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let missing: Vec<&str> = VERSIONS
        .iter()
        .filter(|v| !listed.contains(&json!(v)))
        .copied()
        .collect();
    want(
        missing.is_empty(),
        format!("it lacks {}", missing.join(", ")),
    )
}

fn command(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    refused(&bed.call("REMOVE", &bed.attachment(version)), 4).map(drop)
}

fn variables(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let mut attachment = bed.attachment(version);
    for missing in [&["CNI_NETNS", "CNI_IFNAME"][..], &["CNI_CONTAINERID"]] {
        attachment.variables = missing.iter().map(|name| (*name, String::new())).collect();
        let text = refused(&bed.call("ADD", &attachment), 4)?;
        for name in missing {
            want(
                text.contains(name),
                format!("{name} is not named in: {text}"),
            )?;
        }
    }
    Ok(())
}

fn container_id(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let mut attachment = bed.attachment(version);
    for bad in ["../../etc", "a/b", "a b", ".hidden"] {
        bad.clone_into(&mut attachment.container);
        refused(&bed.call("ADD", &attachment), 4).map_err(|wrong| format!("{bad:?}: {wrong}"))?;
    }
    Ok(())
}

fn interface_name(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let mut attachment = bed.attachment(version);
    for bad in ["sixteen-bytes-xx", "..", "a/b", "a b", "a:b"] {
        bad.clone_into(&mut attachment.ifname);
        refused(&bed.call("ADD", &attachment), 4).map_err(|wrong| format!("{bad:?}: {wrong}"))?;
    }
    Ok(())
}

fn network_name(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let mut attachment = bed.attachment(version);
    for bad in ["", "a/b", "../net"] {
        attachment.config["name"] = json!(bad);
        refused(&bed.call("ADD", &attachment), 7).map_err(|wrong| format!("{bad:?}: {wrong}"))?;
    }
    Ok(())
}

fn bad_version(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let mut attachment = bed.attachment(version);
    attachment.config["cniVersion"] = json!("9.9.9");
    refused(&bed.call("ADD", &attachment), 1).map(drop)
}

fn bad_json(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let attachment = bed.attachment(version);
    for bad in ["", "{", "[]", "{\"name\": 7}"] {
        let said = bed.call_raw(bed.peer, bed.plugin, "ADD", &attachment, bad);
        let (code, _) = error(&said).map_err(|wrong| format!("{bad:?}: {wrong}"))?;
        // A value of the wrong type may as well be called a bad configuration.
        want(
            code == 6 || (code == 7 && bad.len() > 2),
            format!("{bad:?}: code {code} instead of 6"),
        )?;
    }
    Ok(())
}

fn old_check(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    refused(&bed.call("CHECK", &bed.attachment(version)), 1).map(drop)
}

fn old_gc(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let mut attachment = bed.attachment(version);
    attachment.config["cni.dev/valid-attachments"] = json!([]);
    for verb in ["GC", "STATUS"] {
        refused(&bed.call(verb, &attachment), 1).map_err(|wrong| format!("{verb}: {wrong}"))?;
    }
    Ok(())
}

fn error_version(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let mut attachment = bed.attachment(version);
    attachment.config["name"] = json!("a/b");
    let said = bed.call("ADD", &attachment);
    error(&said)?;
    let value: Value = serde_json::from_str(&said.stdout).map_err(|e| e.to_string())?;
    want(
        value["cniVersion"] == version,
        format!("cniVersion is {}", value["cniVersion"]),
    )
}

fn add(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (attachment, value) = added(bed, version)?;
    let given: BTreeSet<String> = addresses(&value).into_iter().collect();
    want(!given.is_empty(), "no address in the result")?;
    if matches!(bed.plugin, "static" | "host-local") {
        want(
            value.get("interfaces").is_none(),
            "an IPAM plugin names interfaces",
        )?;
        let ips = value["ips"].as_array().cloned().unwrap_or_default();
        return want(
            ips.iter().all(|ip| ip.get("interface").is_none()),
            "an IPAM plugin says which interface has an address",
        );
    }
    let (to, gateway) = &attachment.route;
    let view = format!("addr show\nroute show {to}\n");
    let shown = attachment.pod.batch(&view);
    let links = shown[0].as_array().into_iter().flatten();
    let link = links.into_iter().find(|link| link["ifname"] == "net1");
    let link = link.ok_or("the pod has no net1")?;
    let up = link["flags"]
        .as_array()
        .is_some_and(|flags| flags.contains(&json!("UP")));
    want(up, "net1 is not up")?;
    let seen: BTreeSet<String> = shown::addresses(link).into_iter().collect();
    want(
        seen == given,
        format!("the result has {given:?}, the kernel {seen:?}"),
    )?;
    if version >= "0.3.0" {
        let interfaces = value["interfaces"].as_array().cloned().unwrap_or_default();
        let inside = interfaces
            .iter()
            .find(|i| i["name"] == "net1")
            .ok_or("no net1 in the result")?;
        want(
            inside["mac"] == link["address"],
            format!("mac is {} and {}", inside["mac"], link["address"]),
        )?;
        want(
            inside["sandbox"] == attachment.pod.path(),
            format!("sandbox is {}", inside["sandbox"]),
        )?;
    }
    if matches!(bed.plugin, "tuning" | "sbr") {
        return Ok(());
    }
    let route = &shown[1][0];
    want(
        route["gateway"] == *gateway && route["dev"] == "net1",
        format!("the route is {route}"),
    )
}

fn add_unknown_keys(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let mut attachment = bed.attachment(version);
    attachment.config["dev.example/unknown"] = json!({"a": [1, 2.5, null]});
    attachment.config["x"] = json!(null);
    if attachment.config.get("ipam").is_some() {
        attachment.config["ipam"]["dev.example/unknown"] = json!("here too");
    }
    result(&bed.call("ADD", &attachment), version).map(drop)
}

fn add_no_netns(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let mut attachment = bed.attachment(version);
    attachment
        .variables
        .insert("CNI_NETNS", "/run/netns/nobody-made-it".to_owned());
    error(&bed.call("ADD", &attachment))?;
    holds_nothing(bed)?;
    is_home(bed, &attachment)
}

fn add_file_netns(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let mut attachment = bed.attachment(version);
    let file = bed.root();
    std::fs::create_dir_all(&file).map_err(|e| e.to_string())?;
    let file = file.join("file");
    std::fs::File::create(&file).map_err(|e| e.to_string())?;
    attachment
        .variables
        .insert("CNI_NETNS", file.display().to_string());
    error(&bed.call("ADD", &attachment))?;
    holds_nothing(bed)?;
    is_home(bed, &attachment)
}

/// Takes every address of the network.
fn fill(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let dir = bed.data().join("net");
    std::fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
    for n in 2..=6 {
        let path = dir.join(format!("10.77.0.{n}"));
        let mut file = std::fs::File::create(path).map_err(|e| e.to_string())?;
        std::io::Write::write_all(&mut file, format!("other-{n}\r\nnet1").as_bytes())
            .map_err(|e| e.to_string())?;
    }
    let _ = version;
    Ok(())
}

fn add_full(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    fill(bed, version)?;
    let attachment = bed.attachment(version);
    let (_, text) = error(&bed.call("ADD", &attachment))?;
    let words = "failed to allocate for range 0: no IP addresses available in range set: 10.77.0.1-10.77.0.6";
    want(text.contains(words), format!("it says {text:?}"))?;
    has_nothing(&attachment)
}

fn add_no_ipam(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let mut attachment = bed.attachment(version);
    attachment.config["ipam"]["type"] = json!("not-installed");
    error(&bed.call("ADD", &attachment))?;
    has_nothing(&attachment)
}

fn add_twice(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (attachment, value) = added(bed, version)?;
    let given = addresses(&value);
    let mut again = attachment.clone();
    again
        .config
        .as_object_mut()
        .map(|config| config.remove("prevResult"));
    // It may succeed or fail; what it may not do is to give the address to somebody else.
    bed.call("ADD", &again);
    let other = added(bed, version)?;
    want(
        addresses(&other.1) != given,
        format!("{given:?} was given twice"),
    )
}

fn add_others(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let mut given = BTreeSet::new();
    for _ in 0..5 {
        let (_, value) = added(bed, version)?;
        for address in addresses(&value) {
            want(
                given.insert(address.clone()),
                format!("{address} was given twice"),
            )?;
        }
    }
    want(given.len() == 5, format!("{given:?}"))
}

fn del(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (attachment, _) = added(bed, version)?;
    silent(&bed.call("DEL", &attachment))?;
    holds_nothing(bed)?;
    if matches!(bed.plugin, "tuning" | "sbr") {
        return Ok(());
    }
    has_nothing(&attachment)?;
    is_home(bed, &attachment)
}

fn del_twice(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (attachment, _) = added(bed, version)?;
    silent(&bed.call("DEL", &attachment)).map_err(|wrong| format!("the first: {wrong}"))?;
    silent(&bed.call("DEL", &attachment))
}

fn del_unknown(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    silent(&bed.call("DEL", &bed.attachment(version)))
}

fn del_without_netns(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (mut attachment, _) = added(bed, version)?;
    attachment.variables.insert("CNI_NETNS", String::new());
    silent(&bed.call("DEL", &attachment))?;
    holds_nothing(bed)?;
    is_home(bed, &attachment)
}

fn del_dead_netns(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (attachment, _) = added(bed, version)?;
    bed.kill(&attachment);
    silent(&bed.call("DEL", &attachment))?;
    holds_nothing(bed)?;
    // A device by its name alone is a virtual one, and ended with the namespace.
    if attachment.device.as_ref().is_some_and(|d| d.pci.is_some()) {
        is_home(bed, &attachment)?;
    }
    Ok(())
}

fn del_without_result(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (mut attachment, _) = added(bed, version)?;
    attachment
        .config
        .as_object_mut()
        .map(|config| config.remove("prevResult"));
    silent(&bed.call("DEL", &attachment))?;
    holds_nothing(bed)?;
    is_home(bed, &attachment)
}

fn del_without_master(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (attachment, _) = added(bed, version)?;
    // Under another name it is as absent for the plugin, and the next case gets it back.
    bed.node
        .batch("link set eth1 down\nlink set eth1 name eth9\n");
    let said = bed.call("DEL", &attachment);
    bed.node
        .batch("link set eth9 name eth1\nlink set eth1 up\n");
    silent(&said)?;
    holds_nothing(bed)
}

fn check(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (attachment, _) = added(bed, version)?;
    silent(&bed.call("CHECK", &attachment))
}

fn check_no_result(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (mut attachment, _) = added(bed, version)?;
    attachment
        .config
        .as_object_mut()
        .map(|config| config.remove("prevResult"));
    error(&bed.call("CHECK", &attachment)).map(drop)
}

fn check_no_link(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (attachment, _) = added(bed, version)?;
    attachment
        .pod
        .batch("link set net1 down\nlink set net1 name net9\n");
    error(&bed.call("CHECK", &attachment)).map(drop)
}

fn check_no_address(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (attachment, _) = added(bed, version)?;
    attachment.pod.ip("addr flush dev net1");
    error(&bed.call("CHECK", &attachment)).map(drop)
}

fn check_no_hold(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (attachment, _) = added(bed, version)?;
    for addr in bed.held().keys() {
        std::fs::remove_file(bed.data().join("net").join(addr)).map_err(|e| e.to_string())?;
    }
    error(&bed.call("CHECK", &attachment)).map(drop)
}

fn check_mtu(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (attachment, _) = added(bed, version)?;
    attachment.pod.ip("link set net1 mtu 1300");
    error(&bed.call("CHECK", &attachment)).map(drop)
}

fn check_rule(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (attachment, _) = added(bed, version)?;
    attachment.pod.ip("rule flush");
    error(&bed.call("CHECK", &attachment)).map(drop)
}

fn status(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    silent(&bed.call("STATUS", &bed.attachment(version)))
}

fn status_full(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    fill(bed, version)?;
    refused(&bed.call("STATUS", &bed.attachment(version)), 50).map(drop)
}

fn gc(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let (keep, kept) = added(bed, version)?;
    let (lost, _) = added(bed, version)?;
    let mut call = keep.clone();
    call.config
        .as_object_mut()
        .map(|config| config.remove("prevResult"));
    call.config["cni.dev/valid-attachments"] =
        json!([{"containerID": keep.container, "ifname": "net1"}]);
    silent(&bed.call("GC", &call))?;
    let holders: Vec<String> = bed.held().into_values().collect();
    let whose = |attachment: &Attachment| {
        holders
            .iter()
            .any(|by| by.starts_with(&attachment.container))
    };
    want(
        whose(&keep),
        format!("{:?} was freed under a valid attachment", addresses(&kept)),
    )?;
    want(!whose(&lost), format!("held: {holders:?}"))?;
    is_home(bed, &lost)?;
    let ports = bed.ports();
    want(ports.len() < 2, format!("the switch has {ports:?}"))?;
    if bed.plugin != "host-local" {
        want(
            keep.pod.addresses("net1") == addresses(&kept),
            "a valid attachment was changed",
        )?;
    }
    Ok(())
}

fn gc_nothing(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let mut attachment = bed.attachment(version);
    attachment
        .config
        .as_object_mut()
        .map(|config| config.remove("prevResult"));
    attachment.config["cni.dev/valid-attachments"] = json!([]);
    silent(&bed.call("GC", &attachment))
}

fn chain_result(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let attachment = bed.attachment(version);
    let given = attachment.config["prevResult"].clone();
    let value = result(&bed.call("ADD", &attachment), version)?;
    for key in ["ips", "routes", "dns"] {
        // Source-based routing may move routes; it still says which there are.
        want(
            value[key] == given[key],
            format!("{key}: {} became {}", given[key], value[key]),
        )?;
    }
    let (was, is) = (&given["interfaces"][0], &value["interfaces"][0]);
    want(
        was["name"] == is["name"] && was["mac"] == is["mac"] && was["sandbox"] == is["sandbox"],
        format!("the interface {was} became {is}"),
    )
}

fn chain_no_result(bed: &Bed<'_>, version: &str) -> Result<(), Wrong> {
    let mut attachment = bed.attachment(version);
    attachment
        .config
        .as_object_mut()
        .map(|config| config.remove("prevResult"));
    error(&bed.call("ADD", &attachment)).map(drop)
}
