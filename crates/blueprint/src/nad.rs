//! Step 5: the NetworkAttachmentDefinition of every port, from what the Interface says, what the
//! cluster has and what the book answered. The JSON itself is `attach`'s.

use std::net::IpAddr;

use mooring_api::kinds::nephio::req::CniType;
use mooring_api::{Cidr, Code, Family, Finding, HostCidr, IfName, ObjectRef, VlanId, annotation};
use mooring_attach::config::{self, Conf, Device, Dns, Ipam, MoorRef, Plugin, Range, Route};
use serde_json::json;

use crate::Context;
use crate::bundle::{Bundle, Object, group, map_below};
use crate::choices::{Carrier, Flavour};
use crate::claim::{self, Answered};
use crate::cluster::Cluster;
use crate::pools::siblings;
use crate::port::Port;

/// Makes the NADs of every port whose claims are answered.
pub fn nads(
    bundle: &mut Bundle,
    ports: &[Port],
    cluster: &Cluster,
    ctx: &Context<'_>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for port in ports
        .iter()
        .filter(|p| p.attachable && p.instance.is_some())
    {
        if let Err(finding) = port_nads(bundle, port, cluster, ctx, &mut findings) {
            findings.push(finding);
        }
    }
    findings
}

fn port_nads(
    bundle: &mut Bundle,
    port: &Port,
    cluster: &Cluster,
    ctx: &Context<'_>,
    findings: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let answers = claim::answers(bundle, port, cluster);
    let vlan = claim::vlan(bundle, port);
    let waiting = answers.len() < port.claims(cluster).len() || (port.wants_vlan && vlan.is_none());
    if waiting {
        return Ok(());
    }
    let (plugin, resource) = plugin(port, vlan, cluster, findings)?;
    for node in port.nodes(cluster) {
        let mine: Vec<&Answered> = answers
            .iter()
            .filter(|a| a.name.node.as_ref() == node)
            .collect();
        check_routes(port, &mine)?;
        let ipam = ipam(port, &mine, cluster, ctx);
        let name = node_name(&port.nad_name(), node);
        let config = config::build(
            &name,
            &Conf {
                plugin: plugin.clone(),
                ipam,
            },
        )
        .map_err(|e| refused(port, &e))?;
        let api = format!("{}/v1", group::CNI);
        let reference =
            ObjectRef::new(api, "NetworkAttachmentDefinition", &name).within(&port.namespace);
        let mut made = Object::generated(&reference, &port.object);
        if let Some(resource) = &resource {
            made.set_annotation(annotation::RESOURCE_NAME, resource);
        }
        let text = config::text(&config) + "\n";
        map_below(&mut made.value, &["spec"]).insert("config".into(), json!(text));
        bundle.upsert(made)?;
    }
    Ok(())
}

/// `<name>-<node>` for ranges per node.
pub fn node_name(name: &str, node: Option<&String>) -> String {
    node.map_or_else(|| name.to_owned(), |node| format!("{name}-{node}"))
}

fn refused(port: &Port, error: &config::ConfigError) -> Finding {
    let field = match error {
        config::ConfigError::UnknownMode { .. } => {
            format!("metadata.annotations[{}]", annotation::MODE)
        }
        config::ConfigError::RouteFamily { .. } => {
            format!("metadata.annotations[{}]", annotation::ROUTES)
        }
        _ => "spec".to_owned(),
    };
    Finding::error(
        Code::InvalidAnnotation,
        format!("the plugin would refuse this: {error}"),
    )
    .on(&port.object)
    .at(field)
    .help("Change the annotation, or remove it for the default.")
}

