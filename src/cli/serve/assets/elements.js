// Making elements. Every text becomes a text node: nothing that a turn says is read as markup.

function made(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked' || name === 'disabled' || name === 'selected')
      element[name] = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

/** An HTML element. Properties that begin with `on` are listeners. */
export const h = (tag, properties, ...children) => made(document.createElement(tag), properties, children);

/** An SVG element. */
export const s = (tag, properties, ...children) =>
  made(document.createElementNS('http://www.w3.org/2000/svg', tag), properties, children);

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

const ROLES = { user: 'user', human: 'user', assistant: 'assistant', ai: 'assistant', system: 'system', tool: 'tool' };

/** Which of the four roles a stored name looks like. */
export const roleOf = (name) => ROLES[(name ?? '').toLowerCase()] ?? 'user';

/** Calls the function once things have been quiet for so many milliseconds. */
export function later(milliseconds, call) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), milliseconds);
  };
}

/** Says something to screen readers. */
export function say(text) {
  byId('spoken').textContent = text;
}

/** Shows an error, or takes it away. */
export function notice(error) {
  const place = byId('notice');
  place.hidden = !error;
  place.replaceChildren();
  if (!error) return;
  place.append(h('strong', {}, error.message));
  if (error.hint) place.append(' ', h('span', {}, error.hint));
  const code = [error.sqlstate, error.word].filter(Boolean).join(' ');
  if (code) place.append(' ', h('code', {}, code));
  place.append(
    h('button', { type: 'button', class: 'plain', onclick: () => notice(null), 'aria-label': 'Close' }, '×'),
  );
}

/** The element that moves when an arrow is pressed in a list whose items take the focus one at a time. */
export function arrows(list, selector) {
  list.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const items = [...list.querySelectorAll(selector)];
    const at = items.indexOf(document.activeElement);
    if (at < 0) return;
    event.preventDefault();
    const next = items[Math.max(0, Math.min(items.length - 1, at + step))];
    items[at].setAttribute('tabindex', '-1');
    next.setAttribute('tabindex', '0');
    next.focus();
  });
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
