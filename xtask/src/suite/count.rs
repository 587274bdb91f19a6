//! Counting, as a pure reading of the harness's output and the skip log.
//!
//! Easy to get wrong: a skipped test is one that the harness calls passed, so it is taken off again; a test
//! that skips twice is one skipped test. A test that needs a kernel of its own is one that the harness calls ignored: it
//! counts where another test booted that kernel and ran it there, and is skipped where nobody did.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::{Result, bail};

/// What a run came to. Its text ends with the closing line, `N passed, M failed, K skipped`.
pub(crate) struct Summary {
    allowed: BTreeSet<String>,
    passed: u64,
    failed: u64,
    failures: Vec<String>,
    /// Reason to what was not tested.
    skipped: BTreeMap<String, Vec<String>>,
    /// Tests that need a kernel of their own, until it is known that they ran in it.
    waiting: Vec<String>,
    /// The same, once it is known.
    elsewhere: Vec<String>,
    broken: Vec<String>,
}

/// How the reason of a test begins that only `--soak` runs.
const SOAK: &str = "soak";
/// And of one that runs in a kernel that another test boots.
const KERNEL: &str = "kernel";

/// What `--soak` runs of the tests that are ignored otherwise.
pub(super) struct LongRuns {
    /// Whether there is one.
    pub(super) any: bool,
    /// Ignored for another reason: they stay so.
    pub(super) others: Vec<String>,
}

/// The reasons in `ci/allowed-skips`: the first word of each line that is not a comment.
pub(super) fn reasons(text: &str) -> BTreeSet<String> {
    let words = text
        .lines()
        .filter_map(|l| l.split('#').next()?.split_whitespace().next());
    words.map(str::to_owned).collect()
}

impl Summary {
    pub(super) fn new(allowed: BTreeSet<String>) -> Self {
        Self {
            allowed,
            passed: 0,
            failed: 0,
            failures: Vec::new(),
            skipped: BTreeMap::new(),
            waiting: Vec::new(),
            elsewhere: Vec::new(),
            broken: Vec::new(),
        }
    }

    /// One line of the harness.
    pub(super) fn read_line(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some(result) = line.strip_prefix("test result: ") {
            self.passed += number_before(result, " passed");
            self.failed += number_before(result, " failed");
        } else if let Some((name, verdict)) = line
            .strip_prefix("test ")
            .and_then(|l| l.rsplit_once(" ... "))
        {
            if verdict == "FAILED" {
                self.failures.push(name.to_owned());
            } else if let Some(why) = verdict.strip_prefix("ignored") {
                let why = why.trim_start_matches(", ");
                match why.split(':').next().filter(|r| !r.is_empty()) {
                    Some(KERNEL) => self.waiting.push(name.to_owned()),
                    reason => self.skip(reason.unwrap_or("no-reason"), name),
                }
            }
        }
    }

    /// The skip log: executable, test, reason and what, separated by tabs.
    pub(super) fn read_skips(&mut self, log: &str) {
        let mut seen = BTreeSet::new();
        for line in log.lines() {
            let fields: Vec<&str> = line.splitn(4, '\t').collect();
            let &[exe, test, reason, what] = fields.as_slice() else {
                self.broken
                    .push(format!("a line of the skip log cannot be read: {line:?}"));
                continue;
            };
            // On one thread the harness runs every test on `main`, and cannot be told apart.
            if test == "main" || seen.insert((exe, test)) {
                self.passed = self.passed.saturating_sub(1);
                self.skip(reason, what);
            } else if !self.allowed.contains(reason) {
                // A second reason of one test is not counted again, but it must be accepted too.
                self.broken
                    .push(format!("{test} was skipped for {reason}: {what}"));
            }
        }
    }

