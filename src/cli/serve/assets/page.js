// The state of the page, which stands in its address, and what happens when it changes.

import { ask, setToken, takeToken } from './server.js';
import { byId, count, h, isolated, notice, number, placeOfFocus, refocus, say } from './elements.js';
import * as conversations from './conversations.js';
import * as documents from './documents.js';
import * as picture from './picture.js';
import * as policy from './policy.js';
import * as prompt from './prompt.js';

const MAX_LEFT_OUT = 24;
const MAX_SEEDS_LEFT_OUT = 6;

let about = null;
/** What is shown at the anchor: messages, explanation, edges, and the messages of the step before. */
let shown = null;
let state = read();
let running = null;
/** Where the focus was when an answer was opened, to go back there. */
let opener = null;
/** What was changed of each policy that was shown, for coming back to it. */
const changed = new Map();

function parsed(text, otherwise) {
  try {
    return JSON.parse(text) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function read() {
  const given = new URLSearchParams(location.search);
  const chosen = parsed(given.get('policy'), null);
  return {
    view: ['context', 'compare', 'check'].includes(given.get('view')) ? given.get('view') : 'context',
    tab: given.get('tab') ?? (given.has('anchor') ? 'prompt' : 'conversations'),
    session: given.get('session'),
    anchor: given.get('anchor'),
    turn: given.get('turn'),
    query: given.get('query') ?? '',
    policy: chosen && typeof chosen.base === 'string' ? chosen : { base: 'chat' },
    with: given.get('with') ?? 'before',
    kept: parsed(given.get('kept'), null),
    hideOut: given.has('hide'),
  };
}

function write(isNew) {
  const given = new URLSearchParams();
  const isPlain = state.policy.base === 'chat' && Object.keys(state.policy).length === 1;
  for (const [name, value] of [
    ['view', state.view === 'context' ? null : state.view],
    ['session', state.session],
    ['anchor', state.anchor],
    ['turn', state.turn],
    ['policy', isPlain ? null : JSON.stringify(state.policy)],
    ['query', state.query || null],
    ['with', state.view === 'compare' ? state.with : null],
    ['kept', state.kept ? JSON.stringify(state.kept) : null],
    ['hide', state.hideOut ? '' : null],
    ['tab', state.tab],
  ]) {
    if (value !== null && value !== undefined) given.set(name, value);
  }
  const address = `${location.pathname}?${given}`;
  if (address === location.pathname + location.search) return;
  if (isNew) history.pushState(null, '', address);
  else history.replaceState(null, '', address);
}

/** What the parts of the page call. */
const page = {
  known: (id) => shown?.texts.get(id) ?? conversations.thread.byId.get(id) ?? conversations.foundTurn(id),
  policy: () => policy.policyOf(state, about),
  asked: () => ({ anchor: state.anchor, policy: page.policy(), ...(state.query ? { query: state.query } : {}) }),
  before: () => conversations.stepBefore(state.anchor),
  redraw: () => conversations.draw(state, shown, page),
  async open(session, anchor) {
    await go({ session, anchor, turn: null, view: 'context', tab: 'prompt' });
    byId('conversations').querySelector('[aria-current]')?.focus({ preventScroll: true });
  },
  anchor: (anchor) => go({ anchor, turn: null, tab: 'prompt' }),
  close: () => go({ session: null, anchor: null, turn: null, tab: 'conversations' }),
  /** Says why a turn is in the prompt or not; chosen again, or null, it takes the answer away. */
  async turn(turn) {
    const next = turn === state.turn ? null : turn;
    const from = placeOfFocus();
    if (next && from?.part?.id !== 'why') opener = from;
    await go({ turn: next }, false);
    if (next) byId('why-title')?.focus();
    else if (!refocus(opener)) byId('main').focus();
  },
  /** Changes keys of the policy. */
  set: (changes) => go({ policy: { ...state.policy, ...changes } }, false),
  pin(id) {
    const pins = shown?.policy.pins ?? [];
    const next = pins.includes(id) ? pins.filter((pin) => pin !== id) : [...pins, id];
    if (next.length) return page.set({ pins: next });
    const { pins: _, ...rest } = state.policy;
    return go({ policy: rest }, false);
  },
  change: (changes) => go(changes, false),
  /** Chooses a policy, with what was changed of it when it was last shown. */
  choose(base) {
    if (shown && shown.place === place()) changed.set(state.policy.base, state.policy);
    return go({ policy: changed.get(base) ?? { base } }, false);
  },
  async registered(name) {
    about = await ask('/page/about');
    await go({ policy: { base: name } }, false);
  },
};

async function go(changes, isNew = true) {
  state = { ...state, ...changes };
  write(isNew);
  await render();
}

const place = () => JSON.stringify([state.session, state.anchor, state.policy, state.query]);

/** Brings everything to what the state says. */
async function render() {
  drawFrame();
  if (state.session === null && !state.anchor) {
    running?.abort();
    shown = null;
    delete document.body.dataset.stale;
  } else if (!shown || shown.place !== place()) {
    const isDone = await load();
    if (!isDone) return;
  }
  try {
    drawAll();
  } catch (error) {
    notice({ message: `The page cannot draw this: ${error.message}` });
  }
}

async function load() {
  running?.abort();
  const mine = new AbortController();
  running = mine;
  document.body.setAttribute('aria-busy', 'true');
  const wanted = place();
  try {
    if (state.session !== null && conversations.thread.session !== state.session)
      await conversations.loadThread(state.session);
    if (mine.signal.aborted) return false;
    if (!state.anchor) {
      shown = null;
      return true;
    }
    const before = page.before();
    const [now, was] = await Promise.all([
      ask('/page/context', page.asked(), mine.signal),
      before
        ? ask('/page/context', { ...page.asked(), anchor: before }, mine.signal).catch((error) => {
            if (error.name === 'AbortError') throw error;
            return null;
          })
        : null,
    ]);
    const explained = new Map(now.turns.map((turn) => [turn.turn_id, turn]));
    const out = now.turns.filter((turn) => turn.outcome !== 'selected');
    const seeds = out.filter((turn) => turn.via === 'seed').slice(0, MAX_SEEDS_LEFT_OUT);
    const leftOut = [...out.filter((turn) => turn.via !== 'seed').slice(0, MAX_LEFT_OUT), ...seeds];
    const ids = leftOut.map((turn) => turn.turn_id);
    const texts = new Map(
      (ids.length ? await ask('/page/turns', { ids }, mine.signal) : []).map((turn) => [turn.id, turn]),
    );
    if (mine.signal.aborted) return false;
    shown = {
      ...now,
      place: wanted,
      anchor: state.anchor,
      explained,
      texts,
      before: was?.messages ?? null,
      byTurn: new Map(now.messages.map((message) => [message.turn_id, message])),
      leftOut: leftOut.map((turn) => ({ ...turn, ...texts.get(turn.turn_id) })),
    };
    delete document.body.dataset.stale;
    notice(null);
    say(`${count(now.messages.length, 'message')}, ${number(now.messages.at(-1)?.cumulative_tokens ?? 0)} tokens`);
    return true;
  } catch (error) {
    if (error.name === 'AbortError' || mine.signal.aborted) return false;
    if (error.status === 401) askForToken();
    else notice(error);
    if (!shown || shown.anchor !== state.anchor) shown = null;
    document.body.dataset.stale = 'true';
    drawAll();
    return false;
  } finally {
    if (running === mine) {
      document.body.setAttribute('aria-busy', 'false');
      running = null;
    }
  }
}

function drawFrame() {
  document.body.dataset.tab = state.view === 'context' ? state.tab : 'none';
  document.body.dataset.view = state.view;
  for (const button of document.querySelectorAll('[data-view]')) {
    if (button.tagName !== 'BUTTON') continue;
    const isCurrent = button.dataset.view === state.view;
    if (isCurrent) button.setAttribute('aria-current', 'page');
    else button.removeAttribute('aria-current');
  }
  for (const button of document.querySelectorAll('[data-show]')) {
    if (button.dataset.show === state.tab && state.view === 'context') button.setAttribute('aria-current', 'true');
    else button.removeAttribute('aria-current');
  }
  for (const view of document.querySelectorAll('.view')) view.hidden = view.id !== state.view;
}

function drawAll() {
  const focus = placeOfFocus();
  drawParts();
  if (document.activeElement === document.body || !document.activeElement?.checkVisibility()) {
    if (focus && !refocus(focus)) byId('main').focus({ preventScroll: true });
  }
}

function drawParts() {
  conversations.draw(state, shown, page);
  const parts = ['picture', 'prompt'];
  if (!shown) {
    for (const part of parts) {
      byId(part).replaceChildren(
        h('div', { class: 'head' }, h('h2', { id: `${part}-title` }, part === 'picture' ? 'Picture' : 'Prompt')),
        h('p', { class: 'empty' }, state.session === null ? 'Choose a session.' : 'Nothing can be shown: see above.'),
      );
    }
    byId('why').hidden = true;
  } else {
    // First, as it takes room from the others, which show the chosen turn.
    prompt.drawWhy(state, shown, page);
    picture.draw(state, shown, page);
    prompt.draw(state, shown, page);
  }
  if (state.view === 'check') byId('why').hidden = true;
  policy.draw(state, shown, about, page);
  if (state.view === 'compare') documents.drawCompare(state, shown, about, page);
  if (state.view === 'check') documents.drawCheck();
}

function askForToken() {
  byId('entry').hidden = false;
  byId('work').hidden = true;
  byId('token').focus();
}

async function start() {
  try {
    about = await ask('/page/about');
    byId('entry').hidden = true;
    byId('work').hidden = false;
    const [database, graph, role] = [about.database, about.graph, about.role].map(isolated);
    byId('about').textContent = `${database} · graph ${graph} · role ${role} · ${about.version}`;
    await conversations.loadSessions();
    notice(null);
  } catch (error) {
    if (error.status === 401) askForToken();
    else notice(error);
    return;
  }
  await render();
}

takeToken();
byId('entry').addEventListener('submit', (event) => {
  event.preventDefault();
  setToken(byId('token').value);
  start();
});
for (const button of document.querySelectorAll('button[data-view]'))
  button.addEventListener('click', () => go({ view: button.dataset.view }));
for (const button of document.querySelectorAll('button[data-show]')) {
  button.addEventListener('click', () => go({ view: 'context', tab: button.dataset.show }, false));
}
window.addEventListener('popstate', () => {
  state = read();
  render();
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && state.turn) page.turn(null);
  if (event.key === '/' && !['INPUT', 'TEXTAREA', 'SELECT'].includes(document.activeElement.tagName)) {
    event.preventDefault();
    byId('conversations').querySelector('input')?.focus();
  }
});
start();
