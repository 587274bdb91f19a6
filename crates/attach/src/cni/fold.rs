//! Keys as Go's decoder finds them: without regard to case, the last one of several.
//!
//! Every reference plugin reads its configuration so, and configurations that say `Master` work there. Read by
//! everything that looks at a configuration: an [`Object`] for single keys, [`read`] for structs at every depth, where the
//! struct's own fields are the names that are known.
//!
//! Easy to get wrong: only names that somebody reads are folded. The keys of a map (sysctls) stay as they are, and so does
//! what goes to a delegate.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Value};

/// A JSON object whose members are asked for as Go asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(Map<String, Value>);

impl Object {
    /// The member of that name. `null` says nothing where another spelling says something.
    pub fn get(&self, key: &str) -> Option<&Value> {
        member(&self.0, key)
    }

    /// The member, where it is a text that is not empty.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The members as they were written.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Sets a member, whatever its spelling was.
    pub fn set(&mut self, key: &str, value: Value) {
        self.0.retain(|name, _| name == key || !same(name, key));
        self.0.insert(key.to_owned(), value);
    }

    /// Removes a member in every spelling.
    pub fn remove(&mut self, key: &str) {
        self.0.retain(|name, _| !same(name, key));
    }

    /// All of it as one struct.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        T::deserialize(Folded::Object(&self.0))
    }
}

impl From<Map<String, Value>> for Object {
    fn from(map: Map<String, Value>) -> Self {
        Self(map)
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object.0)
    }
}

/// The member of a map that Go would put into a field of that name.
pub fn member<'v>(map: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    let mut found = None;
    for (_, value) in map.iter().filter(|(name, _)| same(name, key)) {
        if found.is_none() || !value.is_null() {
            found = Some(value);
        }
    }
    found
}

/// A value as a struct; members that are `null` are absent.
pub fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    T::deserialize(Folded::Value(value))
}

/// Whether two names differ in case at most. `key` is ASCII, as every name of ours is; of all other characters two fold to
/// a letter of ASCII.
pub fn same(name: &str, key: &str) -> bool {
    if name.is_ascii() {
        return name.eq_ignore_ascii_case(key);
    }
    let plain = name.chars().map(|c| match c {
        'ſ' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    });
    plain.eq(key.chars().map(|c| c.to_ascii_lowercase()))
}

/// A value that is read as Go reads it.
#[derive(Clone, Copy)]
enum Folded<'a> {
    Value(&'a Value),
    Object(&'a Map<String, Value>),
}

impl<'de> Folded<'de> {
    fn object(self) -> Option<&'de Map<String, Value>> {
        match self {
            Self::Object(map) | Self::Value(Value::Object(map)) => Some(map),
            Self::Value(_) => None,
        }
    }
}

