//! Deterministic CBOR (RFC 8949 §4.2.1) item by item: shortest heads and numbers, definite lengths.

use ciborium_ll::{Decoder, Encoder, Header, simple};

use super::BinaryError;
use crate::interrupts::Interrupts;

/// CBOR while it is written.
pub(super) struct Writer<'a> {
    bytes: Vec<u8>,
    interrupts: Interrupts<'a>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(check_interrupts: &'a dyn Fn()) -> Self {
        Writer { bytes: Vec::new(), interrupts: Interrupts::new(check_interrupts) }
    }

    fn head(&mut self, head: Header) {
        self.interrupts.item();
        Encoder::from(&mut self.bytes).push(head).expect("a Vec takes all bytes");
    }

    fn body(&mut self, bytes: &[u8]) {
        self.interrupts.bytes(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Begins an array of so many items.
    pub(super) fn array(&mut self, items: usize) {
        self.head(Header::Array(Some(items)));
    }

    pub(super) fn unsigned(&mut self, number: u64) {
        self.head(Header::Positive(number));
    }

    pub(super) fn integer(&mut self, number: i64) {
        self.head(match u64::try_from(number) {
            Ok(number) => Header::Positive(number),
            Err(_) => Header::Negative(!number as u64),
        });
    }

    /// In the shortest of the forms that have this value.
    pub(super) fn float(&mut self, number: f32) {
        self.head(Header::Float(number.into()));
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.head(Header::Simple(if value { simple::TRUE } else { simple::FALSE }));
    }

    pub(super) fn null(&mut self) {
        self.head(Header::Simple(simple::NULL));
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.head(Header::Bytes(Some(bytes.len())));
        self.body(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.head(Header::Text(Some(text.len())));
        self.body(text.as_bytes());
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// CBOR while it is read. No item is larger than the bytes that are left, so that none is made room for before it is
/// there.
pub(super) struct Reader<'a, 'c> {
    rest: &'a [u8],
    interrupts: Interrupts<'c>,
}

/// An item that is bytes, a text or null.
pub(super) enum Item<'a> {
    Null,
    Bytes(&'a [u8]),
    Text(&'a str),
}

impl<'a, 'c> Reader<'a, 'c> {
    pub(super) fn new(cbor: &'a [u8], check_interrupts: &'c dyn Fn()) -> Self {
        Reader { rest: cbor, interrupts: Interrupts::new(check_interrupts) }
    }

    fn head(&mut self) -> Result<Header, BinaryError> {
        self.interrupts.item();
        let ended = self.rest.is_empty();
        Decoder::from(&mut self.rest).pull().map_err(|_| {
            malformed(if ended { "the CBOR ends early" } else { "a head of CBOR is not one" })
        })
    }

    fn body(&mut self, length: usize) -> Result<&'a [u8], BinaryError> {
        let (body, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| malformed("an item is longer than the CBOR"))?;
        self.interrupts.bytes(length);
        self.rest = rest;
        Ok(body)
    }

    /// The number of items of an array.
    pub(super) fn array(&mut self) -> Result<usize, BinaryError> {
        match self.head()? {
            Header::Array(Some(items)) if items <= self.rest.len() => Ok(items),
            Header::Array(Some(_)) => Err(malformed("an array is longer than the CBOR")),
            _ => Err(malformed("an array was expected")),
        }
    }

    /// An array of so many items.
    pub(super) fn array_of(&mut self, items: usize) -> Result<(), BinaryError> {
        match self.array()? {
            found if found == items => Ok(()),
            found => {
                Err(BinaryError::Malformed(format!("an array has {found} items, not {items}")))
            }
        }
    }

    /// Whether an array of so many items follows, or null.
    pub(super) fn array_or_null(&mut self, items: usize) -> Result<bool, BinaryError> {
        match self.head()? {
            Header::Simple(simple::NULL) => Ok(false),
            Header::Array(Some(found)) if found == items => Ok(true),
            _ => Err(BinaryError::Malformed(format!(
                "an array of {items} items or null was expected"
            ))),
        }
    }

    pub(super) fn unsigned(&mut self) -> Result<u64, BinaryError> {
        match self.head()? {
            Header::Positive(number) => Ok(number),
            _ => Err(malformed("a count was expected")),
        }
    }

    /// A place in a list, or how many items one has.
    pub(super) fn count(&mut self) -> Result<usize, BinaryError> {
        usize::try_from(self.unsigned()?).map_err(|_| malformed("a count is out of range"))
    }

    pub(super) fn integer(&mut self) -> Result<i64, BinaryError> {
        let number = match self.head()? {
            Header::Positive(number) => i64::try_from(number).ok(),
            Header::Negative(number) => i64::try_from(number).ok().map(|number| !number),
            _ => None,
        };
        number.ok_or_else(|| malformed("a 64-bit integer was expected"))
    }

    pub(super) fn float(&mut self) -> Result<f32, BinaryError> {
        match self.head()? {
            Header::Float(number) if f64::from(number as f32) == number && number.is_finite() => {
                Ok(number as f32)
            }
            _ => Err(malformed("a finite binary32 was expected")),
        }
    }

    pub(super) fn boolean(&mut self) -> Result<bool, BinaryError> {
        match self.head()? {
            Header::Simple(simple::TRUE) => Ok(true),
            Header::Simple(simple::FALSE) => Ok(false),
            _ => Err(malformed("true or false was expected")),
        }
    }

    pub(super) fn item(&mut self) -> Result<Item<'a>, BinaryError> {
        Ok(match self.head()? {
            Header::Simple(simple::NULL) => Item::Null,
            Header::Bytes(Some(length)) => Item::Bytes(self.body(length)?),
            Header::Text(Some(length)) => Item::Text(
                std::str::from_utf8(self.body(length)?)
                    .map_err(|_| malformed("a text is not UTF-8"))?,
            ),
            _ => return Err(malformed("bytes, a text or null was expected")),
        })
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], BinaryError> {
        match self.item()? {
            Item::Bytes(bytes) => Ok(bytes),
            _ => Err(malformed("bytes were expected")),
        }
    }

    pub(super) fn text(&mut self) -> Result<&'a str, BinaryError> {
        match self.item()? {
            Item::Text(text) => Ok(text),
            _ => Err(malformed("a text was expected")),
        }
    }

    pub(super) fn finish(self) -> Result<(), BinaryError> {
        if self.rest.is_empty() { Ok(()) } else { Err(malformed("bytes follow the CBOR")) }
    }
}

pub(super) fn malformed(what: &str) -> BinaryError {
    BinaryError::Malformed(what.to_owned())
}
