//! What a claim's pass needs: the object as a value, and the pools of this moment. From the watches, no request.

use std::sync::Arc;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use mooring_api::kinds::mooring::ClaimRef;
use mooring_blueprint::Object;

use super::super::known::{Known, object};
use super::super::view::View;

/// What a pass is made from.
pub(in crate::ipam) struct Gathered {
    /// The shelf that the claim stands on.
    pub(in crate::ipam) nth: usize,
    pub(in crate::ipam) object: Object,
    pub(in crate::ipam) asked_by: ClaimRef,
    pub(in crate::ipam) known: Arc<Known>,
}

pub(in crate::ipam) fn gather(view: &View, nth: usize, of: &DynamicObject) -> Gathered {
    let resource = &view.shelves[nth].served.resource;
    Gathered {
        nth,
        object: object(of),
        asked_by: ClaimRef {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
            namespace: of.namespace().unwrap_or_default(),
            name: of.name_any(),
            uid: of.uid().unwrap_or_default(),
        },
        known: view.known(),
    }
}
