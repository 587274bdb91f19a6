//! Many packages on all cores, and the book in their order.
//!
//! ```text
//!  all cores               one by one          all cores                      one by one
//!  steps, up to wishes ─►  ask the book   ─►   the rest, with answers   ─►    copies, releases, records
//! ```
//!
//! The steps are nearly all of the work and need the book only for a few answers, so `render` has those
//! fetched beforehand. Easy to get wrong: addresses must not depend on which thread was quicker, so only one
//! thread asks, in the order of packages. A package that wishes for more in a later round is run on in its
//! turn, with the book itself.

use std::collections::BTreeMap;

use mooring_api::Finding;
use mooring_blueprint::claim::{Given, Wish};
use mooring_book::Txn;
use mooring_ipam::{Claim, Holder};

use crate::Error;
use crate::decide::{ready, run_ready};
use crate::parallel;
use crate::report::Request;
use crate::site::Site;
use crate::steps::Outcome;
use crate::unit::Unit;

/// What the book says to a wish; the error is for the person.
pub(crate) type Answer = Result<Given, Finding>;

/// How far a package came without the book: its outcome where that was all the way, and what was said.
pub(crate) type Ran = (Option<Outcome>, Vec<Finding>);

/// Runs the steps of every package, `ids` by package.
pub(crate) fn ahead(
    request: &Request,
    site: &Site,
    units: &mut [Unit],
    ids: &[String],
    txn: &mut dyn Txn,
) -> Result<Vec<Ran>, Error> {
    let both = units.iter_mut().zip(ids).collect();
    let begun = parallel::map(both, |(unit, id)| ready(request, site, unit, id));
    let mut answered = Vec::with_capacity(begun.len());
    for ready in begun {
        let mut known = Answers::default();
        if let Some(ready) = &ready {
            for wish in ready.wishes() {
                let answer = ready.ask(site, txn, wish)?;
                known.add(wish.claim.clone(), answer);
            }
        }
        answered.push((ready, known));
    }
    let all = units.iter_mut().zip(ids).zip(answered).collect();
    Ok(parallel::map(all, |((unit, id), (ready, known))| {
        let (mut said, Some(ready)) = (Vec::new(), ready) else {
            return (None, Vec::new());
        };
        let mut look = |wish: &Wish| known.get(&wish.claim).ok_or(Unasked);
        match run_ready(request, site, (unit, id), ready, &mut said, &mut look) {
            Ok(outcome) => (Some(outcome), said),
            // In its turn it is run from the beginning, and says all of this again.
            Err(Unasked) => (None, Vec::new()),
        }
    }))
}

/// The book was not asked this.
struct Unasked;

/// What the book said to one package.
#[derive(Default)]
struct Answers(BTreeMap<Holder, Vec<(Claim, Answer)>>);

impl Answers {
    fn add(&mut self, claim: Claim, answer: Answer) {
        let holder = claim.holder.clone();
        self.0.entry(holder).or_default().push((claim, answer));
    }

    /// In a later round the claim says what it was given; the book would give that again.
    fn get(&self, claim: &Claim) -> Option<Answer> {
        let same = |(asked, answer): &&(Claim, Answer)| {
            let given = answer.as_ref().ok().map(|given| given.lease.thing);
            let before = asked.before == claim.before || given == claim.before;
            before
                && *asked
                    == Claim {
                        before: asked.before,
                        ..claim.clone()
                    }
        };
        let (_, answer) = self.0.get(&claim.holder)?.iter().find(same)?;
        Some(answer.clone())
    }
}
