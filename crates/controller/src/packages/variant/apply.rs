//! Makes a variant's package true, on one thread: specialise in memory, push once, propose and approve where asked.
//!
//! ```text
//!  published is ours ─► its addresses are committed (a person may have approved it)
//!  wanted ≠ newest ───► reserve ─► push the draft, whole ─► old reservation goes
//!  policy, gates ─────► propose ─► approve (merge + tag) ─► commit the addresses
//! ```
//!
//! Easy to get wrong: every step may be the last one before a crash. What was reserved for a draft that was not pushed is
//! taken over by the next pass, because the identity follows from the variant; what was published and not committed is
//! committed by the next pass, before anything else can take it.

use std::collections::BTreeSet;
use std::time::Duration;

use mooring_api::{Code, Finding, Span};
use mooring_book::{Filter, Store as _};
use mooring_ipam::TxnId;
use mooring_package::revision::{Base, Draft, Lifecycle, Open, PackageName, Packages, Workspace};
use mooring_package::{Files, Kpt, Report, Site, Specialise, Specialised, discard, specialise};

use super::super::approval::Next;
use super::super::book::Book;
use super::super::links::HELP;
use super::super::site_of;
use super::decide::{self, Head, Remembered};
use super::gather::Gathered;
use crate::error::Error;
use crate::world::World;

/// What became of a package.
#[derive(Debug, Default)]
pub(in super::super) struct Applied {
    /// Errors that kept it from being made, and warnings.
    pub(in super::super) findings: Vec<Finding>,
    /// Which it is.
    pub(in super::super) package: Option<PackageName>,
    /// Where it stands.
    pub(in super::super) lifecycle: Option<Lifecycle>,
    pub(in super::super) workspace: Option<Workspace>,
    pub(in super::super) version: Option<u32>,
    pub(in super::super) commit: Option<String>,
    /// What was rendered last.
    pub(in super::super) report: Report,
    /// What the newest revision says about itself.
    pub(in super::super) kpt: Kpt,
    /// Why it is not published yet.
    pub(in super::super) next: Option<Next>,
    /// Somebody decided against it.
    pub(in super::super) held: bool,
    /// What to keep on the variant.
    pub(in super::super) remember: Option<Remembered>,
    /// Events: reason and note.
    pub(in super::super) told: Vec<(&'static str, String)>,
    /// When to look again.
    pub(in super::super) again: Option<Duration>,
}

/// One pass over one package.
pub(super) struct Act<'a> {
    pub(super) world: &'a World,
    pub(super) book: &'a Book,
    pub(super) gathered: &'a Gathered,
    pub(super) remembered: &'a Remembered,
}

