//! What a person is told: one type, made by `check` and `decide`, shown unchanged by every hand.
//!
//! A deciding room names the object and the field; it has no file names. `package` fills in
//! [`Finding::location`] from the document's spans before anybody prints it.

mod code;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use code::Code;

use crate::ObjectRef;

/// How bad it is. An error stops the run before anything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is written.
    Error,
    /// Done, but read this.
    Warning,
    /// For the record.
    Info,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
        })
    }
}

/// Where in the files. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Location {
    /// Path as the user would type it, with `/`.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Something a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which kind of thing; also the condition's reason.
    pub code: Code,
    /// How bad.
    pub severity: Severity,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// Field path inside the object: `spec.sriovSpec.pfName`, `spec.prefixes[0].prefix`,
    /// `metadata.annotations[mooring.dev/routes]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// File and line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// What happened, as a sentence.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub help: String,
}

impl Finding {
    /// An error. Add object, field and help with the builder methods.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, message)
    }

    /// A warning.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, message)
    }

    /// For the record.
    pub fn info(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Info, message)
    }

    fn new(code: Code, severity: Severity, message: impl Into<String>) -> Self {
        let (object, field, location) = (None, None, None);
        Self {
            code,
            severity,
            object,
            field,
            location,
            message: message.into(),
            help: String::new(),
        }
    }

    /// About this object.
    #[must_use]
    pub fn on(mut self, object: &ObjectRef) -> Self {
        self.object = Some(object.clone());
        self
    }

    /// At this field path.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// In this place of a file.
    #[must_use]
    pub fn located(mut self, file: impl Into<String>, line: u32, column: u32) -> Self {
        self.location = Some(Location {
            file: file.into(),
            line,
            column,
        });
        self
    }

    /// What to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// Whether it stops the run.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        write!(f, "{} [{}]: ", self.severity, self.code)?;
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        f.write_str(&self.message)
    }
}
