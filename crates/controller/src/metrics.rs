//! What is counted. Labels are roles, kinds and reasons, all from fixed lists; never a name of an object, except a
//! pool's, since pools are few and their fill is what an alert needs.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use mooring_api::Code;
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// A pass over one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Pass {
    pub(crate) kind: &'static str,
    /// `Done`, or the error's reason.
    pub(crate) outcome: &'static str,
}

/// Which kind a pass was over.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Of {
    pub(crate) kind: &'static str,
}

/// Which pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct PoolLabels {
    pub(crate) instance: String,
    pub(crate) pool: String,
}

/// Which part of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RoleLabels {
    pub(crate) role: &'static str,
}

type Histograms = Family<Of, Histogram, fn() -> Histogram>;

/// Everything that is counted, and the registry that writes it.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    /// Passes by kind and outcome.
    pub(crate) passes: Family<Pass, Counter>,
    /// How long a pass took.
    pub(crate) seconds: Histograms,
    /// Writes to the API server by kind.
    pub(crate) writes: Family<Of, Counter>,
    /// Findings that were put on objects, by kind and code.
    pub(crate) findings: Family<Pass, Counter>,
    /// Objects that carry a finding at this moment, by kind and code; written by [`Metrics::stand`].
    standing: Family<Pass, Gauge>,
    /// The same by role, since each knows only its own.
    stood: Mutex<BTreeMap<&'static str, HashMap<Pass, i64>>>,
    /// Whether we lead, per role.
    pub(crate) leads: Family<RoleLabels, Gauge>,
    /// Share of a pool that is used or reserved, from 0 to 1.
    pub(crate) pool_fill: Family<PoolLabels, Gauge<f64, AtomicU64>>,
    /// Addresses of a pool that nobody has.
    pub(crate) pool_free: Family<PoolLabels, Gauge<f64, AtomicU64>>,
    /// How long the variant that waits longest is not Ready; 0 where all are.
    pub(crate) variant_waits: Gauge<f64, AtomicU64>,
}

fn buckets() -> Histogram {
    Histogram::new([0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0])
}

impl Metrics {
    /// Empty counters.
    pub(crate) fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("mooring");
        let passes = Family::default();
        registry.register(
            "reconciles",
            "Passes over objects, by kind and outcome",
            passes.clone(),
        );
        let seconds: Histograms = Family::new_with_constructor(buckets);
        registry.register("reconcile_seconds", "How long a pass took", seconds.clone());
        let writes = Family::default();
        registry.register(
            "writes",
            "Writes to the API server, by kind",
            writes.clone(),
        );
        let findings = Family::default();
        registry.register(
            "findings",
            "Findings that were put on objects, by kind and code",
            findings.clone(),
        );
        let standing = Family::default();
        registry.register(
            "standing_findings",
            "Objects that carry a finding at this moment, by kind and code",
            standing.clone(),
        );
        let leads = Family::default();
        registry.register(
            "leader",
            "Whether this replica leads, by role",
            leads.clone(),
        );
        let pool_fill = Family::default();
        registry.register(
            "pool_fill_ratio",
            "Share of a pool that is used or reserved",
            pool_fill.clone(),
        );
        let pool_free = Family::default();
        registry.register(
            "pool_free_addresses",
            "Addresses of a pool that nobody has",
            pool_free.clone(),
        );
        let variant_waits = Gauge::default();
        registry.register(
            "variant_unready_seconds",
            "How long the PackageVariant or draft that waits longest is not Ready",
            variant_waits.clone(),
        );
        Arc::new(Self {
            registry,
            passes,
            seconds,
            writes,
            findings,
            standing,
            stood: Mutex::default(),
            leads,
            pool_fill,
            pool_free,
            variant_waits,
        })
    }

    /// A write to the API server.
    pub(crate) fn wrote(&self, kind: &'static str) {
        self.writes.get_or_create(&Of { kind }).inc();
    }

    /// What stands on the objects of a role now, as kind and reason of a condition; nothing where another replica leads.
    /// A reason that is no finding's is not counted.
    pub(crate) fn stand<'a>(
        &self,
        role: &'static str,
        found: impl IntoIterator<Item = (&'static str, &'a str)>,
    ) {
        let mut counts: HashMap<Pass, i64> = HashMap::new();
        for (kind, reason) in found {
            if let Ok(code) = reason.parse::<Code>() {
                let outcome = code.as_str();
                *counts.entry(Pass { kind, outcome }).or_default() += 1;
            }
        }
        let mut stood = self.stood.lock().unwrap_or_else(PoisonError::into_inner);
        stood.insert(role, counts);
        // What is gone must not stay, and a family cannot say what it has.
        self.standing.clear();
        for (pass, count) in stood.values().flatten() {
            self.standing.get_or_create(pass).set(*count);
        }
    }

    /// Another replica leads: what it says of pools counts, and not what we saw last.
    pub(crate) fn leave_pools(&self) {
        self.pool_fill.clear();
        self.pool_free.clear();
    }

    /// The text that a scraper reads.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_counted_under_its_kind() {
        let metrics = Metrics::new();
        metrics.wrote("IPClaim");
        metrics.wrote("IPClaim");
        let text = metrics.text();
        assert!(
            text.contains("mooring_writes_total{kind=\"IPClaim\"} 2"),
            "{text}"
        );
    }

    #[test]
    fn what_stands_is_what_each_role_said_last() {
        let metrics = Metrics::new();
        metrics.stand(
            "ipam",
            [("IPClaim", "AddressHeld"), ("IPClaim", "AddressHeld")],
        );
        metrics.stand(
            "packages",
            [("PackageVariant", "PackageBusy"), ("PackageVariant", "Odd")],
        );
        let text = metrics.text();
        let line = r#"mooring_standing_findings{kind="IPClaim",outcome="AddressHeld"} 2"#;
        assert!(text.contains(line), "{text}");
        assert!(
            text.contains("PackageBusy") && !text.contains("Odd"),
            "{text}"
        );
        metrics.stand("ipam", []);
        let text = metrics.text();
        assert!(!text.contains("AddressHeld"), "{text}");
        assert!(text.contains("PackageBusy"), "{text}");
    }

    #[test]
    fn every_metric_is_named_on_its_page() {
        let page = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/reference/metrics.md"
        );
        let page = std::fs::read_to_string(page).unwrap();
        // A family without a sample is not written, so the names are read where they are given.
        let source = include_str!("metrics.rs");
        let calls = source.split(concat!("registry.", "register(")).skip(1);
        let names: Vec<&str> = calls.filter_map(|call| call.split('"').nth(1)).collect();
        assert!(names.len() > 5, "{names:?}");
        for name in names {
            let named = page.contains(&format!("`mooring_{name}"));
            assert!(named, "{name} is not on the page");
        }
    }
}
