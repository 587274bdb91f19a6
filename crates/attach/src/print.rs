//! How we print JSON that stands inside YAML: readable, stable, and always the same for the same value.

use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// One line, with a blank after every comma and colon: `{"name": "n2", "ips": ["10.1.2.20/24"]}`.
pub(crate) fn line(value: &Value) -> String {
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, Spaced);
    value
        .serialize(&mut serializer)
        .expect("a Value has string keys and a Vec takes every byte");
    String::from_utf8(out).expect("serde_json writes UTF-8")
}

/// A key per line, indented by two, as the seed prints a NAD's configuration.
pub(crate) fn block(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("a Value has string keys")
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
