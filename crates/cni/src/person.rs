//! The program without a runtime: what it says to a person, and its few commands.
//!
//! No argument parser is linked: this program is started for every pod, and its commands take few options.

use std::ffi::OsString;
use std::path::PathBuf;

use mooring_attach::cni::Version;
use mooring_host::Paths;
use mooring_host::doctor::Doctor;

use crate::install::{self, Install, Uninstall};
use crate::log;
use crate::output::Answer;
use crate::plugin::{Entry, Kind, TABLE};

/// Without `CNI_COMMAND`: a plugin says what it is; the program itself takes commands.
pub(crate) fn answer(entry: Option<&'static Entry>, args: Vec<OsString>) -> Answer {
    if let Some(entry) = entry {
        log::say(format_args!("{}: {}", entry.name, entry.plugin.about()));
        return versions();
    }
    match run(args) {
        Ok(answer) => answer,
        Err(Refusal::Usage(error)) => {
            log::say(format_args!("moor-cni: {error}"));
            log::say("  help: moor-cni --help");
            Answer::Usage
        }
        Err(Refusal::Failed(error)) => {
            log::say(format_args!("moor-cni: {error}"));
            Answer::Said(false)
        }
    }
}

/// Why a command did nothing.
enum Refusal {
    /// Its words are wrong.
    Usage(String),
    /// It could not be done.
    Failed(String),
}

/// What is said of words is about the command line.
impl From<String> for Refusal {
    fn from(error: String) -> Self {
        Self::Usage(error)
    }
}

/// What was tried and did not work.
fn did_not(error: impl ToString) -> Refusal {
    Refusal::Failed(error.to_string())
}

fn versions() -> Answer {
    log::say(format_args!(
        "CNI protocol versions supported: {}",
        Version::list()
    ));
    Answer::Said(true)
}

fn run(args: Vec<OsString>) -> Result<Answer, Refusal> {
    let mut words = Vec::new();
    for arg in args {
        let text = arg.into_string();
        words.push(text.map_err(|a| format!("{} is not UTF-8", a.display()))?);
    }
    let Some((command, rest)) = words.split_first() else {
        log::say("moor-cni: every CNI plugin in one program; a container runtime starts it");
        log::say("  help: moor-cni --help");
        return Ok(versions());
    };
    let done = match command.as_str() {
        "-h" | "--help" | "help" => help(),
        "-V" | "--version" => format!("moor-cni {}\n", env!("CARGO_PKG_VERSION")),
        _ if rest.iter().any(|word| word == "-h" || word == "--help") => help(),
        "install" => install::install(&install_options(rest)?).map_err(did_not)?,
        "doctor" => return doctor(rest),
        "uninstall" => install::uninstall(&uninstall_options(rest)?).map_err(did_not)?,
        other => return Err(format!("there is no command {other:?}").into()),
    };
    Ok(Answer::Text(done))
}

/// The options of a command: `--name value` or `--name=value`, and flags without a value.
struct Options<'a> {
    words: std::slice::Iter<'a, String>,
}

impl<'a> Options<'a> {
    /// The next option with its value; a flag's value is empty.
    fn next(&mut self, flags: &[&str]) -> Result<Option<(&'a str, &'a str)>, String> {
        let Some(word) = self.words.next() else {
            return Ok(None);
        };
        if !word.starts_with('-') {
            return Err(format!("{word:?} is not an option"));
        }
        if flags.contains(&word.as_str()) {
            return Ok(Some((word, "")));
        }
        if let Some((name, value)) = word.split_once('=') {
            return Ok(Some((name, value)));
        }
        let value = self.words.next().filter(|value| !value.starts_with("--"));
        value
            .map(|value| Some((word.as_str(), value.as_str())))
            .ok_or_else(|| format!("{word} wants a value"))
    }
}

fn install_options(words: &[String]) -> Result<Install, String> {
    let mut options = Options {
        words: words.iter(),
    };
    let mut install = Install::default();
    while let Some((name, value)) = options.next(&["--shadowed"])? {
        match name {
            "--bin-dir" => install.bin_dir = PathBuf::from(value),
            "--conf" => install.conf = Some(PathBuf::from(value)),
            "--conf-dir" => install.conf_dir = PathBuf::from(value),
            "--shadowed" => install.shadowed = true,
            "--only" => install.names = names(value)?,
            other => return Err(format!("install has no option {other}")),
        }
    }
    Ok(install)
}

