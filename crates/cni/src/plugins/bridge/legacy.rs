//! Rules that the reference plugin left in iptables, which is its default for `ipMasq`.
//!
//! Called by DEL when nftables has none for the attachment: then it was made by the plugin that was installed before.
//! Easy to get wrong: its chain's name is a hash of network and container alone, so it is shared by a container's
//! interfaces of one network.

use std::fmt::Write as _;
use std::time::Duration;

use mooring_attach::cni::CniError;
use mooring_host::program;

use super::mark::{Mark, hex};

const BOUND: Duration = Duration::from_secs(10);

/// Removes the attachment's chain and what leads there, where the node has iptables; absent is success.
pub(super) fn remove(mark: &Mark) -> Result<(), CniError> {
    let chain = chain(mark.network(), mark.container());
    for family in ["iptables", "ip6tables"] {
        let (save, restore) = (format!("{family}-save"), format!("{family}-restore"));
        let (Ok(save), Ok(restore)) = (program::find(&save), program::find(&restore)) else {
            continue;
        };
        let failed = |e: &dyn std::error::Error| {
            CniError::internal("cannot remove the masquerading of an earlier plugin").because(e)
        };
        let said = program::run(&save, &["-t", "nat"], b"", BOUND).map_err(|e| failed(&e))?;
        let Some(script) = removal(&said.stdout, &chain) else {
            continue;
        };
        let said = program::run(&restore, &["--noflush"], script.as_bytes(), BOUND)
            .map_err(|e| failed(&e))?;
        if !said.ok {
            let what = format!("{family} did not remove the chain {chain}");
            return Err(CniError::io(what, said.stderr.trim()));
        }
    }
    Ok(())
}

/// `CNI-` and 24 hex digits.
fn chain(network: &str, container: &str) -> String {
    format!("CNI-{}", hex(&format!("{network}{container}"), 24))
}

/// One transaction that removes the chain; `None` where it is not there.
fn removal(saved: &str, chain: &str) -> Option<String> {
    let declared = format!(":{chain} ");
    if !saved.lines().any(|line| line.starts_with(&declared)) {
        return None;
    }
    let jump = format!("-j {chain}");
    let leads = |line: &&str| line.ends_with(&jump) && line.starts_with("-A ");
    let mut script = "*nat\n".to_owned();
    for line in saved.lines().filter(leads) {
        script.push_str(&line.replacen("-A ", "-D ", 1));
        script.push('\n');
    }
    let _ = write!(script, "-F {chain}\n-X {chain}\nCOMMIT\n");
    Some(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_and_the_jumps_to_it_go_together_and_nothing_else() {
        let chain = chain("n4", "c1");
        assert_eq!(chain.len(), 28);
        let jump = format!(
            "-A POSTROUTING -s 10.0.0.5/32 -m comment --comment \"name: \\\"n4\\\" id: \\\"c1\\\"\" -j {chain}"
        );
        let saved = format!(
            "*nat\n:POSTROUTING ACCEPT [0:0]\n:{chain} - [0:0]\n:CNI-other - [0:0]\n\
             -A POSTROUTING -j CNI-other\n{jump}\n-A {chain} -d 10.0.0.0/24 -j ACCEPT\nCOMMIT\n"
        );
        let script = removal(&saved, &chain).unwrap();
        let wanted = format!(
            "*nat\n{}\n-F {chain}\n-X {chain}\nCOMMIT\n",
            jump.replacen("-A", "-D", 1)
        );
        assert_eq!(script, wanted);
        assert_eq!(removal(&saved, "CNI-0"), None);
    }
}
