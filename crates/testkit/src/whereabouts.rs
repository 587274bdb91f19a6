//! The built whereabouts as a peer: an IPAM plugin that keeps what is taken on an API server.
//!
//! Called as a runtime calls it: CNI variables, the configuration on stdin, one process per call. Easy to get wrong: it
//! finds its API server by a file that `ipam.configuration_path` names, so the caller puts [`Whereabouts::settings`] there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::bounded::bounded;
use crate::{ControlPlane, Said, component, must};

/// How long one call may take: it waits two minutes for its turn.
const BOUND: Duration = Duration::from_secs(150);

/// Its kinds. Only that they are kept and served: what they hold is its own affair.
const CRDS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ippools.whereabouts.cni.cncf.io}
spec:
  group: whereabouts.cni.cncf.io
  scope: Namespaced
  names: {kind: IPPool, listKind: IPPoolList, plural: ippools, singular: ippool}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: overlappingrangeipreservations.whereabouts.cni.cncf.io}
spec:
  group: whereabouts.cni.cncf.io
  scope: Namespaced
  names:
    kind: OverlappingRangeIPReservation
    listKind: OverlappingRangeIPReservationList
    plural: overlappingrangeipreservations
    singular: overlappingrangeipreservation
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

/// whereabouts beside an API server.
pub struct Whereabouts {
    program: PathBuf,
    dir: tempfile::TempDir,
}

impl Whereabouts {
    /// With its kinds installed. Where it was not built it is a counted skip `whereabouts-absent`, and `None`.
    #[track_caller]
    pub fn beside(plane: &ControlPlane) -> Option<Self> {
        let built = component(
            "whereabouts",
            "a peer that hands out addresses of a cluster",
        )?;
        let dir = must(
            tempfile::tempdir(),
            "make",
            Path::new("a temporary directory"),
        );
        let crds = dir.path().join("crds");
        must(std::fs::create_dir(&crds), "make", &crds);
        let file = crds.join("whereabouts.yaml");
        must(std::fs::write(&file, CRDS), "write", &file);
        plane.install_crds(&crds);
        let settings = format!(
            "{{\"kubernetes\":{{\"kubeconfig\":\"{}\"}}}}\n",
            plane.kubeconfig().display()
        );
        let whereabouts = Self {
            program: built.join("bin/whereabouts"),
            dir,
        };
        let file = whereabouts.settings();
        must(std::fs::write(&file, settings), "write", &file);
        Some(whereabouts)
    }

    /// The file for `ipam.configuration_path`: where the API server is.
    pub fn settings(&self) -> PathBuf {
        self.dir.path().join("whereabouts.conf")
    }

    /// `ADD` or `DEL` of one pod's interface, with a network configuration.
    #[track_caller]
    pub fn call(&self, verb: &str, config: &str, pod: &str) -> Said {
        let mut whereabouts = Command::new(&self.program);
        whereabouts
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", pod)
            // It hands out addresses and enters nothing: ours will do.
            .env("CNI_NETNS", "/proc/self/ns/net")
            .env("CNI_NETNS_OVERRIDE", "true")
            .env("CNI_IFNAME", "net1")
            .env("CNI_PATH", self.dir.path())
            .env(
                "CNI_ARGS",
                format!("IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME={pod}"),
            );
        bounded(&mut whereabouts, config, BOUND)
            .unwrap_or_else(|e| panic!("cannot run whereabouts: {e}"))
    }
}
