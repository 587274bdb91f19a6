//! Names: what every other room calls things.
//!
//! Values are parsed at the door ([`Cidr`], [`HostCidr`], [`VlanId`], [`Mac`], [`IfName`], [`Selector`], [`AddrRange`]),
//! so a room that holds one never checks it again. [`Finding`] is the one thing every hand shows to a
//! person. The Kubernetes kinds live in [`kinds`], one file each, behind a feature per project; without
//! features this crate needs serde and ipnet and nothing else, which keeps the CNI binary small.
//!
//! Easy to get wrong: [`Cidr`] is a network (host bits refused), [`HostCidr`] is an address that knows
//! its subnet (host bits expected). Pick the one that says what you mean.

mod addr;
mod condition;
mod finding;
mod ifname;
#[cfg(feature = "kinds")]
pub mod kinds;
mod mac;
pub mod net;
mod object;
mod selector;
mod time;
mod value;
mod vlan;

pub use addr::{AddrRange, Cidr, Family, HostCidr};
pub use condition::{Condition, Status};
pub use finding::{Code, Finding, Location, Severity};
pub use ifname::IfName;
pub use mac::Mac;
pub use object::{ObjectRef, annotation, label};
pub use selector::{Expression, Operator, Selector};
pub use time::{Span, Time};
pub use value::BadValue;
pub use vlan::VlanId;
