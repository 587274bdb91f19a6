//! git itself: what is read and written, what fails, and what nobody gets to see.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mooring_package::git::{Commit, Credentials, Error, Put, Repository, Secret, Update};

use crate::forge::{Forge, files, git, name};

#[test]
fn links_and_executable_files_stay_what_they_are() {
    let forge = Forge::new();
    forge.place.write("person/p/run.sh", "#!/bin/sh\n");
    forge.git("person", &["add", "."]);
    forge.git("person", &["update-index", "--chmod=+x", "p/run.sh"]);
    std::os::unix::fs::symlink("run.sh", forge.place.path("person/p/link")).unwrap();
    forge.git("person", &["add", "."]);
    forge.git("person", &["update-index", "--chmod=+x", "p/run.sh"]);
    forge.git("person", &["commit", "-qm", "modes"]);
    forge.git("person", &["push", "-q", "origin", "main"]);

    let mirror = forge.how().open(&forge.repository()).unwrap();
    let main = mirror.branch("main").unwrap().commit.clone();
    let mut read = mirror.read(&main, "p").unwrap().unwrap();
    assert_eq!(read.keys().collect::<Vec<_>>(), ["run.sh"]);
    read.insert("name with \"quotes\" and\nlines".into(), b"x\0y".to_vec());
    let commit = Commit {
        parents: vec![main],
        puts: vec![Put::Directory {
            path: "p".into(),
            files: read,
            keep: Vec::new(),
        }],
        message: "change\n".into(),
    };
    let to = mirror.commit(&commit).unwrap();
    let name = "refs/heads/main".to_owned();
    mirror.push(&[Update::Advance { name, to }]).unwrap();
    let listing = forge.git("origin.git", &["ls-tree", "-r", "main", "p"]);
    let modes: Vec<(&str, &str)> = listing
        .lines()
        .map(|line| (&line[..6], line.rsplit('\t').next().unwrap()))
        .collect();
    assert_eq!(
        modes,
        [
            ("120000", "p/link"),
            ("100644", "\"p/name with \\\"quotes\\\" and\\nlines\""),
            ("100755", "p/run.sh"),
        ]
    );
}

#[test]
fn a_branch_that_is_not_an_ancestor_is_never_pushed_over() {
    let forge = Forge::new();
    let mirror = forge.how().open(&forge.repository()).unwrap();
    let commit = |parents, text: &str| Commit {
        parents,
        puts: vec![Put::Directory {
            path: "p".into(),
            files: files("p", &[("x", text)]),
            keep: Vec::new(),
        }],
        message: "x\n".into(),
    };
    let unrelated = mirror.commit(&commit(Vec::new(), "1")).unwrap();
    let before = forge.git("origin.git", &["rev-parse", "main"]);
    let name = || "refs/heads/main".to_owned();
    for update in [
        Update::Advance {
            name: name(),
            to: unrelated.clone(),
        },
        Update::Create {
            name: name(),
            to: unrelated.clone(),
        },
        Update::Delete {
            name: name(),
            seen: unrelated.clone(),
        },
    ] {
        let error = mirror.push(std::slice::from_ref(&update)).unwrap_err();
        assert!(
            matches!(error, Error::Moved { .. }),
            "{update:?}: {error:?}"
        );
        assert_eq!(before, forge.git("origin.git", &["rev-parse", "main"]));
    }
    // One of two that cannot be is both that are not.
    let other = Update::Create {
        name: "refs/heads/other".into(),
        to: unrelated.clone(),
    };
    let both = [
        other,
        Update::Advance {
            name: name(),
            to: unrelated,
        },
    ];
    assert!(mirror.push(&both).is_err());
    assert_eq!(forge.refs(), ["main"]);
}

#[test]
fn a_machine_without_git_says_so() {
    let forge = Forge::new();
    let mut how = forge.how();
    how.program = PathBuf::from("no-such-git");
    let error = how.open(&forge.repository()).unwrap_err();
    assert!(matches!(error, Error::NoGit { .. }), "{error:?}");
    assert!(error.help().contains("install git"));
    assert!(!error.is_transient());
}

#[test]
fn a_repository_that_is_not_there_is_unreachable() {
    let forge = Forge::new();
    let missing = Repository::new(forge.place.path("nothing.git").display().to_string());
    let error = forge.how().open(&missing).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.is_transient());
}

#[test]
fn a_server_that_hangs_is_left_and_nothing_of_it_runs_on() {
    let forge = Forge::new();
    let pid = forge.place.path("hook.pid");
    forge.hook(
        "pre-receive",
        &format!(
            "echo $$ > {0}.new; mv {0}.new {0}; exec sleep 1000",
            pid.display()
        ),
    );
    let mut packages = forge.packages();
    packages.git.timeout = Duration::from_secs(2);
    let draft = crate::forge::draft(
        "p",
        "w",
        &files("p", &[]),
        mooring_package::revision::Base::New,
    );
    let error = packages.write(&draft).unwrap_err();
    assert_eq!(error.reason(), "GitTimeout", "{error:?}");
    assert!(error.is_transient());
    let pid = fs::read_to_string(pid).unwrap();
    let stat = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    // Dead, or a zombie that its reaper has not met yet.
    let runs = || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    let deadline = Instant::now() + Duration::from_secs(20);
    while runs() {
        assert!(Instant::now() < deadline, "the hook {pid} still runs");
        std::thread::yield_now();
    }
    assert_eq!(forge.refs(), ["main"]);
}

