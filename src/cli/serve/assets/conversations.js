// Sessions, the search over them, and the turns of one as a thread.

import { ask } from './server.js';
import { arrows, byId, count, h, lanes, later, notice, number, roleOf, short, stored, time } from './elements.js';

let sessions = null;
let found = null;

/** The turns and edges of the session that is shown. */
export const thread = { session: null, turns: [], byId: new Map(), parents: new Map(), parent: new Map() };

export async function loadSessions() {
  sessions = await ask('/page/sessions');
  return sessions;
}

/** What a session is called: the beginning of its first text, else its id. */
export function nameOf(session) {
  const known = (sessions ?? []).find((one) => one.session_id === (session ?? ''));
  return known?.title || session || 'no session';
}

/** A turn that the search has found. */
export const foundTurn = (id) => found?.found.find((turn) => turn.id === id);

export async function loadThread(session) {
  const answer = await ask('/page/thread', { session });
  thread.session = session;
  thread.turns = answer.turns;
  thread.hasMore = answer.has_more;
  thread.byId = new Map(answer.turns.map((turn) => [turn.id, turn]));
  thread.parents = new Map();
  thread.parent = new Map();
  const places = new Map(answer.turns.map((turn, place) => [turn.id, place]));
  const place = (id) => places.get(id) ?? -1;
  for (const edge of answer.edges) {
    if (!thread.parents.has(edge.child)) thread.parents.set(edge.child, []);
    thread.parents.get(edge.child).push(edge);
    if (edge.edge_type?.toLowerCase() === 'reference') continue;
    const latest = thread.parent.get(edge.child);
    if (latest === undefined || place(edge.parent) > place(latest)) thread.parent.set(edge.child, edge.parent);
  }
}

/** The parent of a turn in the conversation: of several the latest that no reference names. */
export const parentOf = (id) => thread.parent.get(id);

/** The turn at which the model was asked before: the parent of the latest answer on the way to the anchor. */
export function stepBefore(anchor) {
  const seen = new Set();
  for (let at = anchor; at && !seen.has(at); at = parentOf(at)) {
    seen.add(at);
    if (roleOf(thread.byId.get(at)?.role) === 'assistant') return parentOf(at) ?? null;
  }
  return null;
}

/** The turns on the way from the anchor to the beginning. */
function lineTo(anchor) {
  const line = new Set();
  for (let at = anchor; at && !line.has(at); at = parentOf(at)) line.add(at);
  return line;
}

/** Draws what the left side shows. `page` opens sessions and chooses anchors. */
export function draw(state, shown, page) {
  const place = byId('conversations');
  const old = place.querySelector('.scroll');
  // What is shown: of the same list, at the same anchor, the place stays. A list that was hidden had none.
  const what = JSON.stringify([found?.words ?? null, state.session]);
  const kept = old?.clientHeight && place.dataset.what === what ? old.scrollTop : null;
  const query = place.querySelector('input')?.value ?? '';
  const hadFocus = document.activeElement === place.querySelector('input');
  place.dataset.what = what;
  place.replaceChildren(searchBox(query, state, shown, page));
  if (hadFocus) place.querySelector('input').focus();
  if (found) place.append(resultsOf(state, shown, page));
  else if (state.session === null) place.append(listOf(page));
  else place.append(...threadOf(state, shown, page));
  const scroll = place.querySelector('.scroll');
  if (kept !== null && scroll) scroll.scrollTop = kept;
  if (scroll && state.session !== null && !found && (kept === null || place.dataset.anchor !== state.anchor)) {
    scroll.querySelector('[aria-current]')?.scrollIntoView({ block: kept === null ? 'center' : 'nearest' });
  }
  place.dataset.anchor = state.anchor;
}

function searchBox(query, state, shown, page) {
  const search = later(250, async (words) => {
    try {
      found = words.trim() ? { words, ...(await ask('/page/search', { query: words.trim() })) } : null;
      notice(null);
    } catch (error) {
      found = null;
      notice(error);
    }
    page.redraw();
  });
  return h(
    'div',
    { class: 'search', role: 'search' },
    h('input', {
      type: 'search',
      value: query,
      placeholder: 'Search all turns by words',
      'aria-label': 'Search all turns by words',
      oninput: (event) => search(event.target.value),
    }),
  );
}

function resultsOf(state, shown, page) {
  const how = found.by === 'words' ? 'the best first' : 'with exactly this text, the latest first';
  const list = h(
    'ul',
    { class: 'list scroll', 'aria-label': 'Turns that were found' },
    found.found.map((turn, place) =>
      h(
        'li',
        {},
        h(
          'button',
          {
            type: 'button',
            class: 'row',
            tabindex: place === 0 ? 0 : -1,
            'data-turn': turn.id,
            onclick: () => {
              found = null;
              clearSearch();
              page.open(turn.session_id, turn.id);
            },
          },
          h(
            'span',
            { class: 'meta' },
            h('b', { class: `role ${roleOf(turn.role)}` }, turn.role ?? 'user'),
            ` ${time(turn.at)}`,
            markOf(turn.id, state, shown),
          ),
          h('span', { class: 'text' }, marked(short(turn.text, 240), found.words)),
          h('span', { class: 'meta' }, 'of “', stored(short(nameOf(turn.session_id), 40)), '”'),
        ),
        shown && why(turn, state, shown, page),
      ),
    ),
  );
  arrows(list, '.row');
  const click = `A click opens its session, and it is the anchor.${shown ? ' “Why?” keeps the anchor.' : ''}`;
  return h(
    'div',
    { class: 'fill' },
    h('p', { class: 'hint' }, `${count(found.found.length, 'turn')}, ${how}. ${found.found.length ? click : ''}`),
    list,
  );
}