/// The plugin, and the device plugin resource that serves it.
fn plugin(
    port: &Port,
    vlan: Option<VlanId>,
    cluster: &Cluster,
    findings: &mut Vec<Finding>,
) -> Result<(Plugin, Option<String>), Finding> {
    let cni = port.cni.or_else(|| cluster.default_cni()).ok_or_else(|| {
        Finding::error(
            Code::UnsupportedCni,
            format!("cluster {} offers no CNI type", cluster.name),
        )
        .on(&port.object)
        .help(format!("Add spec.cnis to {}.", cluster.reference))
    })?;
    cluster.offers(cni, &port.object)?;
    if matches!(cni, CniType::HostDevice | CniType::AmdHostDevice) && vlan.is_some() {
        return Err(whole_nic(port, cni));
    }
    let mtu = port.mtu.map(u32::from);
    let mode = port.choices.mode.clone();
    let nic = || cluster.nic(cni, &port.object).cloned();
    let tagged = |nic: IfName| {
        match vlan {
        None => Ok(nic),
        Some(vlan) => config::sub_interface(&nic, vlan).map_err(|e| {
            Finding::error(Code::NoFittingNic, format!("the VLAN sub-interface cannot be named: {e}"))
                .on(&port.object)
                .at("spec.vlan")
                .help("The kernel takes 15 bytes for NIC, dot and VLAN. Rename the NIC, or use cniType vlan.")
        }),
    }
    };
    let dedicated = cluster.dedicated(cni);
    let resource = dedicated.and_then(|n| n.resource_name.clone());
    let device = |resource: &Option<String>| -> Result<Device, Finding> {
        match (resource, dedicated) {
            (Some(_), _) => Ok(Device::Allocated),
            (None, Some(nic)) => Ok(Device::Name(nic.name.clone())),
            (None, None) => nic().map(Device::Name),
        }
    };
    // A NIC that is listed for the type is the bridge itself; any other has a bridge over it.
    let bridge = || {
        let nic = nic()?;
        if dedicated.is_some_and(|n| n.name == nic) {
            Ok(nic)
        } else {
            bridge_of(&nic, port)
        }
    };
    Ok(match cni {
        CniType::Macvlan => (
            Plugin::Macvlan {
                master: tagged(nic()?)?,
                mode,
                mtu,
            },
            None,
        ),
        CniType::Ipvlan => (
            Plugin::Ipvlan {
                master: tagged(nic()?)?,
                mode,
                mtu,
            },
            None,
        ),
        CniType::Vlan => {
            let vlan = vlan.ok_or_else(|| {
                Finding::error(Code::InvalidField, "cniType vlan needs a VLAN")
                    .on(&port.object)
                    .at("spec.vlan")
                    .help("Set spec.vlan, or attachmentType: vlan to have one claimed.")
            })?;
            (
                Plugin::Vlan {
                    master: nic()?,
                    vlan,
                    mtu,
                },
                None,
            )
        }
        CniType::Bridge => (
            Plugin::Bridge {
                bridge: bridge()?,
                vlan,
                mtu,
            },
            None,
        ),
        CniType::Ovs => (
            Plugin::Ovs {
                bridge: bridge()?,
                vlan,
                mtu,
            },
            None,
        ),
        CniType::HostDevice => (
            Plugin::HostDevice {
                device: device(&resource)?,
                mtu,
            },
            resource,
        ),
        CniType::AmdHostDevice => (
            Plugin::AmdHostDevice {
                device: device(&resource)?,
                mtu,
            },
            resource,
        ),
        CniType::Sriov => {
            let pf = port.sriov.as_ref().map(|s| &s.pf_name);
            let resource = cluster.sriov_resource(pf, &port.object)?;
            warn_vf_index(port, findings);
            (Plugin::Sriov { vlan, mtu }, Some(resource))
        }
    })
}

/// A VLAN that would be dropped silently is worse than a refusal.
fn whole_nic(port: &Port, cni: CniType) -> Finding {
    let field = if port.wants_vlan {
        "spec.attachmentType"
    } else {
        "spec.vlan"
    };
    Finding::error(
        Code::InvalidField,
        format!("{cni} hands over a whole NIC, and its plugin has no VLAN"),
    )
    .on(&port.object)
    .at(field)
    .help("Remove the VLAN and tag inside the pod, or use cniType vlan, macvlan or sriov.")
}

/// A NIC that is no bridge itself: the bridge over it has its name with `br-` before.
fn bridge_of(nic: &IfName, port: &Port) -> Result<IfName, Finding> {
    format!("br-{nic}").parse().map_err(|e| {
        Finding::error(
            Code::NoFittingNic,
            format!("the bridge over {nic} cannot be named: {e}"),
        )
        .on(&port.object)
        .at("spec.cniType")
        .help("List the bridge in spec.networkInterfaces of the WorkloadCluster with cni: bridge.")
    })
}