impl Act<'_> {
    /// Does what is to be done.
    pub(super) fn run(&self) -> Result<Applied, Error> {
        let Gathered {
            variant,
            clone,
            package,
            seen,
            site,
            ..
        } = self.gathered;
        let mut applied = Applied {
            findings: clone.findings.clone(),
            package: Some(package.clone()),
            ..Applied::default()
        };
        let head = match decide::head(variant, seen) {
            Ok(head) => head,
            Err(finding) => {
                applied.findings.push(finding);
                return Ok(applied);
            }
        };
        applied.version = seen.newest.as_ref().map(|newest| newest.version);
        let site = site_of(site);
        // What is published has its addresses for good, whoever approved it.
        let published = match head.published {
            Some(files) => {
                let done = self.specialise(&site, files, Some(files), Keep::Commit)?;
                self.at_published(&head, &mut applied);
                if done.report.has_errors() {
                    applied.findings.extend(done.report.findings);
                    return Ok(applied);
                }
                Some(done)
            }
            None => None,
        };
        let current =
            head.kpt.variant == decide::mark(variant) && head.kpt.made_from == clone.digest;
        if current
            && head.open.is_none()
            && self.is_settled(&head, published.as_ref(), &mut applied)
        {
            if let Some(done) = published {
                applied.kpt = head.kpt.clone();
                self.discard_all(&done.report)?;
                told_of(&mut applied, done.report);
            }
            return Ok(applied);
        }
        let place = variant.path();
        if !current && decide::is_held(&head, self.remembered, &clone.digest, &place, None) {
            return self.hold(&head, published, applied);
        }
        let source = match head.files {
            Some(files) if current => files,
            _ => &clone.files,
        };
        let drafted = self.specialise(&site, source, head.files, Keep::Reserve)?;
        if drafted.report.has_errors() {
            Self::at_open(&head, &mut applied);
            applied.findings.extend(drafted.report.findings);
            return Ok(applied);
        }
        // Another draft of the package shares its identity, and keeps what both count on.
        let alone = seen.open.len() <= usize::from(head.open.is_some());
        if let Some(txn) = drafted.report.reserved.filter(|_| alone) {
            self.discard_but(&drafted.report, &BTreeSet::from([txn]))?;
        }
        self.push(&head, drafted, published.as_ref(), applied)
    }

    /// Whether what is published is what is wanted, or somebody does not want what would be.
    fn is_settled(
        &self,
        head: &Head<'_>,
        published: Option<&Specialised>,
        applied: &mut Applied,
    ) -> bool {
        let (Some(done), Some(files)) = (published, head.published) else {
            return false;
        };
        if done.files == *files {
            return true;
        }
        let content = decide::content(&done.files);
        let place = self.gathered.variant.path();
        applied.held = decide::is_held(
            head,
            self.remembered,
            &head.kpt.made_from,
            &place,
            Some(&content),
        );
        applied.held
    }

    /// Nothing is made; what was reserved for it goes back.
    fn hold(
        &self,
        head: &Head<'_>,
        published: Option<Specialised>,
        mut applied: Applied,
    ) -> Result<Applied, Error> {
        applied.held = true;
        applied.kpt = head.kpt.clone();
        if let Some(done) = published {
            self.discard_all(&done.report)?;
            told_of(&mut applied, done.report);
        } else if self.give_back(&self.remembered.id)? > 0 {
            let path = self.gathered.variant.path();
            let note = format!("the draft of {path} is gone, and its addresses are given back");
            applied.told.push(("DraftGone", note));
        }
        Ok(applied)
    }

    /// Gives back what is reserved for a package that is not there. How many drafts had something.
    fn give_back(&self, id: &str) -> Result<usize, Error> {
        if id.is_empty() {
            return Ok(0);
        }
        self.world.fence()?;
        let filter = Filter {
            package: Some(id.to_owned()),
            ..Filter::default()
        };
        let now = self.world.now();
        self.book.with(|store| {
            let leases = store.leases(&filter)?;
            let clusters: BTreeSet<String> = leases.into_iter().map(|l| l.holder.cluster).collect();
            let mut given = 0;
            for cluster in clusters {
                given += discard(store, &cluster, id, &BTreeSet::new(), now)?.len();
            }
            Ok(given)
        })
    }

    fn at_published(&self, head: &Head<'_>, applied: &mut Applied) {
        let seen = &self.gathered.seen;
        applied.lifecycle = Some(Lifecycle::Published);
        applied.commit = seen.newest.as_ref().map(|newest| newest.commit.to_string());
        applied.kpt = head.published.and_then(Kpt::read).unwrap_or_default();
    }

    fn at_open(head: &Head<'_>, applied: &mut Applied) {
        if let Some(open) = head.open {
            applied.lifecycle = Some(open.lifecycle);
            applied.workspace = Some(open.workspace.clone());
            applied.commit = Some(open.commit.to_string());
            applied.kpt = head.kpt.clone();
        }
    }

    fn specialise(
        &self,
        site: &Site,
        files: &Files,
        previous: Option<&Files>,
        keep: Keep,
    ) -> Result<Specialised, Error> {
        self.world.fence()?;
        let Gathered {
            down,
            package,
            deploy_records,
            entropy,
            neighbours,
            ..
        } = self.gathered;
        let place = down.packages.repository.place(package.as_str());
        let ttl = Span(self.world.args.packages.draft_reservation.as_secs());
        let how = Specialise {
            previous,
            draft: (keep == Keep::Reserve).then_some(ttl),
            pinned: keep == Keep::Commit,
            deploy_records: *deploy_records,
            neighbours,
            // The id of a variant's package is its own: no other place can have it.
            carries: Some(&|_, _| false),
            source: Some(down.name.clone().into()),
            ..Specialise::new(site, place, self.world.now(), *entropy)
        };
        let mut done = self.book.with(|store| specialise(store, files, &how))?;
        for finding in &mut done.report.findings {
            if finding.code == Code::WaitingForPackage {
                HELP.clone_into(&mut finding.help);
            }
        }
        Ok(done)
    }

    /// Reservations of drafts of this package go, except the one that counts now.
    fn discard_but(&self, report: &Report, keep: &BTreeSet<TxnId>) -> Result<(), Error> {
        let now = self.world.now();
        for package in &report.packages {
            self.book
                .with(|store| discard(store, &package.cluster, &package.id, keep, now))?;
        }
        Ok(())
    }

    /// The same where no draft of the package is left.
    fn discard_all(&self, report: &Report) -> Result<(), Error> {
        if self.gathered.seen.open.is_empty() {
            self.discard_but(report, &BTreeSet::new())?;
        }
        Ok(())
    }

    /// Pushes the draft where it differs, and goes on with it where the policy says so.
    fn push(
        &self,
        head: &Head<'_>,
        drafted: Specialised,
        published: Option<&Specialised>,
        mut applied: Applied,
    ) -> Result<Applied, Error> {
        let Gathered {
            variant,
            clone,
            down,
            package,
            seen,
            approval,
            ..
        } = self.gathered;
        let packages = &down.packages;
        let workspace = head
            .open
            .map_or_else(|| decide::workspace(seen), |open| open.workspace.clone());
        let mut made = self.world.now();
        let (commit, mut lifecycle) = match head.open {
            Some(open) if open.files == drafted.files && !open.outdated => {
                made = open.at;
                (open.commit.clone(), open.lifecycle)
            }
            open => {
                let pushed = self.write(packages, &workspace, open, &drafted.files)?;
                let changes = changes(published.map(|p| &p.report), &drafted.report);
                let note = format!("draft {workspace} of {package} is specialised; {changes}");
                applied.told.push(("Drafted", note));
                (pushed, Lifecycle::Draft)
            }
        };
        applied.kpt = Kpt::read(&drafted.files).unwrap_or_default();
        applied.remember = Some(Remembered {
            made_from: clone.digest.clone(),
            content: decide::content(&drafted.files),
            id: applied.kpt.id.clone(),
            place: variant.path(),
        });
        applied.commit = Some(commit.to_string());
        let next = approval.next(
            seen.newest.is_some(),
            &applied.kpt.unmet(),
            made,
            self.world.now(),
        );
        if let Next::Wait(until) = &next {
            applied.again = Some(Duration::from_secs(
                until.0.saturating_sub(self.world.now().0),
            ));
        }
        if next == Next::Approve {
            self.world.fence()?;
            if lifecycle == Lifecycle::Draft {
                packages.propose(package, &workspace, Some(&commit), None)?;
            }
            self.world.fence()?;
            let version = packages.approve(package, &workspace, Some(&commit), None)?;
            lifecycle = Lifecycle::Published;
            applied.version = Some(version.version);
            applied.commit = Some(version.commit.to_string());
            let note = format!(
                "{package} v{} is published, as the policy says",
                version.version
            );
            applied.told.push(("Published", note));
            // From here on the addresses are the package's for good.
            let site = site_of(&self.gathered.site);
            let done =
                self.specialise(&site, &drafted.files, Some(&drafted.files), Keep::Commit)?;
            self.discard_but(&done.report, &BTreeSet::new())?;
        }
        applied.next = (lifecycle != Lifecycle::Published).then_some(next);
        applied.workspace = (lifecycle != Lifecycle::Published).then_some(workspace);
        applied.lifecycle = Some(lifecycle);
        told_of(&mut applied, drafted.report);
        Ok(applied)
    }

    /// One push of a finished draft. A proposal that is not what is wanted any more is a draft again first.
    fn write(
        &self,
        packages: &Packages,
        workspace: &Workspace,
        open: Option<&Open>,
        files: &Files,
    ) -> Result<mooring_package::git::Oid, Error> {
        let package = &self.gathered.package;
        self.world.fence()?;
        if open.is_some_and(|open| open.lifecycle == Lifecycle::Proposed) {
            packages.reject(package, workspace)?;
            self.world.fence()?;
        }
        let variant = &self.gathered.variant;
        let message = format!(
            "Specialise {package} in draft {workspace}\n\nPackageVariant {}/{} of {}/{}",
            variant.namespace,
            variant.name,
            variant.spec.upstream.repo,
            variant.spec.upstream.package
        );
        let pushed = packages.write(&Draft {
            package: package.clone(),
            workspace: workspace.clone(),
            files: files.clone(),
            base: open.map_or(Base::New, |open| Base::Tip(open.commit.clone())),
            onto_published: open.is_some_and(|open| open.outdated),
            message: Some(message),
        })?;
        Ok(pushed.commit)
    }
}

