//! Checks a RootSync: pure, from the object to what the role works with, or to findings that say what to edit.
//!
//! Easy to get wrong: a field that we or the seeds add has an annotation twin, and where both are given and differ nothing is
//! done. Where neither is, the default is the one of Config Sync.

use std::collections::BTreeMap;
use std::time::Duration;

use mooring_api::kinds::configsync::{Auth, Conflicts, RootSync, RootSyncSpec, SourceFormat};
use mooring_api::{Code, Finding, ObjectRef, annotation};
use mooring_package::git::Repository;

/// How often Git is asked where nothing is said.
const PERIOD: Duration = Duration::from_secs(15);
/// Nobody asks more often.
const SHORTEST: Duration = Duration::from_secs(1);

/// What a RootSync says, checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    /// Where, as nobody: credentials are added when they are read.
    pub(crate) repository: Repository,
    /// A tag or commit instead of the branch's end.
    pub(crate) revision: Option<String>,
    pub(crate) auth: Auth,
    /// The Secret that `auth` needs.
    pub(crate) secret: String,
    pub(crate) period: Duration,
    /// Where objects go that need a namespace and name none.
    pub(crate) namespace: String,
    /// Whether what became of it is committed back.
    pub(crate) commit_status: bool,
    /// This cluster's name.
    pub(crate) cluster: String,
    pub(crate) allow_empty: bool,
    /// Whether Git wins over whoever set a field first.
    pub(crate) force: bool,
}

/// Checks a RootSync; `cluster` is what the controller was started with.
pub(crate) fn check(root: &RootSync, cluster: Option<&str>) -> Result<Settings, Vec<Finding>> {
    let mut reader = Reader::new(root);
    let settings = reader.read(&root.spec, cluster);
    match settings {
        Some(settings) if reader.findings.is_empty() => Ok(settings),
        _ => Err(reader.findings),
    }
}

/// The RootSync in findings.
pub(crate) fn reference(root: &RootSync) -> ObjectRef {
    let name = root.metadata.name.clone().unwrap_or_default();
    let namespace = root.metadata.namespace.clone().unwrap_or_default();
    ObjectRef::new("configsync.gke.io/v1beta1", "RootSync", name).within(namespace)
}

struct Reader {
    object: ObjectRef,
    annotations: BTreeMap<String, String>,
    findings: Vec<Finding>,
}

impl Reader {
    fn new(root: &RootSync) -> Self {
        Self {
            object: reference(root),
            annotations: root.metadata.annotations.clone().unwrap_or_default(),
            findings: Vec::new(),
        }
    }

    fn refuse(&mut self, field: &str, message: impl Into<String>, help: &str) {
        let finding = Finding::error(Code::InvalidField, message);
        let finding = finding.on(&self.object).at(field).help(help);
        self.findings.push(finding);
    }

    /// The field, else its twin. Both, and different, is a finding.
    fn twin(&mut self, field: &str, spec: Option<String>, key: &str) -> Option<String> {
        let twin = self.annotations.get(key).cloned();
        if let (Some(spec), Some(twin)) = (&spec, &twin)
            && spec != twin
        {
            let message = format!("{twin:?} differs from spec.{field}, which is {spec:?}");
            let finding = Finding::error(Code::InvalidAnnotation, message);
            self.findings.push(
                finding
                    .on(&self.object)
                    .at(format!("metadata.annotations[{key}]"))
                    .help("Remove one of them; they mean the same."),
            );
        }
        spec.or(twin)
    }

