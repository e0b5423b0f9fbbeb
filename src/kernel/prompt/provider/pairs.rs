//! Which result belongs to which call.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::graph::turn::Role;
use crate::interrupts::Interrupts;
use crate::prompt::provider::PromptMessage;
use crate::prompt::provider::payload::{Block, Blocks, Call, CallId, CallResult, Quoted};
use crate::slicing::slice::Part;

/// The place of a block: that of its message, and its own in it.
pub(super) type Place = (usize, usize);

/// The calls and results that belong together.
#[derive(Default)]
pub(super) struct Pairs<'a> {
    /// The results by the places of their calls.
    pub(super) answers: HashMap<Place, CallResult<'a>>,
    /// The places of these results.
    pub(super) answering: HashSet<Place>,
    /// The places of the results of calls that are sent as a text.
    pub(super) quoted: HashSet<Place>,
    /// The places of these calls.
    used: HashSet<Place>,
    /// The places of the assistant's calls with a result in their message.
    stored: HashSet<Place>,
}

/// Pairs what the messages call and return. The edges are those of the slice between them, by their places.
///
/// A result answers a call of its id before it that has none yet: of the latest message with one the assistant's before
/// those of others, which are a text and take their results with them. Between both no turn may be missing, which might
/// have the call. The results of tools come first, as a user may store anything, and a user's answers none by its name,
/// which can be guessed, nor does a user's call take one by it. Some applications store a result with its call.
pub(super) fn pairs<'a>(
    entries: &[(&PromptMessage<'a>, Blocks<'a>)],
    edges: &[(usize, usize)],
    check_interrupts: &dyn Fn(),
) -> Pairs<'a> {
    let interrupts = Interrupts::new(check_interrupts);
    let mut pairs = Pairs::default();
    for (place, (message, blocks)) in entries.iter().enumerate() {
        if message.part != Part::Recalled {
            pairs.take_quoted(place, message.role, blocks, &interrupts);
        }
    }
    let mut parents: Vec<Vec<usize>> = vec![Vec::new(); entries.len()];
    for (parent, child) in edges {
        parents[*child].push(*parent);
    }
    let mut known: HashSet<(&CallId<'a>, &str)> = HashSet::new();
    // A blank one that stands with its call gives way to any other; a name that stands for an id, to ids.
    let passes: [(Role, &[bool], bool); 6] = [
        (Role::Tool, &[false, true], false),
        (Role::Assistant, &[false], false),
        (Role::Assistant, &[true], false),
        (Role::User, &[false, true], false),
        (Role::Tool, &[false, true], true),
        (Role::Assistant, &[false, true], true),
    ];
    for (role, blank, by_name) in passes {
        // The calls by their ids: of each message one after the other.
        let mut open: HashMap<Key<'_, 'a>, Vec<Unanswered<'_>>> = HashMap::new();
        for (place, (message, blocks)) in entries.iter().enumerate() {
            if message.part == Part::Recalled {
                continue;
            }
            let mut line = Line::to(place);
            for (number, block) in blocks.iter().enumerate() {
                interrupts.item();
                let at = (place, number);
                if let Some(call) = call_of(block, message.role)
                    && let Some(key) = Key::of_call(block, call.id, by_name)
                    && (message.role != Role::User || key.is_id())
                    && !pairs.answers.contains_key(&at)
                    && !pairs.used.contains(&at)
                {
                    let is_stored = role == Role::Tool && pairs.stored.contains(&at);
                    Unanswered::add(open.entry(key).or_default(), at, call.by, is_stored);
                }
                let Block::Result(result) = block else { continue };
                if message.role != role
                    || !blank.contains(&result.is_blank)
                    || pairs.quoted.contains(&at)
                    || pairs.answering.contains(&at)
                {
                    continue;
                }
                let Some(id) = &result.call else { continue };
                let Some(key) = Key::of_result(id, by_name) else { continue };
                let is_guessed = role == Role::User && matches!(id, CallId::Name(_));
                let found = open.get_mut(&key).filter(|_| !is_guessed).and_then(|calls| {
                    let reached = calls.iter().rposition(|calls| {
                        interrupts.item();
                        line.has(calls.place, &parents, entries, &interrupts)
                    })?;
                    let found = calls[reached].take(result.by);
                    if calls[reached].is_empty() {
                        calls.remove(reached);
                    }
                    found
                });
                let told = (id, result.text.trim());
                match found {
                    Some((call, false)) => {
                        pairs.answers.insert(call, result.clone());
                        pairs.answering.insert(at);
                        known.insert(told);
                    }
                    Some((call, true)) => {
                        pairs.used.insert(call);
                        pairs.quoted.insert(at);
                    }
                    // It stands with its call, and again in a turn of the tool's.
                    None if role == Role::Assistant && known.contains(&told) => {
                        pairs.answering.insert(at);
                    }
                    None => {}
                }
            }
        }
    }
    pairs
}

