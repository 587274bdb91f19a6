//! What every test of the packages role begins with: an API server, Git behind a password, one program that looks at Git every
//! second; and per test a namespace, two repositories, a blueprint, a cluster and a pool that nobody else has.
//!
//! Easy to get wrong: pools are seen from everywhere, so each scene has a prefix of its own, by its number.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use mooring_api::Time;
use mooring_package::Files;
use mooring_package::git::{Git, Repository};
use mooring_package::revision::{Base, Draft, Packages, Seen, Which};
use mooring_testkit::GitServer;
use serde_json::{Value, json};

use crate::harness::{Cluster, Controller, condition, until};

/// A cluster with the program beside it, and a Git server.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) git: GitServer,
    pub(crate) controller: Mutex<Controller>,
    cache: tempfile::TempDir,
}

impl Stage {
    /// The one that all tests of this role share. None where there is no API server.
    pub(crate) fn shared() -> Option<&'static Self> {
        static STAGE: OnceLock<Option<Stage>> = OnceLock::new();
        // Asked by every test: each that finds nothing is one that was skipped.
        mooring_testkit::ControlPlane::shared()?;
        STAGE.get_or_init(Self::own).as_ref()
    }

    /// One for a test that breaks it.
    pub(crate) fn own() -> Option<Self> {
        Some(Self::over(Cluster::own()?))
    }

    /// One on this cluster.
    pub(crate) fn over(cluster: Cluster) -> Self {
        Self::with(cluster, &["packages"], &["--git-poll=1s"])
    }

    /// The same with other roles and arguments.
    pub(crate) fn with(cluster: Cluster, roles: &[&str], args: &[&str]) -> Self {
        let controller = Controller::start(&cluster, roles, args);
        Self {
            cluster,
            git: GitServer::start(),
            controller: Mutex::new(controller),
            cache: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn controller(&self) -> MutexGuard<'_, Controller> {
        self.controller
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A scene in a namespace of its own.
    pub(crate) fn scene(&self, name: &str, number: u8) -> Scene<'_> {
        let scene = Scene {
            stage: self,
            name: name.to_owned(),
            number,
        };
        scene.set();
        scene
    }
}

/// A namespace with repositories, a blueprint, a cluster and a pool.
pub(crate) struct Scene<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) name: String,
    number: u8,
}

impl Drop for Scene<'_> {
    /// Nobody looks at its Git any more. The program of a shared stage would, every second, to the end of all tests.
    fn drop(&mut self) {
        let ns = &self.name;
        let path = format!("/apis/config.porch.kpt.dev/v1alpha1/namespaces/{ns}/repositories");
        // An API server that the test took away has nothing to forget.
        let _ = self.stage.cluster.request("DELETE", &path, None);
    }
}

