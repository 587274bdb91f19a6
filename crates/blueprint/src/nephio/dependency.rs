//! configinject-fn: a Dependency gets copies of another package's objects, so that a network function knows its peers.
//!
//! ```text
//!  free5gc-upf: NFDeployment upf-edge01, its condition True
//!      └─► SMF package: Config smf-regional-upf-edge01, Dependency.status.injected ─► nfdeploy-fn: parametersRefs
//! ```
//!
//! `package` gathers the packages that are in sight and calls [`link`]. Easy to get wrong: a package out of sight is no news. What was
//! injected once stays until the other package is seen again and says something else.

use mooring_api::kinds::nephio::req::DependencySpec;
use mooring_api::{Code, Condition, Finding, Status};
use serde_json::{Map, Value, json};

use super::engine::{condition, done, fail, find, write};
use super::interface::put;
use super::kinds::{DEPENDENCY, DEPLOYMENT};
use super::reference::{Gvk, Ref};
use super::{NAMESPACE, OWNER, function_name};
use crate::bundle::{Bundle, Object, map_below};

const CONFIG: Gvk = Gvk::new("ref.nephio.org/v1alpha1", "Config");

/// A package in sight.
#[derive(Clone, Copy, Debug)]
pub struct Provider<'a> {
    /// Where it is, for people.
    pub place: &'a str,
    /// The name of its directory.
    pub directory: &'a str,
    /// Its content.
    pub bundle: &'a Bundle,
}

impl Provider<'_> {
    /// Whether a Dependency may mean it.
    fn is(&self, name: &str) -> bool {
        self.directory == name || self.bundle.marks.name == name
    }
}

/// Whether a package needs others.
pub fn depends(bundle: &Bundle) -> bool {
    bundle.objects.iter().any(|o| DEPENDENCY.has(o))
}

/// The name of the package that an object needs, where it is a Dependency.
pub fn needed(object: &Object) -> Option<&str> {
    let name = object.value.pointer("/spec/packageName");
    name.and_then(Value::as_str)
        .filter(|name| !name.is_empty() && DEPENDENCY.has(object))
}

