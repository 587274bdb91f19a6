//! What opens a repository, from a Secret, for one pass.
//!
//! Easy to get wrong: a Secret's values are in no text, no cache and no status. An ssh key is a file that only we can read,
//! in a directory that goes with the value.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use k8s_openapi::api::core::v1::Secret;
use mooring_api::kinds::configsync::Auth;
use mooring_package::git::{self, Credentials};
use tempfile::TempDir;

/// Credentials, and the directory that an ssh key needs while they are used.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) credentials: Credentials,
    _dir: Option<TempDir>,
}

impl Opened {
    /// As nobody.
    pub(crate) fn none() -> Self {
        Self {
            credentials: Credentials::None,
            _dir: None,
        }
    }

    /// What this way of opening finds in a Secret, or what is missing there.
    pub(crate) fn read(auth: Auth, secret: &Secret) -> Result<Self, String> {
        let text = |names: &[&str]| {
            let data = secret.data.as_ref()?;
            let bytes = names.iter().find_map(|name| data.get(*name))?;
            let text = String::from_utf8(bytes.0.clone()).ok()?;
            Some(text).filter(|text| !text.trim().is_empty())
        };
        match auth {
            Auth::Token => {
                let token = text(&["token", "password"]).ok_or("it has no token")?;
                // Many servers take any name beside a token, and none takes an empty one.
                let username = text(&["username"]).unwrap_or_else(|| "git".to_owned());
                Ok(Self {
                    credentials: Credentials::Token {
                        username: username.trim().to_owned(),
                        password: git::Secret::new(token),
                    },
                    _dir: None,
                })
            }
            Auth::Ssh => {
                let key = text(&["ssh-privatekey", "ssh"]).ok_or("it has no ssh-privatekey")?;
                let failed = |e: std::io::Error| format!("its key cannot be kept for git: {e}");
                let dir = tempfile::tempdir().map_err(failed)?;
                let write = |name: &str, text: &str| -> std::io::Result<PathBuf> {
                    let path = dir.path().join(name);
                    let mut options = std::fs::OpenOptions::new();
                    let mut file = options
                        .write(true)
                        .create_new(true)
                        .mode(0o600)
                        .open(&path)?;
                    // ssh reads no key whose last line does not end.
                    writeln!(file, "{}", text.trim_end())?;
                    Ok(path)
                };
                let key = write("key", &key).map_err(failed)?;
                let known_hosts = match text(&["known_hosts"]) {
                    Some(hosts) => Some(write("known_hosts", &hosts).map_err(failed)?),
                    None => None,
                };
                Ok(Self {
                    credentials: Credentials::Ssh { key, known_hosts },
                    _dir: Some(dir),
                })
            }
            _ => Ok(Self::none()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use k8s_openapi::ByteString;

    use super::*;

    fn secret(data: &[(&str, &str)]) -> Secret {
        let value =
            |(key, text): &(&str, &str)| ((*key).to_owned(), ByteString(text.as_bytes().to_vec()));
        Secret {
            data: Some(data.iter().map(value).collect()),
            ..Secret::default()
        }
    }

    #[test]
    fn a_token_needs_a_token_and_never_shows_it() {
        let opened = Opened::read(
            Auth::Token,
            &secret(&[("username", "me\n"), ("token", "s3cret\n")]),
        );
        let opened = opened.expect("all is there");
        assert!(
            matches!(&opened.credentials, Credentials::Token { username, .. } if username == "me")
        );
        assert!(!format!("{opened:?}").contains("s3cret"));
        let missing = Opened::read(Auth::Token, &secret(&[("username", "me")]));
        assert_eq!(missing.expect_err("there is none"), "it has no token");
    }

    #[test]
    fn an_ssh_key_is_a_private_file_that_ends_with_a_line_and_goes_with_the_value() {
        let opened = Opened::read(
            Auth::Ssh,
            &secret(&[("ssh", "KEY"), ("known_hosts", "host key")]),
        );
        let opened = opened.expect("all is there");
        let Credentials::Ssh { key, known_hosts } = opened.credentials.clone() else {
            panic!("not ssh");
        };
        assert_eq!(std::fs::read_to_string(&key).expect("it is there"), "KEY\n");
        assert_eq!(
            std::fs::metadata(&key).expect("it is there").mode() & 0o777,
            0o600
        );
        assert!(known_hosts.is_some());
        drop(opened);
        assert!(!key.exists());
        assert!(Opened::read(Auth::Ssh, &secret(&[])).is_err());
    }
}
