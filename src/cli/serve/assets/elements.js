// Making elements. Every text becomes a text node: nothing that a turn says is read as markup.

/** A text with its control characters, but for tabs and ends of lines, shown as such. */
export const visible = (text) => text.replaceAll('\r\n', '\n').replace(/[^\P{Cc}\t\n]/gu, '\ufffd');

function made(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked' || name === 'disabled' || name === 'selected')
      element[name] = value;
    else element.setAttribute(name, value === true ? '' : visible(String(value)));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false)
      element.append(typeof child === 'string' ? visible(child) : child);
  }
  return element;
}

/** An HTML element. Properties that begin with `on` are listeners. */
export const h = (tag, properties, ...children) => made(document.createElement(tag), properties, children);

/** An SVG element. */
export const s = (tag, properties, ...children) =>
  made(document.createElementNS('http://www.w3.org/2000/svg', tag), properties, children);

/** A stored text within a line: what turns its direction does not turn what stands around it. */
export const stored = (text) => h('bdi', {}, text);

/** The same where there are no elements. */
export const isolated = (text) => `\u2068${text.replace(/[\u202a-\u202e\u2066-\u2069]/g, '\ufffd')}\u2069`;

export const byId = (id) => document.getElementById(id);

export const number = (value) => Number(value).toLocaleString('en-GB').replaceAll(',', '\u202f');

/** `1 turn`, `2 turns`. */
export const count = (n, noun) => `${number(n)} ${noun}${n === 1 ? '' : 's'}`;

/** A time in Unix seconds, or ISO 8601, as a short text in UTC. */
export function time(value) {
  if (value === null || value === undefined) return '';
  const date = typeof value === 'number' ? new Date(value * 1000) : new Date(value);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString().slice(0, 16).replace('T', ' ');
}

/** A text on one line, its beginning where it is long. */
export function short(text, length) {
  const line = (text ?? '').replace(/\s+/g, ' ').trim();
  const points = [...line.slice(0, length * 2)];
  return points.length > length || line.length > length * 2 ? `${points.slice(0, length).join('').trimEnd()}…` : line;
}

/** What stands there under a name that others have chosen, which may be that of a member of all objects. */
const own = (named, name) => (Object.hasOwn(named, name) ? named[name] : undefined);

const ROLES = { user: 'user', human: 'user', assistant: 'assistant', ai: 'assistant', system: 'system', tool: 'tool' };

/** Which of the four roles a stored name looks like. */
export const roleOf = (name) => own(ROLES, (name ?? '').toLowerCase()) ?? 'user';

/** Calls the function once things have been quiet for so many milliseconds. */
export function later(milliseconds, call) {
  let timer;
  const wait = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), milliseconds);
  };
  wait.cancel = () => clearTimeout(timer);
  return wait;
}

/** Says something to screen readers. */
export function say(text) {
  byId('spoken').textContent = text;
}

/** What some words of errors mean here. */
const WORDS = {
  NO_WORDS: 'This graph has no words to search by, so that no question can be asked. Whoever owns the table can add them:',
};

/** Shows an error, or takes it away. */
export function notice(error) {
  const place = byId('notice');
  place.hidden = !error;
  place.replaceChildren();
  if (!error) return;
  place.append(h('strong', {}, own(WORDS, error.word) ?? error.message));
  if (error.hint) place.append(' ', h('span', {}, error.hint));
  const code = [error.sqlstate, error.word].filter(Boolean).join(' ');
  if (code) place.append(' ', h('code', {}, code));
  place.append(
    h('button', { type: 'button', class: 'plain', onclick: () => notice(null), 'aria-label': 'Close' }, '×'),
  );
}

/**
 * Makes a list one stop of the Tab key: arrows up and down move among its items, and right to the button beside one.
 * `selector` is that of the items.
 */
export function arrows(list, selector) {
  const itemOf = (element) => element.closest('li')?.querySelector(selector);
  list.addEventListener('focusin', (event) => {
    const item = itemOf(event.target);
    if (!item) return;
    for (const old of list.querySelectorAll(`${selector}[tabindex="0"]`)) old.setAttribute('tabindex', '-1');
    item.setAttribute('tabindex', '0');
  });
  list.addEventListener('keydown', (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || !event.target.matches(`${selector}, .ask`)) return;
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    let next = null;
    if (event.key === 'ArrowRight') next = event.target.closest('li').querySelector('.ask');
    else if (event.key === 'ArrowLeft') next = itemOf(event.target);
    else if (step !== undefined) {
      const items = [...list.querySelectorAll(event.target.matches('.ask') ? '.ask' : selector)];
      next = items[Math.max(0, Math.min(items.length - 1, items.indexOf(event.target) + step))];
    }
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
}

/** Where the focus is, in a form that holds when everything is drawn anew. */
export function placeOfFocus() {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const part = at.closest('section, .view, header');
  if (at.id) return { at: `#${CSS.escape(at.id)}`, part };
  const turn = at.getAttribute('data-turn');
  const kind = at.getAttribute('class')?.split(' ')[0];
  const within = part?.id ? `#${part.id} ` : '';
  return { at: turn && kind ? `${within}.${kind}[data-turn="${CSS.escape(turn)}"]` : null, part };
}

const FIRST = '[aria-current], [tabindex="0"], h2[tabindex], select, button';

/** Gives the focus back to a place, or else to what comes first in its part of the page. It is not lost to the body. */
export function refocus(place) {
  if (!place) return false;
  for (const element of [place.at && document.querySelector(place.at), place.part?.querySelector(FIRST)]) {
    if (!element?.checkVisibility()) continue;
    element.focus({ preventScroll: true });
    if (document.activeElement === element) return true;
  }
  return false;
}

/** Rows by time, and in which lane each stands: a turn follows its parent; another branch of it stands beside. */
export function lanes(ids, parentsOf, spine) {
  const lane = new Map();
  const continued = new Set();
  for (const id of ids) {
    if (spine.has(id)) {
      lane.set(id, 0);
      continue;
    }
    const parents = parentsOf(id).filter((parent) => lane.has(parent));
    const parent = parents.at(-1);
    if (parent === undefined) lane.set(id, spine.size > 0 ? 1 : 0);
    else if (lane.get(parent) > 0 && !continued.has(parent)) lane.set(id, lane.get(parent));
    else lane.set(id, Math.min(4, lane.get(parent) + 1));
    if (parent !== undefined) continued.add(parent);
  }
  return lane;
}