fn uninstall_options(words: &[String]) -> Result<Uninstall, String> {
    let mut options = Options {
        words: words.iter(),
    };
    let mut uninstall = Uninstall::default();
    while let Some((name, value)) = options.next(&[])? {
        match name {
            "--bin-dir" => uninstall.bin_dir = PathBuf::from(value),
            other => return Err(format!("uninstall has no option {other}")),
        }
    }
    Ok(uninstall)
}

/// What is on this node; it fails where something is wrong, as `moor node doctor` does.
fn doctor(words: &[String]) -> Result<Answer, Refusal> {
    let mut options = Options {
        words: words.iter(),
    };
    let place = Install::default();
    let mut doctor = Doctor {
        paths: Paths::from_env(),
        conf_dir: place.conf_dir,
        bin_dir: place.bin_dir,
        check: true,
        tools: true,
    };
    let (mut fix, mut json) = (false, false);
    while let Some((name, value)) = options.next(&["--fix", "--no-check"])? {
        match (name, value) {
            ("--fix", _) => fix = true,
            ("--no-check", _) => doctor.check = false,
            ("--bin-dir", dir) => doctor.bin_dir = PathBuf::from(dir),
            ("--conf-dir", dir) => doctor.conf_dir = PathBuf::from(dir),
            ("--output" | "-o", "json") => json = true,
            ("--output" | "-o", "table") => json = false,
            ("--output" | "-o", other) => {
                return Err(format!("--output is json or table, not {other:?}").into());
            }
            (other, _) => return Err(format!("doctor has no option {other}").into()),
        }
    }
    let looked = if fix { doctor.fix() } else { doctor.look() };
    let report = looked.map_err(did_not)?;
    let text = if json {
        let value = serde_json::to_value(&report).expect("a report has string keys");
        format!("{value:#}\n")
    } else {
        report.text()
    };
    Ok(if report.is_well() {
        Answer::Text(text)
    } else {
        Answer::Wrong(text)
    })
}

fn names(list: &str) -> Result<Vec<&'static str>, String> {
    let known = |name: &str| {
        let entry = TABLE.iter().find(|entry| entry.name == name);
        entry.map(|entry| entry.name).ok_or_else(|| {
            let all: Vec<&str> = TABLE.iter().map(|entry| entry.name).collect();
            format!(
                "--only: there is no plugin {name:?}; there are {}",
                all.join(", ")
            )
        })
    };
    list.split(',').map(str::trim).map(known).collect()
}

fn help() -> String {
    let of = |kind: Kind| {
        let names = TABLE.iter().filter(|entry| entry.kind == kind);
        names.map(|entry| entry.name).collect::<Vec<_>>().join(", ")
    };
    format!(
        "\
moor-cni: every CNI plugin in one program (CNI {oldest} to {newest})

A container runtime starts it under the name of a plugin, with CNI_COMMAND in the environment.
  interfaces  {main}
  chained     {chained}
  addresses   {ipam}

A person uses it to put it on a node, and to see what is there:
  moor-cni install [--bin-dir DIR] [--only a,b] [--conf FILE [--conf-dir DIR] [--shadowed]]
      Copies itself into the directory of CNI plugins and takes the names of its plugins there. What
      it replaces is kept, and uninstall brings it back. A configuration comes last, and is refused
      when another file of its directory would be read before it (--shadowed allows that).
        --bin-dir DIR    {bin}
        --conf-dir DIR   {conf}
        --only a,b       only these plugins
  moor-cni uninstall [--bin-dir DIR]
      Takes away the configuration, then brings back what install replaced.
  moor-cni doctor [--fix] [--no-check] [-o json] [--bin-dir DIR] [--conf-dir DIR]
      Shows which interfaces a runtime made and what CHECK says of them (not with --no-check), what is
      kept on this node and for whom, what is left over, and which configuration the runtime takes.
      --fix cleans what is provably dead, and nothing else. Fails where something is wrong.

Examples
  moor-cni install
  moor-cni install --only macvlan,host-local,static
  moor-cni install --bin-dir /host/opt/cni/bin --conf 10-rail.conflist --conf-dir /host/etc/cni/net.d
  moor-cni uninstall
  moor-cni doctor --fix
  echo '{{}}' | CNI_COMMAND=VERSION moor-cni
",
        oldest = Version::ALL[0],
        newest = Version::NEWEST,
        main = of(Kind::Main),
        chained = of(Kind::Chained),
        ipam = of(Kind::Ipam),
        bin = install::BIN_DIR,
        conf = install::CONF_DIR,
    )
}