fn warn_vf_index(port: &Port, findings: &mut Vec<Finding>) {
    let Some(index) = port.sriov.as_ref().and_then(|s| s.vf_index) else {
        return;
    };
    let finding = Finding::warning(
        Code::VfIndexIgnored,
        format!("vfIndex {index} cannot be said in a NAD: the device plugin chooses the virtual function"),
    )
    .on(&port.object)
    .at("spec.sriovSpec.vfIndex")
    .help("Remove vfIndex; any free virtual function of the physical function will do.");
    if !findings.contains(&finding) {
        findings.push(finding);
    }
}

fn ipam(port: &Port, answers: &[&Answered], cluster: &Cluster, ctx: &Context<'_>) -> Ipam {
    let gateways: Vec<(HostCidr, Option<IpAddr>)> =
        answers.iter().map(|a| (a.prefix, a.gateway)).collect();
    let routes = routes(port, &gateways, ctx);
    let dns = Dns {
        nameservers: port.choices.dns.clone(),
        search: Vec::new(),
    };
    let ranges = || {
        let range = |a: &&Answered| {
            Some(Range {
                subnet: a.prefix.subnet(),
                range: a.range?,
                gateway: a.gateway,
            })
        };
        answers.iter().filter_map(range).collect::<Vec<Range>>()
    };
    if port.families.is_empty() {
        return Ipam::None;
    }
    match (port.choices.flavour, port.choices.carrier) {
        (Flavour::Static | Flavour::External, Carrier::Nad) => Ipam::Static {
            addresses: gateways,
            routes,
            dns,
        },
        (Flavour::Static | Flavour::External, Carrier::Annotation) => {
            Ipam::StaticFromAnnotation { routes, dns }
        }
        (Flavour::HostLocal, _) => Ipam::HostLocal {
            ranges: ranges(),
            routes,
        },
        (Flavour::Whereabouts, _) => Ipam::Whereabouts {
            ranges: ranges(),
            exclude: Vec::new(),
            network_name: None,
            routes,
        },
        (Flavour::Moor, _) => Ipam::Moor {
            of: Box::new(MoorRef {
                cluster: cluster.name.clone(),
                package: ctx.package.to_owned(),
                instance: port
                    .instance
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                interface: port.name.clone(),
                namespace: port.object.namespace.clone(),
                workload: port.workload_as_written(),
            }),
            routes,
            dns,
        },
    }
}

/// A route needs somewhere to go. The agent knows the gateway of our own plugin's addresses.
fn check_routes(port: &Port, answers: &[&Answered]) -> Result<(), Finding> {
    let reachable = |family: Family| {
        let of_family = |a: &&&Answered| a.prefix.family() == family && a.gateway.is_some();
        port.choices.flavour == Flavour::Moor || answers.iter().any(|a| of_family(&a))
    };
    let lost = port
        .choices
        .routes
        .iter()
        .find(|r| r.via.is_none() && !reachable(r.dst.family()));
    lost.map_or(Ok(()), |route| {
        Err(Finding::error(
            Code::InvalidAnnotation,
            format!(
                "the route to {} has no next hop: the interface has no {} gateway",
                route.dst,
                route.dst.family()
            ),
        )
        .on(&port.object)
        .at(format!("metadata.annotations[{}]", annotation::ROUTES))
        .help(format!(
            "Write {} via ADDRESS, or remove the route.",
            route.dst
        )))
    })
}

/// What was asked for, the default route where asked, and every sibling subnet. A destination is
/// written once; the first one wins.
fn routes(port: &Port, gateways: &[(HostCidr, Option<IpAddr>)], ctx: &Context<'_>) -> Vec<Route> {
    let via = |family: Family| {
        gateways
            .iter()
            .find(|(a, _)| a.family() == family)
            .and_then(|(_, gateway)| *gateway)
    };
    let mut routes: Vec<Route> = Vec::new();
    let mut add = |dst: Cidr, gw: Option<IpAddr>| {
        if !routes.iter().any(|r| r.dst == dst) {
            routes.push(Route { dst, gw });
        }
    };
    for route in &port.choices.routes {
        add(route.dst, route.via.or_else(|| via(route.dst.family())));
    }
    for (address, gateway) in gateways {
        if port.choices.default_route && gateway.is_some() {
            add(Cidr::containing(address.family().addr(0), 0), *gateway);
        }
    }
    if let Some(instance) = &port.instance {
        for (address, gateway) in gateways.iter().filter(|(_, g)| g.is_some()) {
            for sibling in siblings(ctx.pools, instance, *address) {
                add(sibling, *gateway);
            }
        }
    }
    routes
}
