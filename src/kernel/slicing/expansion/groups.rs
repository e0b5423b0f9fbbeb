//! Calls and their results, which are selected together (POLICY-V2.md, Calls and their results).

use std::ops::ControlFlow;

use foldhash::HashSet;

use crate::graph::turn::TurnId;
use crate::slicing::expansion::Expansion;
use crate::slicing::fetched::Children;
use crate::slicing::observer::Observer;
use crate::slicing::score::Rank;
use crate::slicing::slice::SliceError;
use crate::slicing::store::GraphStore;

/// The most turns of a group. In a larger component, each turn is a group by itself.
pub(crate) const MAX_TURNS: usize = 64;

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

impl<S: GraphStore, O: Observer> Expansion<'_, '_, S, O> {
    /// The group of a candidate, which comes first: its connected component along tool links. Their neighbours are
    /// fetched.
    pub(super) fn group_of(
        &mut self,
        candidate: Rank,
    ) -> Result<Vec<TurnId>, SliceError<S::Error>> {
        let mut group = vec![candidate.id];
        let mut next = 0;
        while let Some(turn) = group.get(next).copied() {
            if self.groups.split.contains(&turn) {
                self.groups.split(&group);
                return Ok(vec![candidate.id]);
            }
            next += 1;
            self.load_neighbours(turn, candidate.distance)?;
            self.around.look_up(&[turn])?;
            for linked in self.tool_links(turn)? {
                if !group.contains(&linked) {
                    group.push(linked);
                }
                if group.len() > MAX_TURNS {
                    self.groups.split(&group);
                    return Ok(vec![candidate.id]);
                }
            }
        }
        self.around.look_up(&group)?;
        Ok(group)
    }

    /// The existing turns that a tool link connects with this one. These are its parents, if it is a result, and its
    /// children that are results. At most one child more is returned than a group may have turns.
    fn tool_links(&mut self, turn: TurnId) -> Result<Vec<TurnId>, SliceError<S::Error>> {
        let fetched = &self.around.fetched;
        let is_tool = fetched.scored(turn).is_some_and(|turn| turn.facts.is_tool);
        let parents = fetched.parents(turn).iter().filter(|_| is_tool);
        let parents = parents.filter_map(|edge| fetched.scored(edge.parent)).map(|turn| turn.id);
        let mut links: Vec<TurnId> = parents.collect();
        match fetched.children(turn) {
            Children::All(children) => {
                let results = children.iter().map(|child| child.turn);
                links.extend(results.filter(|child| child.facts.is_tool).map(|child| child.id));
            }
            // Not all are held.
            Children::Wide(_) => {
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
                links.extend(results);
            }
        }
        Ok(links)
    }
}
