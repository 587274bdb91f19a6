use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use crate::cni::{CniArgs, CniError, Env, Verb, Version};

const FULL: [(&str, &str); 5] = [
    ("CNI_CONTAINERID", "pod1"),
    ("CNI_NETNS", "/run/netns/pod1"),
    ("CNI_IFNAME", "net1"),
    ("CNI_PATH", "/opt/cni/bin:/usr/lib/cni"),
    ("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAME=du"),
];

fn env(pairs: &[(&str, &str)]) -> Env {
    Env::new(pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())))
}

/// All variables but one, which has another value.
fn with(name: &str, value: &str) -> Env {
    let others = FULL.iter().filter(|(k, _)| *k != name);
    let mut pairs: Vec<(&str, &str)> = others.copied().collect();
    pairs.push((name, value));
    env(&pairs)
}

#[test]
fn each_verb_asks_for_its_own_variables_and_names_all_that_are_missing() {
    let missing = |verb| {
        env(&[])
            .call(verb)
            .map_or_else(|e| e.msg, |_| String::new())
    };
    let all = "required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH] missing";
    assert_eq!(missing(Verb::Add), all);
    assert_eq!(missing(Verb::Check), all);
    assert_eq!(
        missing(Verb::Del),
        "required env variables [CNI_CONTAINERID,CNI_IFNAME,CNI_PATH] missing"
    );
    assert_eq!(
        missing(Verb::Gc),
        "required env variables [CNI_PATH] missing"
    );
    assert_eq!(
        missing(Verb::Status),
        "required env variables [CNI_PATH] missing"
    );
    assert_eq!(missing(Verb::Version), "");
    for verb in Verb::ALL {
        assert!(env(&FULL).call(verb).is_ok(), "{verb}");
    }
    let error = with("CNI_NETNS", "")
        .call(Verb::Add)
        .expect_err("an empty one is missing");
    assert_eq!(error.code, CniError::ENV);
}

#[test]
fn a_del_comes_without_a_namespace() {
    let call = with("CNI_NETNS", "").call(Verb::Del).expect("a DEL");
    assert_eq!(call.netns, None);
    assert_eq!(call.container, "pod1");
}

#[test]
fn the_verb_is_known_exactly_or_refused() {
    for verb in Verb::ALL {
        assert_eq!(
            env(&[("CNI_COMMAND", verb.as_str())]).verb(),
            Ok(Some(verb))
        );
    }
    assert_eq!(env(&[]).verb(), Ok(None));
    let error = env(&[("CNI_COMMAND", "add")])
        .verb()
        .expect_err("lower case");
    assert_eq!(
        (error.code, error.msg.as_str()),
        (4, "unknown CNI_COMMAND: add")
    );
}

#[test]
fn container_ids_begin_with_a_letter_or_digit_and_hold_no_separator() {
    for good in ["a", "0", "A1_b.c-d", "3f1c9e"] {
        assert!(
            with("CNI_CONTAINERID", good).call(Verb::Add).is_ok(),
            "{good}"
        );
    }
    for bad in [
        "-a", ".a", "_a", "a/b", "../a", "a b", "a\n", "ä", "a:b", "a;b",
    ] {
        let error = with("CNI_CONTAINERID", bad).call(Verb::Add).expect_err(bad);
        assert_eq!(error.code, CniError::ENV, "{bad}");
    }
    assert_eq!(
        crate::cni::check_container("").expect_err("empty").code,
        CniError::UNKNOWN_CONTAINER
    );
}

#[test]
fn interface_names_are_the_kernels() {
    for good in ["net1", "ens3.100", "a23456789012345"] {
        assert!(with("CNI_IFNAME", good).call(Verb::Del).is_ok(), "{good}");
    }
    for bad in [
        "a234567890123456",
        ".",
        "..",
        "a/b",
        "a:b",
        "a b",
        "a\u{2003}b",
        "a\tb",
    ] {
        let error = with("CNI_IFNAME", bad).call(Verb::Del).expect_err(bad);
        assert_eq!(error.code, CniError::ENV, "{bad}");
        assert!(error.msg.contains("CNI_IFNAME"), "{error}");
    }
}

#[test]
fn a_variable_that_the_verb_does_not_need_is_not_looked_at() {
    for verb in [Verb::Gc, Verb::Status] {
        let call = with("CNI_IFNAME", "a/b")
            .call(verb)
            .expect("it needs no interface");
        assert_eq!((call.ifname, call.container.as_str()), (None, ""));
        assert!(with("CNI_CONTAINERID", "../x").call(verb).is_ok());
    }
}

