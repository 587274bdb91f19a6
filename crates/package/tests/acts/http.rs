//! Over smart HTTP with credentials: who may read, who may push, and that no error tells the token.

use mooring_package::git::{Credentials, Repository, Secret};
use mooring_package::revision::{Base, Error, Packages};
use mooring_testkit::GitServer;

use crate::forge::{Forge, draft, files, name, workspace};

fn packages(forge: &Forge, server: &GitServer, token: Option<&str>) -> Packages {
    let credentials = match token {
        Some(token) => Credentials::Token {
            username: server.user().to_owned(),
            password: Secret::new(token),
        },
        None => Credentials::None,
    };
    let repository = Repository {
        credentials,
        ..Repository::new(server.url("packages"))
    };
    Packages::new(forge.how(), repository)
}

#[test]
fn a_package_is_published_over_http_with_a_token() {
    let (forge, server) = (Forge::empty(), GitServer::start());
    server.create("packages");
    let packages = packages(&forge, &server, Some(server.token()));
    let (p, w) = (name("ran/p"), workspace("w"));
    packages
        .write(&draft("ran/p", "w", &files("p", &[("x", "1")]), Base::New))
        .unwrap();
    packages.propose(&p, &w, None, None).unwrap();
    assert_eq!(packages.approve(&p, &w, None, None).unwrap().version, 1);
    let listed = packages.list().unwrap();
    assert_eq!((listed.len(), listed[0].deployed), (1, true));
}

#[test]
fn who_has_no_token_a_wrong_one_or_one_for_reading_is_told_without_it() {
    let (forge, server) = (Forge::empty(), GitServer::start());
    server.create("packages");
    let draft = draft("p", "w", &files("p", &[]), Base::New);
    let refused = |token: Option<&str>| -> Error {
        let error = packages(&forge, &server, token).write(&draft).unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(token.is_none_or(|token| !told.contains(token)), "{told}");
        error
    };
    for token in [
        None,
        Some("wrong-and-secret"),
        Some(server.read_only_token()),
    ] {
        let error = refused(token);
        assert_eq!(error.reason(), "GitDenied", "{token:?}: {error:?}");
        assert!(!error.is_transient());
    }
    packages(&forge, &server, Some(server.read_only_token()))
        .list()
        .unwrap();
}

#[test]
fn a_server_that_is_away_is_unreachable_and_the_same_works_when_it_is_back() {
    let (forge, server) = (Forge::empty(), GitServer::start());
    server.create("packages");
    let packages = packages(&forge, &server, Some(server.token()));
    let draft = draft("p", "w", &files("p", &[]), Base::New);
    server.stop();
    let error = packages.write(&draft).unwrap_err();
    assert_eq!(error.reason(), "GitUnreachable", "{error:?}");
    assert!(error.is_transient());
    server.start_again();
    packages.write(&draft).unwrap();
}
