//! Kernels that tests boot, from Debian: User-mode Linux, and a QEMU with the kernel that runs in it.
//!
//! Why these suites: User-mode Linux before 6.13 cannot start a program on a processor with AMX, since it keeps too
//! little room for its registers; QEMU has an SR-IOV card (`igb`) since 8.0, and bookworm's is 7.2.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::debian::Bundle;
use crate::shell::output;

/// The loader that every program of Debian's names, and the one that ours names: beside it, wherever that is.
const LOADER: &[u8] = b"/lib64/ld-linux-x86-64.so.2\0";
const BESIDE: &[u8] = b"./ld-linux-x86-64.so.2\0";

/// It needs a C library newer than this machine may have, and brings it along.
pub(super) const USER_MODE_LINUX: Bundle = Bundle {
    suite: "forky",
    packages: &["user-mode-linux", "libc6"],
    finish: with_its_own_library,
};

/// A QEMU with the libraries that a small machine does not have.
pub(super) const QEMU: Bundle = Bundle {
    suite: "bookworm-backports",
    packages: &[
        "qemu-system-x86",
        "qemu-system-data",
        "seabios",
        "libaio1",
        "libbpf1",
        "libcapstone4",
        "libdaxctl1",
        "libelf1",
        "libexecs0",
        "libfdt1",
        "libfuse3-3",
        "libglib2.0-0",
        "libibverbs1",
        "libjpeg62-turbo",
        "libndctl6",
        "libnl-3-200",
        "libnl-route-3-200",
        "libnuma1",
        "libpixman-1-0",
        "libpmem1",
        "libpng16-16",
        "librdmacm1",
        "libsasl2-2",
        "libseccomp2",
        "libslirp0",
        "liburing2",
        "libvdeplug2",
    ],
    finish: |_| Ok(()),
};

/// The kernel that runs in it, with a shell for its first moments.
pub(super) const LINUX: Bundle = Bundle {
    suite: "bookworm",
    packages: &["linux-image-amd64", "kmod", "busybox-static"],
    finish: with_modules_for_networks,
};

/// Modules that are kept, by how their path begins below `kernel/`: of 400 MB, a tenth.
const KEPT: &[&str] = &[
    "arch/",
    "crypto/",
    "drivers/char/hw_random/",
    "drivers/dca/",
    "drivers/i2c/algos/",
    "drivers/infiniband/core/",
    "drivers/infiniband/sw/",
    "drivers/net/bonding/",
    "drivers/net/ethernet/intel/igb/",
    "drivers/net/ethernet/intel/igbvf/",
    "drivers/net/ipvlan/",
    "drivers/net/vxlan/",
    "drivers/pps/",
    "drivers/ptp/",
    "drivers/vfio/",
    "drivers/virtio/",
    "fs/9p/",
    "fs/fscache/",
    "fs/netfs/",
    "fs/overlayfs/",
    "lib/",
    "net/",
    "virt/",
];
/// The single files of this directory are kept too: dummy, macvlan, veth, vrf.
const KEPT_FILES_OF: &str = "drivers/net";

/// Leaves `vmlinuz`, `bin/busybox`, `bin/kmod` and `lib/modules/<release>` with its index.
fn with_modules_for_networks(files: &Path) -> Result<()> {
    let boot = files.join("boot");
    let entries = fs::read_dir(&boot).context("the kernel's package has no boot")?;
    let mut names = entries
        .filter_map(Result::ok)
        .map(|entry| entry.file_name());
    let image = names.find(|name| name.to_string_lossy().starts_with("vmlinuz-"));
    let image = image.context("the kernel's package has no kernel")?;
    let release = image.to_string_lossy().replace("vmlinuz-", "");
    fs::rename(boot.join(&image), files.join("vmlinuz")).context("cannot move the kernel")?;
    let modules = files.join("lib/modules").join(&release).join("kernel");
    keep(&modules, "")?;
    // The program looks at its own name.
    let depmod = files.join("bin/depmod");
    std::os::unix::fs::symlink("kmod", &depmod).context("cannot make depmod")?;
    output(Command::new(&depmod).arg("-b").arg(files).arg(&release))?;
    for rest in ["boot", "etc", "sbin", "usr"] {
        let _ = fs::remove_dir_all(files.join(rest));
    }
    Ok(())
}

/// Takes away what is not kept below a directory, whose path from the top is `prefix`.
fn keep(dir: &Path, prefix: &str) -> Result<()> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.path().is_file() {
            if prefix.trim_end_matches('/') != KEPT_FILES_OF {
                let _ = fs::remove_file(entry.path());
            }
            continue;
        }
        let below = format!("{path}/");
        if KEPT.contains(&below.as_str()) {
            continue;
        }
        let leads = KEPT.iter().any(|kept| kept.starts_with(&below));
        if leads || path == KEPT_FILES_OF {
            keep(&entry.path(), &below)?;
        } else {
            fs::remove_dir_all(entry.path())
                .with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    Ok(())
}

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
