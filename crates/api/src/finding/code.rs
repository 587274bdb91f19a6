//! Every finding code, in one table. A code is CamelCase, equals the condition's reason, and has a
//! page `docs/findings/<Code>.md` and a refuse case; `cargo xtask gen --check` ties them together.

use std::fmt;
use std::str::FromStr;

use crate::value::{BadValue, string_value};

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Which kind of finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// All codes, in the order of the table.
            pub const ALL: &[Code] = &[$(Code::$name,)+];

            /// The code as written.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }

            /// What it means, in one line.
            pub fn summary(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($doc),+).trim_ascii(),)+
                }
            }
        }
    };
}

codes! {
    // Files and documents.
    /// A file is not valid YAML.
    YamlInvalid,
    /// A file is larger than what is read.
    FileTooLarge,
    /// A file's aliases expand to more than what is read.
    AliasBomb,
    /// A path leads out of the package.
    PathOutsidePackage,
    /// A file or directory cannot be read.
    FileUnreadable,
    /// A file or directory cannot be written.
    FileUnwritable,
    /// A generated object would overwrite a file of yours.
    FileInTheWay,
    /// The directory holds no package.
    PackageMissing,
    /// Another process writes the same files.
    PackageBusy,
    /// An interrupted render was finished or undone.
    RenderRecovered,
    /// An interrupted render waits to be finished.
    RenderInterrupted,
    /// A field does not exist in the kind's schema.
    UnknownField,
    /// A field's value breaks the kind's schema.
    InvalidField,
    /// The definition of the kind that is installed drops a field that was written.
    FieldDropped,
    /// Two objects have the same kind, namespace and name.
    DuplicateObject,
    /// An annotation of ours does not have its grammar.
    InvalidAnnotation,
    /// The pipeline names a function that is not built in.
    UnknownFunction,

    // Packages and clusters.
    /// Two Interfaces have the same name.
    DuplicateInterface,
    /// More than one WorkloadCluster could be meant.
    AmbiguousCluster,
    /// No WorkloadCluster is known.
    MissingCluster,
    /// The package is a copy: its id is in use elsewhere.
    CopiedPackage,
    /// More than one workload could be meant.
    AmbiguousWorkload,
    /// The named workload is not in the package.
    UnknownWorkload,
    /// More than one pod would carry the same static address.
    SharedStaticAddress,
    /// A rollout would run two pods with the same static address.
    SurgingStrategy,
    /// A Deployment was given the Recreate strategy.
    RecreateSet,
    /// A required injection point found nothing.
    InjectionMissing,
    /// Nodes are needed for ranges per node.
    MissingNodes,
    /// A value that is written into a part of a text contains the delimiter.
    DelimiterInValue,
    /// The package waits for another one.
    WaitingForPackage,

    // Fleets.
    /// The blueprint of a variant is not there.
    BlueprintMissing,
    /// Two variants make the same package, or a package that is not theirs stands there.
    DownstreamTaken,
    /// A CEL expression is wrong, or gives something that cannot be used.
    InvalidExpression,
    /// A variant names a repository that is not there.
    UnknownRepository,
    /// A target selects nothing.
    NothingSelected,
    /// Two injection points have the same kind and name.
    DuplicateInjectionPoint,

    // Networks and addresses.
    /// The network instance does not exist.
    UnknownNetworkInstance,
    /// An instance's spec.name differs from its metadata.name.
    InstanceNameMismatch,
    /// Two prefixes overlap.
    OverlappingPrefixes,
    /// A prefix lies outside its network instance.
    PrefixOutsideInstance,
    /// No prefix fits the claim.
    NoMatchingPrefix,
    /// A pool cannot be changed that way.
    PoolChangeRefused,
    /// Every matching prefix is full.
    PoolExhausted,
    /// The wanted address or VLAN belongs to somebody else.
    AddressHeld,
    /// The wanted address is not in any matching prefix.
    AddressOutsidePrefix,
    /// The wanted address is the network, broadcast or gateway address, or is excluded.
    AddressNotUsable,
    /// A move to another IPAM flavour could not keep an address.
    AddressNotKept,
    /// An external system has not answered a claim yet.
    ExternalIpam,
    /// An address rests after its release.
    AddressCooling,
    /// The same address is used twice.
    DuplicateAddress,
    /// The same addresses would be handed out in two places.
    OverlappingRanges,

    // Interfaces and NICs.
    /// The cluster does not offer the CNI type.
    UnsupportedCni,
    /// No NIC of the cluster fits the CNI type.
    NoFittingNic,
    /// The SR-IOV physical function is not listed or not enabled.
    UnknownPhysicalFunction,
    /// A virtual function cannot be chosen by index.
    VfIndexIgnored,
    /// The interface name was shortened for the kernel.
    InterfaceNameShortened,
    /// A networks annotation cannot be read.
    InvalidNetworksAnnotation,
    /// The same interface name is asked for twice in one pod.
    InterfaceNameTaken,
    /// A NetworkAttachmentDefinition has a configuration that a CNI plugin would refuse.
    InvalidNad,
    /// An object of yours has the name of a generated one.
    NameTaken,

    // A fleet as it is, or will be, deployed.
    /// A node-local IPAM serves pods that may run on several nodes.
    HostLocalNotPinned,
    /// An address or a router lies outside the subnet of its network.
    AddressOutsideSubnet,
    /// No route leads to a subnet of the same network in another cluster.
    MissingRoute,
    /// A secondary network overlaps the pod or service network of its cluster.
    ClusterNetworkOverlap,
    /// The pod and service networks of a cluster are not known.
    ClusterNetworksUnknown,
    /// An address of a Service, of a pod or of an overlay stands on a fabric interface.
    ClusterAddressOnFabric,
    /// A network waits for an address that no workload gives it.
    StaticWithoutAddress,
    /// An address stands both in the NAD and in the annotation.
    TwoCarriers,
    /// A user plane function gets its address from a pool.
    DynamicUpfAddress,
    /// A NAD is used as the pod's primary interface.
    NadAsPrimary,
    /// A pod on the host's network asks for networks of its own.
    NetworksOnHostNetwork,
    /// A pod asks for a network that does not exist.
    NadMissing,
    /// The cluster does not have the VLAN.
    VlanMissing,
    /// Two networks share one VLAN.
    SharedVlan,
    /// A packet size is larger than what the NIC carries.
    MtuTooLarge,
    /// A CNI configuration file is never used, because another one sorts before it.
    MetaPluginUnused,

    // What a cluster follows in Git.
    /// What a cluster follows in Git cannot be read.
    SourceUnreadable,
    /// Nothing is left in Git of what a cluster follows.
    SourceEmpty,
    /// The API server does not serve the kind.
    UnknownKind,
    /// An object of the whole cluster names a namespace.
    WrongScope,
    /// Somebody else set a field that Git has another value for.
    FieldConflict,
    /// Another RootSync applied the object.
    ObjectTaken,
    /// The API server refuses an object.
    ApplyRefused,
    /// What became of a sync could not be committed back.
    StatusNotCommitted,

    // The book.
    /// Another process holds the book.
    BookBusy,
    /// The book cannot be read.
    BookUnreadable,
    /// The book, or an export of one, was written by a newer version.
    BookNewer,
    /// A file is not an export that could be imported.
    ImportInvalid,
    /// A holder has one address in the book and another one elsewhere.
    AddressDiffers,

    // Intents.
    /// A field is accepted and not acted upon.
    NotProcessed,
    /// The configuration of a node cannot say what an object asks for.
    NotCarried,
    /// A selector matches no Destination.
    NoDestinationMatched,
    /// An attachment has more than one VRF where one is allowed.
    MultipleVRFs,
    /// The VNI and route target of a VRF are not known.
    VNIUnresolved,
    /// An object selects no node.
    NoNodesSelected,
    /// An object without scope reaches every node.
    AllNodesSelected,
    /// Another object has what this one asks for.
    Conflict,
    /// An object is wrong now and keeps its last good form.
    Frozen,
    /// A subnet has no address for a gateway.
    InvalidGateway,
    /// A node would need more VRFs than it has tables for.
    VRFTableBudgetExceeded,
    /// An object names another one that does not exist.
    ReferenceNotFound,
    /// A mirror VRF has no loopback to send from.
    NoLoopback,
    /// A connection cannot be announced over BGP by workloads.
    ConnectionNotAllowed,
    /// An address has been asked for and is not there yet.
    ClaimPending,
    /// Two addresses of one thing are of different families.
    FamilyMismatch,
    /// Traffic of a mirror VRF would be mirrored into itself.
    MirrorLoop,
    /// No AS number is known for a BGP session.
    AsNumberMissing,
    /// No range for transfer networks is known.
    TransferRangeMissing,
    /// The SR-IOV resource of a worker group is not known.
    SriovResourceMissing,
    /// A low-level object is made by hand where intents are wanted.
    LowLevelObject,
    /// A label says something else than the field that it stands for.
    LabelMismatch,

    // The node.
    /// Something on the node is kept for somebody who is gone.
    StateLeftOver,
    /// A file of the node's state cannot be read as what it should be.
    StateUnreadable,
    /// An interface in a pod is not as it was made.
    AttachmentDrifted,
    /// The configuration that the runtime takes does not work.
    ConfigurationBroken,
    /// A configuration does nothing, because another one sorts before it.
    ConfigurationShadowed,
}

impl FromStr for Code {
    type Err = BadValue;

    fn from_str(s: &str) -> Result<Self, BadValue> {
        let known = Self::ALL.iter().find(|c| c.as_str() == s);
        known
            .copied()
            .ok_or_else(|| BadValue::new("a finding code", s, "see docs/findings"))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

string_value!(Code, "A finding code.");
