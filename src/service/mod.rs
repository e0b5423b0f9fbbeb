//! What the SQL functions do. A call that slices or searches begins with a [`reader::GraphReader`], asks the kernel,
//! and has the answer signed.

pub mod anchor;
pub mod atlas;
pub mod check;
pub mod chunks;
pub mod compare;
pub mod content;
pub mod documents;
pub mod evidence;
pub mod explain;
pub mod export;
pub mod kept;
pub mod keys;
pub mod limits;
pub mod lists;
pub mod policies;
pub mod promotion;
pub mod prompt;
pub mod provenance;
pub mod published;
pub mod reader;
pub mod recall;
pub mod references;
pub mod refusals;
pub mod search;
pub mod slices;
pub mod statistics;
pub mod summaries;
pub mod tables;
pub mod verify;
pub mod words;
