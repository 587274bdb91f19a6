//! Claims that an external system answers: it writes the status, and we only read it.

use mooring_api::{Code, Finding, Status, annotation};

use super::{KEPT_ADDRESS, RANGE, answers, claim_condition};
use crate::bundle::{Bundle, group, map_below};
use crate::cluster::Cluster;
use crate::port::{ClaimName, Port};

/// A range that we gave is no answer of an external system: its claim waits again.
pub(super) fn drop_range(bundle: &mut Bundle, claim: &str) {
    let Some(object) = bundle.find_mut(group::IPAM, "IPClaim", claim) else {
        return;
    };
    if object.annotation(RANGE).is_some() {
        object.remove_annotation(RANGE);
        object.remove_annotation(KEPT_ADDRESS);
        map_below(&mut object.value, &[]).shift_remove("status");
    }
}

/// Nobody has written the address of an external claim yet.
pub(super) fn unanswered(port: &Port, name: &ClaimName) -> Finding {
    let network = port
        .instance
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    Finding::warning(
        Code::ExternalIpam,
        format!(
            "an external system serves {network}, and has not answered IPClaim {} yet: there is no NAD, and pods do not get the interface",
            name.name
        ),
    )
    .on(&port.object)
    .at(format!("metadata.annotations[{}]", annotation::IPAM_FLAVOUR))
    .help(format!(
        "Let whoever keeps the addresses (NetBox, Infoblox, phpIPAM, a person) write status.prefix and status.gateway of IPClaim {}, then render again.",
        name.name
    ))
}

/// Whoever answers an external claim sets no condition of ours.
pub(super) fn conclude(bundle: &mut Bundle, port: &Port, cluster: &Cluster) {
    let answers = answers(bundle, port, cluster);
    for claim in port.claims(cluster) {
        let answer = answers.iter().find(|a| a.name == claim);
        let (status, message) = match answer {
            Some(answer) => (Status::True, answer.prefix.addr().to_string()),
            None => (
                Status::False,
                "waits for an external system to write status.prefix".to_owned(),
            ),
        };
        let condition = claim_condition(&claim.name);
        let reason = Code::ExternalIpam.as_str();
        bundle.marks.set(condition, status, reason, &message);
    }
}
