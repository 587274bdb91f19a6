//! Starting the components, and waiting until each is there and is ours.
//!
//! Easy to get wrong: a port that was free may be somebody else's a moment later, and a test would then talk to a
//! stranger's API server. So a server is ours when its listening socket is held by the process that we started *and* it
//! presents the certificate that we made for it; anything else is refused.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::certs::{Authority, secret, service_accounts, write};
use super::flags::{self, Credential, Ports};
use super::https::Trust;
use super::process::{Life, Process};
use super::{Failure, Options};
use crate::port::{Listener, free_port, listener};

/// How long a component may take until it answers.
const BOUND: Duration = Duration::from_mins(1);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// The programs, as `cargo xtask setup` built them.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) etcd: PathBuf,
    pub(super) api_server: PathBuf,
    pub(super) kubectl: PathBuf,
    pub(super) controller_manager: PathBuf,
}

impl Programs {
    /// None, with the name of the first that is absent.
    pub(super) fn find() -> Result<Self, &'static str> {
        let find = |name: &'static str| {
            let place = crate::tool::find(name).map(|dir| dir.join("bin").join(name));
            place.filter(|program| program.is_file()).ok_or(name)
        };
        Ok(Self {
            etcd: find("etcd")?,
            api_server: find("kube-apiserver")?,
            kubectl: find("kubectl")?,
            controller_manager: find("kube-controller-manager")?,
        })
    }
}

/// Everything that does not change while a control plane lives.
pub(super) struct Plan {
    pub(super) dir: PathBuf,
    pub(super) ports: Ports,
    pub(super) server: String,
    pub(super) kubeconfig: PathBuf,
    pub(super) authority: Authority,
    pub(super) programs: Programs,
    pub(super) options: Options,
    pub(super) life: Life,
    token: String,
    trust: Trust,
}

impl Plan {
    /// Chooses ports and writes certificates, tokens and the administrator's kubeconfig.
    pub(super) fn new(
        dir: &Path,
        programs: Programs,
        options: Options,
        life: Life,
    ) -> Result<Self, Failure> {
        let port = || free_port().ok_or_else(|| Failure::new("no port is free".to_owned()));
        let ports = Ports {
            api: port()?,
            etcd: port()?,
            etcd_peer: port()?,
        };
        let etcd = Authority::new(dir, "etcd")?;
        etcd.server(dir, "etcd")?;
        let authority = Authority::new(dir, "api")?;
        let leaf = authority.server(dir, "api-server")?;
        service_accounts(dir)?;
        let token = secret()?;
        write(
            &dir.join("tokens"),
            &format!("{token},admin,admin,system:masters\n"),
        )?;
        let server = format!("https://127.0.0.1:{}", ports.api);
        let kubeconfig = dir.join("admin.kubeconfig");
        let by = Credential::Token(&token);
        let text = flags::kubeconfig(&server, &authority.file, "admin", &by);
        write(&kubeconfig, &text)?;
        Ok(Self {
            dir: dir.to_owned(),
            ports,
            server,
            kubeconfig,
            trust: Trust::new(authority.der(), &leaf.der)?,
            authority,
            programs,
            options,
            life,
            token,
        })
    }

    /// A kubeconfig with a client certificate.
    pub(super) fn user_kubeconfig(&self, user: &str, groups: &[&str]) -> Result<PathBuf, Failure> {
        let leaf = self.authority.client(&self.dir, user, groups)?;
        let by = Credential::Certificate {
            certificate: &leaf.certificate,
            key: &leaf.key,
        };
        let text = flags::kubeconfig(&self.server, &self.authority.file, user, &by);
        let path = leaf.certificate.with_extension("kubeconfig");
        write(&path, &text)?;
        Ok(path)
    }

