//! Where a reservation by hand lies: somebody names addresses, and gets those or a reason.
//!
//! `moor reserve` calls it. Unlike a claim, nothing is chosen, and what no pod may have (the gateway, an excluded address, the
//! network address of a whole block) may be reserved: it is for a router or a host. Easy to get wrong: in a network,
//! a CIDR means its addresses; in a pool, it means a block, since blocks are what is taken there.

use mooring_api::{AddrRange, Cidr};

use crate::{Candidate, InstanceKey, Kind, Pools, Prefix, Refusal, Table, Thing};

/// How many prefixes or instances a refusal names.
const SHOWN: usize = 5;

impl Pools {
    /// What reserving these addresses takes: the thing, and the subnet it lies in. `block` is the CIDR, where one was
    /// written. Whether somebody has it, the book answers.
    pub fn reserving(
        &self,
        instance: &InstanceKey,
        range: AddrRange,
        block: Option<Cidr>,
    ) -> Result<Candidate, Refusal> {
        let Some(known) = self.instances.get(instance) else {
            return Err(Refusal::UnknownInstance {
                instance: instance.clone(),
                known: self.instances.keys().take(SHOWN).cloned().collect(),
            });
        };
        let here: Vec<&Prefix> = self
            .prefixes
            .iter()
            .filter(|p| p.instance == *instance)
            .collect();
        let narrowest = here
            .iter()
            .filter(|p| p.covers(&range))
            .max_by_key(|p| (p.kind != Kind::Aggregate, p.cidr.prefix_len()));
        let aggregates = known.aggregates.iter().map(|(cidr, _)| *cidr);
        let aggregate = aggregates
            .clone()
            .find(|c| c.contains(range.first()) && c.contains(range.last()));
        let single = range.first() == range.last();
        let thing = |in_network: bool| match (single, block) {
            (true, _) => Thing::Addr(range.first()),
            (false, Some(block)) if !in_network => Thing::Block(block),
            _ => Thing::Range(range),
        };
        let Some(prefix) = narrowest else {
            let subnet = aggregate.ok_or_else(|| Refusal::OutsidePrefix {
                thing: thing(true),
                prefixes: here
                    .iter()
                    .map(|p| p.cidr)
                    .chain(aggregates)
                    .take(SHOWN)
                    .collect(),
            })?;
            return Ok(Candidate {
                thing: thing(false),
                subnet: Some(subnet),
                gateway: None,
            });
        };
        let thing = thing(matches!(prefix.kind, Kind::Network | Kind::Loopback));
        match prefix.kept.iter().find(|k| k.range.overlaps(&range)) {
            Some(kept) => Err(Refusal::Kept {
                thing,
                range: kept.range,
                claim: kept.claim.clone(),
                cluster: kept.cluster.clone(),
            }),
            None => Ok(Candidate {
                thing,
                subnet: Some(prefix.cidr),
                gateway: prefix.gateway,
            }),
        }
    }
}

impl Table {
    /// Everybody who keeps `holder` from taking something, not only the first. For a refusal: it copies the table.
    pub fn blockers(&self, candidate: &Candidate, holder: &crate::Holder) -> Vec<crate::Lease> {
        let (mut rest, mut found) = (self.clone(), Vec::new());
        while let Some(lease) = rest.blocker(&candidate.thing, candidate.subnet, holder) {
            rest.remove(&lease.thing);
            found.push(lease);
        }
        found.sort_by_key(|lease| lease.thing);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{addr, cidr, instance, prefix, range};

    fn pools() -> Pools {
        let mut block = prefix("10.9.0.0/16");
        block.kind = Kind::Pool;
        crate::sample::pools(vec![prefix("10.0.0.0/24"), block])
    }

    #[test]
    fn a_cidr_is_its_addresses_in_a_network_and_a_block_in_a_pool() {
        let network = cidr("10.0.0.16/28");
        let got = pools().reserving(&instance(), network.range(), Some(network));
        assert_eq!(
            got.map(|c| (c.thing, c.subnet)),
            Ok((Thing::Range(network.range()), Some(cidr("10.0.0.0/24"))))
        );
        let block = cidr("10.9.4.0/24");
        let got = pools().reserving(&instance(), block.range(), Some(block));
        assert_eq!(got.map(|c| c.thing), Ok(Thing::Block(block)));
    }

    #[test]
    fn the_gateway_can_be_reserved_and_what_lies_outside_cannot() {
        let gateway = AddrRange::single(addr("10.0.0.1"));
        let got = pools().reserving(&instance(), gateway, None);
        assert_eq!(got.map(|c| c.thing), Ok(Thing::Addr(addr("10.0.0.1"))));
        let across = range("10.0.0.250-10.0.1.5");
        let refused = pools().reserving(&instance(), across, None).unwrap_err();
        assert!(matches!(refused, Refusal::OutsidePrefix { .. }));
        let nowhere = InstanceKey::new("", "nowhere");
        let refused = pools().reserving(&nowhere, gateway, None).unwrap_err();
        assert!(matches!(refused, Refusal::UnknownInstance { .. }));
    }
}