/// What a call and its result have in common.
#[derive(PartialEq, Eq, Hash)]
enum Key<'b, 'a> {
    Own(&'b CallId<'a>),
    /// The name of a call that has an id, where the result says the name alone, as Ollama's does.
    Name(&'b str),
}

impl<'b, 'a> Key<'b, 'a> {
    fn of_call(block: &'b Block<'a>, id: &'b CallId<'a>, by_name: bool) -> Option<Self> {
        match (block, id) {
            _ if !by_name => Some(Key::Own(id)),
            (Block::Call(call), CallId::Id(_)) => Some(Key::Name(&call.name)),
            _ => None,
        }
    }

    /// Whether it is not a name, which can be guessed.
    fn is_id(&self) -> bool {
        matches!(self, Key::Own(CallId::Id(_) | CallId::Stored(_)))
    }

    fn of_result(id: &'b CallId<'a>, by_name: bool) -> Option<Self> {
        match id {
            _ if !by_name => Some(Key::Own(id)),
            CallId::Name(name) => Some(Key::Name(name)),
            _ => None,
        }
    }
}

/// A call by its id, with its speaker where it is sent as a text.
struct Called<'b, 'a> {
    id: &'b CallId<'a>,
    by: Option<&'b str>,
}

/// The call that a block is or has become. What others than the assistant store is a text.
fn call_of<'b, 'a>(block: &'b Block<'a>, role: Role) -> Option<Called<'b, 'a>> {
    let (id, by) = match block {
        Block::Call(Call { id, .. }) => {
            (id.as_ref()?, (role != Role::Assistant).then_some(role.name()))
        }
        Block::Marked(_, Some(Quoted { id, by }))
        | Block::Result(CallResult { quoted: Some(Quoted { id, by }), .. }) => (id, Some(*by)),
        _ => return None,
    };
    Some(Called { id, by })
}

impl Pairs<'_> {
    /// Finds the results that stand in one message with the call of another: each is of its speaker's, else of those
    /// who have called last, the first.
    fn take_quoted(
        &mut self,
        message: usize,
        role: Role,
        blocks: &Blocks<'_>,
        interrupts: &Interrupts<'_>,
    ) {
        let mut runs: Vec<(Option<&str>, VecDeque<usize>)> = Vec::new();
        let mut of_id: HashMap<&CallId<'_>, Vec<usize>> = HashMap::new();
        let mut of_speaker: HashMap<(&CallId<'_>, &str), Vec<usize>> = HashMap::new();
        for (number, block) in blocks.iter().enumerate() {
            interrupts.item();
            if let Some(Called { id, by }) = call_of(block, role) {
                let of_id = of_id.entry(id).or_default();
                match of_id.last().copied() {
                    Some(run) if runs[run].0 == by => runs[run].1.push_back(number),
                    _ => {
                        of_id.push(runs.len());
                        let speaker = (id, by.unwrap_or(role.name()));
                        of_speaker.entry(speaker).or_default().push(runs.len());
                        runs.push((by, VecDeque::from([number])));
                    }
                }
            }
            let Block::Result(CallResult { call: Some(id), by, .. }) = block else { continue };
            let speaker = (id, by.unwrap_or(role.name()));
            let found = take_last(of_speaker.get_mut(&speaker), &mut runs);
            match found.or_else(|| take_last(of_id.get_mut(id), &mut runs)) {
                Some((Some(_), call)) => {
                    self.used.insert((message, call));
                    self.quoted.insert((message, number));
                }
                Some((None, call)) => {
                    self.stored.insert((message, call));
                }
                None => {}
            }
        }
    }
}

/// Takes the first call of the last of these runs that has one.
fn take_last<'b>(
    of: Option<&mut Vec<usize>>,
    runs: &mut [(Option<&'b str>, VecDeque<usize>)],
) -> Option<(Option<&'b str>, usize)> {
    let of = of?;
    while let Some(run) = of.last().copied() {
        let (by, calls) = &mut runs[run];
        if let Some(call) = calls.pop_front() {
            return Some((*by, call));
        }
        of.pop();
    }
    None
}

/// The calls of a message with one id that have no result yet.
struct Unanswered<'b> {
    place: usize,
    own: VecDeque<usize>,
    /// Those of the assistant's with a result in their message, which come after those without.
    stored: VecDeque<usize>,
    quoted: VecDeque<usize>,
    of_speaker: HashMap<&'b str, VecDeque<usize>>,
    taken: HashSet<usize>,
    /// How many of `quoted` are not taken.
    quoted_left: usize,
}

impl<'b> Unanswered<'b> {
    fn add(calls: &mut Vec<Self>, (place, number): Place, by: Option<&'b str>, is_stored: bool) {
        if calls.last().is_none_or(|last| last.place != place) {
            calls.push(Unanswered {
                place,
                own: VecDeque::new(),
                stored: VecDeque::new(),
                quoted: VecDeque::new(),
                of_speaker: HashMap::new(),
                taken: HashSet::new(),
                quoted_left: 0,
            });
        }
        let Some(last) = calls.last_mut() else { return };
        match by {
            None if is_stored => last.stored.push_back(number),
            None => last.own.push_back(number),
            Some(by) => {
                last.quoted.push_back(number);
                last.quoted_left += 1;
                last.of_speaker.entry(by).or_default().push_back(number);
            }
        }
    }

