//! Which repository, which branch and directory of it, and as whom.

use std::fmt;
use std::path::PathBuf;

use super::Error;

/// A repository of packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Where it is: a URL, or a path.
    pub url: String,
    /// The deployment branch.
    pub branch: String,
    /// The directory that packages are in; empty for the root.
    pub directory: String,
    /// As whom.
    pub credentials: Credentials,
}

/// As whom a repository is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Credentials {
    /// As the user's own configuration of git says: helpers, agents, keys.
    #[default]
    Ambient,
    /// As nobody. No configuration is read.
    None,
    /// With a name and a password or token, over HTTP.
    Token {
        /// The name; many servers accept any with a token.
        username: String,
        /// The password or token.
        password: Secret,
    },
    /// With a key, over ssh.
    Ssh {
        /// The private key, a file that only its owner may read.
        key: PathBuf,
        /// The hosts that are known; without it the first contact is believed.
        known_hosts: Option<PathBuf>,
    },
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text. A line break at its end, as files have, is not part of it.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim_end_matches(['\n', '\r']).to_owned())
    }

    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Repository {
    /// The repository at this place: branch `main`, packages in its root, as git is configured.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            branch: "main".to_owned(),
            directory: String::new(),
            credentials: Credentials::default(),
        }
    }

    /// What can be seen before git is asked.
    pub fn check(&self) -> Result<(), Error> {
        let bad = |why| {
            Err(Error::BadUrl {
                url: without_password(&self.url),
                why,
            })
        };
        let url = self.url.as_str();
        if url.is_empty() || url.starts_with('-') || url.contains(['\n', '\0']) {
            return bad("it is empty, begins with a dash or has a line break");
        }
        if url.contains("::") && !url.contains("://") {
            return bad("remote helpers are not run");
        }
        if let Some((scheme, _)) = url.split_once("://")
            && !["https", "http", "ssh", "git", "file"].contains(&scheme)
        {
            return bad("its scheme is none of https, http, ssh, git, file");
        }
        if user(url).is_some_and(|user| user.contains(':')) {
            return bad("it holds a password, which would be seen in logs");
        }
        if !is_branch(&self.branch) {
            return bad("its branch is no name of a branch");
        }
        let part = |part: &str| part != "." && part != ".." && part != ".git" && !part.is_empty();
        let directory = self.directory.as_str();
        let is_path = directory.is_empty() || directory.split('/').all(part);
        if !is_path || directory.contains(['\n', '\0', '\\']) {
            return bad("its directory is no path inside of it");
        }
        match &self.credentials {
            Credentials::Token { username, password } => {
                if [username.as_str(), password.reveal()]
                    .iter()
                    .any(|text| text.contains(['\n', '\0']))
                {
                    return bad("its name or token has a line break");
                }
                if !url.starts_with("http://") && !url.starts_with("https://") {
                    return bad("a token needs an http or https address");
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// `scheme://host[:port]` of an HTTP address: whom the token is for.
    pub(super) fn host(&self) -> Option<String> {
        let (scheme, rest) = self.url.split_once("://")?;
        let host = rest.split('/').next()?;
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        Some(format!("{scheme}://{host}"))
    }

    /// What a package of this repository is known as in the book: its place, whichever draft or version.
    pub fn place(&self, package: &str) -> PathBuf {
        let url = without_password(&self.url);
        let inside = self.path(package);
        PathBuf::from(format!("{PLACE}{url}#{inside}"))
    }

    /// The path of a package in the tree.
    pub(crate) fn path(&self, package: &str) -> String {
        if self.directory.is_empty() {
            package.to_owned()
        } else {
            format!("{}/{package}", self.directory)
        }
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(&self.url))
    }
}

/// How places of packages in Git begin.
pub(crate) const PLACE: &str = "git:";

/// Whether git takes it for the name of a branch, and nothing for something else.
pub(crate) fn is_branch(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && !part.ends_with('.')
            && !part.to_ascii_lowercase().ends_with(".lock")
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@#".contains(c);
    !name.contains("..")
        && !name.contains("@{")
        && name != "@"
        && name != "HEAD"
        && name.len() <= 200
        && name.chars().all(plain)
        && name.split('/').all(part)
}

/// `user` or `user:password` of a URL.
fn user(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let host = rest.split('/').next()?;
    host.rsplit_once('@').map(|(user, _)| user)
}

fn without_password(url: &str) -> String {
    match (url.split_once("://"), user(url)) {
        (Some((scheme, rest)), Some(user)) if user.contains(':') => {
            let name = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}:***{}", &rest[user.len()..])
        }
        _ => url.to_owned(),
    }
}
