//! One call, as a plugin sees it: the request, where state is, and the IPAM plugin behind it.
//!
//! Easy to get wrong: after [`Call::ipam_add`] has succeeded, every failure of ADD goes through
//! [`Call::undo_ipam`], or the address is lost until somebody cleans up.

use std::path::Path;

use mooring_attach::cni::{CniError, CniResult, Config, Request, Verb, check_plugin};
use mooring_host::Netns;

use crate::plugin::{Kind, find};
use crate::{delegate, log};
use mooring_host::Paths;

/// What a plugin is called with.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) request: &'a Request,
    pub(crate) paths: &'a Paths,
}

impl<'a> Call<'a> {
    /// The configuration.
    pub(crate) fn config(&self) -> &'a Config {
        &self.request.config
    }

    /// The interface's name in the container.
    pub(crate) fn ifname(&self) -> &'a str {
        self.request.ifname()
    }

    /// Whose interface.
    pub(crate) fn container(&self) -> &'a str {
        &self.request.container
    }

    /// The namespace's path, which ADD and CHECK always have; for DEL use `request.netns`.
    pub(crate) fn netns(&self) -> Result<&'a Path, CniError> {
        let path = self.request.netns.as_deref();
        path.ok_or_else(|| CniError::env("required env variables [CNI_NETNS] missing"))
    }

    /// The namespace, open; for ADD and CHECK, which cannot do without.
    pub(crate) fn open_netns(&self) -> Result<Netns, CniError> {
        let path = self.netns()?;
        Netns::open(path).map_err(|e| CniError::netns(path.display(), "cannot open it").because(&e))
    }

    /// `prevResult`, for a plugin that cannot do without.
    pub(crate) fn prev(&self) -> Result<&'a CniResult, CniError> {
        let prev = self.config().prev.as_ref();
        prev.ok_or_else(|| CniError::config("prevResult", "required prevResult missing"))
    }

    /// A line in the runtime's log.
    pub(crate) fn log(&self, text: impl std::fmt::Display) {
        log::line(self.request, text);
    }

    /// Addresses from the delegated IPAM; `None` without one. An answer without an address is an error, as
    /// for the reference plugins, and is undone here.
    pub(crate) fn ipam_add(&self) -> Result<Option<CniResult>, CniError> {
        let Some(ipam) = self.ipam()? else {
            return Ok(None);
        };
        let answer = match ipam {
            Ipam::Own(plugin) => plugin.add(self),
            Ipam::Foreign(name) => delegate::add(self, name),
        };
        let empty = || CniError::internal("IPAM plugin returned missing IP config");
        match answer {
            Ok(result) if result.ips.is_empty() => Err(self.undo_ipam(empty())),
            Ok(result) => Ok(Some(result)),
            // The delegate may have got half way; the specification wants its DEL before we fail.
            Err(error) if matches!(ipam, Ipam::Foreign(_)) => Err(self.undo_ipam(error)),
            Err(error) => Err(error),
        }
    }

    /// Gives the addresses back after a failed ADD and returns the failure.
    pub(crate) fn undo_ipam(&self, failure: CniError) -> CniError {
        match self.ipam_del() {
            Ok(()) => failure,
            Err(e) => failure.with_details(format!("and the addresses were not released: {e}")),
        }
    }

    /// Releases the addresses; always called by DEL.
    pub(crate) fn ipam_del(&self) -> Result<(), CniError> {
        self.ipam_run(Verb::Del)
    }

    /// The delegated IPAM's CHECK.
    pub(crate) fn ipam_check(&self) -> Result<(), CniError> {
        self.ipam_run(Verb::Check)
    }

    /// The delegated IPAM's STATUS. A failure without a number of its own (the delegate is not installed, say) is one
    /// that an ADD would meet too.
    pub(crate) fn ipam_status(&self) -> Result<(), CniError> {
        self.ipam_run(Verb::Status).map_err(|mut error| {
            if error.code == CniError::INTERNAL {
                error.code = CniError::UNAVAILABLE;
            }
            error
        })
    }

    /// The delegated IPAM's GC, with the same valid attachments.
    pub(crate) fn ipam_gc(&self) -> Result<(), CniError> {
        self.ipam_run(Verb::Gc)
    }

    fn ipam_run(&self, verb: Verb) -> Result<(), CniError> {
        match self.ipam()? {
            None => Ok(()),
            Some(Ipam::Foreign(name)) => delegate::run(self, name, verb),
            Some(Ipam::Own(plugin)) => match verb {
                Verb::Del => plugin.del(self),
                Verb::Check => plugin.check(self),
                Verb::Status => plugin.status(self),
                Verb::Gc => plugin.gc(self),
                Verb::Add | Verb::Version => Ok(()),
            },
        }
    }

    /// Whether the addresses come from an IPAM plugin of this program. It needs no interface to ask through, and whose the
    /// addresses are was decided where its configuration was written.
    pub(crate) fn has_own_ipam(&self) -> bool {
        matches!(self.ipam(), Ok(Some(Ipam::Own(_))))
    }

    fn ipam(&self) -> Result<Option<Ipam<'a>>, CniError> {
        let Some(name) = self.config().ipam_type() else {
            return Ok(None);
        };
        check_plugin("ipam.type", name)?;
        Ok(Some(match find(name) {
            Some(entry) if entry.kind == Kind::Ipam => Ipam::Own(entry.plugin),
            // An IPAM plugin calls no IPAM plugin, so a main plugin's name here would call itself.
            Some(_) => {
                return Err(CniError::config(
                    "ipam.type",
                    format!("{name:?} gives no addresses"),
                ));
            }
            None => Ipam::Foreign(name),
        }))
    }
}

#[derive(Clone, Copy)]
enum Ipam<'a> {
    Own(&'static dyn crate::plugin::Plugin),
    Foreign(&'a str),
}
