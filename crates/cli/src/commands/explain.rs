//! `moor explain CODE`: the page of a finding, as it stands under `docs/findings`; `moor explain ipam`; and parts of a network.

mod ipam;
mod network;

use mooring_api::Code;
use serde::Serialize;

use crate::args::{ExplainArgs, Format};
use crate::embedded;
use crate::output::{Output, Table};
use crate::world::{Exit, Usage, World};

#[derive(Serialize)]
struct Explained {
    code: &'static str,
    summary: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'static str>,
}

pub(crate) fn run(args: &ExplainArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    if network::is_meant(args) {
        return network::run(args, output);
    }
    if args
        .code
        .as_deref()
        .is_some_and(|c| c.eq_ignore_ascii_case("ipam"))
    {
        return ipam::run(args, world, output);
    }
    if let Some(path) = args.sources.first() {
        let help =
            "a finding is explained without PATH; `moor explain ipam PATH` looks at packages";
        return Err(Usage::new(format!("{path} has no meaning here"), help).into());
    }
    let Some(asked) = &args.code else {
        let all: Vec<Explained> = Code::ALL.iter().map(|c| explained(*c, false)).collect();
        output.show(args.format.format, &all, |all| {
            let mut table = Table::new(["code", "meaning"]);
            for one in all {
                table.row([one.code.to_owned(), one.summary.to_owned()]);
            }
            table
        })?;
        return Ok(Exit::Done);
    };
    let explained = explained(find(asked)?, true);
    if args.format.format == Format::Table {
        let fallback = || format!("# {}\n\n{}\n", explained.code, explained.summary);
        output.data(&explained.page.map_or_else(fallback, str::to_owned))?;
    } else {
        output.show(args.format.format, &explained, |_| Table::new(["code"]))?;
    }
    Ok(Exit::Done)
}

fn explained(code: Code, whole: bool) -> Explained {
    Explained {
        code: code.as_str(),
        summary: code.summary(),
        page: whole.then(|| embedded::finding_page(code)).flatten(),
    }
}

/// The code, whatever its case; a near miss is suggested.
fn find(asked: &str) -> Result<Code, Usage> {
    let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '_', ' '], "");
    let wanted = plain(asked);
    let exact = Code::ALL.iter().find(|c| plain(c.as_str()) == wanted);
    exact.copied().ok_or_else(|| {
        let near: Vec<&str> = Code::ALL
            .iter()
            .map(|c| c.as_str())
            .filter(|c| !wanted.is_empty() && plain(c).contains(&wanted))
            .collect();
        let help = if near.is_empty() {
            "moor explain without a code lists them all; moor explain ipam is about networks"
                .to_owned()
        } else {
            format!("perhaps {}", near.join(" or "))
        };
        Usage::new(format!("{asked} is not the code of a finding"), help)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_whatever_its_case_and_dashes() {
        for text in ["PoolExhausted", "poolexhausted", "pool-exhausted"] {
            assert_eq!(find(text).unwrap(), Code::PoolExhausted);
        }
    }

    #[test]
    fn a_near_miss_is_suggested() {
        assert_eq!(find("exhausted").unwrap_err().help, "perhaps PoolExhausted");
        assert!(
            find("nonsense")
                .unwrap_err()
                .help
                .contains("lists them all")
        );
        assert!(find("").unwrap_err().help.contains("lists them all"));
    }
}