/** Whether a turn is in the prompt, in words. */
function markOf(id, state, shown) {
  if (!shown) return null;
  const message = shown.byTurn.get(id);
  const isAnchor = id === state.anchor;
  return h(
    'span',
    { class: `mark ${isAnchor ? 'isanchor' : message ? 'isin' : 'isout'}` },
    isAnchor ? 'anchor' : message ? `in, ${message.n}` : 'not in',
  );
}

/** The button that asks why a turn is in the prompt or not. */
function why(turn, state, shown, page) {
  const isOut = shown && !shown.byTurn.has(turn.id);
  return h(
    'button',
    {
      type: 'button',
      class: 'ask',
      tabindex: -1,
      'data-turn': turn.id,
      'aria-pressed': turn.id === state.turn ? 'true' : 'false',
      'aria-label': `${isOut ? 'Why is this turn not in' : 'Why is this turn in'}: ${short(turn.text, 40)}`,
      onclick: () => page.turn(turn.id),
    },
    isOut ? 'Why not?' : 'Why?',
  );
}

function clearSearch() {
  const input = byId('conversations').querySelector('input');
  if (input) input.value = '';
}

/** The text with the words that were sought marked. */
function marked(text, words) {
  const stems = words
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word.length > 2)
    .map((word) => word.slice(0, 6));
  if (stems.length === 0) return [text];
  return text
    .split(/([\p{L}\p{N}]+)/u)
    .map((part) => (stems.some((stem) => part.toLowerCase().startsWith(stem)) ? h('mark', {}, part) : part));
}

function listOf(page) {
  const list = h(
    'ul',
    { class: 'list scroll', 'aria-label': 'Sessions, the latest first' },
    sessions.map((session, place) =>
      h(
        'li',
        {},
        h(
          'button',
          {
            type: 'button',
            class: 'row',
            tabindex: place === 0 ? 0 : -1,
            onclick: () => page.open(session.session_id, session.latest),
          },
          h('span', { class: 'text title' }, short(session.title, 110) || 'no text'),
          h('span', { class: 'meta' }, `${count(session.count, 'turn')} · ${time(session.at)}`),
          h('span', { class: 'id' }, session.session_id || 'no session'),
        ),
      ),
    ),
  );
  arrows(list, 'button');
  return h(
    'div',
    { class: 'fill' },
    h('h2', {}, count(sessions.length, 'session')),
    sessions.length > 1 && h('p', { class: 'hint' }, 'Keys: ↑ ↓ move, Enter opens.'),
    sessions.length ? list : h('p', { class: 'hint' }, 'This graph has no turns that this role can read.'),
  );
}

function threadOf(state, shown, page) {
  const parents = (id) => (thread.parents.get(id) ?? []).map((edge) => edge.parent);
  const line = lineTo(state.anchor);
  const lane = lanes(
    thread.turns.map((turn) => turn.id),
    parents,
    line,
  );
  const list = h(
    'ol',
    { class: 'list thread scroll', 'aria-label': 'Turns; one that is clicked is the anchor' },
    thread.turns.map((turn) => {
      const isAnchor = turn.id === state.anchor;
      const message = shown?.byTurn.get(turn.id);
      const isOut = shown && !message;
      return h(
        'li',
        { class: `lane${lane.get(turn.id)}${isOut ? ' out' : ''}${line.has(turn.id) ? ' onpath' : ''}` },
        h(
          'button',
          {
            type: 'button',
            class: 'row',
            tabindex: isAnchor ? 0 : -1,
            'aria-current': isAnchor ? 'true' : null,
            'data-turn': turn.id,
            onclick: () => page.anchor(turn.id),
          },
          h(
            'span',
            { class: 'meta' },
            h('b', { class: `role ${roleOf(turn.role)}` }, turn.role ?? 'user'),
            ` ${time(turn.at)}`,
            markOf(turn.id, state, shown),
          ),
          h('span', { class: 'text' }, short(turn.text, 130) || 'no text'),
        ),
        why(turn, state, shown, page),
      );
    }),
  );
  arrows(list, '.row');
  if (!list.querySelector('.row[tabindex="0"]')) list.querySelector('.row')?.setAttribute('tabindex', '0');
  const branches = [...lane.values()].filter((place) => place > 0).length;
  return [
    h(
      'div',
      { class: 'heading' },
      h('button', { type: 'button', class: 'plain back', onclick: () => page.close() }, '← Sessions'),
      h(
        'p',
        { class: 'hint' },
        `${thread.hasMore ? 'the latest ' : ''}${count(thread.turns.length, 'turn')}, ` +
          `${number(branches)} beside the line that leads to the anchor. The anchor is the turn at which the model is ` +
          'asked: click one to move it. Keys: ↑ ↓, → for “Why?”.',
      ),
    ),
    list,
  ];
}
