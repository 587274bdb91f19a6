//! A template becomes the spec of a variant: plain fields are copied, `…Expr` fields are evaluated.
//!
//! Easy to get wrong: `repository` is the Repository of the *downstream*, so it is known only after
//! `repoExpr`, which therefore must not name it.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::kinds::porch::{
    FunctionTemplate, Injector, MapExpr, PackageContext, PackageVariantSpec, Pipeline,
    VariantTemplate,
};
use mooring_api::kinds::{TextExpression, Variables};
use mooring_api::{Code, Finding, ObjectRef};
use serde_json::{Value, json};

use super::set::about;
use super::{Offers, REPOSITORY, few, place};

/// What expressions may name, `repository` last.
const NAMES: [&str; 5] = [
    "repoDefault",
    "packageDefault",
    "upstream",
    "target",
    "repository",
];

/// What a template is filled from.
pub(super) struct Inputs<'a> {
    pub(super) repo: &'a str,
    pub(super) package: &'a str,
    pub(super) upstream: &'a Value,
    pub(super) target: &'a Value,
    pub(super) offers: &'a Offers<'a>,
    /// Of the set.
    pub(super) namespace: &'a str,
    /// The template's field path.
    pub(super) at: String,
}

/// Expressions of one set, compiled once.
pub(super) struct Evaluator<'a> {
    origin: &'a ObjectRef,
    compiled: BTreeMap<(String, usize), Result<TextExpression, String>>,
    pub(super) findings: Vec<Finding>,
    /// Whether the template at hand could not be filled.
    failed: bool,
}

