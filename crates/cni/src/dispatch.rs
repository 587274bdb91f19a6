//! From the process's environment to a plugin and back.
//!
//! The order is the reference library's, because its tests look at it: the verb, the variables of the verb
//! (all missing ones at once), standard input, the configuration, then the plugin.
//!
//! Easy to get wrong: a panic anywhere must still end as an error object, since a runtime that reads nothing
//! shows nothing.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;

use mooring_attach::cni::{CniError, Config, Env, Request, Verb, Version, member};
use mooring_host::{Netns, Paths};

use crate::call::Call;
use crate::configure::Wish;
use crate::output::{Answer, print};
use crate::plugin::{Entry, Kind, TABLE, find};
use crate::{install, log, person};

/// Serves one call.
pub(crate) fn run() -> ExitCode {
    // Where it happened goes to the log, in one line; what happened goes to the runtime.
    panic::set_hook(Box::new(|info| {
        log::say(format_args!(
            "moor-cni: {}",
            info.to_string().replace('\n', " ")
        ));
    }));
    print(guarded(|| {
        let mut args = std::env::args_os();
        let own = args.next().unwrap_or_default();
        serve(&own, args.collect())
    }))
}

/// The answer, also of code that panics.
fn guarded(answer: impl FnOnce() -> Answer) -> Answer {
    panic::catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        let error = CniError::internal("moor-cni panicked; this is a defect, please report it");
        Answer::Error(error.with_details(text.unwrap_or_default()), None)
    })
}

fn serve(own: &OsStr, args: Vec<OsString>) -> Answer {
    let env = Env::new(std::env::vars_os());
    let name = name_of(own);
    let verb = match env.verb() {
        Ok(Some(verb)) => verb,
        Ok(None) => {
            let plugin = if let Name::Plugin(entry) = name {
                Some(entry)
            } else {
                None
            };
            return person::answer(plugin, args);
        }
        Err(error) => return Answer::Error(error, None),
    };
    if verb == Verb::Version {
        // A runtime may leave standard input open and say nothing.
        return Answer::Json(Version::supported());
    }
    let invocation = match env.call(verb) {
        Ok(invocation) => invocation,
        Err(error) => return Answer::Error(error, None),
    };
    let stdin = match read(&mut io::stdin().lock()) {
        Ok(stdin) => stdin,
        Err(error) => return Answer::Error(error, None),
    };
    let request = match Request::new(invocation, &stdin) {
        Ok(request) => request,
        Err(error) => return Answer::Error(error, version_in(&stdin)),
    };
    let version = request.config.version;
    match call(name, &request) {
        Ok(answer) => answer,
        Err(error) => {
            log::line(&request, &error);
            Answer::Error(error, Some(version))
        }
    }
}

fn call(name: Name, request: &Request) -> Result<Answer, CniError> {
    let entry = entry(name, &request.config.plugin)?;
    let paths = Paths::from_env();
    let call = Call {
        request,
        paths: &paths,
    };
    if entry.kind != Kind::Ipam {
        refuse_own_netns(request)?;
    }
    if entry.kind == Kind::Main && matches!(request.verb, Verb::Add | Verb::Status) {
        // Obeyed when everything else is done, and refused before anything is.
        Wish::read(&request.config)?;
    }
    let plugin = entry.plugin;
    match request.verb {
        Verb::Add => {
            let result = plugin.add(&call)?;
            return Ok(Answer::Json(result.to(request.config.version)));
        }
        Verb::Del => plugin.del(&call)?,
        Verb::Check => plugin.check(&call)?,
        Verb::Status => plugin.status(&call)?,
        Verb::Gc => plugin.gc(&call)?,
        Verb::Version => {}
    }
    Ok(Answer::Nothing)
}

/// A plugin that works in its own namespace would take the node's interfaces for the pod's. The reference looks
/// after the fact; a path that leads nowhere is left to the plugin, since a DEL must live with it.
fn refuse_own_netns(request: &Request) -> Result<(), CniError> {
    let Some(path) = request
        .netns
        .as_deref()
        .filter(|_| !request.own_netns_allowed)
    else {
        return Ok(());
    };
    match Netns::open(path) {
        Ok(netns) if netns.is_current() => Err(CniError::netns(
            path.display(),
            "it is the plugin's own; CNI_NETNS_OVERRIDE=1 allows that",
        )),
        _ => Ok(()),
    }
}

