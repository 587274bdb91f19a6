//! NADs that another project's tests expect: all of them pass our check, and every address in them is seen.

use std::fs;
use std::path::{Path, PathBuf};

use mooring_attach::nad::{self, Use};
use mooring_testkit::oracles;

fn yaml_files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("the oracles can be listed") {
        let path = entry.expect("the oracles can be listed").path();
        if path.is_dir() {
            yaml_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "yaml") {
            out.push(path);
        }
    }
}

/// `config: '{…}'`, which is how every one of them is written. JSON has no single quotes to undo.
fn configs(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let value = line.trim_start().strip_prefix("config: '")?;
        value.strip_suffix('\'')
    })
}

#[test]
fn nads_of_another_generator_pass_and_show_their_addresses() {
    let Some(dir) = oracles("NADs of the nephio goldens") else {
        return;
    };
    let mut files = Vec::new();
    yaml_files(&dir.join("nephio"), &mut files);
    let mut judged = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for config in configs(&text) {
            let place = file.display();
            assert_eq!(nad::check(config), [], "{place}: {config}");
            let seen = nad::addresses(config);
            assert!(seen.iter().all(|u| matches!(u.what, Use::Address(_))));
            assert_eq!(
                seen.len(),
                config.matches("\"address\":").count(),
                "{place}"
            );
            judged += 1;
        }
    }
    assert!(judged >= 20, "only {judged} NADs were found");
}
