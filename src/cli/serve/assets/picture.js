// The picture: turns as boxes by time, the line from its beginning to the anchor at the left, other turns beside it.

import { nameOf } from './conversations.js';
import { byId, count, h, isolated, lanes, number, roleOf, s, short, stored, time } from './elements.js';

const WIDTH = 262;
const HEIGHT = 42;
const ACROSS = 34;
const DOWN = 54;
const MARGIN = 14;
const LETTERS = { user: 'U', assistant: 'A', system: 'S', tool: 'T' };
const LEFT_OUT = {
  cut: 'cut off',
  frontier: 'next in line',
  over_budget: 'over budget',
  sibling_limit: 'beyond the siblings',
  not_admitted: 'not admitted',
  missing: 'missing',
};

let scale = 1;
let placed = null;
let revealed = null;

/** The ids on the way from the anchor up to where the line begins, among those that are shown. */
export function spineOf(shown) {
  const spine = new Set();
  const rank = (id) => shown.byTurn.get(id)?.n ?? 0;
  for (let at = shown.anchor; at && !spine.has(at);) {
    spine.add(at);
    const parents = shown.edges.filter(
      (edge) => edge.child === at && edge.edge_type !== 'reference' && !spine.has(edge.parent),
    );
    at = parents.map((edge) => edge.parent).sort((a, b) => rank(b) - rank(a))[0];
  }
  return spine;
}

/** Draws the slice. */
export function draw(state, shown, page) {
  const pane = byId('picture');
  const nodes = nodesOf(state, shown);
  const spine = spineOf(shown);
  const order = nodes.map((node) => node.id);
  const rows = new Map(order.map((id, row) => [id, row]));
  const parents = (id) =>
    shown.edges
      .filter((edge) => edge.child === id)
      .map((edge) => edge.parent)
      .concat(shown.explained.get(id)?.outcome === 'selected' ? [] : [shown.explained.get(id)?.discovered_from ?? null])
      .filter((parent) => rows.has(parent));
  const lane = lanes(order, (id) => parents(id).sort((a, b) => rows.get(a) - rows.get(b)), spine);
  const at = (id) => ({ x: MARGIN + lane.get(id) * ACROSS, y: MARGIN + rows.get(id) * DOWN });
  const width = MARGIN * 2 + 20 + WIDTH + Math.max(0, ...lane.values()) * ACROSS;
  const height = MARGIN * 2 + nodes.length * DOWN;
  const drawing = s('svg', { viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': describe(nodes, spine) });
  for (const edge of shown.edges) {
    if (rows.has(edge.parent) && rows.has(edge.child)) drawing.append(edgeOf(edge, at, lane, spine));
  }
  for (const node of nodes) {
    const from = node.explained?.outcome !== 'selected' && node.explained?.discovered_from;
    if (from && rows.has(from))
      drawing.append(edgeOf({ parent: from, child: node.id, edge_type: 'out' }, at, lane, spine));
  }
  for (const node of nodes) drawing.append(boxOf(node, at(node.id), state, spine, page));
  placed = { at, width, height, anchor: shown.anchor, goal: [...spine].at(-1), drawing };

  const view = h('div', { class: 'canvas', tabindex: '-1' }, drawing);
  const old = pane.querySelector('.canvas');
  const isSame = pane.dataset.anchor === shown.anchor && old;
  // The anchor stays where it is on the screen, whatever comes above it.
  const kept = isSame ? [old.scrollLeft, old.scrollTop - Number(pane.dataset.anchorAt) * scale] : null;
  pane.dataset.anchor = shown.anchor;
  pane.dataset.anchorAt = at(shown.anchor).y;
  const goal = shown.byTurn.get(placed.goal);
  const anchor = shown.byTurn.get(shown.anchor);
  const options = state.hideOut ? {} : { checked: true };
  pane.replaceChildren(
    h(
      'div',
      { class: 'head' },
      h('h2', { id: 'picture-title' }, 'Picture'),
      h(
        'span',
        { class: 'tools' },
        h(
          'label',
          {},
          h('input', {
            type: 'checkbox',
            ...options,
            onchange: (event) => page.change({ hideOut: !event.target.checked }),
          }),
          ' left out',
        ),
        tool('−', 'Smaller', () => zoom(1 / 1.3)),
        tool('+', 'Larger', () => zoom(1.3)),
        tool('Fit', 'Fit the width', fit),
        tool('All', 'The whole picture', all),
      ),
    ),
    h(
      'div',
      { class: 'way' },
      way(`Line begins${goal ? ` (message ${goal.n})` : ''}`, goal, anchor, () => show(placed.goal)),
      h('span', {}, `↓ ${count(spine.size, 'turn')} on the line`),
      way('Anchor', anchor, anchor, () => show(placed.anchor)),
    ),
    view,
    legend(),
  );
  view.addEventListener('keydown', (event) => move(event, nodes, drawing));
  view.addEventListener(
    'wheel',
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15);
    },
    { passive: false },
  );
  if (kept) {
    resize();
    [view.scrollLeft, view.scrollTop] = [kept[0], kept[1] + at(shown.anchor).y * scale];
  } else {
    fit();
  }
  if (state.turn && state.turn !== revealed && rows.has(state.turn)) show(state.turn);
  revealed = state.turn;
}

