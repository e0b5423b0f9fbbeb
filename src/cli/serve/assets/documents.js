// Comparing two prompts, and checking documents that were kept.

import { ask, Refused } from './server.js';
import { arrows, byId, count, h, isolated, notice, number, roleOf, say, short, stored, time } from './elements.js';
import { inWords } from './policy.js';

/** Copies the export or the record of what is shown, so that it can be kept, and checked. */
export async function copy(kind, button, page) {
  try {
    const text = await ask('/page/document', { ...page.asked(), kind }, undefined, true);
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
      say('Copied');
    } catch {
      // A browser gives the clipboard to pages of this machine or of TLS alone.
      drawCheck();
      byId('document').value = text;
      notice({ message: 'This browser did not let the page copy. The text stands under Check.' });
    }
  } catch (error) {
    notice(error);
  }
}

/** Whether the turns that are in both are left out of a comparison. */
let isBrief = true;

/** Compares what is shown now with another step or another policy. */
export async function drawCompare(state, shown, about, page) {
  const place = byId('compare');
  // Asking why of a turn changes nothing here.
  const what = shown && JSON.stringify([shown.place, state.with, state.kept]);
  if (shown && place.dataset.what === what) return;
  place.dataset.what = what;
  if (!shown) {
    place.replaceChildren(h('p', { class: 'empty' }, 'Choose a turn first: what is shown there is compared.'));
    return;
  }
  const choices = [
    ['before', 'the step before'],
    ...about.policies
      .filter((known) => known.name !== state.policy.base)
      .map((known) => [`policy:${known.name}`, `the policy ${known.name}`]),
  ];
  if (state.kept) {
    const isHere = state.kept.anchor === state.anchor;
    const where = isHere ? '' : ` at “${isolated(short(page.known(state.kept.anchor)?.text, 30) || 'another turn')}”`;
    choices.push(['kept', `what was kept: ${inWords(state.kept.policy)}${where}`]);
  }
  const chosen = choices.some(([value]) => value === state.with) ? state.with : 'before';
  const result = h('div', { id: 'difference', class: isBrief ? '' : 'all', 'aria-busy': 'true' });
  place.replaceChildren(
    h(
      'div',
      { class: 'head' },
      h('h2', {}, 'Compare'),
      h(
        'label',
        {},
        'From ',
        h(
          'select',
          { id: 'with', onchange: (event) => page.change({ with: event.target.value }) },
          choices.map(([value, text]) => h('option', { value, selected: value === chosen }, text)),
        ),
      ),
      h(
        'span',
        {},
        `to what is shown now: ${inWords(page.policy())} at “`,
        stored(short(shown.byTurn.get(state.anchor)?.content, 40)),
        '”',
      ),
      h(
        'button',
        { type: 'button', id: 'keep', onclick: () => page.change({ kept: page.asked(), with: 'kept' }) },
        'Keep this to compare with',
      ),
    ),
    result,
  );
  const now = page.asked();
  let was = now;
  if (chosen === 'before') was = { ...now, anchor: page.before() };
  else if (chosen === 'kept') was = state.kept;
  else was = { anchor: now.anchor, policy: chosen.slice('policy:'.length) };
  if (!was.anchor) {
    result.replaceChildren(h('p', { class: 'empty' }, 'There is no step before this one.'));
    result.setAttribute('aria-busy', 'false');
    return;
  }
  try {
    const [other, rows] = await Promise.all([ask('/page/context', was), ask('/page/diff', { was, now })]);
    const name = choices.find(([value]) => value === chosen)[1];
    result.replaceChildren(...differences(other.messages, shown.messages, rows, name, chosen === 'before', page));
    const list = result.querySelector('.messages');
    arrows(list, '.said');
    list.querySelector('.said')?.setAttribute('tabindex', '0');
    notice(null);
  } catch (error) {
    notice(error);
    result.replaceChildren();
    delete place.dataset.what;
  }
  result.setAttribute('aria-busy', 'false');
}

