//! Packages that the book knows by their name, because an import found them without an id: they keep it.
//!
//! A render calls this for packages without an id. Easy to get wrong: a minted id is random, so a new one would make a
//! stranger of every package that was imported, and move all of its addresses.

use mooring_blueprint::inject;
use mooring_book::Store;

use crate::Error;
use crate::report::Request;
use crate::unit::Unit;

/// Cluster and name of every package that has its name as its id.
#[derive(Debug, Default)]
pub(crate) struct Named(Vec<(String, String)>);

impl Named {
    /// Reads them from the book.
    pub(crate) fn read(store: &dyn Store) -> Result<Self, Error> {
        let packages = store.packages()?.into_iter();
        let named = packages.filter(|p| p.id == p.name);
        Ok(Self(named.map(|p| (p.cluster, p.id)).collect()))
    }

    /// The id of a package that has none of its own.
    pub(crate) fn id(&self, request: &Request, unit: &Unit) -> Option<String> {
        let name = &unit.bundle.marks.name;
        let mut same = self.0.iter().filter(|(_, id)| id == name).peekable();
        same.peek()?;
        let cluster = request.cluster.clone().or_else(|| {
            let found = inject::find(&unit.bundle, &mut Vec::new());
            found.map(|c| c.name)
        })?;
        let (_, id) = same.find(|(known, _)| *known == cluster)?;
        Some(id.clone())
    }
}
