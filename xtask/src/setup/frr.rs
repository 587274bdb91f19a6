//! FRR from Debian, for tests that route: the daemons for static routes and BGP, and the shell that configures them.
//!
//! Why this suite: nodes run FRR 10, where one more daemon (`mgmtd`) holds the configuration of static routes, and
//! bookworm's is 8.4. It wants a C library newer than this machine may have. The libraries lie beside the programs, and
//! `bin/<program>` starts each with the loader that belongs to them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::debian::Bundle;

/// What is kept of the package.
const PROGRAMS: &[&str] = &[
    "usr/lib/frr/bgpd",
    "usr/lib/frr/mgmtd",
    "usr/lib/frr/staticd",
    "usr/lib/frr/zebra",
    "usr/bin/vtysh",
];

/// FRR with every library that it loads.
pub(super) const FRR: Bundle = Bundle {
    suite: "trixie",
    packages: &[
        "frr",
        "libaudit1",
        "libc6",
        "libcap-ng0",
        "libcap2",
        "libcrypt1",
        "libjson-c5",
        "liblua5.3-0",
        "liblzma5",
        "libpam0g",
        "libpcre2-8-0",
        "libprotobuf-c1",
        "libreadline8t64",
        "libtinfo6",
        "libunwind8",
        "libxxhash0",
        "libyang3",
    ],
    finish: with_its_own_libraries,
};

/// Leaves `bin`, `sbin` and `lib`.
fn with_its_own_libraries(files: &Path) -> Result<()> {
    let make = |name: &str| {
        let dir = files.join(name);
        fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))
    };
    // Some packages have a link of this name to where libraries are now.
    for old in ["bin", "sbin", "lib", "lib64"] {
        let path = files.join(old);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
    for name in ["bin", "sbin", "lib"] {
        make(name)?;
    }
    for from in ["usr/lib/x86_64-linux-gnu/frr", "usr/lib/x86_64-linux-gnu"] {
        let from = files.join(from);
        let entries = fs::read_dir(&from);
        let entries = entries.with_context(|| format!("cannot read {}", from.display()))?;
        for entry in entries.filter_map(Result::ok) {
            if entry.file_name().to_string_lossy().contains(".so") {
                let to = files.join("lib").join(entry.file_name());
                fs::rename(entry.path(), &to)
                    .with_context(|| format!("cannot move {}", to.display()))?;
            }
        }
    }
    for program in PROGRAMS {
        let name = program.rsplit('/').next().unwrap_or(program);
        let to = files.join("sbin").join(name);
        fs::rename(files.join(program), &to)
            .with_context(|| format!("the package has no {program}"))?;
        let start = files.join("bin").join(name);
        fs::write(&start, starter(name))
            .and_then(|()| fs::set_permissions(&start, fs::Permissions::from_mode(0o755)))
            .with_context(|| format!("cannot write {}", start.display()))?;
    }
    for rest in ["etc", "usr", "var"] {
        let _ = fs::remove_dir_all(files.join(rest));
    }
    Ok(())
}

/// The program by its own loader; it reads its name to know where its files are.
fn starter(name: &str) -> String {
    format!(
        "#!/bin/sh\n\
         top=${{0%/*}}/..\n\
         exec \"$top/lib/ld-linux-x86-64.so.2\" --library-path \"$top/lib\" --argv0 {name} \"$top/sbin/{name}\" \"$@\"\n"
    )
}
