//! What the binary carries with it: the example fleet for `moor demo`, the pages for `moor explain`.
//!
//! Both are tables written by hand; tests compare them with the directories, so a new file cannot be forgotten.

use mooring_api::Code;

macro_rules! files {
    ($root:literal: $($path:literal,)+) => {
        &[$(($path, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../", $root, "/", $path))),)+]
    };
}

/// The example fleet: path below `examples/fleet`, and text.
pub(crate) const FLEET: &[(&str, &str)] = files! { "examples/fleet":
    "amf/Kptfile",
    "amf/deployment.yaml",
    "amf/interface-n2.yaml",
    "edge-gnb/Kptfile",
    "edge-gnb/interfaces.yaml",
    "edge-gnb/networks.yaml",
    "edge-gnb/statefulset.yaml",
    "gnb/Kptfile",
    "gnb/deployment.yaml",
    "gnb/interface-n2.yaml",
    "gnb/interface-n3.yaml",
    "mgmt/clusters.yaml",
    "mgmt/networks.yaml",
    "mgmt/pools.yaml",
    "upf/Kptfile",
    "upf/deployment.yaml",
    "upf/interface-n3.yaml",
    "upf/interface-n6.yaml",
};

/// The pages of `docs/findings`: file and text.
const PAGES: &[(&str, &str)] = files! { "docs/findings":
    "AddressCooling.md",
    "AddressDiffers.md",
    "AddressHeld.md",
    "AddressNotKept.md",
    "AddressNotUsable.md",
    "AddressOutsidePrefix.md",
    "AddressOutsideSubnet.md",
    "AliasBomb.md",
    "AllNodesSelected.md",
    "AmbiguousCluster.md",
    "AmbiguousWorkload.md",
    "ApplyRefused.md",
    "AsNumberMissing.md",
    "AttachmentDrifted.md",
    "BlueprintMissing.md",
    "BookBusy.md",
    "BookNewer.md",
    "BookUnreadable.md",
    "ClaimPending.md",
    "ClusterAddressOnFabric.md",
    "ClusterNetworkOverlap.md",
    "ClusterNetworksUnknown.md",
    "ConfigurationBroken.md",
    "ConfigurationShadowed.md",
    "Conflict.md",
    "ConnectionNotAllowed.md",
    "CopiedPackage.md",
    "DelimiterInValue.md",
    "DownstreamTaken.md",
    "DuplicateAddress.md",
    "DuplicateInjectionPoint.md",
    "DuplicateInterface.md",
    "DuplicateObject.md",
    "DynamicUpfAddress.md",
    "ExternalIpam.md",
    "FamilyMismatch.md",
    "FieldConflict.md",
    "FieldDropped.md",
    "FileInTheWay.md",
    "FileTooLarge.md",
    "FileUnreadable.md",
    "FileUnwritable.md",
    "Frozen.md",
    "HostLocalNotPinned.md",
    "ImportInvalid.md",
    "InjectionMissing.md",
    "InstanceNameMismatch.md",
    "InterfaceNameShortened.md",
    "InterfaceNameTaken.md",
    "InvalidAnnotation.md",
    "InvalidExpression.md",
    "InvalidField.md",
    "InvalidGateway.md",
    "InvalidNad.md",
    "InvalidNetworksAnnotation.md",
    "LabelMismatch.md",
    "LowLevelObject.md",
    "MetaPluginUnused.md",
    "MirrorLoop.md",
    "MissingCluster.md",
    "MissingNodes.md",
    "MissingRoute.md",
    "MtuTooLarge.md",
    "MultipleVRFs.md",
    "NadAsPrimary.md",
    "NadMissing.md",
    "NameTaken.md",
    "NetworksOnHostNetwork.md",
    "NoDestinationMatched.md",
    "NoFittingNic.md",
    "NoLoopback.md",
    "NoMatchingPrefix.md",
    "NoNodesSelected.md",
    "NotCarried.md",
    "NotProcessed.md",
    "NothingSelected.md",
    "ObjectTaken.md",
    "OverlappingPrefixes.md",
    "OverlappingRanges.md",
    "PackageBusy.md",
    "PackageMissing.md",
    "PathOutsidePackage.md",
    "PoolChangeRefused.md",
    "PoolExhausted.md",
    "PrefixOutsideInstance.md",
    "RecreateSet.md",
    "ReferenceNotFound.md",
    "RenderInterrupted.md",
    "RenderRecovered.md",
    "SharedStaticAddress.md",
    "SharedVlan.md",
    "SourceEmpty.md",
    "SourceUnreadable.md",
    "SriovResourceMissing.md",
    "StateLeftOver.md",
    "StateUnreadable.md",
    "StaticWithoutAddress.md",
    "StatusNotCommitted.md",
    "SurgingStrategy.md",
    "TransferRangeMissing.md",
    "TwoCarriers.md",
    "UnknownField.md",
    "UnknownFunction.md",
    "UnknownKind.md",
    "UnknownNetworkInstance.md",
    "UnknownPhysicalFunction.md",
    "UnknownRepository.md",
    "UnknownWorkload.md",
    "UnsupportedCni.md",
    "VNIUnresolved.md",
    "VRFTableBudgetExceeded.md",
    "VfIndexIgnored.md",
    "VlanMissing.md",
    "WaitingForPackage.md",
    "WrongScope.md",
    "YamlInvalid.md",
};

/// The page of a finding, where there is one.
pub(crate) fn finding_page(code: Code) -> Option<&'static str> {
    let is_page = |(file, _): &&(&str, &str)| file.strip_suffix(".md") == Some(code.as_str());
    PAGES.iter().find(is_page).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn paths(dir: &Path, below: &str, into: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                paths(&entry.path(), &format!("{name}/"), into);
            } else {
                into.push(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_example_fleet_is_embedded() {
        let mut there = Vec::new();
        let root = mooring_testkit::workspace_root().join("examples/fleet");
        paths(&root, "", &mut there);
        there.sort();
        let embedded: Vec<&str> = FLEET.iter().map(|(path, _)| *path).collect();
        assert_eq!(embedded, there);
    }

    #[test]
    fn every_finding_has_its_page_embedded() {
        let dir = mooring_testkit::workspace_root().join("docs/findings");
        for code in Code::ALL {
            let written = fs::read_to_string(dir.join(format!("{code}.md"))).ok();
            assert_eq!(
                finding_page(*code),
                written.as_deref(),
                "{code}: add its page to PAGES"
            );
        }
    }
}
