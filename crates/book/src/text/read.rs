//! An export, read and checked: a [`Content`] that a book could have, or findings with line and field.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mooring_api::{Cidr, Code, Family, Finding, Time, VlanId};
use mooring_ipam::{InstanceKey, Lease, State, Table, Thing, TxnId};
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::{AuditRow, FORMAT, LARGEST_TEXT, LeaseRow, PackageRow, ReservationRow, TEXT_VERSION};
use crate::content::Content;
use crate::reservation::Reservation;
use crate::store::PackageRecord;

/// More are not told: a file of another kind is wrong in every line.
const TOLD: usize = 20;

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: Option<String>,
    #[serde(default)]
    version: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[expect(dead_code, reason = "the head has judged it")]
    format: String,
    #[expect(dead_code, reason = "the head has judged it")]
    version: u64,
    #[serde(default)]
    leases: Vec<Spanned<LeaseRow>>,
    #[serde(default)]
    reservations: Vec<Spanned<ReservationRow>>,
    #[serde(default)]
    packages: Vec<Spanned<PackageRow>>,
    #[serde(default)]
    #[expect(dead_code, reason = "read to be checked; a trail is never imported")]
    audit: Vec<Spanned<AuditRow>>,
}

/// Reads an export, JSON or YAML; `file` stands in findings. Its trail is left out.
pub fn read_text(text: &str, file: &str) -> Result<Content, Vec<Finding>> {
    let one = |finding: Finding| vec![finding];
    if text.len() as u64 > LARGEST_TEXT {
        let message = format!("{file} is larger than {} MiB", LARGEST_TEXT >> 20);
        let finding = Finding::error(Code::FileTooLarge, message).located(file, 1, 1);
        return Err(one(finding.help(
            "import the book itself, or a backup of it, instead of its text",
        )));
    }
    // First the head alone: a newer version may have fields that this one would call mistakes.
    let head: Head = parse(text, file).map_err(one)?;
    judge(&head, file).map_err(one)?;
    let document: Document = parse(text, file).map_err(one)?;
    let mut reading = Reading {
        file,
        lines: text.lines().collect(),
        findings: Vec::new(),
        more: 0,
    };
    let content = reading.content(&document);
    if reading.more > 0 {
        let message = format!("and {} more like these", reading.more);
        let finding = Finding::error(Code::ImportInvalid, message);
        reading.findings.push(finding.help("correct these first"));
    }
    if reading.findings.is_empty() {
        return Ok(content);
    }
    Err(reading.findings)
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str, file: &str) -> Result<T, Finding> {
    let most = text.len();
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_events: most,
            max_nodes: most,
            max_total_scalar_bytes: most,
            // An export has none.
            max_aliases: 0,
            max_anchors: 0,
            max_documents: 1,
            max_depth: 16,
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = error.location().map_or((1, 1), |l| (l.line(), l.column()));
        let [line, column] = [place.0, place.1].map(|n| u32::try_from(n).unwrap_or(1).max(1));
        let said = error.without_snippet().to_string();
        // Line and column stand in front already.
        let said = said.split(" at line ").next().unwrap_or_default();
        let first = said.lines().next().unwrap_or_default();
        Finding::error(Code::ImportInvalid, format!("not an export: {first}"))
            .located(file, line, column)
            .help("name a file that `moor book export` wrote, or a book")
    })
}

fn judge(head: &Head, file: &str) -> Result<(), Finding> {
    if head.format.as_deref() != Some(FORMAT) {
        let message = format!("{file} is not an export of a book: format is not {FORMAT}");
        return Err(Finding::error(Code::ImportInvalid, message)
            .at("format")
            .located(file, 1, 1)
            .help("name a file that `moor book export` wrote, or a book"));
    }
    match head.version {
        Some(TEXT_VERSION) => Ok(()),
        Some(newer) if newer > TEXT_VERSION => {
            let message = format!(
                "{file} was exported by a newer version: it has version {newer}, this one reads {TEXT_VERSION}"
            );
            Err(Finding::error(Code::BookNewer, message)
                .at("version")
                .located(file, 1, 1)
                .help("use the version that exported it, or a later one"))
        }
        _ => Err(
            Finding::error(Code::ImportInvalid, format!("{file} has no known version"))
                .at("version")
                .located(file, 1, 1)
                .help(format!("this one reads version {TEXT_VERSION}")),
        ),
    }
}

struct Reading<'a> {
    file: &'a str,
    lines: Vec<&'a str>,
    findings: Vec<Finding>,
    more: usize,
}

/// Where a row is: the list, its index, the line it begins in.
#[derive(Clone, Copy)]
struct Row {
    list: &'static str,
    index: usize,
    line: u64,
}

