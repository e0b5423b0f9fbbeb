//! Calls and their results, which are selected together (POLICY-V2.md, Calls and their results).

use std::ops::ControlFlow;

use foldhash::HashSet;

use crate::graph::turn::TurnId;
use crate::slicing::expansion::Expansion;
use crate::slicing::fetched::Children;
use crate::slicing::observer::Observer;
use crate::slicing::slice::SliceError;
use crate::slicing::store::GraphStore;

/// The most turns of a group. In a larger component, each turn is a group by itself.
pub(crate) const MAX_TURNS: usize = 64;

/// How many steps along tool links are read ahead, for many turns together. Chains of results are short.
const STEPS_AHEAD: usize = 3;

/// What is known of groups.
#[derive(Default)]
pub(crate) struct Groups {
    /// Turns of components that are not groups.
    split: HashSet<TurnId>,
}

impl Groups {
    /// From here on, each of these turns is a group by itself.
    pub(crate) fn split(&mut self, group: &[TurnId]) {
        self.split.extend(group);
    }
}

/// What is read of the turns of a group.
#[derive(Clone, Copy)]
pub(super) enum Reading {
    /// What expanding them at this distance needs.
    Neighbours {
        /// Hops from the anchor.
        distance: u32,
    },
    /// Their links.
    Links,
}

impl<S: GraphStore, O: Observer> Expansion<'_, '_, S, O> {
    /// The group of a turn, which comes first: its connected component along tool links. Their neighbours or links are
    /// fetched.
    pub(super) fn group_of(
        &mut self,
        id: TurnId,
        reading: Reading,
    ) -> Result<Vec<TurnId>, SliceError<S::Error>> {
        let mut group = vec![id];
        let mut next = usize::from(!self.policy.keeps_tool_results());
        while let Some(turn) = group.get(next).copied() {
            if self.groups.split.contains(&turn) {
                self.groups.split(&group);
                return Ok(vec![id]);
            }
            match reading {
                Reading::Neighbours { distance } => self.load_neighbours(turn, distance)?,
                Reading::Links => self.around.load_links(group[next..].iter().copied())?,
            }
            next += 1;
            self.around.look_up(&[turn])?;
            for linked in self.tool_links(turn)? {
                if !group.contains(&linked) {
                    group.push(linked);
                }
                if group.len() > MAX_TURNS {
                    self.groups.split(&group);
                    return Ok(vec![id]);
                }
            }
        }
        self.around.look_up(&group)?;
        Ok(group)
    }

    /// Fetches the links of these turns and, in few batches for all, of those that tool links connect with them.
    pub(super) fn load_groups(&mut self, of: &[TurnId]) -> Result<(), SliceError<S::Error>> {
        let mut next: Vec<TurnId> = of.to_vec();
        for _ in 0..STEPS_AHEAD {
            next.retain(|id| !self.around.fetched.has_links(*id));
            if next.is_empty() || next.len() > 4 * (of.len() + MAX_TURNS) {
                break;
            }
            self.around.load_links(next.iter().copied())?;
            let fetched = &self.around.fetched;
            let is_tool = |id| fetched.scored(id).is_some_and(|turn| turn.facts.is_tool);
            let mut linked: Vec<TurnId> = Vec::new();
            for turn in &next {
                let Some(links) = fetched.links(*turn) else { continue };
                let parents = links.parents.iter().flatten().filter(|_| is_tool(*turn));
                linked.extend(parents.map(|(id, _)| *id));
                let children = links.children.iter().flatten().map(|(id, _)| *id);
                linked.extend(children.filter(|id| is_tool(*id)));
            }
            next = linked;
        }
        Ok(())
    }

    /// The existing turns that a tool link connects with this one. These are its parents, if it is a result, and its
    /// children that are results. At most one child more is returned than a group may have turns.
    fn tool_links(&mut self, turn: TurnId) -> Result<Vec<TurnId>, SliceError<S::Error>> {
        let mut linked: Vec<TurnId> = Vec::new();
        if self.around.fetched.scored(turn).is_some_and(|turn| turn.facts.is_tool) {
            self.around.load_parents(&[turn])?;
            let parents = self.around.fetched.parents(turn).iter().map(|edge| edge.parent);
            linked.extend(parents);
            self.around.look_up(&linked)?;
            linked.retain(|parent| self.around.fetched.scored(*parent).is_some());
        }
        let fetched = &self.around.fetched;
        let is_tool = |id| fetched.scored(id).is_some_and(|turn| turn.facts.is_tool);
        match (fetched.fetched_children(turn), fetched.links(turn)) {
            (Some(Children::All(children)), _) => {
                let results = children.iter().map(|child| child.turn);
                linked.extend(results.filter(|child| child.facts.is_tool).map(|child| child.id));
            }
            (None, Some(links)) if links.children.is_some() => {
                let children = links.children.iter().flatten().map(|(child, _)| *child);
                linked.extend(children.filter(|child| is_tool(*child)));
            }
            // Not all are held.
            _ => {
                let mut results: HashSet<TurnId> = HashSet::default();
                self.around
                    .store
                    .children(&[turn], &mut |(_, child, _)| {
                        if child.facts.is_tool {
                            results.insert(child.id);
                        }
                        if results.len() <= MAX_TURNS {
                            ControlFlow::Continue(())
                        } else {
                            ControlFlow::Break(())
                        }
                    })
                    .map_err(SliceError::Store)?;
                linked.extend(results);
            }
        }
        Ok(linked)
    }
}
