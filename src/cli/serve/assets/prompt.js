// The prompt, as graph_messages gives it; and why a turn is in it or not.

import { ask } from './server.js';
import { arrows, byId, count, h, number, roleOf, say, short, stored, time, visible } from './elements.js';
import { nameOf } from './conversations.js';
import { copy } from './documents.js';

const LONG = 900;
const opened = new Set();
let revealed = null;

/** How many messages at the beginning are the same as in the step before, and their tokens. */
export function cached(messages, before) {
  if (!before) return null;
  const same = (a, b) =>
    a &&
    b &&
    a.turn_id === b.turn_id &&
    a.role === b.role &&
    a.content === b.content &&
    a.payload === b.payload;
  let n = 0;
  while (same(messages[n], before[n])) n += 1;
  return { n, tokens: messages.slice(0, n).reduce((sum, message) => sum + message.tokens, 0) };
}

export function draw(state, shown, page) {
  const pane = byId('prompt');
  const old = pane.querySelector('.scroll');
  const kept = old && pane.dataset.anchor === shown.anchor ? old.scrollTop : null;
  pane.dataset.anchor = shown.anchor;
  const tokens = shown.messages.at(-1)?.cumulative_tokens ?? 0;
  const budget = shown.policy.max_tokens;
  const kept_before = cached(shown.messages, shown.before);
  const list = h('ol', {
    class: 'messages scroll',
    'aria-label': 'The messages, in the order in which a model is shown them',
  });
  shown.messages.forEach((message, place) => {
    if (kept_before && kept_before.n === place && place > 0) list.append(border(kept_before));
    list.append(messageOf(message, kept_before && place < kept_before.n, state, shown, page));
  });
  if (kept_before && kept_before.n === shown.messages.length && kept_before.n > 0) list.append(border(kept_before));
  pane.replaceChildren(
    h(
      'div',
      { class: 'head' },
      h('h2', { id: 'prompt-title' }, 'Prompt'),
      h(
        'span',
        { class: 'sum', id: 'sum' },
        `${count(shown.messages.length, 'message')}, ${number(tokens)}` +
          `${budget ? ` of ${number(budget)}` : ''} tokens`,
      ),
      h(
        'span',
        { class: 'tools' },
        copying('slice', 'Copy the export', 'What graph_slice gives. Check takes it.', page),
        copying('record', 'Copy the record', 'What graph_messages_record gives. Check takes it.', page),
      ),
    ),
    meter(shown, tokens, budget),
    remark(state, shown, tokens, budget),
    h('p', { class: 'hint', id: 'cached' }, cachedText(kept_before, shown, tokens, page)),
    list,
  );
  arrows(list, '.caption');
  if (kept !== null) list.scrollTop = kept;
  else list.scrollTop = list.scrollHeight;
  if (state.turn && state.turn !== revealed) list.querySelector('.chosen')?.scrollIntoView({ block: 'nearest' });
  revealed = state.turn;
}

function copying(kind, text, title, page) {
  return h('button', { type: 'button', id: `copy-${kind}`, title, onclick: (event) => copy(kind, event.target, page) }, text);
}

/** What the numbers above do not explain by themselves. */
function remark(state, shown, tokens, budget) {
  if (document.body.dataset.stale !== undefined) {
    const text = 'The change above was refused: this is still the prompt of before it.';
    return h('p', { class: 'stale', id: 'remark', role: 'alert' }, text);
  }
  const said = [];
  const cut = shown.turns.filter((turn) => turn.outcome === 'cut').length;
  if (budget && tokens > budget)
    said.push(`More than max_tokens ${number(budget)}: the anchor, with its calls, is shown whatever it takes.`);
  if (cut > 0 && budget > tokens)
    said.push(
      `${number(budget - tokens)} tokens are left free: ${count(cut, 'turn')} of the line that would fit ` +
        `${cut === 1 ? 'is' : 'are'} cut, so that its beginning stays for the next steps (cut_share ${shown.policy.cut_share}).`,
    );
  if (state.policy.base === 'recall' && !shown.policy.seeds)
    said.push('This policy shows what a question finds: ask one under Recall.');
  return said.length > 0 ? h('p', { class: 'hint', id: 'remark' }, said.join(' ')) : '';
}

