//! The columns of `memory_turns`, as `graph_kernel.create_tables` makes it, but its id.

/// What a column holds.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ColumnKind {
    Text,
    Integer,
    Real,
    Timestamp,
    /// An object of JSON.
    Json,
}

/// A column.
pub(super) struct Column {
    /// The key that it has in a binding.
    pub(super) key: &'static str,
    /// Its name in the created table, and in rows of JSON.
    pub(super) name: &'static str,
    pub(super) kind: ColumnKind,
}

const fn column(key: &'static str, name: &'static str, kind: ColumnKind) -> Column {
    Column { key, name, kind }
}

pub(super) const COLUMNS: [Column; 16] = [
    column("session_id", "session_id", ColumnKind::Text),
    column("role", "role", ColumnKind::Text),
    column("phase", "trajectory_phase", ColumnKind::Text),
    column("salience", "salience_score", ColumnKind::Real),
    column("trajectory_depth", "trajectory_depth", ColumnKind::Integer),
    column("trajectory_sibling_order", "trajectory_sibling_order", ColumnKind::Integer),
    column("trajectory_homogeneity", "trajectory_homogeneity", ColumnKind::Real),
    column("trajectory_temporal", "trajectory_temporal", ColumnKind::Real),
    column("trajectory_complexity", "trajectory_complexity", ColumnKind::Real),
    column("created_at", "created_at", ColumnKind::Timestamp),
    column("content_text", "content_text", ColumnKind::Text),
    column("content_hash", "content_hash", ColumnKind::Text),
    column("token_count", "token_count", ColumnKind::Integer),
    column("payload", "payload", ColumnKind::Json),
    column("owner", "owner", ColumnKind::Text),
    column("valid_until", "valid_until", ColumnKind::Timestamp),
];

/// Where the column of this name is among [`COLUMNS`].
pub(super) fn position(name: &str) -> usize {
    COLUMNS.iter().position(|column| column.name == name).expect("it is one of the columns")
}