#[test]
fn what_a_hook_says_is_told() {
    let forge = Forge::new();
    forge.hook("pre-receive", "echo 'only on Tuesdays' >&2; exit 1");
    let draft = crate::forge::draft(
        "p",
        "w",
        &files("p", &[]),
        mooring_package::revision::Base::New,
    );
    let error = forge.packages().write(&draft).unwrap_err();
    assert_eq!(error.reason(), "GitRefused", "{error:?}");
    assert!(error.to_string().contains("only on Tuesdays"), "{error}");
    assert!(!error.is_transient());
}

#[test]
fn a_token_is_in_the_environment_of_git_and_nowhere_else() {
    let forge = Forge::new();
    let program = forge.place.path("git-that-tells");
    let seen = forge.place.path("seen");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >> {0}.args\nenv >> {0}.env\ncase \"$*\" in *' fetch '*) \
         echo \"fatal: Authentication failed for https://git:tok%2Fen@host, tok/en, Z2l0OnRvay9lbg==\" >&2; exit 128;; esac\nexec git \"$@\"\n",
        seen.display()
    );
    mooring_testkit::script(&program, &script);
    let mut how = forge.how();
    how.program = program;
    let repository = Repository {
        credentials: Credentials::Token {
            username: "git".into(),
            password: Secret::new("tok/en\n"),
        },
        ..Repository::new("https://example.com/packages.git")
    };
    let error = how.open(&repository).unwrap_err();
    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    let told = format!("{error} {error:?}");
    for form in ["tok/en", "tok%2Fen", "Z2l0OnRvay9lbg=="] {
        assert!(!told.contains(form), "{told}");
    }
    let args = fs::read_to_string(seen.with_extension("args")).unwrap();
    let env = fs::read_to_string(seen.with_extension("env")).unwrap();
    assert!(!args.contains("tok"), "{args}");
    assert!(
        args.contains("credential.https://example.com.helper="),
        "{args}"
    );
    assert!(env.contains("MOOR_GIT_PASSWORD=tok/en"), "{env}");
    assert!(
        env.contains("GIT_TERMINAL_PROMPT=0") && env.contains("LC_ALL=C"),
        "{env}"
    );
    // Only the call that talks to the server has it.
    assert_eq!(
        env.matches("MOOR_GIT_PASSWORD").count(),
        env.matches("MOOR_GIT_USERNAME").count()
    );
    assert_eq!(
        env.matches("MOOR_GIT_PASSWORD").count(),
        args.matches("--prune").count()
    );
}

#[test]
fn the_helper_hands_the_token_to_its_host_and_to_no_other() {
    // What `git credential fill` asks is what a fetch asks.
    let forge = Forge::new();
    let helper = "!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' \"$MOOR_GIT_USERNAME\" \"$MOOR_GIT_PASSWORD\"; }; f";
    let fill = |host: &str| {
        let script = format!(
            "printf 'protocol=https\\nhost={host}\\n\\n' | git -c credential.https://example.com.helper=\"$HELPER\" credential fill"
        );
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .current_dir(forge.place.path("person"))
            .env("HELPER", helper)
            .env("MOOR_GIT_USERNAME", "me")
            .env("MOOR_GIT_PASSWORD", "tok")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "true")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(fill("example.com").contains("password=tok"));
    assert!(!fill("example.invalid").contains("tok"));
}

#[test]
fn what_a_killed_fetch_left_is_removed() {
    let forge = Forge::new();
    forge.how().open(&forge.repository()).unwrap();
    let mirror = fs::read_dir(forge.place.path("cache"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|e| e == "git"))
        .unwrap();
    fs::write(mirror.join("refs/heads/main.lock"), "").unwrap();
    fs::write(mirror.join("packed-refs.lock"), "").unwrap();
    forge.commit("x", "new\n");
    let again = forge.how().open(&forge.repository()).unwrap();
    let main = again.branch("main").unwrap();
    assert_eq!(
        main.commit.as_str(),
        forge.git("origin.git", &["rev-parse", "main"]).trim()
    );
}

#[test]
fn many_fetch_into_one_mirror_at_once() {
    let forge = Forge::new();
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    forge
                        .how()
                        .open(&forge.repository())
                        .map(|m| m.refs().len())
                })
            })
            .collect();
        for one in all {
            assert_eq!(one.join().unwrap().unwrap(), 1);
        }
    });
}

#[test]
fn refs_that_became_directories_are_followed() {
    let forge = Forge::new();
    forge.git("origin.git", &["branch", "a", "main"]);
    forge.how().open(&forge.repository()).unwrap();
    forge.git("origin.git", &["branch", "-D", "a"]);
    forge.git("origin.git", &["branch", "a/b", "main"]);
    let mirror = forge.how().open(&forge.repository()).unwrap();
    assert!(mirror.branch("a/b").is_some() && mirror.branch("a").is_none());
    assert_eq!(name("a").as_str(), "a");
    git(&forge.place.path("origin.git"), &["fsck"]);
}
