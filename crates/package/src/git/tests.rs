//! Facts that need no server.

use super::*;

#[test]
fn a_secret_is_never_shown() {
    let repository = Repository {
        credentials: Credentials::Token {
            username: "me".into(),
            password: Secret::new("s3cret\n"),
        },
        ..Repository::new("https://example.com/packages.git")
    };
    assert!(!format!("{repository:?} {repository}").contains("s3cret"));
}

#[test]
fn addresses_that_would_run_or_show_something_are_refused() {
    let wrong = [
        "",
        "-upload-pack=x",
        "ext::sh -c x",
        "https://me:secret@example.com/x.git",
        "ftp://example.com/x.git",
        "a\nb",
    ];
    for url in wrong {
        let said = Repository::new(url).check().unwrap_err().to_string();
        assert!(!said.contains("secret"), "{said}");
    }
    for url in [
        "https://example.com/x.git",
        "ssh://git@example.com/x.git",
        "git@example.com:x.git",
        "/srv/x.git",
        "../x",
        "file:///srv/x.git",
    ] {
        Repository::new(url).check().unwrap();
    }
}

#[test]
fn branches_and_directories_have_a_grammar() {
    let with = |branch: &str, directory: &str| Repository {
        branch: branch.into(),
        directory: directory.into(),
        ..Repository::new("/srv/x.git")
    };
    with("main", "").check().unwrap();
    with("release/5g-1.0", "packages/ran").check().unwrap();
    for branch in [
        "", "-f", "a..b", "a b", "a.lock", "HEAD", "a/", "x@{1}", "é", "a~1",
    ] {
        assert!(with(branch, "").check().is_err(), "{branch:?}");
    }
    for directory in ["/", "a/", "../x", "a/../b", ".git", "a//b", "a\\b"] {
        assert!(with("main", directory).check().is_err(), "{directory:?}");
    }
}

#[test]
fn a_token_is_for_http_only() {
    let repository = Repository {
        credentials: Credentials::Token {
            username: "me".into(),
            password: Secret::new("t"),
        },
        ..Repository::new("ssh://example.com/x.git")
    };
    assert!(repository.check().is_err());
}
