// The policy as controls. What is changed stands beside the name of what it is based on.

import { ask } from './server.js';
import { byId, h, isolated, later, notice, number, say, short, stored } from './elements.js';

const TEXTS = {
  chat: 'the newest of the conversation, within a budget',
  lineage: 'all that led to the anchor',
  recall: 'what a search finds, with what was said around it',
  default: 'around the anchor, by weight',
  focused: 'near the anchor, few turns',
  broad: 'far from the anchor, many turns',
};
const FLAGS = [
  ['include_children', 'what follows the anchor'],
  ['include_siblings', 'other branches of the same turn'],
  ['keep_tool_results', 'calls with their results'],
  ['same_session', 'this session alone'],
  ['cut_to_user', 'begin with a user’s turn'],
];

/** The policy that the state names, as the service takes it. */
export function policyOf(state, about) {
  const { base, ...given } = state.policy;
  const found = about.policies.find((policy) => policy.name === base);
  const changes = { ...recalled(state, found), ...given };
  if (found && !found.is_preset) return Object.keys(changes).length ? { ...found.policy, ...changes } : base;
  return { preset: base, ...changes };
}

/** A question is left a quarter of the tokens, where the policy does not say how many. */
function recalled(state, found) {
  const whole = { ...found?.policy, ...state.policy };
  if (!state.query || !('seeds' in whole) || whole.recall_tokens !== null || 'recall_tokens' in state.policy) return {};
  return { recall_tokens: Math.max(1, Math.round((whole.max_tokens ?? 16000) / 4)) };
}

/** The policy in words: its name, and the numbers that were changed. */
export function inWords(policy) {
  if (typeof policy === 'string') return policy;
  const { base, preset, pins, ...changes } = policy;
  const numbers = Object.entries(changes).map(([key, value]) => `${key} ${JSON.stringify(value)}`);
  if (pins?.length) numbers.push(`${pins.length} pinned`);
  return [base ?? preset, ...numbers].join(', ');
}

const MIN = 64;
const MAX = 131072;
const STEPS = 400;
const toSlider = (tokens) =>
  Math.round((STEPS * Math.log(Math.min(MAX, Math.max(MIN, tokens)) / MIN)) / Math.log(MAX / MIN));
function fromSlider(step) {
  const exact = MIN * (MAX / MIN) ** (step / STEPS);
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(exact)) - 1);
  return Math.round(exact / unit) * unit;
}