impl Scene<'_> {
    fn set(&self) {
        let Self {
            stage,
            name,
            number,
        } = self;
        stage.cluster.namespace(name);
        for repository in ["blueprints", "edge"] {
            stage.git.create(&format!("{name}-{repository}"));
        }
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "git" },
            "stringData": { "username": stage.git.user(), "password": stage.git.token() },
        });
        let secrets = format!("/api/v1/namespaces/{name}/secrets");
        stage.cluster.create(&secrets, &secret);
        self.repository("blueprints", false);
        self.repository("edge", true);
        self.publish_blueprint(&self.blueprint());
        stage.cluster.apply(&format!(
            "apiVersion: ipam.resource.nephio.org/v1alpha1
kind: NetworkInstance
metadata: {{name: vpc-{name}, namespace: default}}
spec: {{prefixes: [{{prefix: 10.{number}.0.0/16}}]}}
---
apiVersion: ipam.resource.nephio.org/v1alpha1
kind: IPPrefix
metadata:
  name: pool-{name}
  namespace: default
  annotations: {{mooring.dev/ranges: 10.{number}.2.20-10.{number}.2.250}}
spec: {{kind: network, prefix: 10.{number}.2.0/24, networkInstance: {{name: vpc-{name}, namespace: default}}}}
"
        ));
        self.cluster("edge01", "ens3");
    }

    /// A WorkloadCluster with this NIC.
    pub(crate) fn cluster(&self, name: &str, nic: &str) {
        self.stage.cluster.apply(&format!(
            "apiVersion: infra.nephio.org/v1alpha1
kind: WorkloadCluster
metadata: {{name: {name}, namespace: {}}}
spec: {{clusterName: {name}, cnis: [macvlan], masterInterface: {nic}}}
",
            self.name
        ));
    }

    fn repository(&self, name: &str, deployment: bool) {
        self.stage.cluster.apply(&format!(
            "apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {{name: {name}, namespace: {ns}}}
spec: {{type: git, deployment: {deployment}, git: {{repo: {url}, branch: main, secretRef: {{name: git}}}}}}
",
            ns = self.name,
            url = self.stage.git.url(&format!("{}-{name}", self.name)),
        ));
    }

    /// The files of a blueprint with one interface.
    pub(crate) fn blueprint(&self) -> Files {
        let network = format!("vpc-{}", self.name);
        let texts = [
            ("Kptfile", "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: upf\n  annotations:\n    config.kubernetes.io/local-config: \"true\"\n".to_owned()),
            ("package-context.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kptfile.kpt.dev\n  annotations:\n    config.kubernetes.io/local-config: \"true\"\ndata:\n  name: example\n".to_owned()),
            ("workload-cluster.yaml", "# A placeholder.\napiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: workload-cluster\n  annotations:\n    config.kubernetes.io/local-config: \"true\"\n    kpt.dev/config-injection: required\nspec:\n  clusterName: example\n".to_owned()),
            ("interface-n3.yaml", format!("apiVersion: req.nephio.org/v1alpha1\nkind: Interface\nmetadata:\n  name: n3\nspec:\n  networkInstance:\n    name: {network}\n  cniType: macvlan\n")),
            ("deployment.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: upf\nspec:\n  replicas: 1\n  strategy:\n    type: Recreate\n  selector:\n    matchLabels:\n      app: upf\n  template:\n    metadata:\n      labels:\n        app: upf\n    spec:\n      containers:\n      - name: upf\n        image: upf:latest\n".to_owned()),
        ];
        texts
            .map(|(path, text)| (path.to_owned(), text.into_bytes()))
            .into()
    }

    /// The packages of one of the repositories, as a person has them on disk.
    pub(crate) fn packages(&self, repository: &str) -> Packages {
        let bare: PathBuf = self.stage.git.path(&format!("{}-{repository}", self.name));
        let now = u64::try_from(jiff::Timestamp::now().as_second()).unwrap();
        let git = Git::new(self.stage.cache.path(), Time(now));
        Packages::new(git, Repository::new(bare.to_str().unwrap()))
    }

    /// Publishes a version of the blueprint.
    pub(crate) fn publish_blueprint(&self, files: &Files) {
        self.draft("blueprints", "upf", "edit", files);
        self.approve("blueprints", "upf", "edit");
    }

    /// Pushes a draft, as a person does.
    pub(crate) fn draft(&self, repository: &str, package: &str, workspace: &str, files: &Files) {
        let draft = Draft {
            package: package.parse().unwrap(),
            workspace: workspace.parse().unwrap(),
            files: files.clone(),
            base: Base::Any,
            onto_published: false,
            message: None,
        };
        self.packages(repository).write(&draft).unwrap();
    }

    /// Proposes and approves, as a person does.
    pub(crate) fn approve(&self, repository: &str, package: &str, workspace: &str) {
        let packages = self.packages(repository);
        let (package, workspace) = (package.parse().unwrap(), workspace.parse().unwrap());
        packages.propose(&package, &workspace, None, None).unwrap();
        packages.approve(&package, &workspace, None, None).unwrap();
    }

    /// Removes a draft or proposal, as a person does.
    pub(crate) fn discard(&self, repository: &str, package: &str, workspace: &str) {
        let (package, workspace) = (package.parse().unwrap(), workspace.parse().unwrap());
        self.packages(repository)
            .discard(&package, &workspace)
            .unwrap();
    }

    /// Everything that Git has of a package.
    pub(crate) fn look(&self, package: &str) -> Seen {
        self.packages("edge")
            .look(&package.parse().unwrap())
            .unwrap()
    }

    /// The files that are published; None where nothing is.
    pub(crate) fn published(&self, package: &str) -> Option<Files> {
        let read = self
            .packages("edge")
            .read(&package.parse().unwrap(), &Which::Deployed)
            .unwrap();
        read.map(|content| content.files)
    }

    /// Applies a variant of the blueprint with more lines of its spec.
    pub(crate) fn variant(&self, name: &str, package: &str, more: &str) {
        self.variant_of(1, name, package, more);
    }

    /// A variant of this revision of the blueprint.
    pub(crate) fn variant_of(&self, revision: u32, name: &str, package: &str, more: &str) {
        self.stage.cluster.apply(&format!(
            "apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata: {{name: {name}, namespace: {ns}}}
spec:
  upstream: {{repo: blueprints, package: upf, revision: {revision}}}
  downstream: {{repo: edge, package: {package}}}
  injectors: [{{kind: WorkloadCluster, name: edge01}}]
  packageContext: {{data: {{namespace: core}}}}
{more}
",
            ns = self.name
        ));
    }

    pub(crate) fn path(&self, variant: &str) -> String {
        let ns = &self.name;
        format!("/apis/config.porch.kpt.dev/v1alpha1/namespaces/{ns}/packagevariants/{variant}")
    }

    pub(crate) fn get(&self, variant: &str) -> Option<Value> {
        self.stage.cluster.get(&self.path(variant))
    }

    /// Waits for a condition of a variant, and gives the variant.
    #[track_caller]
    pub(crate) fn awaits(&self, variant: &str, kind: &str, wanted: (&str, &str)) -> Value {
        let what = format!("{}/{variant} is {kind}={wanted:?}", self.name);
        until(&what, || {
            let object = self.get(variant).ok_or("no such variant")?;
            match condition(&object, kind) {
                Some(seen) if seen == wanted => Ok(object),
                _ => Err(format!("{}\n{}", object["status"], self.log())),
            }
        })
    }

    /// The last lines that the program said.
    fn log(&self) -> String {
        let log = self.stage.controller().log();
        let ours = log
            .lines()
            .filter(|line| line.contains(&self.name) || line.contains("WARN"));
        let last: Vec<&str> = ours.collect();
        last[last.len().saturating_sub(8)..].join("\n")
    }

    /// The leases of this scene's pool: address and state, in order.
    pub(crate) fn leases(&self) -> Vec<(String, String)> {
        let all = self
            .stage
            .cluster
            .list("/apis/mooring.dev/v1alpha1/ipleases");
        let instance = format!("vpc-{}", self.name);
        let ours = all
            .iter()
            .filter(|l| l["spec"]["instance"]["name"] == instance.as_str());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut list: Vec<_> = ours
            .map(|l| (text(&l["spec"]["address"]), text(&l["spec"]["state"])))
            .collect();
        list.sort();
        list
    }

    /// Waits until the pool's leases are exactly these: last octet and state.
    #[track_caller]
    pub(crate) fn awaits_leases(&self, wanted: &[(u8, &str)]) {
        let wanted: Vec<(String, String)> = wanted
            .iter()
            .map(|(octet, state)| (format!("10.{}.2.{octet}", self.number), (*state).to_owned()))
            .collect();
        until(
            &format!("the leases of {} are {wanted:?}", self.name),
            || {
                let seen = self.leases();
                let bare = self.stage.git.path(&format!("{}-edge", self.name));
                let refs = || Self::git(&bare, &["for-each-ref", "--format=%(refname)"]);
                let shown = || format!("{seen:?}\n{}\n{}", refs(), self.log());
                (seen == wanted).then_some(()).ok_or_else(shown)
            },
        );
    }

    /// An address of the scene's pool.
    pub(crate) fn address(&self, octet: u8) -> String {
        format!("10.{}.2.{octet}/24", self.number)
    }

    /// The address of the NAD in these files.
    #[track_caller]
    pub(crate) fn nad(files: &Files) -> String {
        let nad = files
            .get("networkattachmentdefinition_n3.yaml")
            .map(|b| String::from_utf8_lossy(b).into_owned());
        nad.unwrap_or_else(|| panic!("no NAD among {:?}", files.keys()))
    }

    /// A plain git command in a clone of a repository, as a person has it.
    pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
        let mut command = std::process::Command::new("git");
        command
            .current_dir(dir)
            .args(["-c", "user.name=x", "-c", "user.email=x@example.com"])
            .args(args);
        let said = command.output().unwrap();
        assert!(
            said.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&said.stderr)
        );
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    }
}
