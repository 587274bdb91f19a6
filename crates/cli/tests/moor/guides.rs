//! What a guide shows is what the program prints: every `console` block of a page is run, in order and in one fresh directory.
//!
//! ```text
//!  a yaml block that begins with "# PATH"   is written to PATH
//!  a console block                          "$ command" is run by sh; what follows it must be its output
//! ```
//!
//! A page that calls kpt is run where `cargo xtask setup kpt` built one. `MOOR_UPDATE=1` rewrites the pages.

use std::fs;
use std::path::Path;
use std::process::Command;

use mooring_testkit::component;

use crate::fresh;

#[test]
fn the_terminal_of_every_guide_is_real() {
    let guides = mooring_testkit::workspace_root().join("docs/guides");
    let mut run = 0;
    for entry in fs::read_dir(&guides).unwrap() {
        let path = entry.unwrap().path();
        let page = fs::read_to_string(&path).unwrap();
        if !page.contains("```console\n") {
            continue;
        }
        if page.contains("\n$ kpt ") && component("kpt", "the guide to kpt").is_none() {
            continue;
        }
        let dir = fresh();
        // A guide begins in a checkout.
        std::os::unix::fs::symlink(crate::examples(), dir.path().join("examples")).unwrap();
        let real = replay(dir.path(), &page, &mut run);
        if std::env::var_os("MOOR_UPDATE").is_some() {
            fs::write(&path, &real).unwrap();
            continue;
        }
        let diff = mooring_testkit::unified(&path.display().to_string(), &page, &real);
        assert!(
            diff.is_empty(),
            "run MOOR_UPDATE=1 cargo test -p mooring-cli\n{diff}"
        );
    }
    assert!(run >= 8, "only {run} commands were found");
}

/// The page as it should be.
pub(crate) fn replay(dir: &Path, page: &str, run: &mut usize) -> String {
    let mut out = String::new();
    let mut lines = page.lines();
    let mut last = 0;
    while let Some(line) = lines.next() {
        out.extend([line, "\n"]);
        if !line.starts_with("```") || line == "```" {
            continue;
        }
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if line == "```console" {
            for command in block.iter().filter_map(|line| line.strip_prefix("$ ")) {
                let (text, code) = shell(dir, command, last);
                out.extend(["$ ", command, "\n", &text]);
                last = code;
                *run += 1;
            }
        } else {
            let path = block.first().and_then(|first| first.strip_prefix("# "));
            if let Some(path) = path.filter(|_| line == "```yaml") {
                let path = dir.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, block[1..].join("\n") + "\n").unwrap();
            }
            out.extend(block.iter().map(|line| format!("{line}\n")));
        }
        out += "```\n";
    }
    out
}

/// Runs a command as a reader would type it; `$?` is how the one before ended.
fn shell(dir: &Path, command: &str, last: i32) -> (String, i32) {
    let program = Path::new(env!("CARGO_BIN_EXE_moor"));
    let found = program.parent().unwrap().display().to_string();
    let mut path = std::env::var("PATH").unwrap_or_default();
    if command.starts_with("kpt ")
        && let Some(kpt) = component("kpt", "the guide to kpt")
    {
        path = format!("{}:{path}", kpt.join("bin").display());
    }
    let script = format!("exec 2>&1\n(exit {last})\n{command}\n");
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(dir)
        .env_remove("MOOR_BOOK")
        .env_remove("MOOR_MGMT")
        .env_remove("MOOR_REPOSITORY")
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CACHE_HOME")
        .env("HOME", dir)
        .env("PATH", format!("{found}:{path}"))
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.split_inclusive('\n').map(without_time);
    (lines.collect(), output.status.code().unwrap())
}

/// kpt says how long a function took, which is never the same.
fn without_time(line: &str) -> String {
    let ran = line.starts_with("[PASS] ") || line.starts_with("[FAIL] ");
    match line.rsplit_once(" in ").filter(|_| ran) {
        Some((said, _)) => format!("{said}\n"),
        None => line.to_owned(),
    }
}