    /// The log of tests that ran in a kernel of their own: kernel, test and verdict, separated by tabs.
    pub(super) fn read_kernels(&mut self, log: &str) {
        for line in log.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let &[kernel, test, verdict] = fields.as_slice() else {
                self.broken
                    .push(format!("a line of the kernel log cannot be read: {line:?}"));
                continue;
            };
            if let Some(at) = self.waiting.iter().position(|name| name == test) {
                self.elsewhere.push(self.waiting.swap_remove(at));
            }
            if verdict == "ok" {
                self.passed += 1;
            } else {
                self.failed += 1;
                self.failures.push(format!("{test} (in {kernel})"));
            }
        }
    }

    /// After the last line: a run that counted nothing, or ended badly without a failed test, is broken.
    pub(super) fn finish(&mut self, command: &str, success: bool) {
        if !success && self.failed == 0 {
            self.broken
                .push(format!("`{command}` failed before or between its tests"));
        } else if self.passed + self.failed == 0 && self.skipped.is_empty() {
            self.broken.push(format!("`{command}` ran no test"));
        }
        for name in std::mem::take(&mut self.waiting) {
            self.skip(KERNEL, &name);
        }
        let unknown = self
            .skipped
            .iter()
            .filter(|(reason, _)| !self.allowed.contains(*reason));
        let complaints = unknown.map(|(reason, what)| {
            format!(
                "{} skipped for {reason:?}, which ci/allowed-skips does not list",
                what.len()
            )
        });
        self.broken.extend(complaints);
    }

    /// Takes the tests marked `soak` off the skipped ones, because they are run next.
    pub(super) fn long_runs(&mut self) -> LongRuns {
        let any = self.skipped.remove(SOAK).is_some();
        let others = self.skipped.values().flatten().chain(&self.elsewhere);
        let others = others.cloned().collect();
        LongRuns { any, others }
    }

    /// A fuzz run counts as one test.
    pub(super) fn add_fuzz(&mut self, name: &str, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.passed += 1,
            Err(error) => {
                self.failed += 1;
                self.failures.push(format!("fuzz {name}: {error:#}"));
            }
        }
    }

    fn skip(&mut self, reason: &str, what: &str) {
        self.skipped
            .entry(reason.to_owned())
            .or_default()
            .push(what.to_owned());
    }

    /// Whether the run is good.
    pub(crate) fn into_result(self) -> Result<()> {
        if self.failed > 0 || !self.broken.is_empty() {
            bail!("the tests did not pass");
        }
        Ok(())
    }
}

fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().unwrap_or_default();
    let digits = before.rsplit(' ').next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        for failure in &self.failures {
            writeln!(f, "failed: {failure}")?;
        }
        for (reason, what) in &self.skipped {
            writeln!(f, "skipped for {reason}: {}", what.len())?;
            for what in what {
                writeln!(f, "  {what}")?;
            }
        }
        for broken in &self.broken {
            writeln!(f, "broken: {broken}")?;
        }
        let skipped: usize = self.skipped.values().map(Vec::len).sum();
        write!(
            f,
            "{} passed, {} failed, {skipped} skipped",
            self.passed, self.failed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "\
running 3 tests
test addr::tests::a ... ok
test b ... FAILED
test c ... ignored, soak: an hour of kills
test result: FAILED. 7 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s
test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s
";

    fn read(run: &str, log: &str, success: bool) -> Summary {
        let mut summary = Summary::new(reasons("# none\noracles-absent # why\nsoak\n\n"));
        for line in run.lines() {
            summary.read_line(line);
        }
        summary.read_skips(log);
        summary.finish("cargo test", success);
        summary
    }

    fn closing(summary: &Summary) -> String {
        summary.to_string().lines().last().unwrap().to_owned()
    }

    #[test]
    fn results_of_all_binaries_are_added_and_the_closing_line_stands_alone() {
        let summary = read(RUN, "", false);
        assert_eq!(closing(&summary), "19 passed, 1 failed, 1 skipped");
        assert!(summary.to_string().contains("failed: b\n"));
        assert!(summary.into_result().is_err());
    }

    #[test]
    fn a_test_that_skips_itself_twice_is_one_skipped_test_and_not_a_passed_one() {
        let run = "test result: ok. 5 passed; 0 failed; 0 ignored";
        let log = "exe\tx\toracles-absent\tthe CRDs\nexe\tx\toracles-absent\tthe NADs\nexe\ty\toracles-absent\tz\n";
        let summary = read(run, log, true);
        assert_eq!(closing(&summary), "3 passed, 0 failed, 2 skipped");
        assert!(summary.into_result().is_ok());
    }

    #[test]
    fn a_soak_runs_what_is_marked_so_and_nothing_else_that_is_ignored() {
        let mut summary = read(
            &format!("{RUN}test d::child ... ignored, child: of b\n"),
            "",
            false,
        );
        let long = summary.long_runs();
        assert!(long.any);
        assert_eq!(long.others, ["d::child"]);
        assert_eq!(closing(&summary), "19 passed, 1 failed, 1 skipped");
        assert!(!summary.long_runs().any);
    }

    #[test]
    fn a_test_in_a_kernel_of_its_own_counts_where_it_ran_there() {
        let run = "\
test vlan::uml::a ... ignored, kernel: uml
test vlan::uml::b ... ignored, kernel: uml
test d::child ... ignored, soak: an hour
test result: FAILED. 2 passed; 1 failed; 3 ignored
";
        let mut summary = Summary::new(reasons("soak"));
        for line in run.lines() {
            summary.read_line(line);
        }
        summary.read_kernels("uml\tvlan::uml::a\tok\numl\tvlan::uml::b\tFAILED\n");
        summary.finish("cargo test", false);
        assert_eq!(closing(&summary), "3 passed, 2 failed, 1 skipped");
        assert!(
            summary
                .to_string()
                .contains("failed: vlan::uml::b (in uml)")
        );
        // A soak runs what the harness ignores: not these, which this kernel cannot run.
        assert_eq!(summary.long_runs().others, ["vlan::uml::a", "vlan::uml::b"]);
    }

    #[test]
    fn a_test_whose_kernel_nobody_booted_breaks_the_run() {
        let run = "test vlan::uml::a ... ignored, kernel: uml\ntest result: ok. 2 passed; 0 failed; 1 ignored";
        let summary = read(run, "", true);
        assert_eq!(closing(&summary), "2 passed, 0 failed, 1 skipped");
        assert!(
            summary
                .to_string()
                .contains("broken: 1 skipped for \"kernel\"")
        );
        assert!(summary.into_result().is_err());
    }

    #[test]
    fn a_reason_that_is_not_listed_breaks_the_run() {
        let run = "test result: ok. 5 passed; 0 failed; 0 ignored";
        let summary = read(run, "exe\tx\tno-network\tthe API server\n", true);
        assert!(
            summary
                .to_string()
                .contains("broken: 1 skipped for \"no-network\"")
        );
        assert!(summary.into_result().is_err());
    }

    #[test]
    fn a_second_reason_of_one_test_is_checked_too() {
        let run = "test result: ok. 5 passed; 0 failed; 0 ignored";
        let log = "exe\tx\toracles-absent\ta\nexe\tx\tlazy\tb\n";
        assert!(read(run, log, true).into_result().is_err());
    }

    #[test]
    fn an_ignored_test_without_a_reason_breaks_the_run() {
        let run = "test x ... ignored\ntest result: ok. 1 passed; 0 failed; 1 ignored";
        let summary = read(run, "", true);
        assert!(summary.to_string().contains("\"no-reason\""));
        assert!(summary.into_result().is_err());
    }

    #[test]
    fn a_run_that_did_not_build_or_ran_nothing_is_not_a_success() {
        assert!(read("", "", false).into_result().is_err());
        assert!(read("", "", true).into_result().is_err());
        let crashed = read("test result: ok. 5 passed; 0 failed; 0 ignored", "", false);
        assert!(crashed.into_result().is_err());
    }

    #[test]
    fn a_failed_fuzz_run_fails_the_tests() {
        let mut summary = read("test result: ok. 5 passed; 0 failed; 0 ignored", "", true);
        summary.add_fuzz("yaml", Ok(()));
        summary.add_fuzz("resource_list", Err(anyhow::anyhow!("crash")));
        assert_eq!(closing(&summary), "6 passed, 1 failed, 0 skipped");
        assert!(summary.into_result().is_err());
    }
}
