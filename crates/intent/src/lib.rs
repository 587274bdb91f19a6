//! Decides: intents and low-level kinds become one typed form, a revision, node configuration and platform objects.
//!
//! ```text
//!  objects ─► Inputs ─► wants ─► (the book, or `allocate`) ─► Answers
//!                │                                              │
//!                └────────────► compile ◄───────────────────────┘ ◄─ Prior: what ran before
//!                                  │
//!      one Contribution per object ─► conflicts ─► Form ─► revision, nodes, platform, statuses
//! ```
//!
//! | the hands ask | and get |
//! |---|---|
//! | [`Inputs::read`] | objects as values, bad ones kept aside |
//! | [`wants()`] | addresses, transfer networks and claims, each under a key that stays |
//! | [`allocate()`] | answers, offline; in a cluster the book gives them |
//! | [`compile()`] | everything that follows: [`Compiled`], whose contributions are the next [`Prior`] |
//! | [`recompile()`] | the same, faster after a small change |
//! | [`plan()`], [`explain()`], [`graph()`] | what changes between two, why something is there, the picture |
//! | [`admit()`] | whether one object may be stored beside the others, before anybody else sees it |
//! | [`adopt()`] | intents for low-level objects, with the proof that nothing changes |
//! | [`trace::trace()`] | where a packet goes on a node |
//! | [`rollout::next()`] | which node is next, and when to go back |
//!
//! Same input, same bytes.
//!
//! Easy to get wrong: an object is all or nothing. One that loses a conflict, or names what does not exist, is set aside
//! whole; one that ran before stays in its last good form, which is its [`Contribution`] of that time and not its spec,
//! so that it no longer depends on anything that is there now.

mod admit;
mod adopt;
mod answers;
mod compile;
mod conflict;
mod explain;
mod form;
mod graph;
mod input;
mod node;
mod plan;
mod platform;
mod reach;
mod revision;
pub mod rollout;
mod scope;
mod status;
pub mod trace;

pub use admit::{Admission, admit};
pub use adopt::{Adoption, adopt};
pub use answers::{Answers, Source, Want, allocate, wants};
pub use compile::{Compiled, Contribution, Placed, Prior, compile, recompile};
pub use explain::{Origin, Question, Reason, explain};
pub use form::{
    Aggregate, Form, HostDevice, Item, Leak, LocalVrf, Loopback, Mirror, MirrorOn, Peer,
    PrefixRule, Segment, Side, Steer, Tunnel, VrfItem, Who,
};
pub use graph::{Dot, Graph, graph};
pub use input::{Inputs, KINDS, Node, Object};
pub use node::NodeConfig;
pub use plan::{Part, Plan, plan};
pub use platform::AllowedNad;
pub use revision::PART;
pub use scope::Scope;
