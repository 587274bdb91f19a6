//! A field path on the stack: a chain of steps that becomes text only when a finding needs it.

use std::fmt;

#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(super) fn field(&'a self, name: &'a str) -> Self {
        Self::Field(self, name)
    }

    /// A key of a free map: labels have dots and slashes.
    pub(super) fn key(&'a self, name: &'a str) -> Self {
        Self::Key(self, name)
    }

    /// The spec of the object.
    pub(super) fn is_spec(&self) -> bool {
        matches!(self, Self::Field(Self::Root, "spec"))
    }

    pub(super) fn index(&'a self, i: usize) -> Self {
        Self::Index(self, i)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Key(parent, name) => write!(f, "{parent}[{name}]"),
            Self::Index(parent, i) => write!(f, "{parent}[{i}]"),
        }
    }
}