impl Row {
    fn of<T>(list: &'static str, (index, row): (usize, &Spanned<T>)) -> Self {
        let line = row.referenced.line();
        Self { list, index, line }
    }
}

impl Reading<'_> {
    fn content(&mut self, document: &Document) -> Content {
        let mut content = Content::default();
        let mut tables: BTreeMap<InstanceKey, Table> = BTreeMap::new();
        for each in document.leases.iter().enumerate() {
            let row = Row::of("leases", each);
            let Some(lease) = self.lease(row, &each.1.value) else {
                continue;
            };
            let instance = &lease.instance;
            let table = tables.entry(instance.clone());
            let table = table.or_insert_with(|| Table::new(instance.clone()));
            if let Some(other) = table.get(&lease.thing) {
                let message = format!("{} is listed twice, for {} too", lease.thing, other.holder);
                self.say(row, "what", &message);
            } else if let Err(other) = table.insert(lease.clone()) {
                let (thing, other) = (lease.thing, *other);
                let message = format!("{thing} overlaps {} of {}", other.thing, other.holder);
                self.say(row, "what", &message);
            } else {
                content.leases.push(lease);
            }
        }
        let mut known = BTreeSet::new();
        for each in document.reservations.iter().enumerate() {
            let row = Row::of("reservations", each);
            let Some(reservation) = self.reservation(row, &each.1.value) else {
                continue;
            };
            let table = tables.get(&reservation.instance);
            let lease = table.and_then(|t| t.get(&reservation.thing));
            if lease.is_none_or(|l| l.holder != reservation.holder()) {
                let owner = &reservation.owner;
                let message = format!("{} has no lease of {owner}", reservation.thing);
                self.say(row, "what", &message);
            } else if known.insert(reservation.key()) {
                content.reservations.push(reservation);
            } else {
                self.say(row, "what", "it is reserved twice");
            }
        }
        for each in document.packages.iter().enumerate() {
            let row = Row::of("packages", each);
            content.packages.extend(self.package(row, &each.1.value));
        }
        let by_place = |l: &Lease| (l.instance.clone(), l.thing);
        content.leases.sort_by_key(by_place);
        content.reservations.sort_by_key(Reservation::key);
        content
            .packages
            .sort_by(|a, b| (&a.cluster, &a.id).cmp(&(&b.cluster, &b.id)));
        content
    }

    fn lease(&mut self, row: Row, from: &LeaseRow) -> Option<Lease> {
        let instance = self.network(row, &from.network)?;
        let thing = self.thing(row, &from.what)?;
        let subnet = match &from.subnet {
            Some(text) => Some(self.value::<Cidr>(row, "subnet", text)?),
            None => None,
        };
        let gateway = match &from.gateway {
            Some(text) => Some(self.value::<IpAddr>(row, "gateway", text)?),
            None => None,
        };
        self.family(row, from, thing, subnet, gateway)?;
        let until = match &from.until {
            Some(text) => Some(self.moment(row, "until", text)?),
            None => None,
        };
        let txn = TxnId(0);
        let state = match (from.state.as_str(), until) {
            ("held", None) => State::Held,
            ("cooling", Some(until)) => State::Cooling { until },
            ("reserved", Some(until)) => State::Reserved { txn, until },
            ("held", Some(_)) => {
                return self.wrong(row, "until", "what is held has no end");
            }
            ("cooling" | "reserved", None) => {
                let message = format!("{} needs an end: until", from.state);
                return self.wrong(row, "state", &message);
            }
            (other, _) => {
                let message = format!("{other:?} is no state: held, cooling or reserved");
                return self.wrong(row, "state", &message);
            }
        };
        if from.holder.interface.is_empty() {
            return self.wrong(row, "holder", "the holder has no interface");
        }
        Some(Lease {
            instance,
            thing,
            subnet,
            gateway,
            holder: from.holder.clone(),
            state,
            since: self.moment(row, "since", &from.since)?,
        })
    }

    /// Address, subnet, gateway and holder are of one family and lie in each other.
    fn family(
        &mut self,
        row: Row,
        from: &LeaseRow,
        thing: Thing,
        subnet: Option<Cidr>,
        gateway: Option<IpAddr>,
    ) -> Option<()> {
        let Some(range) = thing.range() else {
            return Some(());
        };
        let family = range.family();
        if from.holder.family != family {
            let message = format!("{thing} is {family}, its holder is {}", from.holder.family);
            return self.wrong(row, "family", &message);
        }
        if let Some(gateway) = gateway.filter(|g| Family::of(*g) != family) {
            let message = format!("the gateway {gateway} is not {family}");
            return self.wrong(row, "gateway", &message);
        }
        let inside = |s: &Cidr| s.contains(range.first()) && s.contains(range.last());
        match subnet.filter(|s| !inside(s)) {
            Some(subnet) => {
                let message = format!("{thing} does not lie in {subnet}");
                self.wrong(row, "subnet", &message)
            }
            None => Some(()),
        }
    }

    fn reservation(&mut self, row: Row, from: &ReservationRow) -> Option<Reservation> {
        let until = match &from.until {
            Some(text) => Some(self.moment(row, "until", text)?),
            None => None,
        };
        Some(Reservation {
            instance: self.network(row, &from.network)?,
            thing: self.thing(row, &from.what)?,
            owner: from.owner.clone(),
            reason: from.reason.clone(),
            until,
        })
    }

    fn package(&mut self, row: Row, from: &PackageRow) -> Option<PackageRecord> {
        let mut vlans = BTreeSet::new();
        for network in &from.vlans {
            vlans.insert(self.network(row, network)?);
        }
        Some(PackageRecord {
            id: from.id.clone(),
            cluster: from.cluster.clone(),
            name: from.name.clone(),
            path: from.path.clone(),
            workloads: from.workloads.clone(),
            vlans,
            at: self.moment(row, "at", &from.at)?,
        })
    }

    fn network(&mut self, row: Row, text: &str) -> Option<InstanceKey> {
        let (namespace, name) = text.split_once('/').unwrap_or(("", text));
        if name.is_empty() || name.contains('/') {
            return self.wrong(row, "network", "write it as NAME or NAMESPACE/NAME");
        }
        Some(InstanceKey::new(namespace, name))
    }

    fn thing(&mut self, row: Row, text: &str) -> Option<Thing> {
        if let Some(number) = text.strip_prefix("vlan ") {
            let id = number.parse::<u16>().ok();
            let id = id.and_then(|n| VlanId::try_from(n).ok());
            let id = id.map(Thing::Vlan);
            return id.or_else(|| self.wrong(row, "what", &format!("{text:?} is no VLAN")));
        }
        if text.contains('/') {
            return self.value(row, "what", text).map(Thing::Block);
        }
        if text.contains('-') {
            return self.value(row, "what", text).map(Thing::Range);
        }
        self.value(row, "what", text).map(Thing::Addr)
    }

    fn value<T: std::str::FromStr>(
        &mut self,
        row: Row,
        field: &'static str,
        text: &str,
    ) -> Option<T>
    where
        T::Err: std::fmt::Display,
    {
        match text.parse() {
            Ok(value) => Some(value),
            Err(e) => self.wrong(row, field, &format!("{text:?}: {e}")),
        }
    }

    fn moment(&mut self, row: Row, field: &'static str, text: &str) -> Option<Time> {
        let stamp = text.parse::<jiff::Timestamp>().ok();
        let seconds = stamp.and_then(|s| u64::try_from(s.as_second()).ok());
        let seconds = seconds.or_else(|| text.parse().ok());
        let message = format!("{text:?} is no time: write it like 2027-01-31T12:00:00Z");
        seconds
            .map(Time)
            .or_else(|| self.wrong(row, field, &message))
    }

    /// Says it, and gives nothing.
    fn wrong<T>(&mut self, row: Row, field: &'static str, message: &str) -> Option<T> {
        self.say(row, field, message);
        None
    }

    fn say(&mut self, row: Row, field: &'static str, message: &str) {
        if self.findings.len() == TOLD {
            self.more += 1;
            return;
        }
        let Row { list, index, line } = row;
        let first = usize::try_from(line.max(1) - 1).unwrap_or_default();
        // The row's own line where all of it stands in one.
        let named = |text: &&str| {
            let text = text.trim_start_matches([' ', '-', '{', '"']);
            let rest = text.strip_prefix(field);
            rest.is_some_and(|r| r.starts_with([':', '"']))
        };
        let rest = self.lines.iter().skip(first).take(24);
        let at = first + rest.clone().position(named).unwrap_or(0);
        let text = self.lines.get(at).copied().unwrap_or_default();
        let column = text.find(field).unwrap_or(0) + 1;
        let [line, column] = [at + 1, column].map(|n| u32::try_from(n).unwrap_or(1));
        let field = match field {
            "family" => "holder.family",
            other => other,
        };
        self.findings.push(
            Finding::error(Code::ImportInvalid, message)
                .at(format!("{list}[{index}].{field}"))
                .located(self.file, line, column)
                .help("correct it, or export the book again"),
        );
    }
}