function differences(was, now, rows, name, isBefore, page) {
  const from = isBefore ? 'before' : `with ${name.replace(/^the policy /, '')}`;
  const key = (message) => message.turn_id;
  const [before, after] = [
    new Map(was.map((message) => [key(message), message])),
    new Map(now.map((message) => [key(message), message])),
  ];
  const gone = was.filter((message) => !after.has(key(message)));
  const fresh = now.filter((message) => !before.has(key(message)));
  const sum = (list) => list.reduce((all, message) => all + message.tokens, 0);
  const about =
    `${count(gone.length, 'turn')} only ${from} (${number(sum(gone))} tokens), ${count(fresh.length, 'turn')} only now ` +
    `(${number(sum(fresh))} tokens), ${count(now.length - fresh.length, 'turn')} in both.`;
  say(about);
  // What is gone stands where it stood: before the first message after it that is left.
  const lines = [];
  let place = 0;
  for (const message of now) {
    if (before.has(key(message))) {
      for (; place < was.length && key(was[place]) !== key(message); place += 1) {
        if (!after.has(key(was[place]))) lines.push(['gone', was[place]]);
      }
      if (place < was.length) place += 1;
    }
    lines.push([before.has(key(message)) ? 'both' : 'fresh', message]);
  }
  const listed = new Set(lines.map(([, message]) => key(message)));
  for (const message of gone) if (!listed.has(key(message))) lines.push(['gone', message]);
  const words = { gone: `− only ${from}`, fresh: '+ only now', both: '= both' };
  // What a person does not read comes last.
  const isHash = (row) => /^[0-9a-f-]{16,}$/.test(row.was ?? row.now ?? '');
  const fields = rows
    .filter((row) => row.kind === 'export' && row.field !== 'slice_id')
    .sort((a, b) => isHash(a) - isHash(b));
  return [
    h('p', { class: 'answer', id: 'compared' }, about),
    fields.length > 0 &&
      h(
        'table',
        {},
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ['', name, 'now'].map((text) => h('th', { scope: 'col' }, text)),
          ),
        ),
        h(
          'tbody',
          {},
          fields.map((row) =>
            h(
              'tr',
              {},
              h('th', { scope: 'row' }, row.field.replace(/^policy\./, '')),
              h('td', {}, short(row.was, 60)),
              h('td', {}, short(row.now, 60)),
            ),
          ),
        ),
      ),
    h(
      'label',
      { class: 'flag brief' },
      h('input', {
        type: 'checkbox',
        id: 'brief',
        checked: isBrief,
        onchange: (event) => {
          isBrief = event.target.checked;
          byId('difference').classList.toggle('all', !isBrief);
        },
      }),
      ' differences only',
    ),
    h(
      'ol',
      { class: 'messages', 'aria-label': 'The turns of both' },
      lines.map(([kind, message]) =>
        h(
          'li',
          { class: `message brief ${kind} ${roleOf(message.role)}` },
          h(
            'span',
            { class: 'meta' },
            h('span', { class: `mark ${kind}` }, words[kind]),
            h('b', { class: `role ${roleOf(message.role)}` }, message.role),
            h('span', { class: `part ${message.part}` }, message.part),
            ` ${time(message.created_at)} · ${number(message.tokens)} tok`,
          ),
          h(
            'button',
            {
              type: 'button',
              class: 'said plain',
              tabindex: -1,
              'data-turn': key(message),
              title: 'Why?',
              onclick: () => page.turn(key(message)),
            },
            short(message.content, 220) || 'no text',
          ),
        ),
      ),
    ),
  ].filter(Boolean);
}

const KINDS = {
  slice: 'an export of a slice',
  record: 'a record of a prompt',
  provenance: 'the provenance of a search',
  other: 'not a document that can be checked',
};

/** The form in which documents are pasted. It is made once: what was pasted stays. */
export function drawCheck() {
  const place = byId('check');
  if (place.firstChild) return;
  const area = (id, rows, label, hint) => [
    h('label', { for: id }, label),
    hint && h('p', { class: 'hint' }, hint),
    h('textarea', { id, rows, spellcheck: 'false', autocomplete: 'off' }),
  ];
  const verdict = h('div', { id: 'verdict', 'aria-live': 'polite' });
  place.append(
    h('div', { class: 'head' }, h('h2', {}, 'Check a document')),
    h(
      'form',
      {
        class: 'controls',
        onsubmit: (event) => {
          event.preventDefault();
          check(verdict);
        },
      },
      ...area(
        'document',
        10,
        'Document',
        'What “Copy the export” and “Copy the record” beside the prompt give (graph_slice, graph_messages_record), kept ' +
          'from then on: is it unchanged, and can it be taken again? Or the provenance of a search.',
      ).filter(Boolean),
      h(
        'details',
        {},
        h('summary', {}, 'With a proof'),
        ...area('proof', 5, 'Proof, as graph_proof gives it').filter(Boolean),
        ...area('key', 4, 'Public key, in PEM').filter(Boolean),
      ),
      h('button', { type: 'submit', class: 'main', id: 'check-it' }, 'Check'),
    ),
    verdict,
  );
}

