//! resolv.conf, as far as a CNI result has room for it. Pure.

use mooring_attach::cni::Dns;

/// Unknown keywords and lines without a value are no concern of ours; a later `domain` wins, lists grow.
pub(super) fn parse(text: &str) -> Dns {
    let mut dns = Dns::default();
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            continue;
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (Some(keyword), Some(first)) = (words.next(), words.next()) else {
            continue;
        };
        let all = std::iter::once(first.clone()).chain(words);
        match keyword.as_str() {
            "nameserver" => dns.nameservers.push(first),
            "domain" => dns.domain = first,
            "search" => dns.search.extend(all),
            "options" => dns.options.extend(all),
            _ => {}
        }
    }
    dns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_becomes_dns_and_comments_do_not() {
        let dns = parse(
            "# made by hand\n; nameserver 192.0.2.9\n\n  nameserver 192.0.2.1 ignored\nnameserver fd00::1\n\
             domain a.example\ndomain b.example\nsearch x.example y.example\noptions ndots:5 rotate\nsortlist 1\nsearch\n",
        );
        assert_eq!(dns.nameservers, ["192.0.2.1", "fd00::1"]);
        assert_eq!(dns.domain, "b.example");
        assert_eq!(dns.search, ["x.example", "y.example"]);
        assert_eq!(dns.options, ["ndots:5", "rotate"]);
    }
}