export function draw(state, shown, about, page) {
  const pane = byId('policy');
  const focus = document.activeElement?.id;
  const isHere = pane.contains(document.activeElement);
  // A box in which somebody types stays, with what was typed, and so does a slider that is moved.
  const typed = isHere && document.activeElement.matches('[type=search], [type=number], [type=range]');
  const kept = typed ? document.activeElement : null;
  const { base, ...changes } = state.policy;
  const isShown = shown && document.body.dataset.stale === undefined;
  const policy = isShown
    ? shown.policy
    : { ...about.policies.find((known) => known.name === base)?.policy, ...changes };
  const isOpen = pane.querySelector('details.text')?.open ?? false;
  const select = h(
    'select',
    { id: 'base', onchange: (event) => page.choose(event.target.value) },
    about.policies.map((known) =>
      h(
        'option',
        { value: known.name, selected: known.name === state.policy.base },
        known.is_preset ? known.name : `${known.name} (registered)`,
      ),
    ),
  );
  const changed = Object.keys(state.policy).filter((key) => key !== 'base');
  pane.replaceChildren(
    h(
      'div',
      { class: 'head' },
      h('h2', { id: 'policy-title' }, 'Policy'),
      changed.length > 0 &&
        h(
          'button',
          {
            type: 'button',
            class: 'plain',
            id: 'reset',
            onclick: () => page.change({ policy: { base: state.policy.base } }),
          },
          'Reset',
        ),
    ),
    h(
      'div',
      { class: 'scroll controls' },
      h('label', { for: 'base' }, 'Based on'),
      select,
      h(
        'p',
        { class: 'hint' },
        TEXTS[state.policy.base] ?? 'registered',
        changed.length > 0 && ` · changed: ${changed.join(', ')}`,
      ),
      'max_tokens' in policy
        ? tokens('max_tokens', 'Tokens (max_tokens)', policy.max_tokens, page)
        : h('p', { class: 'hint' }, `${base} counts turns, not tokens: tokens, pins and recall are of chat, lineage, recall.`),
      field('max_nodes', 'Turns at most (max_nodes)', policy.max_nodes, { min: 1, max: 10000 }, page),
      field('max_radius', 'Hops from the anchor (max_radius)', policy.max_radius, { min: 0 }, page),
      'cut_share' in policy && [
        field('cut_share', 'Cut at once (cut_share)', policy.cut_share, { min: 0, max: 0.95, step: 0.05 }, page),
        h(
          'p',
          { class: 'hint' },
          'Where the line is too long, up to this share of its tokens is cut at once, so that its beginning stays the ' +
            'same, and cached, for the next steps. 0 fills the budget.',
        ),
      ],
      h(
        'fieldset',
        {},
        h('legend', {}, 'Includes'),
        FLAGS.filter(([key]) => key in policy).map(([key, text]) =>
          h(
            'label',
            { class: 'flag' },
            h('input', {
              type: 'checkbox',
              id: key,
              checked: policy[key],
              onchange: (event) => page.set({ [key]: event.target.checked }),
            }),
            ` ${text}`,
          ),
        ),
      ),
      'seeds' in policy && recall(state, policy, about, page),
      'pins' in policy && pins(policy, shown, page),
      h(
        'details',
        { class: 'text', open: isOpen },
        h('summary', {}, 'The whole policy'),
        h('p', { class: 'hint' }, 'Fingerprint ', h('code', { id: 'params-hash' }, shown?.params_hash ?? '')),
        whole(policy, page),
      ),
      register(state, about, page),
    ),
  );
  if (isHere && focus) {
    const again = byId(focus);
    if (again && kept) again.replaceWith(kept);
    byId(focus)?.focus({ preventScroll: true });
  }
}

/** A bound of tokens: a slider, and the number beside it. */
function tokens(key, text, value, page) {
  const set = later(120, (given) => page.set({ [key]: given }));
  const box = numeric(key, `${key}-number`, value, { min: 1, canBeNone: true }, page);
  box.setAttribute('aria-label', `${text}, number`);
  return h(
    'div',
    { class: 'field wide' },
    h('label', { for: key }, text),
    box,
    h('input', {
      type: 'range',
      id: key,
      min: 0,
      max: STEPS,
      value: toSlider(value ?? MAX),
      'aria-valuetext': value ? `${value} tokens` : 'no bound',
      oninput: (event) => {
        const given = fromSlider(Number(event.target.value));
        event.target.setAttribute('aria-valuetext', `${given} tokens`);
        byId(`${key}-number`).value = given;
        set(given);
      },
    }),
  );
}

/** A number of the policy. It holds when nothing was typed for a moment; one that cannot be says so beside it. */
function numeric(key, id, value, { min, max = 2147483647, step = 1, canBeNone = false }, page) {
  const isWrong = (box) => {
    if (box.validity.badInput) return true;
    if (box.value === '') return !canBeNone;
    const given = Number(box.value);
    return given < min || given > max || (step === 1 && !Number.isInteger(given));
  };
  const use = (box) => {
    wait.cancel();
    box.parentElement?.querySelector('.wrong')?.remove();
    box.removeAttribute('aria-invalid');
    if (isWrong(box)) {
      box.setAttribute('aria-invalid', 'true');
      const what = step === 1 ? 'a whole number' : 'a number';
      const holds = value === null || value === undefined ? 'no bound' : number(value);
      const text = `${key} is ${what} from ${number(min)} to ${number(max)}${canBeNone ? ', or empty' : ''}. Still: ${holds}.`;
      box.parentElement?.append(h('p', { class: 'wrong', role: 'alert' }, text));
      return;
    }
    const given = box.value === '' ? null : Number(box.value);
    if (given === value) return;
    value = given;
    page.set({ [key]: given });
  };
  const wait = later(700, use);
  return h('input', {
    type: 'number',
    id,
    min,
    max,
    step,
    value: value ?? '',
    placeholder: canBeNone ? 'none' : null,
    oninput: (event) => wait(event.target),
    onchange: (event) => use(event.target),
  });
}

