//! The objects of one package as values, and the Kptfile's marks. Every step reads and edits a bundle;
//! `package` makes it from documents and turns the difference back into edits of the text.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Code, Condition, Finding, ObjectRef, Status, annotation};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::listed::{Listed, Named};

/// One object. `source` is `package`'s number for the document it came from; a generated one has none.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The whole object.
    pub value: Value,
    /// Which document it is.
    pub source: Option<usize>,
}

impl Object {
    /// A new object of ours, for `owner`.
    pub fn generated(reference: &ObjectRef, owner: &ObjectRef) -> Self {
        let mut metadata = Map::new();
        metadata.insert("name".into(), json!(reference.name));
        if !reference.namespace.is_empty() {
            metadata.insert("namespace".into(), json!(reference.namespace));
        }
        let owner = format!("{}/{}", owner.kind, owner.name);
        metadata.insert("annotations".into(), json!({ annotation::OWNED_BY: owner }));
        let value = json!({
            "apiVersion": reference.api_version, "kind": reference.kind, "metadata": metadata,
        });
        Self {
            value,
            source: None,
        }
    }

    fn text(&self, key: &str) -> &str {
        let value = entry(&self.value, key).and_then(Value::as_str);
        value.unwrap_or_default()
    }

    fn metadata(&self, key: &str) -> &str {
        let value = entry(&self.value, "metadata").and_then(|m| entry(m, key)?.as_str());
        value.unwrap_or_default()
    }

    /// Kind.
    pub fn kind(&self) -> &str {
        self.text("kind")
    }

    /// Name.
    pub fn name(&self) -> &str {
        self.metadata("name")
    }

    /// Namespace as written, or empty.
    pub fn namespace(&self) -> &str {
        self.metadata("namespace")
    }

    /// API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version()
            .split_once('/')
            .map_or("", |(group, _)| group)
    }

    /// `apiVersion`.
    pub fn api_version(&self) -> &str {
        self.text("apiVersion")
    }

    /// The reference that findings carry.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef::new(self.api_version(), self.kind(), self.name()).within(self.namespace())
    }

    /// Whether it is of this group and kind. The old IPAM group counts as the new one.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        if self.kind() != kind {
            return false;
        }
        let own = self.group();
        own == group || (group == group::IPAM && own == group::IPAM_SEED)
    }

    /// An annotation's value.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        let metadata = entry(&self.value, "metadata")?;
        entry(entry(metadata, "annotations")?, key)?.as_str()
    }

    /// Its labels.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let labels = self
            .value
            .pointer("/metadata/labels")
            .and_then(Value::as_object);
        labels
            .into_iter()
            .flatten()
            .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
            .collect()
    }

    /// Sets an annotation; nothing changes where it is set so already.
    pub fn set_annotation(&mut self, key: &str, value: &str) {
        if self.annotation(key) != Some(value) {
            map_below(&mut self.value, &["metadata", "annotations"])
                .insert(key.into(), json!(value));
        }
    }

    /// Removes an annotation, and the map when it was the last one.
    pub fn remove_annotation(&mut self, key: &str) {
        let Some(metadata) = self
            .value
            .get_mut("metadata")
            .and_then(Value::as_object_mut)
        else {
            return;
        };
        if let Some(annotations) = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
            && annotations.shift_remove(key).is_some()
            && annotations.is_empty()
        {
            metadata.shift_remove("annotations");
        }
    }

    /// Whether Mooring made it for somebody: `Kind/name`.
    pub fn owner(&self) -> Option<&str> {
        self.annotation(annotation::OWNED_BY)
    }

    /// Its `spec`, typed. After the schema check this fails only for a kind that has no schema.
    pub fn spec<T: DeserializeOwned>(&self) -> Result<T, Finding> {
        self.part("spec")
    }

    /// Its `status`, typed.
    pub fn status<T: DeserializeOwned>(&self) -> Result<T, Finding> {
        self.part("status")
    }

    fn part<T: DeserializeOwned>(&self, part: &str) -> Result<T, Finding> {
        let empty = Value::Object(Map::new());
        let value = self
            .value
            .get(part)
            .filter(|s| !s.is_null())
            .unwrap_or(&empty);
        T::deserialize(value).map_err(|e| {
            Finding::error(
                Code::InvalidField,
                format!("its {part} cannot be read: {e}"),
            )
            .on(&self.reference())
            .at(part)
        })
    }
}

/// What `value.get(key)` says. Kind and name stand in front of maps with few keys, and are asked for all the
/// time: to look along the keys is quicker than to hash one.
fn entry<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    let mut entries = value.as_object()?.iter();
    entries.find_map(|(k, v)| (k == key).then_some(v))
}

/// API groups.
pub mod group {
    /// IPAM.
    pub const IPAM: &str = "ipam.resource.nephio.org";
    /// IPAM as seed 001 writes it.
    pub const IPAM_SEED: &str = "ipam.nephio.org";
    /// VLAN.
    pub const VLAN: &str = "vlan.resource.nephio.org";
    /// Clusters and networks.
    pub const INFRA: &str = "infra.nephio.org";
    /// Requirements.
    pub const REQ: &str = "req.nephio.org";
    /// Multus.
    pub const CNI: &str = "k8s.cni.cncf.io";
}

/// What a step may know of, and change in, the Kptfile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marks {
    /// The package's name.
    pub name: String,
    /// The Kptfile's annotations.
    pub annotations: BTreeMap<String, String>,
    /// `status.conditions`, in order.
    pub conditions: Listed<Condition>,
    /// `info.readinessGates`, in order.
    pub gates: Listed<String>,
}