    fn flag(&mut self, field: &str, spec: Option<bool>, key: &str) -> bool {
        let text = self.twin(field, spec.map(|flag| flag.to_string()), key);
        match text.as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(other) => {
                let message = format!("{other:?} is neither true nor false");
                let finding = Finding::error(Code::InvalidAnnotation, message);
                let at = format!("metadata.annotations[{key}]");
                let finding = finding.on(&self.object).at(at);
                self.findings
                    .push(finding.help("Write \"true\" or \"false\"."));
                false
            }
        }
    }

    fn read(&mut self, spec: &RootSyncSpec, cluster: Option<&str>) -> Option<Settings> {
        if spec.source_format != Some(SourceFormat::Unstructured) {
            self.refuse(
                "spec.sourceFormat",
                "only unstructured directories are read, and hierarchy is what absence means",
                "Write sourceFormat: unstructured.",
            );
        }
        if spec
            .source_type
            .as_deref()
            .is_some_and(|kind| kind != "git")
        {
            self.refuse(
                "spec.sourceType",
                "only git is read",
                "Write sourceType: git, or let Config Sync serve this object.",
            );
        }
        let Some(git) = &spec.git else {
            self.refuse("spec.git", "there is no repository", "Write spec.git.");
            return None;
        };
        let repository = Repository {
            branch: git.branch.clone().unwrap_or_else(|| "master".to_owned()),
            directory: directory(git.dir.as_deref().unwrap_or_default()),
            credentials: mooring_package::git::Credentials::None,
            ..Repository::new(&git.repo)
        };
        if let Err(error) = repository.check() {
            self.refuse("spec.git", error.to_string(), error.help());
        }
        let secret = git.secret_ref.as_ref().map(|secret| secret.name.clone());
        let secret = secret.unwrap_or_default();
        match git.auth {
            Auth::None => {}
            Auth::Token | Auth::Ssh if secret.is_empty() => self.refuse(
                "spec.git.secretRef",
                format!("auth {} needs a Secret", git.auth.as_str()),
                "Name a Secret in the namespace of the RootSync.",
            ),
            Auth::Token => {
                if !git.repo.starts_with("http://") && !git.repo.starts_with("https://") {
                    self.refuse(
                        "spec.git.auth",
                        "a token needs an http or https address",
                        "Correct repo, or use auth: ssh.",
                    );
                }
            }
            Auth::Ssh => {}
            other => self.refuse(
                "spec.git.auth",
                format!("{} is not served here", other.as_str()),
                "Use none, token or ssh.",
            ),
        }
        let revision = git.revision.clone();
        let revision = revision.filter(|text| !text.is_empty() && text != "HEAD");
        let poll = self.twin(
            "pollInterval",
            spec.poll_interval.clone(),
            annotation::POLL_INTERVAL,
        );
        let (field, period) = match &git.period {
            Some(period) => ("spec.git.period", Some(period.clone())),
            None => ("spec.pollInterval", poll),
        };
        let period = match period.as_deref().map(duration) {
            None => PERIOD,
            Some(Some(period)) => period.max(SHORTEST),
            Some(None) => {
                let period = period.unwrap_or_default();
                let message = format!("{period:?} is no duration");
                self.refuse(field, message, "Write it like 15s or 1m30s.");
                PERIOD
            }
        };
        let namespace = self.twin(
            "defaultNamespace",
            spec.default_namespace.clone(),
            annotation::DEFAULT_NAMESPACE,
        );
        let own = self.twin("cluster", spec.cluster.clone(), annotation::CLUSTER);
        let conflicts = spec.conflicts.map(|c| format!("{c:?}"));
        let conflicts = self.twin("conflicts", conflicts, annotation::CONFLICTS);
        let force = match conflicts.as_deref() {
            None => false,
            Some(text) if text == format!("{:?}", Conflicts::Report) => false,
            Some(text) if text == format!("{:?}", Conflicts::Force) => true,
            Some(other) => {
                let message = format!("{other:?} is neither Report nor Force");
                self.refuse("spec.conflicts", message, "Write Report or Force.");
                false
            }
        };
        Some(Settings {
            repository,
            revision,
            auth: git.auth,
            secret,
            period,
            namespace: namespace.unwrap_or_else(|| "default".to_owned()),
            commit_status: self.flag(
                "commitStatus",
                spec.commit_status,
                annotation::COMMIT_STATUS,
            ),
            cluster: own
                .or_else(|| cluster.map(ToOwned::to_owned))
                .unwrap_or_else(|| self.object.name.clone()),
            allow_empty: self.flag("allowEmpty", spec.allow_empty, annotation::ALLOW_EMPTY),
            force,
        })
    }
}

/// `/a/b/` and `./a/b` are `a/b`: Config Sync takes all of them.
fn directory(text: &str) -> String {
    let parts = text
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".");
    parts.collect::<Vec<_>>().join("/")
}