function way(name, message, anchor, call) {
  const isElsewhere = message && (message.session_id ?? '') !== (anchor?.session_id ?? '');
  return h(
    'button',
    { type: 'button', class: 'plain', onclick: call },
    h('b', {}, name),
    ' ',
    stored(short(message?.content, 60) || 'no text'),
    isElsewhere &&
      h('span', {}, ` · ${time(message.created_at)}, of “`, stored(short(nameOf(message.session_id), 30)), '”'),
  );
}

function tool(text, label, call) {
  return h('button', { type: 'button', 'aria-label': label, title: label, onclick: call }, text);
}

/** The turns to draw, by time: those of the prompt, and what was left out next to them. */
function nodesOf(state, shown) {
  const nodes = shown.messages.map((message) => ({
    id: message.turn_id,
    message,
    explained: shown.explained.get(message.turn_id),
    at: Date.parse(message.created_at) || 0,
    role: roleOf(message.role),
    text: message.content ?? message.payload ?? '',
    n: message.n,
  }));
  if (!state.hideOut) {
    for (const turn of shown.leftOut) {
      nodes.push({
        id: turn.turn_id,
        explained: turn,
        role: roleOf(turn.role),
        text: turn.text ?? '',
        at: (turn.at ?? 0) * 1000,
        n: Infinity,
      });
    }
  }
  return nodes.sort((a, b) => a.at - b.at || a.n - b.n);
}

function describe(nodes, spine) {
  const out = nodes.filter((node) => !node.message).length;
  return (
    `${count(nodes.length - out, 'turn')} in the prompt, ${number(spine.size)} on the line to the anchor, ` +
    `${number(out)} left out. Arrow keys move between turns, Enter says why.`
  );
}

function edgeOf(edge, at, lane, spine) {
  const from = at(edge.parent);
  const to = at(edge.child);
  const type = edge.edge_type;
  const onLine = spine.has(edge.parent) && spine.has(edge.child) && type !== 'reference' && type !== 'out';
  const x = from.x + 18;
  let path = `M${x} ${from.y + HEIGHT}V${to.y}`;
  if (type === 'reference' || to.y <= from.y) {
    // Beside the boxes, which would hide it.
    const [right, end] = [from.x + WIDTH, to.x + WIDTH];
    path = `M${right} ${from.y + 21}C${right + 22} ${from.y + 21} ${end + 22} ${to.y + 21} ${end} ${to.y + 21}`;
  } else if (to.x > from.x) {
    path = `M${x} ${from.y + HEIGHT}V${to.y + 13}q0 8 8 8H${to.x}`;
  }
  return s('path', { class: `edge ${onLine ? 'line' : ''} ${type}`, d: path });
}

/** What part the turn plays, in words. */
export function partOf(node) {
  if (!node.message) return LEFT_OUT[node.explained?.outcome] ?? 'left out';
  if (node.explained?.via === 'seed') return 'recalled: a seed';
  return node.message.part;
}