function cachedText(kept, shown, tokens, page) {
  if (!shown.before) return 'There is no step before this one: nothing is cached.';
  if (kept.n === 0) return 'The step before begins with another message: nothing is cached.';
  const share = tokens ? Math.round((100 * kept.tokens) / tokens) : 0;
  const before = page.known(page.before());
  const step = before
    ? [' (', stored(before.role ?? ''), ` ${time(before.at)} “`, stored(short(before.text, 30)), '”)']
    : [];
  return [
    'As in the step before',
    ...step,
    `: the first ${count(kept.n, 'message')}, ${number(kept.tokens)} tokens, ${share} %. A cache of prefixes can serve these.`,
  ];
}

function border(kept) {
  return h('li', { class: 'border' }, `↑ as in the step before, ${number(kept.tokens)} tokens`);
}

/** How the tokens divide among the parts, and what of the budget is left. */
function meter(shown, tokens, budget) {
  const parts = ['pinned', 'line', 'recalled', 'anchor'].map((part) => [
    part,
    shown.messages.filter((message) => message.part === part).reduce((sum, message) => sum + message.tokens, 0),
  ]);
  const whole = Math.max(tokens, budget ?? 0, 1);
  const bar = h('div', {
    class: 'meter',
    role: 'img',
    'aria-label': parts.map(([part, sum]) => `${part} ${sum} tokens`).join(', '),
  });
  for (const [part, sum] of parts) {
    if (sum === 0) continue;
    const piece = h('span', { class: part, title: `${part}: ${number(sum)} tokens` });
    piece.style.setProperty('flex-basis', `${(100 * sum) / whole}%`);
    if (sum / whole > 0.14) piece.append(`${part} ${number(sum)}`);
    bar.append(piece);
  }
  return bar;
}

function messageOf(message, isCached, state, shown, page) {
  const text = message.content ?? '';
  const isLong = text.length > LONG && !opened.has(message.turn_id);
  const role = roleOf(message.role);
  const isSeed = shown.explained.get(message.turn_id)?.via === 'seed';
  const isElsewhere = (message.session_id ?? '') !== (shown.byTurn.get(shown.anchor)?.session_id ?? '');
  const body = [
    h(
      'p',
      { class: 'said' },
      isLong ? `${text.slice(0, LONG).trimEnd()}…` : text || (message.payload ? '' : 'no text'),
    ),
  ];
  if (isLong) {
    body.push(
      h(
        'button',
        {
          type: 'button',
          class: 'plain',
          onclick: (event) => {
            opened.add(message.turn_id);
            event.target.previousElementSibling.textContent = visible(text);
            event.target.remove();
          },
        },
        `Show all ${number(text.length)} characters`,
      ),
    );
  }
  if (message.turn_id === shown.anchor && role === 'assistant' && page.before()) {
    body.push(
      h(
        'p',
        { class: 'hint' },
        'The anchor is an answer. The prompt for it ends at the turn before: ',
        h('button', { type: 'button', class: 'plain', onclick: () => page.anchor(page.before()) }, 'show that prompt'),
      ),
    );
  }
  if (message.payload !== null) {
    body.push(h('details', {}, h('summary', {}, 'Payload'), h('pre', {}, message.payload)));
  }
  return h(
    'li',
    {
      class: `message ${role} ${message.part} ${isCached ? 'cached' : ''} ${message.turn_id === state.turn ? 'chosen' : ''}`,
    },
    h(
      'button',
      {
        type: 'button',
        class: 'caption',
        'data-turn': message.turn_id,
        'aria-pressed': message.turn_id === state.turn ? 'true' : 'false',
        title: 'Why is it in?',
        tabindex: message.turn_id === shown.anchor ? 0 : -1,
        onclick: () => page.turn(message.turn_id),
      },
      h('span', { class: 'n' }, String(message.n)),
      h('b', { class: `role ${role}` }, message.role),
      h('span', { class: `part ${message.part}` }, isSeed ? 'recalled ◆ seed' : message.part),
      isCached && h('span', { class: 'iscached' }, 'cached'),
      isElsewhere &&
        h(
          'span',
          { class: 'elsewhere' },
          'of “',
          stored(short(nameOf(message.session_id), 40)),
          `”, ${time(message.created_at)}`,
        ),
      h('span', { class: 'tokens' }, `${number(message.tokens)} tok`),
    ),
    ...body,
  );
}

