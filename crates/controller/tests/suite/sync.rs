//! The sync role: a directory in Git over HTTP, a real API server, and what came of it.
//!
//! Every test has a repository, a namespace and a RootSync of its own, all of one name.
#![allow(
    clippy::disallowed_methods,
    reason = "the work tree of a test is nobody's package"
)]

mod faults;
mod following;
mod refusing;
mod telling;

use std::fs;
use std::path::Path;
use std::process::Command;

use mooring_testkit::GitServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Cluster, until};

/// A repository, and a work tree that pushes to it.
struct Repo {
    server: GitServer,
    name: String,
    work: TempDir,
}

impl Repo {
    /// An empty one with a first commit on `main`.
    fn new(name: &str) -> Self {
        let server = GitServer::start();
        server.create(name);
        let work = tempfile::tempdir().unwrap();
        let repo = Self {
            server,
            name: name.to_owned(),
            work,
        };
        let bare = repo.server.path(name);
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        repo.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
        repo.write("README.md", "hello\n");
        repo.push();
        repo
    }

    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        run(self.work.path(), args)
    }

    /// Writes a file of the work tree.
    fn write(&self, path: &str, text: &str) {
        let path = self.work.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.work.path().join(path)).unwrap();
    }

    /// Commits everything and pushes it on top of what others pushed; gives the commit.
    #[track_caller]
    fn push(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", "change"]);
        for _ in 0..10 {
            let there = self.git(&["ls-remote", "origin", "refs/heads/main"]);
            if !there.is_empty() {
                self.git(&["pull", "--quiet", "--rebase", "origin", "main"]);
            }
            let pushed = Command::new("git")
                .current_dir(self.work.path())
                .args(["push", "--quiet", "origin", "HEAD:main"])
                .output()
                .unwrap();
            if pushed.status.success() {
                return self.git(&["rev-parse", "HEAD"]);
            }
        }
        panic!("cannot push");
    }

    /// The end of `main` on the server.
    #[track_caller]
    fn end(&self) -> String {
        run(&self.server.path(&self.name), &["rev-parse", "main"])
    }

    /// How many commits `main` has.
    #[track_caller]
    fn count(&self) -> usize {
        let count = run(
            &self.server.path(&self.name),
            &["rev-list", "--count", "main"],
        );
        count.parse().unwrap()
    }

    /// A file at the end of `main`.
    fn file(&self, path: &str) -> Option<String> {
        self.file_at("main", path)
    }

    /// A file at a commit.
    fn file_at(&self, commit: &str, path: &str) -> Option<String> {
        let shown = Command::new("git")
            .current_dir(self.server.path(&self.name))
            .args(["show", &format!("{commit}:{path}")])
            .output()
            .unwrap();
        shown
            .status
            .success()
            .then(|| String::from_utf8(shown.stdout).unwrap())
    }
}

#[track_caller]
fn run(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(dir)
        .args(["-c", "user.name=test", "-c", "user.email=test@example"])
        .args(args)
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "git {args:?}: {out}{err}");
    out.trim().to_owned()
}

/// A cluster that follows a repository.
struct Follower<'c> {
    cluster: &'c Cluster,
    name: String,
}

impl<'c> Follower<'c> {
    /// Makes namespace, Secret and RootSync. `more` goes into the spec, `git` into its git.
    #[track_caller]
    fn new(cluster: &'c Cluster, repo: &Repo, more: &Value) -> Self {
        Self::with_token(cluster, repo, repo.server.token(), more)
    }

    #[track_caller]
    fn with_token(cluster: &'c Cluster, repo: &Repo, token: &str, more: &Value) -> Self {
        let name = repo.name.clone();
        cluster.namespace(&name);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "git" },
            "stringData": { "username": repo.server.user(), "token": token },
        });
        cluster.create(&format!("/api/v1/namespaces/{name}/secrets"), &secret);
        let follower = Self { cluster, name };
        follower.follow(&repo.server.url(&repo.name), more);
        follower
    }

    #[track_caller]
    fn follow(&self, url: &str, more: &Value) {
        let mut spec = json!({
            "sourceFormat": "unstructured",
            "git": {
                "repo": url, "branch": "main", "dir": "deploy", "period": "1s",
                "auth": "token", "secretRef": { "name": "git" },
            },
        });
        for (key, value) in more.as_object().unwrap() {
            if key == "git" {
                for (key, value) in value.as_object().unwrap() {
                    spec["git"][key] = value.clone();
                }
            } else {
                spec[key] = value.clone();
            }
        }
        let root = json!({
            "apiVersion": "configsync.gke.io/v1beta1", "kind": "RootSync",
            "metadata": { "name": self.name, "namespace": self.name }, "spec": spec,
        });
        self.cluster.apply(&root.to_string());
    }

    fn path(&self) -> String {
        let name = &self.name;
        format!("/apis/configsync.gke.io/v1beta1/namespaces/{name}/rootsyncs/{name}")
    }

    fn root(&self) -> Value {
        self.cluster.get(&self.path()).unwrap()
    }

    /// Waits until all of a commit is in the cluster.
    #[track_caller]
    fn synced(&self, commit: &str) -> Value {
        until(&format!("{} has {commit}", self.name), || {
            let root = self.root();
            let holds = crate::harness::condition(&root, "Synced") == Some(("True", "Synced"));
            let is_it = root["status"]["sync"]["commit"] == commit;
            if holds && is_it {
                return Ok(root);
            }
            Err(root["status"].to_string())
        })
    }

    /// Waits until it is not synced, for that reason; gives the status.
    #[track_caller]
    fn not_synced(&self, reason: &str) -> Value {
        crate::harness::await_condition(self.cluster, &self.path(), "Synced", ("False", reason))
    }

    /// A ConfigMap of its namespace.
    fn map(&self, name: &str) -> Option<Value> {
        self.cluster.get(&self.map_path(name))
    }

    fn map_path(&self, name: &str) -> String {
        format!("/api/v1/namespaces/{}/configmaps/{name}", self.name)
    }

    /// The names of the ConfigMaps of its namespace, without what Kubernetes puts there.
    fn maps(&self) -> Vec<String> {
        let maps = self
            .cluster
            .list(&format!("/api/v1/namespaces/{}/configmaps", self.name));
        let names = maps
            .iter()
            .map(|m| m["metadata"]["name"].as_str().unwrap().to_owned());
        let mut names: Vec<String> = names.filter(|n| n != "kube-root-ca.crt").collect();
        names.sort();
        names
    }

    /// The conditions and errors in one text.
    fn said(&self) -> String {
        self.root()["status"].to_string()
    }
}

/// A ConfigMap as a file.
fn map(namespace: &str, name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {namespace}\ndata:\n  key: \"{value}\"\n"
    )
}
