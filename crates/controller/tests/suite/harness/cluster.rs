//! An API server with our CRDs, and how a test talks to it: kubectl for what a person does, plain requests for looking.

use std::path::Path;
use std::sync::OnceLock;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use mooring_testkit::{ControlPlane, Said, workspace_root};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// An API server and a client of its administrator.
pub(crate) struct Cluster {
    plane: Plane,
    runtime: Runtime,
    client: Client,
}

enum Plane {
    Shared(&'static ControlPlane),
    Own(Box<ControlPlane>),
}

impl Cluster {
    /// The one that all tests share, with our CRDs. None where there is no API server: a counted skip, already said.
    pub(crate) fn shared() -> Option<&'static Self> {
        static CLUSTER: OnceLock<Cluster> = OnceLock::new();
        // Asked by every test: each that finds nothing is one that was skipped.
        let plane = ControlPlane::shared()?;
        Some(CLUSTER.get_or_init(|| {
            let cluster = Self::over(Plane::Shared(plane));
            cluster.install_ours();
            cluster
        }))
    }

    /// One of its own for a test that stops it, with our CRDs; it ends with the value.
    pub(crate) fn own() -> Option<Self> {
        let cluster = Self::bare()?;
        cluster.install_ours();
        Some(cluster)
    }

    /// One of its own without any CRD.
    pub(crate) fn bare() -> Option<Self> {
        Some(Self::over(Plane::Own(Box::new(ControlPlane::start()?))))
    }

    fn over(plane: Plane) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let kubeconfig = match &plane {
            Plane::Shared(plane) => plane.kubeconfig(),
            Plane::Own(plane) => plane.kubeconfig(),
        };
        let file = Kubeconfig::read_from(kubeconfig).unwrap();
        let client = runtime.block_on(async {
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(file, &options).await;
            Client::try_from(config.unwrap()).unwrap()
        });
        Self {
            plane,
            runtime,
            client,
        }
    }

    /// The components, for tests that stop them.
    pub(crate) fn plane(&self) -> &ControlPlane {
        match &self.plane {
            Plane::Shared(plane) => plane,
            Plane::Own(plane) => plane,
        }
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> &Path {
        self.plane().kubeconfig()
    }

    /// Our kinds without those of intents, which no role serves and which are most of the bytes.
    fn install_ours(&self) {
        let wanted = |file: &str| !file.starts_with("network.t-caas.telekom.com_");
        let dir = workspace_root().join("deploy/crds");
        self.plane().install_crds_where(&dir, wanted);
    }

    /// Applies a directory of CRDs and waits until they are served.
    #[track_caller]
    pub(crate) fn install(&self, dir: &Path) {
        self.plane().install_crds(dir);
    }

    /// What kubectl says.
    pub(crate) fn kubectl(&self, args: &[&str]) -> Said {
        self.plane().kubectl(args)
    }

    /// Applies YAML as a person does; a refusal fails the test.
    #[track_caller]
    pub(crate) fn apply(&self, yaml: &str) {
        self.try_apply(yaml).ok();
    }

    /// Applies YAML as a person does.
    pub(crate) fn try_apply(&self, yaml: &str) -> Said {
        let args = ["apply", "-f", "-"];
        self.plane().kubectl_stdin(&args, yaml)
    }

    /// Makes a namespace; one that is there is fine.
    #[track_caller]
    pub(crate) fn namespace(&self, name: &str) {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        match self.request("POST", "/api/v1/namespaces", Some(&namespace)) {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => panic!("namespace {name}: {error}"),
        }
    }

    /// An object by its path, for example `/api/v1/namespaces/default`; None where it is not there.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        match self.request("GET", path, None) {
            Ok(object) => Some(object),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("GET {path}: {error}"),
        }
    }

    /// The items of a list by its path, with a query where one is wanted.
    #[track_caller]
    pub(crate) fn list(&self, path: &str) -> Vec<Value> {
        let mut list = match self.request("GET", path, None) {
            Ok(list) => list,
            Err(error) => panic!("GET {path}: {error}"),
        };
        match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        }
    }

    /// Creates an object under the path of its list.
    #[track_caller]
    pub(crate) fn create(&self, path: &str, object: &Value) -> Value {
        match self.request("POST", path, Some(object)) {
            Ok(made) => made,
            Err(error) => panic!("POST {path}: {error}"),
        }
    }

    /// Creates many objects under one path, sixteen at a time.
    #[track_caller]
    pub(crate) fn create_all(&self, path: &str, objects: Vec<Value>) {
        use futures::TryStreamExt as _;
        let requests = objects.into_iter().map(|object| {
            let client = self.client.clone();
            let request = request("POST", path, Some(&object));
            Ok::<_, kube::Error>(async move { client.request::<Value>(request).await })
        });
        let made = futures::stream::iter(requests)
            .try_buffer_unordered(16)
            .try_for_each(|_| async { Ok(()) });
        if let Err(error) = self.runtime.block_on(made) {
            panic!("POST {path}: {error}");
        }
    }

    /// Merges a patch into an object.
    #[track_caller]
    pub(crate) fn merge(&self, path: &str, patch: &Value) -> Value {
        match self.request("PATCH", path, Some(patch)) {
            Ok(patched) => patched,
            Err(error) => panic!("PATCH {path}: {error}"),
        }
    }

    /// Deletes an object; absent is success.
    #[track_caller]
    pub(crate) fn delete(&self, path: &str) {
        match self.request("DELETE", path, None) {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => panic!("DELETE {path}: {error}"),
        }
    }

    /// The Events on an object of that name in a namespace, as `reason: note`.
    #[track_caller]
    pub(crate) fn events(&self, namespace: &str, name: &str) -> Vec<String> {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
        let events = self.list(&path);
        let of = events.iter().filter(|e| e["regarding"]["name"] == name);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        of.map(|e| format!("{}: {}", text(&e["reason"]), text(&e["note"])))
            .collect()
    }

    /// Any request.
    pub(crate) fn request(
        &self,
        verb: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let asked = self.client.request::<Value>(request(verb, path, body));
        self.runtime.block_on(asked)
    }
}

fn request(verb: &str, path: &str, body: Option<&Value>) -> axum::http::Request<Vec<u8>> {
    let kind = if verb == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    axum::http::Request::builder()
        .method(verb)
        .uri(path)
        .header("content-type", kind)
        .body(body.map_or_else(Vec::new, |body| body.to_string().into_bytes()))
        .expect("the parts of a request are right")
}
