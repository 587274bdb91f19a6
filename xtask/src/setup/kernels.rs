//! Kernels that tests boot, from Debian: User-mode Linux, and a QEMU with the kernel that runs in it.
//!
//! Why these suites: User-mode Linux before 6.13 cannot start a program on a processor with AMX, since it keeps too
//! little room for its registers; QEMU has an SR-IOV card (`igb`) since 8.0, and bookworm's is 7.2.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::debian::Bundle;

/// The loader that every program of Debian's names, and the one that ours names: beside it, wherever that is.
const LOADER: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";
const BESIDE: &[u8] = b"./ld-linux-x86-64.so.2\0";

/// It needs a C library newer than this machine may have, and brings it along.
pub(super) const USER_MODE_LINUX: Bundle = Bundle {
    suite: "forky",
    packages: &["user-mode-linux", "libc6"],
    finish: with_its_own_library,
};

/// Leaves `uml/linux`, the library and loader that it runs with beside it, and `uml/modules`.
fn with_its_own_library(files: &Path) -> Result<()> {
    let uml = files.join("uml");
    let modules = files.join("usr/lib/uml/modules");
    let kernel = files.join("usr/bin/linux.uml");
    fs::create_dir(&uml).with_context(|| format!("cannot make {}", uml.display()))?;
    fs::rename(&modules, uml.join("modules")).context("user-mode-linux has no modules")?;
    for library in ["libc.so.6", "ld-linux-x86-64.so.2"] {
        let path = files.join("usr/lib/x86_64-linux-gnu").join(library);
        fs::rename(&path, uml.join(library)).with_context(|| format!("libc6 has no {library}"))?;
    }
    let mut program = fs::read(&kernel).context("user-mode-linux has no linux.uml")?;
    name_the_loader_beside(&mut program)?;
    // Its permissions are kept: the file is written anew, in place.
    fs::write(&kernel, program).context("cannot write linux.uml")?;
    fs::rename(&kernel, uml.join("linux")).context("cannot move linux.uml")?;
    for rest in ["usr", "etc", "lib", "lib64"] {
        let _ = fs::remove_dir_all(files.join(rest));
    }
    Ok(())
}

fn name_the_loader_beside(program: &mut [u8]) -> Result<()> {
    let places: Vec<usize> = (0..program.len().saturating_sub(LOADER.len()))
        .filter(|&at| program[at..].starts_with(LOADER))
        .collect();
    ensure!(
        places.len() == 1,
        "linux.uml names its loader {} times",
        places.len()
    );
    let field = &mut program[places[0]..places[0] + LOADER.len()];
    field.fill(0);
    field[..BESIDE.len()].copy_from_slice(BESIDE);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_names_its_loader_once_gets_the_one_beside_it() {
        let mut program = b"ELF /lib64/ld-linux-x86-64.so.2\0 rest".to_vec();
        name_the_loader_beside(&mut program).unwrap();
        assert_eq!(
            program,
            b"ELF ./ld-linux-x86-64.so.2\0\0\0\0\0\0 rest".to_vec()
        );
        assert!(name_the_loader_beside(&mut program).is_err());
    }
}