async function check(verdict) {
  const [document_, proof, key] = ['document', 'proof', 'key'].map((id) => byId(id).value.trim());
  verdict.setAttribute('aria-busy', 'true');
  try {
    if (!document_) throw new Refused(0, { message: 'There is no document.' });
    if (Boolean(proof) !== Boolean(key))
      throw new Refused(0, { message: 'A proof is checked with a public key: give both.' });
    for (const [what, text] of [['document', document_], ['proof', proof]]) {
      try {
        if (text) JSON.parse(text);
      } catch {
        throw new Refused(0, { message: `The ${what} is not JSON: paste the whole of it, as it was copied.` });
      }
    }
    const answer = await ask('/page/check', { document: document_, proof, key });
    notice(null);
    verdict.replaceChildren(...verdictOf(answer));
    say(verdict.querySelector('.answer').textContent);
  } catch (error) {
    verdict.replaceChildren();
    notice(error);
    say(error.message);
  }
  verdict.setAttribute('aria-busy', 'false');
}

function verdictOf(answer) {
  const word = (ok) => h('b', { class: ok ? 'good' : 'bad' }, ok ? '✓ valid' : '✗ not valid');
  const parts = [
    h(
      'p',
      { class: 'answer' },
      word(answer.valid),
      ` This is ${KINDS[answer.kind]}. `,
      answer.valid || !answer.reason
        ? ''
        : answer.kind === 'other'
          ? 'An export has an anchor_turn_id, a record has messages, the provenance of a search a retrieval_mode.'
          : `Reason: ${answer.reason}.`,
    ),
  ];
  if (answer.valid && answer.role) {
    parts.push(
      h(
        'p',
        { class: 'hint' },
        `Taken for the role ${answer.role}, ${answer.rls ? 'with' : 'without'} row security; key ${answer.kid}.`,
      ),
    );
  }
  if (answer.proof)
    parts.push(h('p', {}, 'Proof: ', word(answer.proof.valid), answer.proof.valid ? '' : ` ${answer.proof.reason}`));
  if (answer.replay) {
    const [first] = answer.replay;
    const says = {
      identical: 'The same slice can be taken again.',
      drifted: `Taken again it is another: ${count(answer.replay.length, 'difference')}.`,
      unreplayable: `It cannot be taken again: ${first?.field}.`,
    };
    parts.push(h('p', {}, says[first?.status] ?? ''));
    if (first?.status === 'drifted') {
      parts.push(
        table(
          ['what', 'was', 'now'],
          answer.replay.map((row) => [row.field, short(row.was, 50), short(row.now, 50)]),
        ),
      );
    }
  }
  if (answer.checks) {
    parts.push(
      h('h3', {}, 'Checks'),
      table(
        ['check', '', ''],
        answer.checks.map((row) => [row.check_name.replaceAll('_', ' '), row.ok ? '✓ ok' : '✗ wrong', row.detail]),
      ),
    );
  }
  if (answer.shown) {
    parts.push(
      h('h3', {}, 'What a model was shown'),
      h(
        'ol',
        { class: 'messages' },
        answer.shown.map((message) =>
          h(
            'li',
            { class: `message brief ${roleOf(message.role)}` },
            h(
              'span',
              { class: 'meta' },
              h('b', { class: `role ${roleOf(message.role)}` }, message.role),
              h('span', { class: `part ${message.part}` }, message.part),
              h('span', { class: `mark ${message.state}` }, message.state),
            ),
            h('p', { class: 'said' }, short(message.content, 400) || 'no text'),
          ),
        ),
      ),
    );
  }
  return parts;
}

function table(names, rows) {
  return h(
    'div',
    { class: 'wide' },
    h(
      'table',
      {},
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          names.map((name) => h('th', { scope: 'col' }, name)),
        ),
      ),
      h(
        'tbody',
        {},
        rows.map(([first, ...rest]) =>
          h(
            'tr',
            {},
            h('th', { scope: 'row' }, first),
            rest.map((text) => h('td', {}, text ?? '')),
          ),
        ),
      ),
    ),
  );
}
