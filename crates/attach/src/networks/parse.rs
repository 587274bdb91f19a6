//! Reading the annotation. Every refusal says where, as a byte offset into the text.

use std::fmt;
use std::net::IpAddr;

use mooring_api::{HostCidr, IfName, Mac};
use serde_json::{Map, Value};

use super::{Entry, Form, Networks};

/// The annotation does not have its grammar, so a pod would get none of its interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Byte offset into the text. For a JSON entry with a bad key it is where the entry begins.
    pub offset: usize,
    /// What is wrong there.
    pub message: String,
}

impl ParseError {
    fn new(offset: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Reads either form. Only white space is an empty list in short form.
pub fn parse(text: &str) -> Result<Networks, ParseError> {
    if text.contains(['[', '{', '"']) {
        parse_json(text)
    } else {
        parse_short(text)
    }
}

fn parse_short(text: &str) -> Result<Networks, ParseError> {
    let mut entries = Vec::new();
    let form = Form::Short;
    if text.trim().is_empty() {
        return Ok(Networks { form, entries });
    }
    let mut start = 0;
    for part in text.split(',') {
        let item = part.trim();
        let offset = start + (part.len() - part.trim_start().len());
        let bad = |message: String| ParseError::new(offset, message);
        if item.is_empty() {
            return Err(bad("an entry is empty".into()));
        }
        let (network, interface) = match item.split_once('@') {
            Some((network, interface)) => (network, Some(interface)),
            None => (item, None),
        };
        let (namespace, name) = match network.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, network),
        };
        let mut map = Map::new();
        for (key, value) in [
            ("name", Some(name)),
            ("namespace", namespace),
            ("interface", interface),
        ] {
            let Some(value) = value else { continue };
            if key == "interface" {
                check_interface(value).map_err(&bad)?;
            } else {
                check_label(key, value).map_err(&bad)?;
            }
            map.insert(key.to_owned(), value.into());
        }
        entries.push(Entry(map));
        start += part.len() + 1;
    }
    Ok(Networks { form, entries })
}

fn parse_json(text: &str) -> Result<Networks, ParseError> {
    let value: Value = serde_json::from_str(text).map_err(|e| {
        let offset = offset_of(text, e.line(), e.column());
        ParseError::new(offset, json_reason(&e))
    })?;
    let Value::Array(list) = value else {
        let at = text.len() - text.trim_start().len();
        return Err(ParseError::new(
            at,
            "it is JSON but not a list; put the entries between [ and ]",
        ));
    };
    let mut entries = Vec::with_capacity(list.len());
    for (i, item) in list.into_iter().enumerate() {
        entries.push(entry(item).map_err(|message| {
            let offset = element_offset(text, i);
            ParseError::new(offset, format!("entry {}: {message}", i + 1))
        })?);
    }
    let form = Form::Json;
    Ok(Networks { form, entries })
}

/// Checks what Multus would refuse; keys we do not know pass.
fn entry(item: Value) -> Result<Entry, String> {
    let Value::Object(map) = item else {
        return Err("it is not an object such as {\"name\": \"n2\"}".into());
    };
    for (key, value) in &map {
        // Go reads null as "not written".
        if value.is_null() {
            continue;
        }
        match key.as_str() {
            "name" | "namespace" => {
                let text = string(key, value)?;
                if !text.is_empty() {
                    check_name(key, text)?;
                }
            }
            "interface" | "interfaceRequest" => {
                let text = string(key, value)?;
                if !text.is_empty() {
                    check_interface(text)?;
                }
            }
            "ips" => {
                for ip in one_or_more(key, value)? {
                    if ip.parse::<IpAddr>().is_err() && ip.parse::<HostCidr>().is_err() {
                        return Err(format!("ips: {ip:?} is not an address"));
                    }
                }
            }
            "mac" => {
                let text = string(key, value)?;
                if !text.is_empty() {
                    text.parse::<Mac>().map_err(|e| format!("mac: {e}"))?;
                }
            }
            "default-route" => {
                let list = value
                    .as_array()
                    .ok_or("default-route: it is a list of gateways")?;
                for gateway in list {
                    let text = string(key, gateway)?;
                    text.parse::<IpAddr>().map_err(|_| {
                        format!("default-route: {text:?} is not a gateway's address")
                    })?;
                }
            }
            "cni-args" if !value.is_object() => {
                return Err("cni-args: it is not an object".into());
            }
            _ => {}
        }
    }
    let entry = Entry(map);
    if entry.name().is_empty() {
        return Err("it has no name".into());
    }
    Ok(entry)
}

fn string<'v>(key: &str, value: &'v Value) -> Result<&'v str, String> {
    value
        .as_str()
        .ok_or_else(|| format!("{key}: {value} is not a string"))
}

fn one_or_more<'v>(key: &str, value: &'v Value) -> Result<Vec<&'v str>, String> {
    match value {
        Value::Array(list) => list.iter().map(|v| string(key, v)).collect(),
        one => Ok(vec![string(key, one)?]),
    }
}

fn check_interface(name: &str) -> Result<(), String> {
    name.parse::<IfName>().map(drop).map_err(|e| e.to_string())
}

/// The short form takes no dots: Multus matches a DNS label, not a subdomain.
fn check_label(key: &str, text: &str) -> Result<(), String> {
    check_name(key, text)?;
    if text.contains('.') {
        return Err(format!(
            "{key}: {text:?} has a dot; write it in the JSON form"
        ));
    }
    Ok(())
}

fn check_name(key: &str, text: &str) -> Result<(), String> {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let inner = |c: u8| plain(c) || c == b'-' || c == b'.';
    let bytes = text.as_bytes();
    let good = bytes.first().copied().is_some_and(plain)
        && bytes.last().copied().is_some_and(plain)
        && bytes.iter().copied().all(inner);
    if good {
        Ok(())
    } else {
        Err(format!(
            "{key}: {text:?} is not a name; use lower-case letters, digits and dashes"
        ))
    }
}

/// serde_json's text repeats line and column; ours has the offset.
fn json_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or(&text);
    format!("it is not JSON: {reason}")
}

/// serde_json counts lines and byte columns from 1, and column 0 for "before this line".
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let mut offset = (before + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// Where element `index` of a valid top-level JSON list begins.
fn element_offset(text: &str, index: usize) -> usize {
    let (mut depth, mut seen, mut quoted, mut escaped) = (0_u32, 0, false, false);
    let mut starts_here = false;
    for (offset, c) in text.char_indices() {
        if starts_here && !c.is_whitespace() {
            if seen == index {
                return offset;
            }
            starts_here = false;
            seen += 1;
        }
        if quoted {
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '"' => quoted = true,
            '[' | '{' => {
                starts_here = depth == 0;
                depth += 1;
            }
            ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 1 => starts_here = true,
            _ => {}
        }
    }
    text.len()
}
