// The policy as controls. What is changed stands beside the name of what it is based on.

import { ask } from './server.js';
import { byId, h, later, notice, say, short } from './elements.js';

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
  const { base, ...changes } = state.policy;
  const found = about.policies.find((policy) => policy.name === base);
  if (found && !found.is_preset) return Object.keys(changes).length ? { ...found.policy, ...changes } : base;
  return { preset: base, ...changes };
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
  const range = isHere && document.activeElement.type === 'search' ? document.activeElement.value : null;
  const policy = shown?.policy ?? about.policies.find((known) => known.name === state.policy.base)?.policy ?? {};
  const isOpen = pane.querySelector('details.text')?.open ?? false;
  const select = h(
    'select',
    { id: 'base', onchange: (event) => page.change({ policy: { base: event.target.value } }) },
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
      'max_tokens' in policy && tokens('max_tokens', 'Tokens', policy.max_tokens, page),
      field('max_nodes', 'Turns at most', policy.max_nodes, 1, 10000, page),
      field('max_radius', 'Hops from the anchor', policy.max_radius, 0, 2147483647, page),
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
      'seeds' in policy && recall(state, policy, page),
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
    again?.focus({ preventScroll: true });
    if (range !== null && again) again.value = range;
  }
}

/** A bound of tokens: a slider, and the number beside it. */
function tokens(key, text, value, page) {
  const set = later(120, (given) => page.set({ [key]: given }));
  const box = h('input', {
    type: 'number',
    id: `${key}-number`,
    min: 1,
    max: 2147483647,
    value: value ?? '',
    placeholder: 'none',
    'aria-label': `${text}, number`,
    onchange: (event) => page.set({ [key]: event.target.value === '' ? null : Number(event.target.value) }),
  });
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
        box.value = given;
        set(given);
      },
    }),
  );
}

function field(key, text, value, min, max, page) {
  return h(
    'div',
    { class: 'field' },
    h('label', { for: key }, text),
    h('input', {
      type: 'number',
      id: key,
      min,
      max,
      value,
      onchange: (event) => event.target.value !== '' && page.set({ [key]: Number(event.target.value) }),
    }),
  );
}

function recall(state, policy, page) {
  const ask = later(350, (query) => page.change({ query: query.trim() }));
  return h(
    'fieldset',
    {},
    h('legend', {}, 'Recall'),
    h('label', { for: 'query' }, 'A question; what it finds is recalled'),
    h('input', {
      type: 'search',
      id: 'query',
      value: state.query ?? '',
      placeholder: 'in words',
      oninput: (event) => ask(event.target.value),
    }),
    h(
      'div',
      { class: 'field' },
      h('label', { for: 'recall_tokens' }, 'Tokens of it at most'),
      h('input', {
        type: 'number',
        id: 'recall_tokens',
        min: 1,
        max: 2147483647,
        value: policy.recall_tokens ?? '',
        placeholder: 'none',
        onchange: (event) => page.set({ recall_tokens: event.target.value === '' ? null : Number(event.target.value) }),
      }),
    ),
  );
}

function pins(policy, shown, page) {
  const list = policy.pins ?? [];
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
          h('span', {}, turn ? text : `${text}: no room, or it does not exist`),
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
  if (!about.can_register) return h('p', { class: 'hint' }, `The role ${about.role} may not register policies.`);
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