impl<'de> Deserializer<'de> for Folded<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Value(Value::Array(list)) => visitor.visit_seq(Items(list.iter())),
            Self::Value(Value::Object(map)) | Self::Object(map) => {
                visitor.visit_map(Members::new(map, &[]))
            }
            Self::Value(plain) => plain.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match (self.object(), self) {
            (Some(map), _) => visitor.visit_map(Members::new(map, fields)),
            // Serde would take it for the fields in their order.
            (None, Self::Value(Value::Array(_))) => {
                Err(Error::invalid_type(Unexpected::Seq, &visitor))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Value(Value::Null) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Value(value) => value.deserialize_enum(name, variants, visitor),
            Self::Object(_) => Err(Error::invalid_type(Unexpected::Map, &visitor)),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// The members of an object, each under the name of the field that it is for.
struct Members<'de> {
    rest: std::vec::IntoIter<(&'de str, &'de Value)>,
    value: Option<&'de Value>,
}

impl<'de> Members<'de> {
    fn new(map: &'de Map<String, Value>, fields: &'static [&'static str]) -> Self {
        let mut members: Vec<(&str, &Value)> = Vec::with_capacity(map.len());
        let mut places: Vec<Option<usize>> = vec![None; fields.len()];
        for (written, value) in map.iter().filter(|(_, value)| !value.is_null()) {
            let exact = fields.iter().position(|field| field == written);
            let field = exact.or_else(|| fields.iter().position(|field| same(written, field)));
            match field.map(|field| (fields[field], &mut places[field])) {
                None => members.push((written, value)),
                Some((_, Some(place))) => members[*place].1 = value,
                Some((name, place)) => {
                    *place = Some(members.len());
                    members.push((name, value));
                }
            }
        }
        Self {
            rest: members.into_iter(),
            value: None,
        }
    }
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some((name, value)) = self.rest.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        seed.deserialize(BorrowedStrDeserializer::new(name))
            .map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        match self.value.take() {
            Some(value) => seed.deserialize(Folded::Value(value)),
            None => Err(Error::custom("a value was asked for before its key")),
        }
    }
}

struct Items<'de>(std::slice::Iter<'de, Value>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let next = self.0.next();
        next.map(|value| seed.deserialize(Folded::Value(value)))
            .transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Clone, Debug, Default, Deserialize, PartialEq)]
    #[serde(default, rename_all = "camelCase")]
    struct Keys {
        master: String,
        vlan_id: Option<i64>,
        trunk: Vec<Trunk>,
        sysctl: BTreeMap<String, String>,
    }

    #[derive(Clone, Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Trunk {
        #[serde(rename = "minID")]
        min: Option<u16>,
    }

    fn keys(value: Value) -> Result<Keys, String> {
        let object = Object::from(value.as_object().expect("an object").clone());
        let through = object.read::<Keys>().map_err(|e| e.to_string());
        let straight = read::<Keys>(&value).map_err(|e| e.to_string());
        assert_eq!(through, straight);
        straight
    }

    #[test]
    fn the_case_of_a_name_does_not_matter_at_any_depth() {
        let wanted = Keys {
            master: "eth1".to_owned(),
            vlan_id: Some(7),
            trunk: vec![Trunk { min: Some(5) }],
            sysctl: BTreeMap::from([("Net.A".to_owned(), "1".to_owned())]),
        };
        for value in [
            json!({"master": "eth1", "vlanId": 7, "trunk": [{"minID": 5}], "sysctl": {"Net.A": "1"}}),
            json!({"Master": "eth1", "VLANID": 7, "TRUNK": [{"MinId": 5}], "Sysctl": {"Net.A": "1"}}),
            // The two letters that are not ASCII and fold to it.
            json!({"maſter": "eth1", "vlanid": 7, "trun\u{212a}": [{"minid": 5}], "ſyſctl": {"Net.A": "1"}}),
        ] {
            assert_eq!(keys(value), Ok(wanted.clone()));
        }
        assert_eq!(keys(json!({"m\u{e4}ster": "eth1"})), Ok(Keys::default()));
    }

    #[test]
    fn the_last_spelling_wins_and_null_is_none() {
        for (value, master) in [
            (json!({"master": "a", "MASTER": "b"}), "b"),
            (json!({"MASTER": "b", "master": "a"}), "a"),
            (json!({"MASTER": "b", "master": null}), "b"),
            (json!({"master": null}), ""),
        ] {
            let map = value.as_object().expect("an object");
            let found = member(map, "master").and_then(Value::as_str);
            assert_eq!(found.unwrap_or_default(), master, "{value}");
            assert_eq!(keys(value).map(|k| k.master).as_deref(), Ok(master));
        }
        let nothing = json!({"Master": null});
        let found = member(nothing.as_object().expect("an object"), "master");
        assert_eq!(found, Some(&Value::Null));
    }

    #[test]
    fn a_name_that_is_known_exactly_is_not_taken_for_its_neighbour() {
        #[derive(Debug, Default, Deserialize, PartialEq)]
        #[serde(default)]
        struct Two {
            mac: String,
            #[serde(rename = "MAC")]
            shouted: String,
        }
        let two: Two = read(&json!({"mac": "a", "MAC": "b"})).expect("two fields");
        assert_eq!((two.mac.as_str(), two.shouted.as_str()), ("a", "b"));
    }

    #[test]
    fn a_wrong_kind_is_refused_in_the_usual_words() {
        for (value, why) in [
            (
                json!({"Master": 7}),
                "invalid type: integer `7`, expected a string",
            ),
            (
                json!({"vlanId": "7"}),
                "invalid type: string \"7\", expected i64",
            ),
            (
                json!({"trunk": [[1]]}),
                "invalid type: sequence, expected struct Trunk",
            ),
            (
                json!({"trunk": [null]}),
                "invalid type: null, expected struct Trunk",
            ),
        ] {
            let error = keys(value.clone()).expect_err("a wrong kind");
            assert!(error.contains(why), "{value}: {error}");
        }
    }

    #[test]
    fn a_member_that_is_set_replaces_every_spelling() {
        let map = json!({"a": 1, "IPAM": 2, "b": 3})
            .as_object()
            .expect("an object")
            .clone();
        let mut object = Object::from(map);
        object.set("ipam", json!(4));
        assert_eq!(
            Value::from(object.clone()),
            json!({"a": 1, "b": 3, "ipam": 4})
        );
        object.remove("B");
        assert_eq!(Value::from(object), json!({"a": 1, "ipam": 4}));
    }
}