    /// The call that a result of this speaker's answers, and whether it is another's.
    fn take(&mut self, by: Option<&str>) -> Option<(Place, bool)> {
        let taken = &self.taken;
        let first = |calls: &mut VecDeque<usize>| {
            while calls.front().is_some_and(|number| taken.contains(number)) {
                calls.pop_front();
            }
            calls.pop_front()
        };
        let of_speaker = by.and_then(|by| first(self.of_speaker.get_mut(by)?));
        if of_speaker.is_none()
            && let Some(own) = self.own.pop_front().or_else(|| self.stored.pop_front())
        {
            return Some(((self.place, own), false));
        }
        let quoted = of_speaker.or_else(|| first(&mut self.quoted))?;
        self.taken.insert(quoted);
        self.quoted_left -= 1;
        Some(((self.place, quoted), true))
    }

    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.stored.is_empty() && self.quoted_left == 0
    }
}

/// The messages from which a line of edges leads to one, as far as it was followed.
struct Line {
    reached: HashSet<usize>,
    /// Those before this place are not looked at yet.
    next: usize,
}

impl Line {
    fn to(place: usize) -> Self {
        Line { reached: HashSet::from([place]), next: place }
    }

    fn has(
        &mut self,
        place: usize,
        parents: &[Vec<usize>],
        entries: &[(&PromptMessage<'_>, Blocks<'_>)],
        interrupts: &Interrupts<'_>,
    ) -> bool {
        while self.next > place {
            interrupts.item();
            if self.reached.contains(&self.next) {
                let parents = parents[self.next].iter().copied();
                self.reached
                    .extend(parents.filter(|parent| entries[*parent].0.part != Part::Recalled));
            }
            self.next -= 1;
        }
        self.reached.contains(&place)
    }
}
