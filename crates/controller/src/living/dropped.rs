//! Fields that somebody wrote and that the installed definition drops without a word. Pure.

use mooring_api::{Code, Finding, annotation};
use mooring_blueprint::Object;
use serde_json::Value;

/// What `kubectl apply` remembers of an object.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Fields of an IPPrefix and their twins.
const TWINS: [(&str, &str); 4] = [
    ("ranges", annotation::RANGES),
    ("exclude", annotation::EXCLUDE),
    ("coolDown", annotation::COOL_DOWN),
    ("allocations", annotation::ALLOCATIONS),
];

/// A field that was written, that the definition drops, and that has no twin.
pub(crate) fn lost(object: &Object, dropped: &[&str]) -> Option<Finding> {
    if object.kind() != "IPPrefix" || dropped.is_empty() {
        return None;
    }
    let written: Value = serde_json::from_str(object.annotation(LAST_APPLIED)?).ok()?;
    let is_lost = |(field, twin): &&(&str, &str)| {
        dropped.contains(&format!("spec.{field}").as_str())
            && written["spec"].get(field).is_some_and(|v| !v.is_null())
            && object.annotation(twin).is_none()
    };
    let (field, twin) = TWINS.iter().find(is_lost)?;
    let message = format!("spec.{field} was written, and the installed definition drops it");
    let finding = Finding::error(Code::FieldDropped, message)
        .on(&object.reference())
        .at(format!("spec.{field}"))
        .help(format!(
            "Write the annotation {twin}; until then nothing new is handed out."
        ));
    Some(finding)
}