/// What the program's name says. An IPAM plugin is started with its caller's configuration, so the name comes
/// before `type`; and under a name that is nobody's, `type` must not decide: a link called like a foreign IPAM
/// plugin would start itself for ever.
enum Name {
    /// Its own: `type` decides.
    Own,
    /// A plugin's.
    Plugin(&'static Entry),
    /// Nobody's.
    Unknown(String),
}

fn name_of(own: &OsStr) -> Name {
    let name = Path::new(own)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    match find(&name) {
        Some(entry) => Name::Plugin(entry),
        None if name == install::PROGRAM => Name::Own,
        None => Name::Unknown(name.into_owned()),
    }
}

fn entry(name: Name, kind: &str) -> Result<&'static Entry, CniError> {
    let (found, error) = match name {
        Name::Plugin(entry) => return Ok(entry),
        Name::Unknown(name) => {
            let why = format!("moor-cni was started as {name:?}, which is none of its plugins");
            (None, CniError::new(CniError::CONFIG, why))
        }
        Name::Own if kind.is_empty() => (None, CniError::config("type", "missing")),
        Name::Own => {
            let why = format!("{kind:?} is no plugin of moor-cni");
            (find(kind), CniError::config("type", why))
        }
    };
    found.ok_or_else(|| {
        let known: Vec<&str> = TABLE.iter().map(|entry| entry.name).collect();
        error.with_details(format!("it has [{}]", known.join(", ")))
    })
}

/// Standard input up to the bound; one byte more is enough to refuse it.
fn read(stdin: &mut impl io::Read) -> Result<Vec<u8>, CniError> {
    let mut bytes = Vec::new();
    let bound = Config::MAX_BYTES as u64 + 1;
    let read = stdin.take(bound).read_to_end(&mut bytes);
    read.map_err(|e| CniError::io("error reading from stdin", e))?;
    Ok(bytes)
}

/// For an error about a configuration that could not be read as a whole: its version, when that can be read.
fn version_in(stdin: &[u8]) -> Option<Version> {
    let config: serde_json::Map<_, _> = serde_json::from_slice(stdin).ok()?;
    member(&config, "cniVersion")?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_as_an_error_with_its_words_also_from_a_namespaces_thread() {
        let here = Netns::current().expect("this namespace");
        let (text, number) = ("a defect", 7);
        let panics: [Box<dyn FnOnce() -> Answer>; 3] = [
            Box::new(move || panic!("{text} {number}")),
            Box::new(|| panic!("a defect 7")),
            Box::new(move || here.run(|| panic!("a defect 7")).unwrap_or(Answer::Nothing)),
        ];
        for code in panics {
            let Answer::Error(error, None) = guarded(code) else {
                panic!("no error");
            };
            assert_eq!(
                (error.code, error.details.as_str()),
                (CniError::INTERNAL, "a defect 7")
            );
        }
    }

    #[test]
    fn standard_input_is_read_to_its_end_or_to_the_bound() {
        assert_eq!(read(&mut &b"{}"[..]), Ok(b"{}".to_vec()));
        let endless = read(&mut io::repeat(b' ')).map(|bytes| bytes.len());
        assert_eq!(endless, Ok(Config::MAX_BYTES + 1));
        struct Broken;
        impl io::Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let error = read(&mut Broken).expect_err("broken");
        assert_eq!(
            (error.code, error.details.as_str()),
            (CniError::IO, "broken")
        );
    }

    #[test]
    fn the_programs_name_decides_before_the_type() {
        let found = |own: &str, kind: &str| {
            let entry = entry(name_of(OsStr::new(own)), kind);
            entry.map(|entry| entry.name).map_err(|e| e.code)
        };
        assert_eq!(
            found("/opt/cni/bin/host-local", "macvlan"),
            Ok("host-local")
        );
        assert_eq!(found("moor-cni", "macvlan"), Ok("macvlan"));
        assert_eq!(found("./moor-cni", "nonsense"), Err(CniError::CONFIG));
        assert_eq!(found("moor-cni", ""), Err(CniError::CONFIG));
        assert_eq!(found("whereabouts", "macvlan"), Err(CniError::CONFIG));
        assert_eq!(found("", "macvlan"), Err(CniError::CONFIG));
    }
}
