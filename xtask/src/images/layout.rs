//! An OCI image layout: `oci-layout`, `index.json`, `blobs/sha256/…`; writing one, walking it, unpacking it.
//!
//! Easy to get wrong: a layer has two digests. The manifest names the compressed bytes, the config's `diff_ids` the tar.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::tree::Tree;

/// Where programs are in the image.
pub(super) const PATH: &str = "/usr/bin:/usr/sbin";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// When everything was made: the same every time.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// What an image is made of.
pub(super) struct Image<'a> {
    pub(super) title: &'a str,
    pub(super) version: &'a str,
    pub(super) user: u32,
    pub(super) entrypoint: &'a str,
    /// What it is, and its files; the lowest first.
    pub(super) layers: &'a [(&'a str, &'a Tree)],
}

/// A blob by what its descriptor says.
#[derive(Debug)]
pub(super) struct Blob {
    digest: String,
    pub(super) size: u64,
}

impl Image<'_> {
    /// Writes the layout in place of what was there, and gives the manifest's digest.
    pub(super) fn write(&self, place: &Path) -> Result<String> {
        let name = place
            .file_name()
            .context("a layout has a name")?
            .to_string_lossy();
        let work = place.with_file_name(format!(".{name}.new"));
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(work.join("blobs/sha256"))
            .with_context(|| format!("cannot make {}", work.display()))?;
        let digest = self.write_into(&work)?;
        if place.exists() {
            fs::remove_dir_all(place)
                .with_context(|| format!("cannot replace {}", place.display()))?;
        }
        fs::rename(&work, place).with_context(|| format!("cannot make {}", place.display()))?;
        Ok(digest)
    }

    fn write_into(&self, dir: &Path) -> Result<String> {
        let (mut layers, mut diff_ids, mut history) = (Vec::new(), Vec::new(), Vec::new());
        for (what, tree) in self.layers {
            let mut tar = Vec::new();
            tree.write(&mut tar)?;
            diff_ids.push(digest(&tar));
            history.push(json!({"created": CREATED, "created_by": what}));
            // No name, no time, no system in the header.
            let mut gzip = GzBuilder::new()
                .mtime(0)
                .operating_system(255)
                .write(Vec::new(), Compression::default());
            gzip.write_all(&tar)?;
            layers.push(put(dir, LAYER, &gzip.finish()?)?);
        }
        let config = json!({
            "created": CREATED,
            "architecture": architecture()?,
            "os": "linux",
            "config": {
                "User": format!("{0}:{0}", self.user),
                "Env": [format!("PATH={PATH}")],
                "Entrypoint": [self.entrypoint],
                "WorkingDir": "/",
                "Labels": {
                    "org.opencontainers.image.title": self.title,
                    "org.opencontainers.image.version": self.version,
                    "org.opencontainers.image.licenses": "Apache-2.0",
                },
            },
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
            "history": history,
        });
        let config = put(dir, CONFIG, config.to_string().as_bytes())?;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers,
        });
        let mut manifest = put(dir, MANIFEST, manifest.to_string().as_bytes())?;
        let digest = text(&manifest, "digest")?.to_owned();
        manifest["annotations"] = json!({"org.opencontainers.image.ref.name": self.version});
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest]});
        fs::write(dir.join("index.json"), index.to_string())?;
        fs::write(dir.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
        Ok(digest)
    }
}

/// The name that images use for this machine.
fn architecture() -> Result<&'static str> {
    Ok(match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => bail!("no image is made on {other}"),
    })
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{:x}", Sha256::digest(bytes))
}

/// Writes a blob and gives its descriptor.
fn put(dir: &Path, media_type: &str, bytes: &[u8]) -> Result<Value> {
    let digest = digest(bytes);
    let path = dir.join("blobs").join(digest.replace(':', "/"));
    fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(json!({"mediaType": media_type, "digest": digest, "size": bytes.len()}))
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    let found = value.get(key).and_then(Value::as_str);
    found.with_context(|| format!("no {key} in {value}"))
}

/// The bytes that a descriptor speaks of, of the type that is expected.
fn get(dir: &Path, descriptor: &Value, media_type: &str) -> Result<(Blob, Vec<u8>)> {
    ensure!(
        text(descriptor, "mediaType")? == media_type,
        "not {media_type}: {descriptor}"
    );
    let named = text(descriptor, "digest")?;
    let path = dir.join("blobs").join(named.replace(':', "/"));
    let bytes = fs::read(&path).with_context(|| format!("cannot read the blob {named}"))?;
    ensure!(digest(&bytes) == named, "the blob {named} has other bytes");
    let size = bytes.len() as u64;
    ensure!(
        descriptor["size"] == size,
        "the blob {named} has {size} bytes: {descriptor}"
    );
    let digest = named.to_owned();
    Ok((Blob { digest, size }, bytes))
}

fn parse(bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes).context("not JSON")
}

/// Walks from the index to the last layer, compares every digest and size, and gives the layers.
pub(super) fn verify(dir: &Path) -> Result<Vec<Blob>> {
    walk(dir, |_| Ok(()))
}

/// Puts the layers over each other into a directory.
pub(super) fn unpack(layout: &Path, dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    walk(layout, |tar| {
        let mut archive = tar::Archive::new(tar);
        archive.set_preserve_permissions(true);
        archive.unpack(dir).context("cannot unpack a layer")
    })?;
    Ok(())
}

fn walk(dir: &Path, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<Vec<Blob>> {
    let version = parse(&fs::read(dir.join("oci-layout")).context("no oci-layout")?)?;
    ensure!(
        version["imageLayoutVersion"] == "1.0.0",
        "not a layout of 1.0.0: {version}"
    );
    let index = parse(&fs::read(dir.join("index.json")).context("no index.json")?)?;
    let [descriptor] = list(&index, "manifests")? else {
        bail!("not one manifest: {index}");
    };
    let (_, manifest) = get(dir, descriptor, MANIFEST)?;
    let manifest = parse(&manifest)?;
    let (_, config) = get(dir, &manifest["config"], CONFIG)?;
    let config = parse(&config)?;
    let diff_ids = list(&config["rootfs"], "diff_ids")?;
    let layers = list(&manifest, "layers")?;
    ensure!(
        layers.len() == diff_ids.len(),
        "{} layers, {} diff_ids",
        layers.len(),
        diff_ids.len()
    );
    let mut blobs = Vec::new();
    for (descriptor, diff_id) in layers.iter().zip(diff_ids) {
        let (blob, bytes) = get(dir, descriptor, LAYER)?;
        let mut tar = Vec::new();
        GzDecoder::new(bytes.as_slice())
            .read_to_end(&mut tar)
            .map_err(|e: io::Error| {
                anyhow::Error::new(e).context(format!("the layer {} is not gzip", blob.digest))
            })?;
        ensure!(
            digest(&tar) == *diff_id,
            "the layer {} is not {diff_id}",
            blob.digest
        );
        each(&tar)?;
        blobs.push(blob);
    }
    Ok(blobs)
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value]> {
    let found = value.get(key).and_then(Value::as_array);
    found
        .map(Vec::as_slice)
        .with_context(|| format!("no list {key} in {value}"))
}

#[cfg(test)]
mod tests;
