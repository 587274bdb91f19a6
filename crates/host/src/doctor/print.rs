//! The report for a person: tables that line up, then what is wrong and what to do.

use std::fmt::Write as _;

use super::Report;

/// Tables and what was fixed.
pub(super) fn tables(report: &Report) -> String {
    let mut out = String::new();
    let attachments = report.attachments.iter().map(|a| {
        let verdict = a.verdict.as_ref().map(ToString::to_string);
        [
            a.network.clone(),
            short(&a.container),
            a.ifname.clone(),
            or_dash(a.addresses.join(", ")),
            a.life.to_string(),
            or_dash(verdict.unwrap_or_default()),
        ]
    });
    let heads = [
        "NETWORK",
        "CONTAINER",
        "INTERFACE",
        "ADDRESSES",
        "OWNER",
        "CHECK",
    ];
    table(&mut out, "Attachments", heads, attachments);
    let kept = report.kept.iter().map(|k| {
        [
            k.sort.to_string(),
            k.name.clone(),
            or_dash(short(&k.who.container)),
            or_dash(k.who.ifname.clone()),
            k.life.to_string(),
            or_dash(k.note.clone()),
        ]
    });
    let heads = ["KEPT", "NAME", "CONTAINER", "INTERFACE", "OWNER", "NOTE"];
    table(&mut out, "Kept for pods", heads, kept);
    let configurations = report.configurations.iter().map(|c| {
        [
            c.path.display().to_string(),
            if c.wins { "taken" } else { "behind" }.to_owned(),
            or_dash(c.network.clone().unwrap_or_default()),
            or_dash(c.plugins.join(", ")),
        ]
    });
    let heads = ["FILE", "RUNTIME", "NETWORK", "PLUGINS"];
    table(&mut out, "Configurations", heads, configurations);
    for line in &report.fixed {
        // Writing into a String cannot fail.
        let _ = writeln!(out, "fixed: {line}");
    }
    if !report.fixed.is_empty() {
        out.push('\n');
    }
    out
}

/// The same, and what is wrong.
pub(super) fn text(report: &Report) -> String {
    let mut out = tables(report);
    for finding in &report.findings {
        let _ = writeln!(
            out,
            "{}[{}]: {}",
            finding.severity, finding.code, finding.message
        );
        if !finding.help.is_empty() {
            let _ = writeln!(out, "  help: {}", finding.help);
        }
    }
    if report.findings.is_empty() {
        let _ = writeln!(out, "{}", report.verdict());
    }
    out
}

fn short(container: &str) -> String {
    container.chars().take(12).collect()
}

fn or_dash(text: String) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}

/// Columns as wide as their widest cell, the last one open; an empty table is a line that says so.
fn table<const N: usize>(
    out: &mut String,
    title: &str,
    heads: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) {
    let rows: Vec<[String; N]> = rows.collect();
    if rows.is_empty() {
        let _ = writeln!(out, "{title}: none\n");
        return;
    }
    let mut widths = heads.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let heads = heads.map(ToOwned::to_owned);
    for row in std::iter::once(&heads).chain(&rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out.push('\n');
}
