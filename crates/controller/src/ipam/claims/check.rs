//! Whether a claim can be read, and names something that is there. Pure.

use mooring_api::{Code, Finding};
use mooring_blueprint::Object;
use mooring_blueprint::claim::Wish;
use mooring_blueprint::standing;
use mooring_ipam::Want;

use super::super::known::Known;

/// The claim as a wish; None for one that asks nobody here.
pub(in crate::ipam) fn check(object: &Object, known: &Known) -> Result<Option<Wish>, Finding> {
    let Some(wish) = standing::wish(object, known.pools_for(object))? else {
        return Ok(None);
    };
    let index = &wish.claim.instance;
    if matches!(wish.claim.want, Want::Vlan { .. }) && !known.indices.contains(index) {
        let message = format!("there is no VLANIndex {index}");
        return Err(Finding::error(Code::UnknownNetworkInstance, message)
            .on(&wish.object)
            .at("spec.vlanIndex")
            .help("Make it, or name one that is there; it usually has the cluster's name."));
    }
    Ok(Some(wish))
}