function field(key, text, value, range, page) {
  return h('div', { class: 'field' }, h('label', { for: key }, text), numeric(key, key, value, range, page));
}

function recall(state, policy, about, page) {
  const ask = later(350, (query) => page.change({ query: query.trim() }));
  return h(
    'fieldset',
    {},
    h('legend', {}, 'Recall'),
    about.no_words !== null && [
      h('p', { class: 'hint', id: 'no-words' }, 'This graph has no words to search by: no question can be asked.'),
      h(
        'details',
        {},
        h('summary', {}, 'How to add them'),
        h('p', { class: 'hint' }, h('code', {}, about.no_words)),
      ),
    ],
    h('label', { for: 'query' }, 'A question; what it finds is recalled'),
    h('input', {
      type: 'search',
      id: 'query',
      value: state.query ?? '',
      placeholder: 'in words',
      // One that came with the address can be taken away.
      disabled: about.no_words !== null && !state.query,
      'aria-describedby': about.no_words === null ? null : 'no-words',
      oninput: (event) => ask(event.target.value),
    }),
    field('recall_tokens', 'Tokens of it (recall_tokens)', policy.recall_tokens, { min: 1, canBeNone: true }, page),
  );
}

function pins(policy, shown, page) {
  const list = Array.isArray(policy.pins) ? policy.pins : []; // an address may say anything
  return h(
    'fieldset',
    {},
    h('legend', {}, 'Pins'),
    list.length === 0 && h('p', { class: 'hint' }, 'Choose a turn, then Pin.'),
    h(
      'ul',
      { class: 'pins' },
      list.map((id) => {
        const turn = shown?.byTurn.get(id);
        const text = short(turn?.content ?? shown?.texts.get(id)?.text, 40) || id;
        return h(
          'li',
          {},
          h('span', {}, stored(text), !turn && ': no room, or it does not exist'),
          h(
            'button',
            { type: 'button', class: 'plain', 'aria-label': `Unpin ${text}`, onclick: () => page.pin(id) },
            '×',
          ),
        );
      }),
    ),
  );
}

function whole(policy, page) {
  const { seeds, ...rest } = policy;
  const area = h('textarea', { id: 'whole', rows: 14, spellcheck: 'false', 'aria-label': 'The whole policy as JSON' });
  area.value = JSON.stringify(rest, null, 1);
  return h(
    'div',
    {},
    area,
    seeds && h('p', { class: 'hint' }, `and ${Object.keys(seeds).length} seeds that the question has found`),
    h(
      'button',
      {
        type: 'button',
        id: 'apply',
        onclick: () => {
          let given;
          try {
            given = JSON.parse(area.value);
          } catch (error) {
            notice({ message: `This is not JSON: ${error.message}` });
            return;
          }
          const changes = Object.fromEntries(
            Object.entries(given).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(rest[key])),
          );
          page.set(changes);
        },
      },
      'Use it',
    ),
  );
}

function register(state, about, page) {
  if (!about.can_register) return h('p', { class: 'hint' }, `The role ${isolated(about.role)} may not register policies.`);
  const name = h('input', {
    type: 'text',
    id: 'register-name',
    placeholder: 'name',
    'aria-label': 'Name of the policy',
    maxlength: 255,
  });
  return h(
    'details',
    {},
    h('summary', {}, 'Register it'),
    h('p', { class: 'hint' }, 'For good: nobody can change or remove a registered policy.'),
    h(
      'form',
      {
        onsubmit: async (event) => {
          event.preventDefault();
          const given = page.policy();
          const { pins: _, ...policy } = typeof given === 'string' ? {} : given;
          try {
            const made = await ask('/page/register', {
              policy: typeof given === 'string' ? given : policy,
              name: name.value.trim(),
            });
            notice(null);
            say(`Registered as ${made.params_hash}`);
            await page.registered(name.value.trim() || made.params_hash);
          } catch (error) {
            notice(error);
          }
        },
      },
      name,
      h('button', { type: 'submit', id: 'register' }, 'Register'),
    ),
  );
}
