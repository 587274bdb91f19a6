//! Over ssh with a key: who may, which server is believed, and that both are asked for.

use std::fs;
use std::path::PathBuf;

use mooring_package::git::{Credentials, Repository};
use mooring_package::revision::{Base, Packages};
use mooring_testkit::SshServer;

use crate::forge::{Forge, draft, files, name, workspace};

fn packages(forge: &Forge, url: &str, key: PathBuf, hosts: Option<PathBuf>) -> Packages {
    let repository = Repository {
        credentials: Credentials::Ssh {
            key,
            known_hosts: hosts,
        },
        ..Repository::new(url)
    };
    Packages::new(forge.how(), repository)
}

#[test]
fn a_package_is_published_over_ssh_with_a_key_and_a_known_host() {
    let Some(server) = SshServer::start("packages over ssh") else {
        return;
    };
    let (forge, url) = (Forge::empty(), server.create("packages"));
    let dir = tempfile::tempdir().unwrap();
    // A path that a shell would take for two words.
    let hosts = dir.path().join("known hosts");
    fs::write(&hosts, server.known_host()).unwrap();
    let key = dir.path().join("the key");
    fs::copy(server.key(), &key).unwrap();
    let packages = packages(&forge, &url, key, Some(hosts));
    let (p, w) = (name("ran/p"), workspace("w"));
    let first = draft("ran/p", "w", &files("p", &[("x", "1")]), Base::New);
    packages.write(&first).unwrap();
    packages.propose(&p, &w, None, None).unwrap();
    assert_eq!(packages.approve(&p, &w, None, None).unwrap().version, 1);
    // What somebody else pushed is fetched.
    let bare = Packages::new(
        forge.how(),
        Repository::new(server.path("packages").to_str().unwrap()),
    );
    let second = draft("ran/p", "w2", &files("p", &[("x", "2")]), Base::New);
    bare.write(&second).unwrap();
    let seen = packages.look(&p).unwrap();
    assert_eq!(seen.open.len(), 1, "{seen:?}");
    assert_eq!(seen.open[0].files["x"], b"2");
    assert!(
        server.log().contains("Accepted publickey for git"),
        "{}",
        server.log()
    );
}

#[test]
fn a_server_that_is_not_the_known_one_and_a_key_that_it_does_not_know_are_refused() {
    let Some(server) = SshServer::start("refusals over ssh") else {
        return;
    };
    let (forge, url) = (Forge::empty(), server.create("packages"));
    let dir = tempfile::tempdir().unwrap();
    let hosts = dir.path().join("known_hosts");
    let draft = draft("p", "w", &files("p", &[]), Base::New);
    let refused = |hosts: PathBuf, key: PathBuf| {
        let key_text = fs::read_to_string(&key).unwrap();
        let packages = packages(&forge, &url, key, Some(hosts));
        let error = packages.write(&draft).unwrap_err();
        assert_eq!(error.reason(), "GitDenied", "{error:?}");
        let told = format!("{error} {error:?}");
        let line = key_text.lines().nth(1).unwrap();
        assert!(!told.contains(line), "{told}");
        told
    };
    // Another server at that place, then none that anybody knows.
    fs::write(&hosts, server.other_host()).unwrap();
    let told = refused(hosts.clone(), server.key());
    assert!(
        told.contains("REMOTE HOST IDENTIFICATION HAS CHANGED") && !told.contains("@@"),
        "{told}"
    );
    fs::write(&hosts, "").unwrap();
    let told = refused(hosts.clone(), server.key());
    assert!(
        told.to_lowercase().contains("host key verification failed"),
        "{told}"
    );
    assert!(!server.log().contains("Accepted"), "{}", server.log());
    // The right one, which does not know us.
    fs::write(&hosts, server.known_host()).unwrap();
    let told = refused(hosts, server.other_key());
    assert!(told.to_lowercase().contains("permission denied"), "{told}");
    assert!(!server.log().contains("Accepted"), "{}", server.log());
}