/// What happens to the addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Reserve,
    Commit,
}

fn told_of(applied: &mut Applied, report: Report) {
    applied.findings.extend(report.findings.iter().cloned());
    applied.report = report;
}

/// What a new draft does to addresses that are in use, for a person to see first.
fn changes(before: Option<&Report>, after: &Report) -> String {
    let all = |report: &Report| {
        let interfaces = report.packages.iter().flat_map(|p| &p.interfaces);
        let addresses = interfaces.flat_map(|i| {
            let texts = i
                .addresses
                .iter()
                .map(ToString::to_string)
                .chain(i.ranges.iter().cloned());
            texts.map(|text| (i.name.clone(), text)).collect::<Vec<_>>()
        });
        addresses.collect::<BTreeSet<_>>()
    };
    let after = all(after);
    let Some(before) = before.map(all) else {
        let list: Vec<String> = after
            .iter()
            .map(|(name, text)| format!("{name} {text}"))
            .collect();
        return if list.is_empty() {
            "it needs no address".to_owned()
        } else {
            list.join(", ")
        };
    };
    let show = |sign: &str, (name, text): &(String, String)| format!("{sign}{name} {text}");
    let gone = before.difference(&after).map(|a| show("-", a));
    let new = after.difference(&before).map(|a| show("+", a));
    let list: Vec<String> = gone.chain(new).collect();
    if list.is_empty() {
        "no address changes".to_owned()
    } else {
        format!("addresses would change: {}", list.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mooring_package::{InterfaceReport, PackageReport};

    fn report(addresses: &[(&str, &str)]) -> Report {
        let interface = |(name, address): &(&str, &str)| InterfaceReport {
            name: (*name).into(),
            network: String::new(),
            cni: String::new(),
            on: String::new(),
            addresses: vec![address.parse().expect("an address")],
            ranges: Vec::new(),
            gateways: Vec::new(),
            vlan: None,
            workload: None,
        };
        Report {
            packages: vec![PackageReport {
                path: "p".into(),
                name: "p".into(),
                id: "i".into(),
                cluster: "c".into(),
                interfaces: addresses.iter().map(interface).collect(),
                conditions: (0, 0),
            }],
            ..Report::default()
        }
    }

    #[test]
    fn what_a_draft_does_to_addresses_is_said_before_it_is_published() {
        let one = report(&[("n2", "10.1.2.20/24")]);
        let two = report(&[("n2", "10.1.2.21/24"), ("n3", "10.1.3.20/24")]);
        assert_eq!(changes(None, &one), "n2 10.1.2.20/24");
        assert_eq!(changes(Some(&one), &one), "no address changes");
        assert_eq!(
            changes(Some(&one), &two),
            "addresses would change: -n2 10.1.2.20/24, +n2 10.1.2.21/24, +n3 10.1.3.20/24"
        );
    }
}