#[test]
fn a_variable_that_is_no_text_is_refused_by_name_and_a_path_may_be_any_bytes() {
    let odd = || OsString::from_vec(vec![b'/', 0xff]);
    let vars = |name: &str| {
        let others = FULL.iter().filter(|(k, _)| *k != name);
        let mut vars: Vec<(OsString, OsString)> =
            others.map(|(k, v)| ((*k).into(), (*v).into())).collect();
        vars.push((name.into(), odd()));
        Env::new(vars)
    };
    for name in ["CNI_CONTAINERID", "CNI_IFNAME", "CNI_ARGS"] {
        let error = vars(name).call(Verb::Add).expect_err(name);
        assert_eq!((error.code, error.msg), (4, format!("{name} is not UTF-8")));
    }
    let call = vars("CNI_NETNS").call(Verb::Add).expect("a path");
    assert_eq!(call.netns, Some(PathBuf::from(odd())));
}

#[test]
fn the_path_is_split_and_its_empty_parts_are_not_the_working_directory() {
    let call = with("CNI_PATH", ":/opt/cni/bin::/usr/lib/cni:")
        .call(Verb::Gc)
        .expect("a GC");
    assert_eq!(
        call.path,
        [PathBuf::from("/opt/cni/bin"), PathBuf::from("/usr/lib/cni")]
    );
}

#[test]
fn the_own_namespace_is_allowed_by_an_explicit_word() {
    let allowed = |value| {
        let call = with("CNI_NETNS_OVERRIDE", value).call(Verb::Add);
        call.expect("an ADD").own_netns_allowed
    };
    assert!(allowed("1") && allowed("TRUE") && allowed("true"));
    assert!(!allowed("0") && !allowed("yes") && !allowed(""));
}

#[test]
fn a_trace_is_kept_when_it_is_one() {
    let trace = |value| {
        with("TRACEPARENT", value)
            .call(Verb::Add)
            .expect("an ADD")
            .trace
    };
    let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    assert_eq!(trace(good).as_deref(), Some(good));
    for bad in [
        "",
        "x",
        "00-0af7-b7-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333\n-01",
    ] {
        assert_eq!(trace(bad), None, "{bad}");
    }
}

#[test]
fn arguments_are_pairs_and_the_last_one_counts() {
    let args = CniArgs::parse("IP=10.1.2.3;MAC=02:00:00:00:00:01;IP=10.1.2.4;GATEWAY=");
    assert_eq!(args.get("IP"), Some("10.1.2.4"));
    assert_eq!(args.get("MAC"), Some("02:00:00:00:00:01"));
    assert_eq!(args.get("GATEWAY"), None, "empty is nothing");
    assert_eq!(args.get("ip"), None, "keys have case");
    assert_eq!(args.pairs().count(), 4);
}

#[test]
fn a_plugin_that_reads_arguments_refuses_bad_pairs_and_unknown_keys() {
    let check = |text: &str| {
        CniArgs::parse(text)
            .check_known(&["IP", "MAC"])
            .map_err(|e| e.msg)
    };
    assert_eq!(check(""), Ok(()));
    assert_eq!(check("IP=10.1.2.3"), Ok(()));
    for ignored in ["1", "true", "TRUE"] {
        assert_eq!(
            check(&format!("IgnoreUnknown={ignored};K8S_POD_NAME=a")),
            Ok(())
        );
    }
    for bad in ["IP", "IP=a=b", "IP=10.1.2.3;", "=;x"] {
        assert!(check(bad).is_err(), "{bad}");
    }
    let error = check("IgnoreUnknown=0;FOO=1;BAR=2").expect_err("unknown");
    assert!(error.contains("unknown args [FOO BAR]"), "{error}");
    assert!(check("IgnoreUnknown=maybe").is_err());
}

#[test]
fn a_bad_pair_fails_only_who_reads_arguments() {
    let call = with("CNI_ARGS", "nonsense;IP=10.1.2.3")
        .call(Verb::Del)
        .expect("a DEL");
    assert_eq!(call.args.get("IP"), Some("10.1.2.3"));
}

#[test]
fn versions_are_ordered_and_literal() {
    let texts: Vec<&str> = Version::ALL.iter().map(|v| v.as_str()).collect();
    assert_eq!(
        texts,
        [
            "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"
        ]
    );
    assert!(Version::ALL.is_sorted());
    for version in Version::ALL {
        assert_eq!(version.as_str().parse(), Ok(version));
    }
    assert_eq!("".parse(), Ok(Version::V0_1_0));
    for bad in ["1", "1.1", "v1.1.0", "1.1.0 ", "0.3.2", "2.0.0", "01.1.0"] {
        let error = bad.parse::<Version>().expect_err(bad);
        assert_eq!(error.code, CniError::VERSION);
        assert!(
            error.details.contains(bad) && error.details.contains("0.3.1"),
            "{error}"
        );
    }
    let said = Version::supported();
    assert_eq!(said["cniVersion"], "1.1.0");
    assert_eq!(said["supportedVersions"].as_array().map(Vec::len), Some(7));
}
