//! Where a turn stands when it is scored.

/// Where a turn stands in an expansion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Hops from the anchor.
    pub distance: u32,
    /// What the edges on the way to it leave of the anchor's strength, 0 … 1.
    pub strength: f32,
    /// When the anchor was created. Unix seconds.
    pub anchor_time: i64,
}

impl Position {
    /// That of a turn of full strength, as old as the anchor.
    #[must_use]
    pub fn at(distance: u32) -> Self {
        Position { distance, strength: 1.0, anchor_time: 0 }
    }
}