function boxOf(node, { x, y }, state, spine, page) {
  const part = partOf(node);
  const kind = node.message ? node.message.part : 'out';
  const isSeed = node.explained?.via === 'seed';
  const role = node.role;
  const isChosen = node.id === state.turn;
  const isAnchor = node.id === state.anchor;
  const tokens = node.message ? `, ${node.message.tokens} tokens` : '';
  const name = `${node.message ? `${node.message.n}, ` : ''}${role}, ${part}${tokens}${spine.has(node.id) ? ', on the line' : ''}: ${isolated(short(node.text, 80))}`;
  const caption = node.message ? `${node.message.n} · ${isSeed ? 'seed' : kind} · ${node.message.tokens} tok` : part;
  return s(
    'g',
    {
      class: `box ${kind} ${role} ${isSeed ? 'seed' : ''} ${spine.has(node.id) ? 'online' : ''} ${isChosen ? 'chosen' : ''}`,
      transform: `translate(${x} ${y})`,
      role: 'button',
      tabindex: isAnchor ? 0 : -1,
      'aria-label': name,
      'aria-pressed': isChosen ? 'true' : 'false',
      'data-turn': node.id,
      onclick: () => page.turn(node.id),
      ondblclick: () => page.anchor(node.id),
      onkeydown: (event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        page.turn(node.id);
      },
    },
    s('title', {}, name),
    s('rect', { class: 'body', width: WIDTH, height: HEIGHT, rx: kind === 'pinned' ? 0 : 7 }),
    kind === 'anchor' && s('rect', { class: 'second', x: 3, y: 3, width: WIDTH - 6, height: HEIGHT - 6, rx: 5 }),
    isSeed
      ? s('path', { class: 'letterbox', d: 'M18 5L34 21L18 37L2 21Z' })
      : s('circle', { class: 'letterbox', cx: 18, cy: 21, r: 11 }),
    s('text', { class: 'letter', x: 18, y: 25 }, LETTERS[role]),
    // A drawing within the drawing, which ends where the box does.
    s(
      'svg',
      { x: 36, width: WIDTH - 42, height: HEIGHT },
      s('text', { class: 'words', x: 0, y: 18 }, short(node.text, 36) || 'no text'),
      s('text', { class: 'caption', x: 0, y: 33 }, caption),
    ),
  );
}

function move(event, nodes, drawing) {
  const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
  const on = document.activeElement?.getAttribute('data-turn');
  const row = nodes.findIndex((node) => node.id === on);
  if (event.key === '+' || event.key === '-') zoom(event.key === '+' ? 1.3 : 1 / 1.3);
  if (step === undefined || row < 0) return;
  event.preventDefault();
  const next = nodes[Math.max(0, Math.min(nodes.length - 1, row + step))];
  const boxes = drawing.querySelectorAll('.box');
  boxes[row].setAttribute('tabindex', '-1');
  const box = [...boxes].find((element) => element.getAttribute('data-turn') === next.id);
  box.setAttribute('tabindex', '0');
  box.focus();
}

function resize() {
  const { drawing, width, height } = placed;
  drawing.setAttribute('width', Math.round(width * scale));
  drawing.setAttribute('height', Math.round(height * scale));
  drawing.classList.toggle('far', scale < 0.45);
}

function zoom(by) {
  const view = byId('picture').querySelector('.canvas');
  const middle = (view.scrollTop + view.clientHeight / 2) / scale;
  scale = Math.max(0.005, Math.min(3, scale * by));
  resize();
  view.scrollTop = middle * scale - view.clientHeight / 2;
}

/** Makes the picture as wide as its pane, within what can be read, and shows the anchor. */
function fit() {
  const view = byId('picture').querySelector('.canvas');
  scale = Math.max(0.8, Math.min(1.1, (view.clientWidth - 4) / placed.width));
  resize();
  show(placed.anchor);
}

function all() {
  const view = byId('picture').querySelector('.canvas');
  scale = Math.max(0.005, Math.min(1, view.clientWidth / placed.width, view.clientHeight / placed.height));
  resize();
}

function show(id) {
  const view = byId('picture').querySelector('.canvas');
  const { x, y } = placed.at(id);
  view.scrollTo(Math.max(0, (x - MARGIN) * scale), (y + HEIGHT / 2) * scale - view.clientHeight * 0.6);
}

function legend() {
  const item = (kind, text) => h('span', { class: `key ${kind}` }, text);
  return h(
    'p',
    { class: 'legend', 'aria-hidden': 'true' },
    item('anchor', 'anchor: the model is asked here'),
    item('line', 'line: what led to it'),
    item('pinned', 'pinned'),
    item('recalled', 'recalled; ◆ seed: a hit of the question'),
    item('out', 'left out'),
  );
}