impl Marks {
    /// Sets a condition, in place or at the end, and its gate.
    pub fn set(&mut self, kind: String, status: Status, reason: &str, message: &str) {
        if !self.gates.has(&kind) {
            self.gates.push(kind.clone());
        }
        let (reason, message) = (reason.to_owned(), message.to_owned());
        let wanted = Condition {
            kind,
            status,
            reason,
            message,
        };
        match self.conditions.places(&wanted.kind).first().copied() {
            Some(place) => self.conditions[place] = wanted,
            None => self.conditions.push(wanted),
        }
    }

    /// Removes conditions and, because they were ours, their gates.
    pub fn drop_conditions(&mut self, kinds: &BTreeSet<String>) {
        if !kinds.is_empty() {
            self.conditions.retain(|c| !kinds.contains(&c.kind));
            self.gates.retain(|g| !kinds.contains(g));
        }
    }
}

impl Named for Object {
    fn key(&self) -> &str {
        self.name()
    }
}

impl Named for Condition {
    fn key(&self) -> &str {
        &self.kind
    }
}

/// A package's objects (the Kptfile apart).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bundle {
    /// In document order; generated ones at the end.
    pub objects: Listed<Object>,
    /// The Kptfile.
    pub marks: Marks,
}

impl Bundle {
    /// All objects of a group and kind.
    pub fn all<'a>(&'a self, group: &'a str, kind: &'a str) -> impl Iterator<Item = &'a Object> {
        self.objects.iter().filter(move |o| o.is(group, kind))
    }

    /// The object of that group, kind and name.
    pub fn find(&self, group: &str, kind: &str, name: &str) -> Option<&Object> {
        self.objects.named(name).find(|o| o.is(group, kind))
    }

    /// The same, to edit.
    pub fn find_mut(&mut self, group: &str, kind: &str, name: &str) -> Option<&mut Object> {
        let mut places = self.objects.places(name).iter();
        let place = *places.find(|p| self.objects[**p].is(group, kind))?;
        Some(&mut self.objects[place])
    }

    /// Puts a generated object in its place: an earlier one of ours is brought to the new content key
    /// by key (so that its file keeps comments and order), else it is added.
    pub fn upsert(&mut self, made: Object) -> Result<(), Finding> {
        let reference = made.reference();
        let same = |o: &Object| {
            o.kind() == reference.kind
                && o.group() == reference.group()
                && (o.namespace() == reference.namespace || o.owner() == made.owner())
        };
        let places = self.objects.places(&reference.name).iter();
        let Some(place) = places.copied().find(|p| same(&self.objects[*p])) else {
            self.objects.push(made);
            return Ok(());
        };
        let owner = self.objects[place].owner().map(ToOwned::to_owned);
        let stays = |owner: &str| find_owner(&self.objects, owner).is_some();
        match owner {
            Some(owner) if made.owner() != Some(&owner) && stays(&owner) => Err(Finding::error(
                Code::NameTaken,
                format!(
                    "{reference} is needed for {} and for {owner}",
                    made.owner().unwrap_or("the package")
                ),
            )
            .on(&maker(&made, &self.objects))
            .at("metadata.name")
            .help(format!(
                "Give each its own name, or its NAD one with {}.",
                annotation::NAD_NAME
            ))),
            None => Err(Finding::error(
                Code::NameTaken,
                format!(
                    "{reference} is needed for {}, but this one is yours",
                    made.owner().unwrap_or("the package")
                ),
            )
            .on(&reference)
            .at("metadata.name")
            .help("Rename it, or remove it and let Mooring make its own.")),
            // Ours, or made for something that is gone.
            Some(_) => {
                overlay(&mut self.objects[place].value, made.value);
                Ok(())
            }
        }
    }
}

/// What a generated object is made for; the object itself where that cannot be told.
fn maker(made: &Object, objects: &Listed<Object>) -> ObjectRef {
    let maker = made.owner().and_then(|owner| find_owner(objects, owner));
    maker.map_or_else(|| made.reference(), Object::reference)
}

/// The object that `owned-by` names: `Kind/name`.
fn find_owner<'a>(objects: &'a Listed<Object>, owner: &str) -> Option<&'a Object> {
    let (kind, name) = owner.split_once('/')?;
    objects.named(name).find(|o| o.kind() == kind)
}

/// `known` gets the content of `made`. In `metadata` and at the top, keys that only `known` has stay:
/// they are somebody else's labels, or a status.
fn overlay(known: &mut Value, made: Value) {
    let (Value::Object(known), Value::Object(made)) = (known, made) else {
        return;
    };
    for (key, value) in made {
        match (key.as_str(), known.get_mut(&key)) {
            ("metadata", Some(Value::Object(metadata))) => merge(metadata, value),
            (_, Some(place)) if *place == value => {}
            _ => {
                known.insert(key, value);
            }
        }
    }
}

fn merge(into: &mut Map<String, Value>, from: Value) {
    let Value::Object(from) = from else { return };
    for (key, value) in from {
        match into.get_mut(&key) {
            Some(Value::Object(inner)) if value.is_object() => merge(inner, value),
            Some(place) if *place == value => {}
            _ => {
                into.insert(key, value);
            }
        }
    }
}

fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was made an object above")
}

/// The map at a path below an object, made where it is absent.
pub(crate) fn map_below<'a>(value: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    path.iter().fold(object(value), |map, key| {
        object(map.entry(*key).or_insert_with(|| Value::Object(Map::new())))
    })
}
