//! What opens a repository, from a Secret, for one pass: the packages and the sync role read Secrets here and nowhere else.
//!
//! | a Secret has | |
//! |---|---|
//! | `ssh-privatekey` or `ssh`, and `known_hosts` | a key |
//! | `token`, `password` or `bearerToken`, and `username` | a token; the first of the three that is there |
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

const KEY: [&str; 2] = ["ssh-privatekey", "ssh"];
const TOKEN: [&str; 3] = ["token", "password", "bearerToken"];
const NOT_TEXT: &str = "it has a value that is not text";

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
        match auth {
            Auth::Token => Self::token(secret)?.ok_or_else(|| "it has no token".to_owned()),
            Auth::Ssh => Self::key(secret)?.ok_or_else(|| "it has no ssh-privatekey".to_owned()),
            _ => Ok(Self::none()),
        }
    }

    /// Whatever a Secret has: a key before a token.
    pub(crate) fn any(secret: &Secret) -> Result<Self, String> {
        let found = match Self::key(secret)? {
            Some(key) => Some(key),
            None => Self::token(secret)?,
        };
        found.ok_or_else(|| "it has neither password, token nor ssh-privatekey".to_owned())
    }

    fn token(secret: &Secret) -> Result<Option<Self>, String> {
        let Some(token) = text(secret, &TOKEN)? else {
            return Ok(None);
        };
        // Many servers take any name beside a token, and none takes an empty one.
        let username = text(secret, &["username"])?.unwrap_or_else(|| "git".to_owned());
        let password = git::Secret::new(token);
        Ok(Some(Self {
            credentials: Credentials::Token { username, password },
            _dir: None,
        }))
    }

    fn key(secret: &Secret) -> Result<Option<Self>, String> {
        let Some(key) = text(secret, &KEY)? else {
            return Ok(None);
        };
        let failed = |e: std::io::Error| format!("its key cannot be kept for git: {e}");
        let dir = tempfile::tempdir().map_err(failed)?;
        let write = |name: &str, text: &str| -> std::io::Result<PathBuf> {
            let path = dir.path().join(name);
            let mut options = std::fs::OpenOptions::new();
            let options = options.write(true).create_new(true).mode(0o600);
            // ssh reads no key whose last line does not end.
            writeln!(options.open(&path)?, "{text}")?;
            Ok(path)
        };
        let key = write("key", &key).map_err(failed)?;
        let known_hosts = match text(secret, &["known_hosts"])? {
            Some(hosts) => Some(write("known_hosts", &hosts).map_err(failed)?),
            None => None,
        };
        Ok(Some(Self {
            credentials: Credentials::Ssh { key, known_hosts },
            _dir: Some(dir),
        }))
    }
}

/// The first of these that says something, without the line break that `kubectl create secret --from-file` leaves at its end.
fn text(secret: &Secret, names: &[&str]) -> Result<Option<String>, &'static str> {
    let Some(data) = &secret.data else {
        return Ok(None);
    };
    for bytes in names.iter().filter_map(|name| data.get(*name)) {
        let text = std::str::from_utf8(&bytes.0).map_err(|_| NOT_TEXT)?.trim();
        if !text.is_empty() {
            return Ok(Some(text.to_owned()));
        }
    }
    Ok(None)
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

    fn is_token(opened: &Opened, wanted: (&str, &str)) -> bool {
        let (name, token) = (wanted.0.to_owned(), git::Secret::new(wanted.1));
        matches!(&opened.credentials, Credentials::Token { username, password }
            if *username == name && *password == token)
    }

    #[test]
    fn a_token_alone_is_enough_and_is_never_shown() {
        for name in TOKEN {
            for opened in [
                Opened::any(&secret(&[(name, "s3cret\n")])),
                Opened::read(Auth::Token, &secret(&[(name, "s3cret\n")])),
            ] {
                let opened = opened.expect("it opens");
                assert!(is_token(&opened, ("git", "s3cret")));
                assert!(!format!("{opened:?}").contains("s3cret"));
            }
        }
        let named = secret(&[("username", "me\n"), ("token", ""), ("password", "p")]);
        let opened = Opened::any(&named).expect("an empty one is passed over");
        assert!(is_token(&opened, ("me", "p")));
    }

    #[test]
    fn an_ssh_key_is_a_private_file_that_ends_with_a_line_and_goes_with_the_value() {
        let both = secret(&[("ssh", "KEY"), ("known_hosts", "host key"), ("token", "t")]);
        for opened in [Opened::any(&both), Opened::read(Auth::Ssh, &both)] {
            let opened = opened.expect("all is there");
            let Credentials::Ssh { key, known_hosts } = opened.credentials.clone() else {
                panic!("not ssh: {opened:?}");
            };
            let text = std::fs::read_to_string(&key).expect("it is there");
            let mode = std::fs::metadata(&key).expect("it is there").mode();
            assert_eq!((text.as_str(), mode & 0o777), ("KEY\n", 0o600));
            assert!(known_hosts.is_some());
            drop(opened);
            assert!(!key.exists());
        }
    }

    #[test]
    fn a_secret_without_what_is_asked_for_says_what_is_missing() {
        let missing = |opened: Result<Opened, String>| opened.expect_err("there is nothing");
        let name = secret(&[("username", "me")]);
        assert_eq!(missing(Opened::read(Auth::Token, &name)), "it has no token");
        let none = "it has no ssh-privatekey";
        assert_eq!(missing(Opened::read(Auth::Ssh, &secret(&[]))), none);
        let neither = "it has neither password, token nor ssh-privatekey";
        assert_eq!(missing(Opened::any(&name)), neither);
        assert_eq!(missing(Opened::any(&secret(&[("password", " ")]))), neither);
        assert_eq!(missing(Opened::any(&Secret::default())), neither);
    }

    #[test]
    fn a_value_that_is_not_text_is_said_without_being_shown() {
        let mut bad = secret(&[]);
        let bytes = ByteString(vec![0xff, b's', b'3']);
        bad.data = Some([("token".to_owned(), bytes)].into());
        let said = Opened::any(&bad).expect_err("it is not text");
        assert_eq!(said, NOT_TEXT);
    }
}
