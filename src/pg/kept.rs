//! What is made of the catalog and the private tables, kept while neither has changed.

use std::cell::Cell;
use std::rc::Rc;

use super::relation::{catalog_generation, take_in_changes};

/// A value and the generation of the catalog that it was made in.
pub struct Kept<T>(Cell<Option<(u64, Rc<T>)>>);

impl<T> Kept<T> {
    /// Nothing kept.
    pub const fn new() -> Self {
        Kept(Cell::new(None))
    }

    /// What is kept, as far as this backend has heard.
    pub fn get(&self) -> Option<Rc<T>> {
        let kept = self.0.take();
        let value = kept.as_ref().filter(|(made_in, _)| *made_in == catalog_generation());
        let value = value.map(|(_, value)| Rc::clone(value));
        self.0.set(kept);
        value
    }

    /// What is kept, if it still holds after the latest news, or else what `make` makes.
    ///
    /// # Errors
    /// As `make`.
    pub fn get_or_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<Rc<T>, E> {
        take_in_changes();
        if let Some(value) = self.get() {
            return Ok(value);
        }
        // Taken first: what is made while news come is made anew.
        let generation = catalog_generation();
        let value = Rc::new(make()?);
        self.0.set(Some((generation, Rc::clone(&value))));
        Ok(value)
    }
}