/// Injects what the Dependencies ask for. The findings say what is waited for; the conditions say it too.
pub fn link(bundle: &mut Bundle, providers: &[Provider<'_>]) -> Vec<Finding> {
    let dependencies = bundle.objects.iter().filter(|o| DEPENDENCY.has(o));
    let dependencies: Vec<Object> = dependencies.cloned().collect();
    let mut said = Vec::new();
    for dependency in dependencies {
        let reference = Ref::of(&dependency);
        begin(bundle, &dependency, &reference);
        match wanted(&dependency, &reference, providers) {
            Ok(configs) => inject(bundle, dependency, &reference, configs),
            Err(waiting) if is_injected(bundle, &dependency) => {
                done(&mut bundle.marks, &reference);
                said.extend(waiting.seen.then(|| waiting.finding(&reference, true)));
            }
            Err(waiting) => {
                fail(&mut bundle.marks, &reference, &waiting.text);
                said.push(waiting.finding(&reference, false));
            }
        }
    }
    said
}

/// The condition belongs to the network function; nfdeploy-fn makes it, where it runs.
fn begin(bundle: &mut Bundle, dependency: &Object, reference: &Ref) {
    if condition(&bundle.marks, reference).is_none() {
        let owner = dependency.annotation(OWNER).unwrap_or_default();
        bundle.marks.conditions.push(Condition {
            kind: reference.to_string(),
            status: Status::False,
            reason: owner.to_owned(),
            message: "create initial resource condition".to_owned(),
        });
    }
}

/// What is waited for.
struct Waiting {
    text: String,
    /// Whether the package is there.
    seen: bool,
}

impl Waiting {
    fn finding(&self, reference: &Ref, kept: bool) -> Finding {
        let text = if kept {
            format!("{}; what was injected before stays", self.text)
        } else {
            self.text.clone()
        };
        Finding::warning(Code::WaitingForPackage, text)
            .on(&reference.object())
            .at("spec.packageName")
            .help("Render that package together with this one or before it, and name its directory with --published.")
    }
}

fn is_injected(bundle: &Bundle, dependency: &Object) -> bool {
    let injected = dependency.value.pointer("/status/injected");
    let injected = injected.and_then(Value::as_array).map(Vec::as_slice);
    let there = |v: &Value| {
        let name = v.get("name").and_then(Value::as_str).unwrap_or_default();
        bundle.objects.named(name).any(|o| CONFIG.has(o))
    };
    injected.is_some_and(|all| !all.is_empty() && all.iter().all(there))
}

/// The Configs of a Dependency, by name.
fn wanted(
    dependency: &Object,
    reference: &Ref,
    providers: &[Provider<'_>],
) -> Result<Vec<Object>, Waiting> {
    let waiting = |seen: bool, text: String| Waiting { text, seen };
    let spec: DependencySpec = match dependency.spec() {
        Ok(spec) => spec,
        Err(finding) => return Err(waiting(true, finding.message)),
    };
    let package = &spec.package_name;
    let found: Vec<&Provider<'_>> = providers.iter().filter(|p| p.is(package)).collect();
    if found.is_empty() {
        let text = format!("waiting for package {package}: it is not there");
        return Err(waiting(false, text));
    }
    let mut configs: Vec<Object> = Vec::new();
    for provider in found {
        for injector in &spec.injectors {
            let is_it =
                |o: &&Object| o.kind() == injector.kind && o.api_version() == injector.api_version;
            let mut objects = provider.bundle.objects.iter().filter(is_it).peekable();
            if objects.peek().is_none() {
                let text = format!(
                    "waiting for package {package}: {} has no {}",
                    provider.place, injector.kind
                );
                return Err(waiting(true, text));
            }
            for object in objects {
                let own = condition(&provider.bundle.marks, &Ref::of(object));
                if own.is_none_or(|c| c.status != Status::True) {
                    let text = format!(
                        "waiting for package {package}: {} {} in {} is not ready",
                        object.kind(),
                        object.name(),
                        provider.place
                    );
                    return Err(waiting(true, text));
                }
                let config = config(dependency, reference, object);
                if configs.iter().all(|c| c.name() != config.name()) {
                    configs.push(config);
                }
            }
        }
    }
    configs.sort_by(|a, b| a.name().cmp(b.name()));
    Ok(configs)
}

fn config(dependency: &Object, reference: &Ref, object: &Object) -> Object {
    let name = format!("{}-{}", function_name(dependency), object.name());
    let mut metadata = Map::new();
    metadata.insert("name".into(), json!(name));
    if let Some(namespace) = dependency.annotation(NAMESPACE).filter(|n| !n.is_empty()) {
        metadata.insert("namespace".into(), json!(namespace));
    }
    metadata.insert(
        "annotations".into(),
        json!({ OWNER: reference.to_string() }),
    );
    let value = json!({ "apiVersion": CONFIG.api_version, "kind": CONFIG.kind, "metadata": metadata,
        "spec": { "config": object.value } });
    Object {
        value,
        source: None,
    }
}

fn inject(bundle: &mut Bundle, mut dependency: Object, reference: &Ref, configs: Vec<Object>) {
    let injected: Vec<Value> = configs
        .iter()
        .map(|c| {
            let mut map = Map::new();
            map.insert("kind".into(), json!(c.kind()));
            if !c.namespace().is_empty() {
                map.insert("namespace".into(), json!(c.namespace()));
            }
            map.insert("name".into(), json!(c.name()));
            map.insert("apiVersion".into(), json!(c.api_version()));
            Value::Object(map)
        })
        .collect();
    let stale = |o: &Object| {
        CONFIG.has(o)
            && o.annotation(OWNER).and_then(Ref::parse).as_ref() == Some(reference)
            && configs.iter().all(|c| c.name() != o.name())
    };
    let gone: Vec<Object> = bundle
        .objects
        .iter()
        .filter(|o| stale(o))
        .cloned()
        .collect();
    for object in &gone {
        forget(bundle, object);
    }
    for config in configs {
        let own = Ref::of(&config);
        if find(bundle, &own)
            .is_none_or(|known| known.value.get("spec") != config.value.get("spec"))
        {
            write(bundle, config);
        }
        if condition(&bundle.marks, &own).is_none() {
            bundle.marks.conditions.push(Condition {
                kind: own.to_string(),
                status: Status::True,
                reason: reference.to_string(),
                message: "create initial resource".to_owned(),
            });
        }
    }
    let status = map_below(&mut dependency.value, &["status"]);
    put(
        status,
        "injected",
        (!injected.is_empty()).then_some(Value::Array(injected)),
    );
    write(bundle, dependency);
    done(&mut bundle.marks, reference);
}

/// Removes a Config that is injected no more, its condition, and the network function's reference to it.
fn forget(bundle: &mut Bundle, config: &Object) {
    let own = Ref::of(config);
    let kind = own.to_string();
    bundle.objects.retain(|o| Ref::of(o) != own);
    bundle.marks.conditions.retain(|c| c.kind != kind);
    for object in bundle.objects.iter_mut().filter(|o| DEPLOYMENT.has(o)) {
        let references = object.value.pointer_mut("/spec/parametersRefs");
        if let Some(references) = references.and_then(Value::as_array_mut) {
            references.retain(|r| r["kind"] != CONFIG.kind || r["name"] != config.name());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::Marks;

    fn object(value: Value) -> Object {
        Object {
            value,
            source: None,
        }
    }

    fn upf(name: &str, status: Status) -> Bundle {
        let kind = format!("workload.nephio.org/v1alpha1.NFDeployment.{name}");
        let ready = Condition {
            kind,
            status,
            reason: String::new(),
            message: String::new(),
        };
        Bundle {
            objects: vec![object(
                json!({ "apiVersion": "workload.nephio.org/v1alpha1", "kind": "NFDeployment",
                "metadata": { "name": name }, "spec": { "provider": "upf" } }),
            )]
            .into(),
            marks: Marks {
                name: "pkg-upf".to_owned(),
                conditions: vec![ready].into(),
                ..Marks::default()
            },
        }
    }

    fn smf() -> Bundle {
        let annotations = json!({ OWNER: "workload.nephio.org/v1alpha1.NFDeployment.smf-regional", NAMESPACE: "core" });
        let objects = vec![object(
            json!({ "apiVersion": "req.nephio.org/v1alpha1", "kind": "Dependency",
            "metadata": { "name": "upf", "annotations": annotations },
            "spec": { "packageName": "free5gc-upf", "injectors": [
                { "apiVersion": "workload.nephio.org/v1alpha1", "kind": "NFDeployment" } ] } }),
        )];
        Bundle {
            objects: objects.into(),
            marks: Marks::default(),
        }
    }

    fn provider<'a>(bundle: &'a Bundle, place: &'a str) -> Provider<'a> {
        Provider {
            place,
            directory: "free5gc-upf",
            bundle,
        }
    }

    fn state(bundle: &Bundle) -> (Status, String) {
        let c = &bundle.marks.conditions[0];
        (c.status, c.message.clone())
    }

    fn names(bundle: &Bundle) -> Vec<&str> {
        let configs = bundle.objects.iter().filter(|o| CONFIG.has(o));
        configs.map(Object::name).collect()
    }

    #[test]
    fn an_unmet_dependency_says_what_it_waits_for() {
        let far = upf("upf-edge01", Status::True);
        let elsewhere = Provider {
            directory: "other",
            ..provider(&far, "out/other")
        };
        let mut bundle = smf();
        let said = link(&mut bundle, &[elsewhere]);
        let text = "waiting for package free5gc-upf: it is not there";
        assert_eq!(
            (said[0].code, said[0].message.as_str()),
            (Code::WaitingForPackage, text)
        );
        assert!(!said[0].is_error());
        assert_eq!(state(&bundle), (Status::False, text.to_owned()));

        let not_ready = upf("upf-edge01", Status::False);
        let said = link(&mut bundle, &[provider(&not_ready, "out/edge01")]);
        assert_eq!(
            said[0].message,
            "waiting for package free5gc-upf: NFDeployment upf-edge01 in out/edge01 is not ready"
        );
        assert_eq!(names(&bundle), Vec::<&str>::new());
    }

    #[test]
    fn every_package_of_the_name_is_injected_once() {
        let (one, two) = (
            upf("upf-edge01", Status::True),
            upf("upf-edge02", Status::True),
        );
        let providers = [
            provider(&two, "b"),
            provider(&one, "a"),
            provider(&one, "copy"),
        ];
        let mut bundle = smf();
        for _ in 0..2 {
            assert_eq!(link(&mut bundle, &providers), []);
            assert_eq!(
                names(&bundle),
                ["smf-regional-upf-edge01", "smf-regional-upf-edge02"]
            );
            assert_eq!(state(&bundle), (Status::True, "update done".to_owned()));
        }
        let config = bundle
            .objects
            .named("smf-regional-upf-edge01")
            .next()
            .unwrap();
        assert_eq!(config.namespace(), "core");
        assert_eq!(config.value["spec"]["config"]["spec"]["provider"], "upf");
        assert_eq!(
            bundle.objects[0].value["status"]["injected"][1]["name"],
            "smf-regional-upf-edge02"
        );
    }

    #[test]
    fn what_was_injected_stays_out_of_sight_and_goes_when_it_is_seen_to_be_gone() {
        let (one, two) = (
            upf("upf-edge01", Status::True),
            upf("upf-edge02", Status::True),
        );
        let mut bundle = smf();
        link(&mut bundle, &[provider(&one, "a"), provider(&two, "b")]);
        let full = bundle.clone();
        assert_eq!(link(&mut bundle, &[]), []);
        assert_eq!(bundle, full);
        let not_ready = upf("upf-edge01", Status::False);
        let said = link(&mut bundle, &[provider(&not_ready, "a")]);
        assert!(said[0].message.ends_with("what was injected before stays"));
        assert_eq!(bundle, full);
        link(&mut bundle, &[provider(&two, "b")]);
        assert_eq!(names(&bundle), ["smf-regional-upf-edge02"]);
        assert_eq!(bundle.marks.conditions.len(), 2);
    }
}
