//! Filters from leaks: first match, so the order is part of the meaning.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use mooring_api::kinds::schiff::{
    ActionType, Filter, FilterAction, FilterItem, Matcher, ModifyRoute, PrefixMatcher,
};

use crate::form::{Leak, PrefixRule};

/// Everything passes.
pub(super) fn all() -> Filter {
    Filter {
        items: Vec::new(),
        default_action: FilterAction {
            kind: ActionType::Accept,
            modify_route: None,
        },
    }
}

/// What the leaks let pass and nothing else. Equal lines are one, with the communities of all.
pub(super) fn of(leaks: &[&Leak]) -> Filter {
    let mut sorted: Vec<&&Leak> = leaks.iter().collect();
    sorted.sort_by_key(|l| {
        let rule = &l.rule;
        let prefix = rule.prefix;
        let rest = (
            Reverse(prefix.prefix_len()),
            prefix.family(),
            prefix,
            rule.permit,
        );
        (l.order.is_none(), l.order, rest, rule.ge, rule.le)
    });
    let mut lines: Vec<&PrefixRule> = Vec::new();
    let mut communities: BTreeMap<&PrefixRule, BTreeSet<String>> = BTreeMap::new();
    for leak in sorted {
        let known = communities.contains_key(&leak.rule);
        let all = communities.entry(&leak.rule).or_default();
        all.extend(leak.communities.iter().cloned());
        if !known {
            lines.push(&leak.rule);
        }
    }
    Filter {
        items: lines
            .into_iter()
            .map(|rule| item(rule, &communities[rule]))
            .collect(),
        default_action: FilterAction::default(),
    }
}

/// The lines of a session, in the order in which they are written.
pub(super) fn listed<'a>(rules: impl Iterator<Item = &'a PrefixRule>) -> Filter {
    let none = BTreeSet::new();
    Filter {
        items: rules.map(|rule| item(rule, &none)).collect(),
        default_action: FilterAction::default(),
    }
}

/// One line.
pub(super) fn item(rule: &PrefixRule, communities: &BTreeSet<String>) -> FilterItem {
    let modify = (rule.permit && !communities.is_empty()).then(|| ModifyRoute {
        add_communities: communities.iter().cloned().collect(),
        additive_communities: Some(true),
        ..ModifyRoute::default()
    });
    FilterItem {
        matcher: Matcher {
            prefix: Some(PrefixMatcher {
                prefix: rule.prefix.to_string(),
                ge: rule.ge,
                le: rule.le,
            }),
            bgp_community: None,
        },
        action: FilterAction {
            kind: if rule.permit {
                ActionType::Accept
            } else {
                ActionType::Reject
            },
            modify_route: modify,
        },
    }
}