let asked = 0;
let asking = null;

/** Says of the chosen turn why it is in, or what would bring it in. */
export async function drawWhy(state, shown, page) {
  const pane = byId('why');
  pane.hidden = !state.turn;
  const mine = ++asked;
  asking?.abort();
  asking = new AbortController();
  if (!state.turn) {
    pane.replaceChildren();
    return;
  }
  const message = shown.byTurn.get(state.turn);
  const known = message ?? page.known(state.turn) ?? {};
  const explained = shown.explained.get(state.turn);
  const answer = h('p', { class: 'answer', id: 'answer', 'aria-live': 'polite' }, '…');
  const actions = h('div', { class: 'actions' });
  pane.replaceChildren(
    h(
      'div',
      { class: 'head' },
      h('h2', { id: 'why-title', tabindex: -1 }, message ? 'Why is this turn in?' : 'Why is this turn not in?'),
      h('button', { type: 'button', class: 'plain', 'aria-label': 'Close', onclick: () => page.turn(null) }, '×'),
    ),
    h(
      'p',
      { class: 'which' },
      h('b', { class: `role ${roleOf(known.role)}` }, known.role ?? 'turn'),
      ` ${time(message ? message.created_at : known.at)} `,
      stored(short(known.content ?? known.text, 160)),
    ),
    answer,
    actions,
  );
  const isPinned = (page.policy().pins ?? []).includes(state.turn);
  if (state.turn !== state.anchor) {
    if ('pins' in shown.policy) {
      actions.append(
        h('button', { type: 'button', id: 'pin', onclick: () => page.pin(state.turn) }, isPinned ? 'Unpin' : 'Pin'),
      );
    }
    actions.append(
      h(
        'button',
        { type: 'button', onclick: () => page.open(known.session_id ?? state.session, state.turn) },
        'Make it the anchor',
      ),
    );
  }
  if (explained) {
    const facts = [
      explained.reason.replace(/\bstep (\d+)/g, (step, n) => {
        const of = shown.turns.find((turn) => turn.step === Number(n));
        return shown.byTurn.has(of?.turn_id) ? `message ${shown.byTurn.get(of.turn_id).n}` : step;
      }),
      explained.distance !== null && `distance ${explained.distance}`,
      explained.priority !== null && `priority ${Number(explained.priority).toPrecision(4)}`,
    ];
    answer.after(h('p', { class: 'hint' }, facts.filter(Boolean).join(' · ')));
  }
  let said;
  try {
    said = await ask('/page/why', { ...page.asked(), turn: state.turn }, asking.signal);
  } catch (error) {
    said = { explanation: [error.message, error.hint].filter(Boolean).join(' '), path: null };
  }
  if (mine !== asked) return;
  const text = said.explanation.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => {
    if (id === state.anchor) return 'the anchor';
    return shown.byTurn.has(id) ? `message ${shown.byTurn.get(id).n}` : id.slice(0, 8);
  });
  answer.textContent = visible(text);
  say(text);
  const change = said.included ? null : changeIn(said.explanation, shown.policy);
  if (change) {
    const [key, value] = change;
    const set = () => page.set({ [key]: value });
    actions.prepend(
      h(
        'button',
        { type: 'button', class: 'main', id: 'bring', onclick: set },
        `Set ${key} to ${JSON.stringify(value)}`,
      ),
    );
  }
  if (said.path?.length > 1) {
    const name = (id) => {
      const turn = shown.byTurn.get(id) ?? page.known(id);
      return id === state.anchor ? 'anchor' : turn?.n ? String(turn.n) : short(turn?.text, 18) || id.slice(0, 8);
    };
    const names = said.path.map(name);
    if (names.length > 8) names.splice(5, names.length - 7, `${names.length - 7} more`);
    const way = names.flatMap((text) => [' → ', stored(text)]).slice(1);
    actions.append(h('span', { class: 'path' }, 'way: ', way));
  }
}

/** The key and the value that an explanation names, where it names one of the policy's. */
function changeIn(explanation, policy) {
  const [, key, text] = /with ([a-z_]+) (\S+) it is in/.exec(explanation) ?? [];
  if (!(key in policy)) return null;
  try {
    return [key, JSON.parse(text)];
  } catch {
    return null;
  }
}
