//! What is made of the catalog and of the private tables that announce changes, kept while none has changed.

use std::cell::Cell;
use std::rc::Rc;

use crate::pg::private::private_table;
use crate::pg::tables::relation::{catalog_generation, take_in_changes};

/// A value and the generation of the catalog that it was made in.
pub struct SessionCache<T>(Cell<Option<(u64, Rc<T>)>>);

impl<T> SessionCache<T> {
    /// Nothing kept.
    pub const fn new() -> Self {
        SessionCache(Cell::new(None))
    }

    /// What is kept, if it still holds after the latest news.
    pub fn get(&self) -> Option<Rc<T>> {
        take_in_changes();
        let kept = self.0.take().filter(|(made_in, _)| *made_in == catalog_generation());
        let value = kept.as_ref().map(|(_, value)| Rc::clone(value));
        self.0.set(kept);
        value.filter(|_| !private_table::may_be_changing())
    }

    /// What is kept, or else what `make` makes.
    ///
    /// # Errors
    /// As `make`.
    pub fn get_or_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<Rc<T>, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        // Taken first: what is made while news come is made anew.
        let generation = catalog_generation();
        let value = Rc::new(make()?);
        // A statement that fails takes its rows back and announces nothing.
        if !private_table::may_be_changing() {
            self.0.set(Some((generation, Rc::clone(&value))));
        }
        Ok(value)
    }
}
