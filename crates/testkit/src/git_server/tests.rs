//! What a Git client sees: clone, push, the three answers to a credential, and a server that was away.

use std::process::Output;

use super::*;

fn git(dir: &Path, args: &[&str]) -> Output {
    Command::new("git")
        .args([
            "-c",
            "user.name=test",
            "-c",
            "user.email=test@example.invalid",
        ])
        .args(args)
        .current_dir(dir)
        .env_remove("http_proxy")
        .env_remove("HTTP_PROXY")
        .env_remove("all_proxy")
        .env_remove("ALL_PROXY")
        .env("HOME", dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .output()
        .unwrap()
}

#[track_caller]
fn ok(output: Output) -> String {
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(output: Output) -> String {
    assert!(!output.status.success(), "it was allowed");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A clone with one commit that is not pushed yet.
fn cloned(url: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    ok(git(dir.path(), &["clone", "--quiet", url, "."]));
    fs::write(dir.path().join("file"), "one\n").unwrap();
    ok(git(dir.path(), &["add", "file"]));
    ok(git(dir.path(), &["commit", "--quiet", "-m", "one"]));
    dir
}

#[test]
fn what_is_pushed_is_what_is_cloned() {
    let server = GitServer::start();
    assert_eq!(server.create("edge"), server.url("edge"));
    let url = server.url_with_token("edge");
    let first = cloned(&url);
    ok(git(first.path(), &["push", "--quiet", "origin", "main"]));
    let second = tempfile::tempdir().unwrap();
    ok(git(second.path(), &["clone", "--quiet", &url, "."]));
    assert_eq!(
        fs::read_to_string(second.path().join("file")).unwrap(),
        "one\n"
    );
    let bare = ok(git(&server.path("edge"), &["rev-parse", "main"]));
    assert_eq!(bare, ok(git(first.path(), &["rev-parse", "HEAD"])));
}

#[test]
fn a_large_push_arrives_whole() {
    let server = GitServer::start();
    server.create("large");
    let work = cloned(&server.url_with_token("large"));
    // Does not compress: the client sends it in chunks, since it is larger than its buffer of 1 MiB.
    let mut word = 1_u32;
    let noise: Vec<u8> = (0..3 << 20)
        .map(|_| {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            word.to_le_bytes()[3]
        })
        .collect();
    fs::write(work.path().join("noise"), &noise).unwrap();
    ok(git(work.path(), &["add", "noise"]));
    ok(git(work.path(), &["commit", "--quiet", "-m", "noise"]));
    ok(git(work.path(), &["push", "--quiet", "origin", "main"]));
    let bare = git(&server.path("large"), &["show", "main:noise"]);
    assert!(bare.stdout == noise, "other bytes");
    ok(git(&server.path("large"), &["fsck", "--strict"]));
}

#[test]
fn many_references_are_asked_for_compressed_and_answered() {
    let server = GitServer::start();
    server.create("many");
    let url = server.url_with_token("many");
    let work = cloned(&url);
    // A negotiation of more than 1 KiB is compressed by the client.
    for n in 0..60 {
        let message = format!("commit {n}");
        let commit = ["commit", "--quiet", "--allow-empty", "-m", &message];
        ok(git(work.path(), &commit));
        ok(git(work.path(), &["branch", &format!("b{n}")]));
    }
    ok(git(work.path(), &["push", "--quiet", "--all", "origin"]));
    let other = tempfile::tempdir().unwrap();
    ok(git(other.path(), &["clone", "--quiet", &url, "."]));
    let message = ["commit", "--quiet", "--allow-empty", "-m", "last"];
    ok(git(work.path(), &message));
    ok(git(work.path(), &["push", "--quiet", "origin", "main"]));
    ok(git(other.path(), &["pull", "--quiet"]));
    let last = ok(git(other.path(), &["log", "-1", "--format=%s"]));
    assert_eq!(last, "last\n");
}

#[test]
fn a_wrong_password_and_none_are_refused() {
    let server = GitServer::start();
    server.create("edge");
    let dir = tempfile::tempdir().unwrap();
    let wrong = server.url("edge").replace("://", "://mooring:wrong@");
    for url in [wrong, server.url("edge")] {
        let said = refused(git(dir.path(), &["clone", &url, "x"]));
        let asked = said.contains("Authentication failed") || said.contains("could not read");
        assert!(asked, "{said}");
    }
    let requests = server.requests();
    assert!(requests.iter().all(|r| r.ends_with(" 401")), "{requests:?}");
}

#[test]
fn a_credential_that_reads_may_clone_and_may_not_push() {
    let server = GitServer::start();
    server.create("edge");
    let credential = format!("://{}:{}@", server.user(), server.read_only_token());
    let work = cloned(&server.url("edge").replace("://", &credential));
    let said = refused(git(work.path(), &["push", "origin", "main"]));
    assert!(said.contains("403"), "{said}");
    refused(git(
        &server.path("edge"),
        &["rev-parse", "--verify", "main"],
    ));
}

#[test]
fn a_bearer_token_serves_too() {
    let server = GitServer::start();
    server.create("edge");
    let header = format!("http.extraHeader=Authorization: Bearer {}", server.token());
    let dir = tempfile::tempdir().unwrap();
    let url = server.url("edge");
    ok(git(dir.path(), &["-c", &header, "ls-remote", &url]));
}

#[test]
fn git_is_away_for_a_while() {
    let server = GitServer::start();
    server.create("edge");
    let work = cloned(&server.url_with_token("edge"));
    server.stop();
    refused(git(work.path(), &["push", "origin", "main"]));
    server.start_again();
    ok(git(work.path(), &["push", "--quiet", "origin", "main"]));
}

#[test]
fn it_starts_and_comes_back_while_other_threads_start_programs() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    Command::new("true").status().unwrap();
                }
            });
        }
        for _ in 0..40 {
            let server = GitServer::start();
            server.stop();
            server.start_again();
        }
    });
}
