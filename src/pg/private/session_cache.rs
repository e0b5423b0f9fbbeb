//! Values that a backend derives from the catalog and the private tables, cached until one of those changes.

use std::cell::Cell;
use std::rc::Rc;

use crate::pg::catalog::relation::{accept_invalidations, catalog_generation};
use crate::pg::private::private_table;

/// A cached value, and the generation of the catalog that it was computed in.
pub struct SessionCache<T>(Cell<Option<(u64, Rc<T>)>>);

impl<T> SessionCache<T> {
    /// An empty cache.
    pub const fn new() -> Self {
        SessionCache(Cell::new(None))
    }

    /// The cached value, unless an invalidation arrived since.
    pub fn get(&self) -> Option<Rc<T>> {
        accept_invalidations();
        let cached = self.0.take().filter(|(computed_in, _)| *computed_in == catalog_generation());
        let value = cached.as_ref().map(|(_, value)| Rc::clone(value));
        self.0.set(cached);
        value.filter(|_| !private_table::may_be_changing())
    }

    /// The cached value, or else what `compute` returns.
    ///
    /// # Errors
    /// As `compute`.
    pub fn get_or_compute<E>(&self, compute: impl FnOnce() -> Result<T, E>) -> Result<Rc<T>, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        // Read first: a value that is computed while an invalidation arrives must not be cached as valid.
        let generation = catalog_generation();
        let value = Rc::new(compute()?);
        // Own rows that are not announced yet are rolled back without an announcement if the statement fails.
        if !private_table::may_be_changing() {
            self.0.set(Some((generation, Rc::clone(&value))));
        }
        Ok(value)
    }
}
