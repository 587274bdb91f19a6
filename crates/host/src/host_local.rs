//! What a file of host-local's store says: whose an address is.
//!
//! Read by the IPAM plugin, which writes them, and by the doctor. The form is the reference plugin's:
//! `<container>\r\n<interface>`; older ones wrote the container alone.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::path::Path;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

/// Whose an address is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The container.
    pub container: String,
    /// Its interface; older plugins did not say.
    pub ifname: Option<String>,
}

impl Owner {
    /// An attachment.
    pub fn new(container: &str, ifname: &str) -> Self {
        Self {
            container: container.to_owned(),
            ifname: Some(ifname.to_owned()),
        }
    }

    /// Whether it may be that attachment's: a file without interface name is any of the container's.
    pub fn may_be(&self, other: &Self) -> bool {
        self.container == other.container
            && (self.ifname == other.ifname || self.ifname.is_none() || other.ifname.is_none())
    }
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Empty, or what a power cut makes of a file that was not synced: zeros.
    Nothing,
    /// Somebody's.
    Owned(Owner),
    /// Not to be read: it stays taken.
    Unknown,
    /// There is no such file any more.
    Gone,
}

/// Reads one file.
pub fn content(path: &Path) -> Content {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Content::Gone,
        Err(_) => return Content::Unknown,
    };
    parse(&bytes)
}

/// Reads one file of a directory that is open: for whoever reads all of them while others wait for the lock. By its own name
/// and in one read it takes three system calls, of which none looks up a path.
pub fn content_in(directory: impl AsFd, name: &OsStr) -> Content {
    /// No file that a plugin writes is longer: a container's name has 64 characters with every runtime.
    const LONG: usize = 512;
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let mut file = match openat(directory, name, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(nix::errno::Errno::ENOENT) => return Content::Gone,
        Err(_) => return Content::Unknown,
    };
    let mut buffer = [0; LONG];
    match file.read(&mut buffer) {
        Ok(length) if length < LONG => parse(&buffer[..length]),
        Ok(length) => {
            let mut bytes = buffer[..length].to_vec();
            match file.read_to_end(&mut bytes) {
                Ok(_) => parse(&bytes),
                Err(_) => Content::Unknown,
            }
        }
        Err(_) => Content::Unknown,
    }
}

/// Any bytes.
pub fn parse(bytes: &[u8]) -> Content {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Content::Unknown;
    };
    let text = trim(text);
    if text.is_empty() {
        return Content::Nothing;
    }
    let (container, ifname) = match text.split_once("\r\n") {
        Some((container, ifname)) => (trim(container), Some(trim(ifname).to_owned())),
        None => (text, None),
    };
    Content::Owned(Owner {
        container: container.to_owned(),
        ifname,
    })
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_the_same_by_its_path_and_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let open = File::open(dir.path()).unwrap();
        let long = "c".repeat(5000);
        let owned = Content::Owned(Owner::new("c1", "net1"));
        let cases = [
            ("whole", Some("c1\r\nnet1".to_owned()), owned),
            ("empty", Some(String::new()), Content::Nothing),
            ("zeros", Some("\0".repeat(512)), Content::Nothing),
            (
                "long",
                Some(format!("{long}\r\nnet1")),
                Content::Owned(Owner::new(&long, "net1")),
            ),
            ("absent", None, Content::Gone),
        ];
        for (name, text, expected) in cases {
            let path = dir.path().join(name);
            if let Some(text) = text {
                crate::file::write_atomic(&path, text.as_bytes()).unwrap();
            }
            assert_eq!(content(&path), expected, "{name}");
            assert_eq!(content_in(&open, name.as_ref()), expected, "{name}");
        }
        fs::create_dir(dir.path().join("directory")).unwrap();
        let seen = content_in(&open, "directory".as_ref());
        assert_eq!(seen, Content::Unknown);
    }
}