    pub(super) fn start_etcd(&self) -> Result<Process, Failure> {
        let args = flags::etcd(&self.dir, self.ports, self.options.durable);
        let etcd = self.run("etcd", &self.programs.etcd, &args)?;
        let there = wait(&etcd, || held_by(&etcd, self.ports.etcd));
        etcd.or_stop(there)
    }

    pub(super) fn start_api_server(&self) -> Result<Process, Failure> {
        let mut args = flags::api_server(&self.dir, self.ports);
        args.extend(self.options.api_server_flags.iter().cloned());
        let api = self.run("kube-apiserver", &self.programs.api_server, &args)?;
        let there = self.wait_until_ready(&api);
        api.or_stop(there)
    }

    /// Ready, ours, and with the namespace that every test may use.
    pub(super) fn wait_until_ready(&self, api: &Process) -> Result<(), Failure> {
        wait(api, || match held_by(api, self.ports.api) {
            Look::There => self.look(&["/readyz", "/api/v1/namespaces/default"]),
            other => other,
        })
    }

    pub(super) fn start_controller_manager(&self) -> Result<Process, Failure> {
        let kubeconfig = self.user_kubeconfig("system:kube-controller-manager", &[])?;
        let args = flags::controller_manager(&self.dir, &kubeconfig);
        let manager = self.run(
            "kube-controller-manager",
            &self.programs.controller_manager,
            &args,
        )?;
        // The first thing that nobody but it makes.
        let path = "/api/v1/namespaces/default/serviceaccounts/default";
        let there = wait(&manager, || self.look(&[path]));
        manager.or_stop(there)
    }

    /// Whether the API server, and none but ours, answers 200 to all of these.
    fn look(&self, paths: &[&str]) -> Look {
        for path in paths {
            match self.get(self.ports.api, path) {
                Ok((200, _)) => (),
                Ok((status, body)) => return Look::NotYet(format!("{path}: {status} {body}")),
                Err(e) => return Look::NotYet(format!("{path}: {e}")),
            }
        }
        Look::There
    }

    /// Asks a port as the administrator, if it is our API server.
    pub(super) fn get(&self, port: u16, path: &str) -> io::Result<(u16, String)> {
        self.trust.get(port, path, &self.token)
    }

    fn run(&self, name: &'static str, program: &Path, args: &[String]) -> Result<Process, Failure> {
        Process::start(name, program, args, &self.dir, self.life)
    }
}

/// What one look showed.
enum Look {
    There,
    /// With what was seen instead.
    NotYet(String),
    Refused(Failure),
}

fn held_by(process: &Process, port: u16) -> Look {
    let name = process.name;
    match listener(port, process.pid) {
        Listener::Ours => Look::There,
        Listener::None => Look::NotYet(format!("nobody listens on port {port}")),
        Listener::Foreign => Look::Refused(Failure::port_taken(format!(
            "port {port} is held by another process than the {name} that was started; it is not used"
        ))),
    }
}

/// Looks until it is there, the process has ended, or the time is over.
fn wait(process: &Process, mut look: impl FnMut() -> Look) -> Result<(), Failure> {
    let name = process.name;
    let end = Instant::now() + BOUND;
    loop {
        let running = process.is_running();
        let seen = match look() {
            Look::There if running => return Ok(()),
            Look::There => "its answer came from somebody else".to_owned(),
            Look::Refused(failure) => return Err(failure),
            Look::NotYet(seen) => seen,
        };
        let tail = || format!("the end of {}:\n{}", process.log.display(), process.tail());
        if !running {
            let tail = tail();
            let failure = if tail.contains("address already in use") {
                Failure::port_taken
            } else {
                Failure::new
            };
            return Err(failure(format!("{name} ended by itself; {tail}")));
        }
        if Instant::now() > end {
            let bound = BOUND.as_secs();
            return Err(Failure::new(format!(
                "{name} is not ready after {bound} s, last seen: {seen}; {}",
                tail()
            )));
        }
        std::thread::sleep(PAUSE);
    }
}