/// What one target's expressions see.
struct Scope<'a> {
    variables: Variables,
    names: &'a [&'a str],
    /// Which target, for a person.
    who: &'a str,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(origin: &'a ObjectRef) -> Self {
        Self {
            origin,
            compiled: BTreeMap::new(),
            findings: Vec::new(),
            failed: false,
        }
    }

    /// Fills a spec. False where a finding says why not.
    pub(super) fn fill(
        &mut self,
        spec: &mut PackageVariantSpec,
        template: &VariantTemplate,
        inputs: &Inputs<'_>,
    ) -> bool {
        self.failed = false;
        let Some(repository) = self.repository(spec, template, inputs) else {
            return false;
        };
        let scope = scope(inputs, Some(&repository));
        let at = &inputs.at;
        if let Some(down) = &template.downstream {
            if let Some(package) = down.package.as_ref().filter(|p| !p.is_empty()) {
                spec.downstream.package.clone_from(package);
            }
            if let Some(text) = &down.package_expr {
                let field = format!("{at}.downstream.packageExpr");
                if let Some(package) = self.place(text, field, &scope, place::is_plain) {
                    spec.downstream.package = package;
                }
            }
        }
        spec.adoption_policy = template.adoption_policy;
        spec.deletion_policy = template.deletion_policy;
        let exprs = (template.label_exprs.as_slice(), format!("{at}.labelExprs"));
        spec.labels = self.map(&template.labels, exprs, &scope);
        let exprs = (
            template.annotation_exprs.as_slice(),
            format!("{at}.annotationExprs"),
        );
        spec.annotations = self.map(&template.annotations, exprs, &scope);
        spec.package_context = self.context(template, at, &scope);
        for (nth, injector) in template.injectors.iter().enumerate() {
            let mut name = injector.name.clone().unwrap_or_default();
            if let Some(text) = &injector.name_expr {
                let field = format!("{at}.injectors[{nth}].nameExpr");
                name = self.named(text, field, &scope).unwrap_or_default();
            }
            spec.injectors.push(Injector {
                group: injector.group.clone(),
                version: injector.version.clone(),
                kind: injector.kind.clone(),
                name,
            });
        }
        if let Some(pipeline) = &template.pipeline {
            let filled = Pipeline {
                mutators: self.functions(
                    &pipeline.mutators,
                    &format!("{at}.pipeline.mutators"),
                    &scope,
                ),
                validators: self.functions(
                    &pipeline.validators,
                    &format!("{at}.pipeline.validators"),
                    &scope,
                ),
            };
            let empty = filled.mutators.is_empty() && filled.validators.is_empty();
            spec.pipeline = (!empty).then_some(filled);
        }
        !self.failed
    }

    /// The repository that the variant goes to.
    fn repository(
        &mut self,
        spec: &mut PackageVariantSpec,
        template: &VariantTemplate,
        inputs: &Inputs<'_>,
    ) -> Option<Value> {
        let mut field = inputs.at.clone();
        if let Some(down) = &template.downstream {
            if let Some(repo) = down.repo.as_ref().filter(|r| !r.is_empty()) {
                spec.downstream.repo.clone_from(repo);
                field = format!("{}.downstream.repo", inputs.at);
            }
            if let Some(text) = &down.repo_expr {
                field = format!("{}.downstream.repoExpr", inputs.at);
                let scope = scope(inputs, None);
                let repo = self.place(text, field.clone(), &scope, place::is_name);
                spec.downstream.repo = repo?;
            }
        }
        let repo = &spec.downstream.repo;
        let found = inputs.offers.named(inputs.namespace, REPOSITORY, repo);
        if found.is_none() {
            let known = inputs
                .offers
                .all(inputs.namespace, REPOSITORY.0, REPOSITORY.1);
            let known: Vec<String> = known.iter().map(|o| o.name().to_owned()).collect();
            self.add(
                Finding::error(
                    Code::UnknownRepository,
                    format!("there is no Repository {repo}; known are {}", few(&known)),
                )
                .at(field)
                .help("Correct the name, or add the Repository object to the fleet."),
            );
        }
        found.map(about)
    }

    fn context(
        &mut self,
        template: &VariantTemplate,
        at: &str,
        scope: &Scope<'_>,
    ) -> Option<PackageContext> {
        let context = template.package_context.as_ref()?;
        let field = format!("{at}.packageContext.dataExprs");
        let data = self.map(&context.data, (&context.data_exprs, field.clone()), scope);
        self.not_kept(data.keys(), &field);
        let mut keys: BTreeSet<String> = context.remove_keys.iter().cloned().collect();
        let field = format!("{at}.packageContext.removeKeyExprs");
        for (nth, text) in context.remove_key_exprs.iter().enumerate() {
            keys.extend(self.named(text, format!("{field}[{nth}]"), scope));
        }
        self.not_kept(keys.iter(), &field);
        Some(PackageContext {
            data,
            remove_keys: keys.into_iter().collect(),
        })
    }

    /// `name` and `package-path` follow from where the package stands.
    fn not_kept<'k>(&mut self, mut keys: impl Iterator<Item = &'k String>, field: &str) {
        if let Some(key) = keys.find(|k| super::change::KEPT.contains(&k.as_str())) {
            self.add(
                Finding::error(
                    Code::InvalidExpression,
                    format!("the key {key} follows from where the package stands"),
                )
                .at(field)
                .help("Give the expression another key."),
            );
        }
    }

    fn functions(
        &mut self,
        templates: &[FunctionTemplate],
        at: &str,
        scope: &Scope<'_>,
    ) -> Vec<mooring_api::kinds::porch::Function> {
        let mut functions = Vec::new();
        for (nth, template) in templates.iter().enumerate() {
            let exprs = (
                template.config_map_exprs.as_slice(),
                format!("{at}[{nth}].configMapExprs"),
            );
            functions.push(template.with(self.map(&template.config_map, exprs, scope)));
        }
        functions
    }

    /// A map, and entries that are expressions over it.
    fn map(
        &mut self,
        plain: &BTreeMap<String, String>,
        (exprs, at): (&[MapExpr], String),
        scope: &Scope<'_>,
    ) -> BTreeMap<String, String> {
        let mut map = plain.clone();
        for (nth, entry) in exprs.iter().enumerate() {
            let key = match &entry.key_expr {
                Some(text) => self.named(text, format!("{at}[{nth}].keyExpr"), scope),
                None => entry.key.clone(),
            };
            let value = match &entry.value_expr {
                Some(text) => self.text(text, format!("{at}[{nth}].valueExpr"), scope),
                None => entry.value.clone(),
            };
            if let (Some(key), Some(value)) = (key, value) {
                map.insert(key, value);
            }
        }
        map
    }

    /// A repository or package.
    fn place(
        &mut self,
        text: &str,
        field: String,
        scope: &Scope<'_>,
        is_sound: fn(&str) -> bool,
    ) -> Option<String> {
        let name = self.named(text, field.clone(), scope)?;
        if is_sound(&name) {
            return Some(name);
        }
        self.add(
            Finding::error(
                Code::InvalidExpression,
                format!(
                    "for {}: it gives {name:?}, which is no name of a directory",
                    scope.who
                ),
            )
            .at(field)
            .help("Names have letters, digits, dashes, underscores and dots."),
        );
        None
    }

    /// Text that must not be empty.
    fn named(&mut self, text: &str, field: String, scope: &Scope<'_>) -> Option<String> {
        let name = self.text(text, field.clone(), scope)?;
        if name.is_empty() {
            let message = format!(
                "for {}: it gives an empty text, where a name is needed",
                scope.who
            );
            let finding = Finding::error(Code::InvalidExpression, message);
            self.add(finding.at(field).help("Look at the labels that it reads."));
            return None;
        }
        Some(name)
    }

    fn text(&mut self, text: &str, field: String, scope: &Scope<'_>) -> Option<String> {
        let key = (text.to_owned(), scope.names.len());
        let compiled = self.compiled.entry(key);
        let compiled = compiled.or_insert_with(|| TextExpression::compile(text, scope.names));
        let outcome = match compiled {
            Ok(expression) => expression.evaluate(&scope.variables).map_err(|why| {
                match why.strip_prefix("it gives ") {
                    // The same for every target.
                    Some(_) => why,
                    None => format!("for {}: {why}", scope.who),
                }
            }),
            Err(why) => Err(why.clone()),
        };
        match outcome {
            Ok(text) => Some(text),
            Err(why) => {
                let names = scope.names.join(", ");
                self.add(
                    Finding::error(Code::InvalidExpression, why)
                        .at(field)
                        .help(format!("Write CEL that gives text, over {names}.")),
                );
                None
            }
        }
    }

    /// What is wrong with an expression is said once; what is wrong with its values, for a few targets.
    fn add(&mut self, finding: Finding) {
        const SHOWN: usize = 3;
        self.failed |= finding.is_error();
        let finding = finding.on(self.origin);
        let alike = self.findings.iter().filter(|f| f.field == finding.field);
        if !self.findings.contains(&finding) && alike.count() < SHOWN {
            self.findings.push(finding);
        }
    }
}

fn scope<'a>(inputs: &'a Inputs<'_>, repository: Option<&Value>) -> Scope<'a> {
    let (repo, package) = (json!(inputs.repo), json!(inputs.package));
    let known = [
        Some(&repo),
        Some(&package),
        Some(inputs.upstream),
        Some(inputs.target),
        repository,
    ];
    let known: Vec<(&str, &Value)> = NAMES
        .into_iter()
        .zip(known)
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    Scope {
        names: &NAMES[..known.len()],
        variables: Variables::new(known),
        who: inputs.repo,
    }
}
