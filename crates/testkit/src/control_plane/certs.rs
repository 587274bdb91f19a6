//! Certificates of one control plane: an authority of its own, made at the start and known to nobody else.
//!
//! Whoever presents a certificate of it is a process that we started: that is half of the check in `start.rs`.
//! Easy to get wrong: `rcgen` keeps one value per kind of name, and a person's groups are organisations.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;

use super::Failure;

/// Organisation, spelled so that `rcgen` takes it for another kind of name.
const SECOND_ORGANISATION: [u64; 4] = [2, 5, 4, 10];

/// An authority that signs.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// Its certificate as a file.
    pub(super) file: PathBuf,
}

/// A certificate and its key, as files.
pub(super) struct Leaf {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) der: CertificateDer<'static>,
}

impl Authority {
    /// A new one; its certificate is `<name>-ca.crt` below `dir`, its key is nowhere but here.
    pub(super) fn new(dir: &Path, name: &str) -> Result<Self, Failure> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params
            .distinguished_name
            .push(DnType::CommonName, format!("{name} of a test"));
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let file = dir.join(format!("{name}-ca.crt"));
        write(&file, &issuer.pem())?;
        Ok(Self { issuer, file })
    }

    /// For a server on the loopback interface.
    pub(super) fn server(&self, dir: &Path, name: &str) -> Result<Leaf, Failure> {
        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"];
        let params = CertificateParams::new(names.map(str::to_owned))?;
        self.sign(params, dir, name, &[])
    }

    /// For a client with that user name, in those groups; two at most.
    pub(super) fn client(&self, dir: &Path, user: &str, groups: &[&str]) -> Result<Leaf, Failure> {
        self.sign(CertificateParams::default(), dir, user, groups)
    }

    pub(super) fn der(&self) -> &CertificateDer<'static> {
        self.issuer.der()
    }

    fn sign(
        &self,
        mut params: CertificateParams,
        dir: &Path,
        name: &str,
        groups: &[&str],
    ) -> Result<Leaf, Failure> {
        // Both purposes: etcd calls itself with the certificate that it serves with.
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.distinguished_name.push(DnType::CommonName, name);
        let kinds = [
            DnType::OrganizationName,
            DnType::CustomDnType(SECOND_ORGANISATION.to_vec()),
        ];
        if groups.len() > kinds.len() {
            let most = kinds.len();
            return Err(Failure::new(format!(
                "{name}: {most} groups at most, not {groups:?}"
            )));
        }
        for (kind, group) in kinds.into_iter().zip(groups) {
            params.distinguished_name.push(kind, *group);
        }
        let key = KeyPair::generate()?;
        let signed = params.signed_by(&key, &self.issuer)?;
        let file = name.replace([':', '/'], "-");
        let leaf = Leaf {
            certificate: dir.join(format!("{file}.crt")),
            key: dir.join(format!("{file}.key")),
            der: signed.der().clone(),
        };
        write(&leaf.certificate, &signed.pem())?;
        write(&leaf.key, &key.serialize_pem())?;
        Ok(leaf)
    }
}

/// A key pair for the tokens of service accounts: `service-accounts.key` and `.pub`.
pub(super) fn service_accounts(dir: &Path) -> Result<(), Failure> {
    let key = KeyPair::generate()?;
    write(&dir.join("service-accounts.key"), &key.serialize_pem())?;
    write(&dir.join("service-accounts.pub"), &key.public_key_pem())
}

/// A word that nobody guesses, for a token.
pub(super) fn secret() -> Result<String, Failure> {
    use sha2::{Digest as _, Sha256};
    let key = KeyPair::generate()?;
    Ok(format!("{:x}", Sha256::digest(key.serialized_der())))
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let say = |e| Failure::new(format!("cannot write {}: {e}", path.display()));
    std::fs::write(path, text).map_err(say)
}
