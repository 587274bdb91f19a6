//! All tests of this binary that need one kernel, in one boot of it.
//!
//! Each runs in a process of its own inside, so that one that hangs or crashes takes no other with it. The verdicts go to
//! `$MOOR_KERNEL_LOG`, where `cargo xtask test` counts them: for the harness these tests are ignored.
//!
//! Easy to get wrong: a test that is not found runs nothing and ends well. So the harness must say that one passed. And
//! what the harness captures is lost when a test aborts: inside nothing is captured, and only what failed is shown.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use super::guest::{quoted, shown};
use super::{Console, MARK};
use crate::must;

/// How long one test may take inside, in seconds.
const BOUND: u32 = 300;

/// Names a part of the names of tests, to run only those: for whoever works on one.
const ONLY: &str = "MOOR_KERNEL_ONLY";

/// What became of one test.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    name: String,
    passed: bool,
    said: String,
}

/// Runs the tests of this binary that lie in a module called like the kernel, by `boot`, which runs a shell script in it.
///
/// It fails when one of them does, when one said nothing, or when there is none.
#[track_caller]
pub(crate) fn suite(kernel: &str, boot: impl FnOnce(&str) -> Console) {
    let exe = std::env::current_exe();
    let exe = must(exe, "find", Path::new("the test binary"));
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut names = of_kernel(kernel, &listed(&exe));
    names.retain(|name| name.contains(&only));
    assert!(
        !names.is_empty(),
        "no test of {} is ignored and lies in a module `{kernel}` ({ONLY} is {only:?}): write one, or take this one away",
        exe.display()
    );
    let console = boot(&script(&exe, &names));
    let verdicts = verdicts(&console.said);
    log(kernel, &verdicts);
    bring_skips_out(&console.skips);
    let passed = verdicts.iter().filter(|v| v.passed).count();
    say(&format!("{passed} of {} passed in {kernel}", names.len()));
    let bad = complaints(&names, &verdicts);
    assert!(
        bad.is_empty() && console.code == Some(0),
        "{bad}\n{passed} of {} passed in {kernel}; the machine ended with {:?} and said:\n{}",
        names.len(),
        console.code,
        console.machine
    );
}

/// What is wrong with the verdicts on these tests; nothing when each of them passed.
fn complaints(names: &[String], verdicts: &[Verdict]) -> String {
    let mut bad = String::new();
    for name in names {
        match verdicts.iter().find(|v| v.name == *name) {
            None => {
                let _ = writeln!(bad, "---- {name}: said nothing");
            }
            Some(v) if !v.passed => {
                let _ = writeln!(bad, "---- {name}:\n{}", v.said);
            }
            Some(_) => {}
        }
    }
    bad
}

/// A line for whoever runs with `--nocapture`.
pub(crate) fn say(line: &str) {
    #![expect(
        clippy::print_stdout,
        reason = "through the harness: it is shown when the test fails, or when it is asked for"
    )]
    println!("{line}");
}

/// What the harness lists of ignored tests.
fn listed(exe: &Path) -> String {
    let output = Command::new(exe)
        .args(["--list", "--ignored", "--format", "terse"])
        .output();
    let output = must(output, "list the tests of", exe);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn of_kernel(kernel: &str, list: &str) -> Vec<String> {
    let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
    let in_module = |name: &&str| {
        let modules = name.rsplit_once("::").map_or("", |(modules, _)| modules);
        modules.split("::").any(|module| module == kernel)
    };
    names.filter(in_module).map(str::to_owned).collect()
}

fn script(exe: &Path, names: &[String]) -> String {
    let exe = shown(exe);
    let mut script = String::new();
    for name in names {
        let name = quoted(name);
        let _ = write!(
            script,
            "echo; echo {MARK} test {name}
timeout -k 5 {BOUND} {exe} --ignored --test-threads=1 --color never --nocapture --exact {name} </dev/null 2>&1
code=$?; echo; echo {MARK} code $code
"
        );
    }
    script + "exit 0"
}

fn verdicts(said: &str) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = Vec::new();
    for line in said.lines() {
        let marked = line.strip_prefix(MARK).map(str::trim_start);
        if let Some(name) = marked.and_then(|rest| rest.strip_prefix("test ")) {
            verdicts.push(Verdict {
                name: name.to_owned(),
                passed: false,
                said: String::new(),
            });
        } else if let Some(verdict) = verdicts.last_mut() {
            if let Some(code) = marked.and_then(|rest| rest.strip_prefix("code ")) {
                verdict.passed = code == "0" && verdict.said.contains("1 passed");
                if code == "124" || code == "137" {
                    let _ = writeln!(verdict.said, "it was ended after {BOUND} s");
                }
            } else {
                verdict.said.push_str(line);
                verdict.said.push('\n');
            }
        }
    }
    verdicts
}

fn log(kernel: &str, verdicts: &[Verdict]) {
    let lines = verdicts.iter().map(|v| {
        let verdict = if v.passed { "ok" } else { "FAILED" };
        format!("{kernel}\t{}\t{verdict}\n", v.name)
    });
    append("MOOR_KERNEL_LOG", &lines.collect::<String>());
}

fn bring_skips_out(skips: &[String]) {
    let lines = skips.iter().map(|line| format!("{line}\n"));
    append("MOOR_SKIP_LOG", &lines.collect::<String>());
}

fn append(variable: &str, text: &str) {
    let Some(log) = std::env::var_os(variable) else {
        return;
    };
    let file = OpenOptions::new().create(true).append(true).open(&log);
    let written = file.and_then(|mut f| f.write_all(text.as_bytes()));
    must(written, "write", log.as_ref());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_in_a_module_of_that_name_are_run_there() {
        let list = "vlan::uml::one: test\nvlan::qemu::two: test\numl::three: test\numlaut::four: test\nvlan::uml: test\n\n3 tests, 0 benchmarks\n";
        assert_eq!(of_kernel("uml", list), ["vlan::uml::one", "uml::three"]);
    }

    #[test]
    fn a_test_passed_when_the_harness_says_so_and_ended_well() {
        let said = "
@moor test a::uml::good
test result: ok. 1 passed; 0 failed
@moor code 0
@moor test a::uml::bad
thread panicked
@moor code 101
@moor test a::uml::not_found
test result: ok. 0 passed; 0 failed
@moor code 0
@moor test a::uml::cut_short
";
        let passed: Vec<(String, bool)> = verdicts(said)
            .into_iter()
            .map(|v| (v.name, v.passed))
            .collect();
        let expected = [
            ("good", true),
            ("bad", false),
            ("not_found", false),
            ("cut_short", false),
        ];
        assert_eq!(passed, expected.map(|(n, p)| (format!("a::uml::{n}"), p)));
        let names = ["good", "bad", "never_began"].map(|n| format!("a::uml::{n}"));
        let complaints = complaints(&names, &verdicts(said));
        assert!(
            complaints.contains("a::uml::bad:\nthread panicked"),
            "{complaints}"
        );
        assert!(complaints.contains("a::uml::never_began: said nothing"));
        assert!(!complaints.contains("good"));
    }
}
