//! What the chart and the kustomization have of the kinds, and the table of values in the chart's README.
//!
//! ```text
//!  chart/mooring/crds/              kinds of others: Helm installs them where absent, and never again
//!  chart/mooring/files/crds/        ours: a template installs and upgrades them
//!  chart/mooring/files/alias-crds/  the IPAM kinds once more, under the group that seed 001 writes
//!  kustomization.yaml               ours by name, then what stands in management/
//! ```
//!
//! Easy to get wrong: `kubectl apply -k` would overwrite a CRD of somebody else, so the kustomization names only ours.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use mooring_api::kinds::Kind;
use serde_json::{Value, json};

use super::{CRDS, HEADER, file_name, written};

const CHART: &str = "deploy/chart/mooring";
const KUSTOMIZATION: &str = "deploy/kustomization.yaml";
const OURS: &str = "mooring.dev";
/// What `find` in the kinds reads as the same: the group, and the one it stands for.
const ALIAS: (&str, &str) = ("ipam.nephio.org", "ipam.resource.nephio.org");
const TABLE: (&str, &str) = ("<!-- values -->\n", "<!-- end of values -->");

/// The directories that hold nothing but generated files.
pub(super) fn directories() -> [PathBuf; 3] {
    ["crds", "files/crds", "files/alias-crds"].map(|dir| Path::new(CHART).join(dir))
}

/// The files, and what stands in them.
pub(super) fn files(root: &Path, kinds: &[Kind]) -> Result<BTreeMap<PathBuf, String>> {
    let [foreign, ours, alias] = directories();
    let mut files = BTreeMap::new();
    let mut kustomization = format!(
        "{HEADER}# The management cluster; workload/ is the other. Kinds of others are not here: `kubectl create -f\n\
         # deploy/chart/mooring/crds` adds those that are absent and leaves the rest alone.\n\
         apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
    );
    for kind in kinds {
        let name = file_name(kind.group(), kind.plural());
        let text = written(kind.crd())?;
        if kind.group() == OURS {
            let dir = CRDS.strip_prefix("deploy/").unwrap_or(CRDS);
            let _ = writeln!(kustomization, "- {dir}/{name}");
            files.insert(ours.join(name), text);
        } else {
            files.insert(foreign.join(name), text);
        }
        if kind.group() == ALIAS.1 {
            let name = file_name(ALIAS.0, kind.plural());
            files.insert(alias.join(name), written(&aliased(kind))?);
        }
    }
    kustomization.push_str("- management\n");
    files.insert(PathBuf::from(KUSTOMIZATION), kustomization);
    let readme = Path::new(CHART).join("README.md");
    let read = |path: &Path| {
        std::fs::read_to_string(root.join(path))
            .with_context(|| format!("cannot read {}", path.display()))
    };
    let values = read(&Path::new(CHART).join("values.yaml"))?;
    let page = with_table(&read(&readme)?, &table(&values)?)?;
    files.insert(readme, page);
    Ok(files)
}

/// The same kind in the other group.
fn aliased(kind: &Kind) -> Value {
    let mut crd = kind.crd().clone();
    crd["metadata"]["name"] = json!(format!("{}.{}", kind.plural(), ALIAS.0));
    crd["spec"]["group"] = json!(ALIAS.0);
    crd
}

/// The rows of the table: every key that a `# --` comment stands above.
fn table(values: &str) -> Result<String> {
    let parsed: Value = serde_saphyr::from_str(values).context("values.yaml is not YAML")?;
    let mut rows = String::from("| value | default | meaning |\n|---|---|---|\n");
    let mut parents: Vec<(usize, &str)> = Vec::new();
    let mut said: Option<&str> = None;
    for line in values.lines() {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        if let Some(comment) = text.strip_prefix("# -- ") {
            said = Some(comment);
            continue;
        }
        let Some((key, _)) = text
            .split_once(':')
            .filter(|_| !text.starts_with(['#', '-']))
        else {
            continue;
        };
        parents.retain(|(above, _)| *above < depth);
        parents.push((depth, key));
        let Some(comment) = said.take() else {
            continue;
        };
        let path: Vec<&str> = parents.iter().map(|(_, key)| *key).collect();
        let value = parsed
            .pointer(&format!("/{}", path.join("/")))
            .with_context(|| format!("{} is not in values.yaml", path.join(".")))?;
        let comment = comment.replace('|', "\\|");
        writeln!(rows, "| `{}` | `{value}` | {comment} |", path.join("."))?;
    }
    Ok(rows)
}

fn with_table(page: &str, table: &str) -> Result<String> {
    let (head, rest) = page
        .split_once(TABLE.0)
        .context("the README has no place for the values")?;
    let at = rest
        .find(TABLE.1)
        .context("the README's table of values has no end")?;
    ensure!(
        !rest[at + 1..].contains(TABLE.0),
        "the README has two tables of values"
    );
    Ok(format!("{head}{}{table}{}", TABLE.0, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_named_by_its_whole_path_with_its_default() {
        let values = "# about\n# -- First.\na: 1\nb:\n  c:\n    # -- Deep | x.\n    d: {e: f}\n  # -- Back.\n  g: []\nh: no words\n";
        let rows = table(values).unwrap();
        let rows: Vec<&str> = rows.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| `a` | `1` | First. |",
                "| `b.c.d` | `{\"e\":\"f\"}` | Deep \\| x. |",
                "| `b.g` | `[]` | Back. |",
            ]
        );
    }

    #[test]
    fn only_the_table_of_a_page_is_rewritten() {
        let page = "a\n<!-- values -->\nold\n<!-- end of values -->\nb\n";
        let new = with_table(page, "new\n").unwrap();
        assert_eq!(new, "a\n<!-- values -->\nnew\n<!-- end of values -->\nb\n");
        assert!(with_table("no place", "").is_err());
    }
}