/// A duration as Go writes it: `15s`, `1m30s`, `500ms`, `1.5h`.
fn duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 7] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let (mut rest, mut total) = (text.trim(), 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = rest.split_at(end.unwrap_or(rest.len()));
        let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total += number * seconds;
        rest = after;
    }
    Duration::try_from_secs_f64(total).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn root(spec: Value, annotations: Value) -> RootSync {
        let root = json!({
            "apiVersion": "configsync.gke.io/v1beta1", "kind": "RootSync",
            "metadata": { "name": "root-sync", "namespace": "config-management-system", "annotations": annotations },
            "spec": spec,
        });
        serde_json::from_value(root).expect("a RootSync")
    }

    fn with(more: Value) -> Value {
        let mut spec = json!({
            "sourceFormat": "unstructured",
            "git": { "repo": "https://example.com/deploy", "branch": "main", "dir": "/my-ran/", "auth": "none" },
        });
        for (key, value) in more.as_object().expect("a map") {
            if key == "git" {
                for (key, value) in value.as_object().expect("a map") {
                    spec["git"][key] = value.clone();
                }
            } else {
                spec[key] = value.clone();
            }
        }
        spec
    }

    fn fields(findings: &[Finding]) -> Vec<&str> {
        findings.iter().filter_map(|f| f.field.as_deref()).collect()
    }

    #[test]
    fn the_seeds_rootsync_is_understood() {
        let spec = with(json!({
            "git": { "auth": "token", "secretRef": { "name": "git-creds" } }, "pollInterval": "20s",
        }));
        let settings = check(&root(spec, json!({})), Some("edge01")).expect("it is right");
        assert_eq!(settings.period, Duration::from_secs(20));
        assert_eq!(settings.repository.directory, "my-ran");
        assert_eq!(
            (settings.auth, settings.secret.as_str()),
            (Auth::Token, "git-creds")
        );
        assert_eq!(settings.cluster, "edge01");
        assert_eq!(settings.namespace, "default");
        assert!(!settings.commit_status && !settings.allow_empty && !settings.force);
    }

    #[test]
    fn the_period_of_git_comes_first_and_neither_is_fifteen_seconds() {
        let period = |more| {
            let checked = check(&root(with(more), json!({})), None);
            checked.expect("it is right").period
        };
        assert_eq!(period(json!({})), Duration::from_secs(15));
        assert_eq!(
            period(json!({ "git": { "period": "1m0s" }, "pollInterval": "20s" })),
            Duration::from_mins(1)
        );
        assert_eq!(period(json!({ "pollInterval": "10ms" })), SHORTEST);
    }

    #[test]
    fn what_is_not_served_is_refused_by_field() {
        for (more, field) in [
            (json!({ "sourceFormat": "hierarchy" }), "spec.sourceFormat"),
            (json!({ "sourceFormat": null }), "spec.sourceFormat"),
            (json!({ "sourceType": "oci" }), "spec.sourceType"),
            (json!({ "git": { "auth": "gcenode" } }), "spec.git.auth"),
            (json!({ "git": { "auth": "token" } }), "spec.git.secretRef"),
            (json!({ "git": { "dir": "../x" } }), "spec.git"),
            (json!({ "git": { "period": "soon" } }), "spec.git.period"),
            (
                json!({ "git": { "repo": concat!("https:", "//me:secret@example.com/x") } }),
                "spec.git",
            ),
        ] {
            let refused = check(&root(with(more.clone()), json!({})), None);
            let findings = refused.expect_err("it is wrong");
            assert_eq!(fields(&findings), [field], "{more}");
            assert!(!findings[0].help.is_empty());
            assert!(
                !findings[0].message.contains("secret@"),
                "{}",
                findings[0].message
            );
        }
    }

    #[test]
    fn a_twin_serves_where_the_field_is_pruned_and_must_not_differ() {
        let twins = json!({
            "mooring.dev/commit-status": "true", "mooring.dev/cluster": "edge02",
            "mooring.dev/poll-interval": "5s", "mooring.dev/conflicts": "Force",
            "mooring.dev/default-namespace": "upf", "mooring.dev/allow-empty": "true",
        });
        let settings = check(&root(with(json!({})), twins.clone()), None).expect("it is right");
        assert!(settings.commit_status && settings.force && settings.allow_empty);
        assert_eq!(
            (settings.cluster.as_str(), settings.namespace.as_str()),
            ("edge02", "upf")
        );
        assert_eq!(settings.period, Duration::from_secs(5));
        let findings = check(&root(with(json!({ "cluster": "edge03" })), twins), None);
        let findings = findings.expect_err("they differ");
        assert_eq!(findings[0].code, Code::InvalidAnnotation);
        let bad = json!({ "mooring.dev/allow-empty": "maybe" });
        assert!(check(&root(with(json!({})), bad), None).is_err());
    }

    #[test]
    fn durations_are_those_of_go() {
        for (text, seconds) in [
            ("15s", 15.0),
            ("1m30s", 90.0),
            ("1.5h", 5400.0),
            ("500ms", 0.5),
        ] {
            assert_eq!(
                duration(text),
                Some(Duration::from_secs_f64(seconds)),
                "{text}"
            );
        }
        for bad in ["", "15", "s", "1x", "-1s", "1.2.3s"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }
}
