//! `cargo xtask images`: container images as OCI layouts, made without a container engine.
//!
//! ```text
//!  images/base.rs    Debian's git, ssh and certificates, without the rest of Debian ─┐
//!  cargo build       moor-controller ────────────────────────────────────────────────┤
//!  images/tree.rs    files by path → a layer that is the same every time ◄───────────┘
//!  images/layout.rs  layers → blobs, config, manifest, index; and reading them back
//! ```
//!
//! Copy one to a registry with what you have, for example `skopeo copy oci:target/images/moor-controller:0.1.0 …`.
//!
//! Easy to get wrong: the same input must give the same digest, so no clock, no owner and no order of a directory
//! reaches a layer. The program itself is as reproducible as cargo makes it: same compiler, same path of the workspace.

mod base;
mod layout;
mod tree;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::shell::{cargo, output, root, run as exec};
use layout::Image;
use tree::Tree;

/// A user that is nobody: the number that distroless images use too.
const USER: u32 = 65532;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Builds as for a release: link-time optimised, some minutes longer
    #[arg(long)]
    dist: bool,
    /// Takes this moor-controller instead of building one
    #[arg(long, value_name = "FILE", conflicts_with = "dist")]
    program: Option<PathBuf>,
    /// Also unpacks the image and runs its programs in it; needs root
    #[arg(long)]
    check: bool,
    /// Where the layouts go; `target/images` where nothing is given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Makes every image.
pub(crate) fn run(options: &Options) -> Result<()> {
    let out = options
        .out
        .clone()
        .unwrap_or_else(|| root().join("target/images"));
    let program = match &options.program {
        Some(program) => program.clone(),
        None => controller(options.dist)?,
    };
    let base = base::tree(USER)?;
    let mut app = Tree::default();
    app.copy("usr/bin/moor-controller", &program, 0o755);
    let place = out.join("moor-controller");
    let image = Image {
        version: env!("CARGO_PKG_VERSION"),
        title: "moor-controller",
        user: USER,
        entrypoint: "/usr/bin/moor-controller",
        layers: &[
            ("Debian's git, ssh and certificates", &base),
            ("moor-controller", &app),
        ],
    };
    let digest = image.write(&place)?;
    let layers = layout::verify(&place)?;
    let size: u64 = layers.iter().map(|layer| layer.size).sum();
    println!(
        "{} {digest}, {} KiB in {} layers",
        place.display(),
        size / 1024,
        layers.len()
    );
    if options.check {
        try_out(&place, &out.join(".check"))?;
    }
    Ok(())
}

fn controller(dist: bool) -> Result<PathBuf> {
    let profile = if dist { "dist" } else { "release" };
    exec(&mut cargo(&[
        "build",
        "-p",
        "mooring-controller",
        "--profile",
        profile,
    ]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join(profile).join("moor-controller"))
}

/// Runs the programs of the image where only the image is. What an engine mounts (`/dev`, `/proc`) is not there.
fn try_out(layout: &Path, dir: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(dir);
    let outcome = layout::unpack(layout, dir).and_then(|()| {
        // Git wants it open before anything else.
        let null = dir.join("dev/null");
        fs::write(&null, "").context("cannot make /dev/null")?;
        fs::set_permissions(&null, fs::Permissions::from_mode(0o666))?;
        for (program, wanted) in [
            (&["/usr/bin/moor-controller", "--help"][..], "--roles"),
            (&["/usr/bin/git", "--version"], "git version"),
            (
                &["/usr/bin/git", "ls-remote", "https://localhost:1/x"],
                "localhost",
            ),
            (&["/usr/bin/sh", "-c", "test a = a && printf fine"], "fine"),
            (&["/usr/bin/ssh", "-V"], "OpenSSH"),
        ] {
            let mut chroot = Command::new("chroot");
            let said = chroot
                .arg(format!("--userspec={USER}:{USER}"))
                .arg(dir)
                .args(program)
                .env_clear()
                .env("PATH", layout::PATH)
                .env("HOME", "/tmp")
                .output()
                .context("cannot start chroot")?;
            let text = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
            ensure!(
                text.contains(wanted),
                "`{}` in the image said: {text}",
                program.join(" ")
            );
            let missing = ["error while loading shared libraries", "remote-https"];
            let missing = missing.iter().any(|m| text.contains(m));
            ensure!(!missing, "`{}` misses something: {text}", program.join(" "));
            println!("  runs in the image: {}", program.join(" "));
        }
        let list = output(Command::new("find").arg(dir).args(["-perm", "/6000"]))?;
        ensure!(list.is_empty(), "programs that change the user: {list}");
        Ok(())
    });
    let _ = fs::remove_dir_all(dir);
    outcome
}
