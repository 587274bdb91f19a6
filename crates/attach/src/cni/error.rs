//! The error a plugin prints, with the code a runtime acts on.
//!
//! Made by everything that serves a CNI call. Easy to get wrong: the code is read by programs (11 means "ask
//! again", 3 means "no DEL needed"), so 999 is for what nobody can act on.

use std::error::Error;
use std::fmt::{self, Display};

use serde_json::{Map, Value, json};

use super::version::Version;

/// `{code, msg, details}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CniError {
    /// What a runtime acts on.
    pub code: u32,
    /// One sentence for a person.
    pub msg: String,
    /// More of it, or empty.
    pub details: String,
}

impl CniError {
    /// The configuration's version is not spoken.
    pub const VERSION: u32 = 1;
    /// A field that is not supported; the message has key and value.
    pub const UNSUPPORTED: u32 = 2;
    /// The container is not known; the runtime need not call DEL.
    pub const UNKNOWN_CONTAINER: u32 = 3;
    /// The environment is wrong or lacks something.
    pub const ENV: u32 = 4;
    /// Reading or writing failed.
    pub const IO: u32 = 5;
    /// Bytes that are not what they should be.
    pub const DECODE: u32 = 6;
    /// The configuration is wrong.
    pub const CONFIG: u32 = 7;
    /// The network namespace is wrong.
    pub const NETNS: u32 = 8;
    /// It may work later.
    pub const TRY_AGAIN: u32 = 11;
    /// STATUS: no ADD can succeed.
    pub const UNAVAILABLE: u32 = 50;
    /// STATUS: no ADD can succeed, and what exists may be impaired.
    pub const LIMITED: u32 = 51;
    /// Everything else, as the reference library numbers it.
    pub const INTERNAL: u32 = 999;

    /// Code and sentence.
    pub fn new(code: u32, msg: impl Into<String>) -> Self {
        Self {
            code,
            msg: msg.into(),
            details: String::new(),
        }
    }

    /// A value of the configuration is wrong; `field` is its path, `why` says what is right.
    pub fn config(field: &str, why: impl Display) -> Self {
        Self::new(
            Self::CONFIG,
            format!("invalid configuration: {field}: {why}"),
        )
    }

    /// A key that this plugin does not do, with its value.
    pub fn unsupported(field: &str, value: impl Display) -> Self {
        Self::new(
            Self::UNSUPPORTED,
            format!("unsupported field: {field} = {value}"),
        )
    }

    /// The environment is wrong.
    pub fn env(msg: impl Into<String>) -> Self {
        Self::new(Self::ENV, msg)
    }

    /// Reading or writing failed: what was being done, and the cause.
    pub fn io(doing: impl Into<String>, cause: impl Display) -> Self {
        Self::new(Self::IO, doing).with_details(cause.to_string())
    }

    /// Foreign bytes could not be read: whose, and why.
    pub fn decode(what: impl Display, why: impl Display) -> Self {
        Self::new(Self::DECODE, format!("cannot decode {what}")).with_details(why.to_string())
    }

    /// The namespace at `path` is wrong.
    pub fn netns(path: impl Display, why: impl Display) -> Self {
        Self::new(Self::NETNS, format!("network namespace {path}: {why}"))
    }

    /// It may work later, unchanged.
    pub fn try_again(msg: impl Into<String>) -> Self {
        Self::new(Self::TRY_AGAIN, msg)
    }

    /// STATUS: an ADD cannot succeed now.
    pub fn unavailable(msg: impl Into<String>) -> Self {
        Self::new(Self::UNAVAILABLE, msg)
    }

    /// Nothing a runtime can act on.
    pub fn internal(msg: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL, msg)
    }

    /// The same with details; earlier ones stay in front.
    #[must_use]
    pub fn with_details(mut self, details: impl Into<String>) -> Self {
        let more = details.into();
        if self.details.is_empty() {
            self.details = more;
        } else if !more.is_empty() {
            self.details = format!("{}; {more}", self.details);
        }
        self
    }

    /// The same with the whole chain of causes as details.
    #[must_use]
    pub fn because(self, cause: &dyn Error) -> Self {
        let mut text = cause.to_string();
        let mut next = cause.source();
        while let Some(cause) = next {
            text = format!("{text}: {cause}");
            next = cause.source();
        }
        self.with_details(text)
    }

    /// What was being done goes in front of the message.
    #[must_use]
    pub fn while_doing(mut self, doing: impl Display) -> Self {
        self.msg = format!("{doing}: {}", self.msg);
        self
    }

    /// Several failures of a teardown as one: the first one's code, every message. `None` when there is none.
    pub fn all(errors: Vec<Self>) -> Option<Self> {
        let mut errors = errors.into_iter();
        let mut first = errors.next()?;
        for other in errors {
            first = first.with_details(other.to_string());
        }
        Some(first)
    }

    /// What is printed. The reference library leaves `cniVersion` out, the specification wants it.
    pub fn to_json(&self, version: Option<Version>) -> Value {
        let mut object = Map::new();
        let version = version.unwrap_or(Version::NEWEST);
        object.insert("cniVersion".into(), json!(version.as_str()));
        object.insert("code".into(), json!(self.code));
        object.insert("msg".into(), json!(self.msg));
        if !self.details.is_empty() {
            object.insert("details".into(), json!(self.details));
        }
        Value::Object(object)
    }

    /// The error of a delegate, from what it printed; `None` when that is no error object.
    pub fn from_json(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let code = value.get("code").and_then(Value::as_u64)?;
        Some(Self {
            code: u32::try_from(code).unwrap_or(Self::INTERNAL),
            msg: text("msg")?,
            details: text("details").unwrap_or_default(),
        })
    }
}

impl Display for CniError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.msg)?;
        if !self.details.is_empty() {
            write!(f, "; {}", self.details)?;
        }
        Ok(())
    }
}

impl Error for CniError {}
