// The page of graph-kernel serve, used as a person does, in Chromium. Prints a line "ok NAME" or "not ok NAME" for each.
//
//   node page.mjs PROGRAM FOLDER: FOLDER is for what is made; GRAPH_KERNEL_BLESS=1 also draws the figures of the page's
//   documentation. The database is that of PG*.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { chromium } from 'playwright-core';

const [program, folder] = process.argv.slice(2);
const browserPath = process.env.CHROMIUM ?? '/usr/bin/chromium';
const root = process.env.GRAPH_KERNEL_ROOT;
const flags = [
  '--headless',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
if (process.getuid() === 0) flags.push('--no-sandbox');

const sql = (text) =>
  execFileSync('psql', ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-c', text], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  }).trim();
const rows = (query) => JSON.parse(sql(`SELECT coalesce(json_agg(r), '[]') FROM (${query}) AS r`));

/** A service on a free port: its address as it is printed, and how to end it. */
async function serve(...given) {
  const service = spawn(program, ['serve', '--port', '0', ...given], { stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  service.stderr.on('data', (text) => (log += text));
  const address = await new Promise((resolve, reject) => {
    service.stdout.on('data', (text) => resolve(String(text).trim()));
    service.on('exit', () => reject(new Error(`no start: ${log}`)));
  });
  const ended = new Promise((resolve) => service.on('exit', (code) => resolve(code)));
  const end = () => {
    service.kill('SIGTERM');
    return ended;
  };
  return { address, end, log: () => log };
}

let failed = 0;
const errors = [];

async function test(name, body) {
  try {
    await body();
    assert.deepEqual(errors, [], 'errors of the page');
    console.log(`ok page: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(error.stack);
    console.log(`not ok page: ${name}`);
    await page.screenshot({ path: path.join(folder, `failed-${failed}.png`) }).catch(() => {});
  }
  errors.length = 0;
}

const userFolder = fs.mkdtempSync(path.join(folder, 'chromium-'));
const browser = await chromium.launchPersistentContext(userFolder, {
  executablePath: browserPath,
  args: flags,
  viewport: { width: 1280, height: 800 },
  colorScheme: 'light',
});
await browser.grantPermissions(['clipboard-read', 'clipboard-write']);
const page = await browser.newPage();
page.setDefaultTimeout(15000);
page.on('pageerror', (error) => errors.push(String(error)));
page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));

const ready = async () => {
  await page.waitForFunction(() => document.body.getAttribute('aria-busy') !== 'true');
  // Changes of controls wait a moment for the next one.
  await page.waitForTimeout(500);
  await page.waitForFunction(() => document.body.getAttribute('aria-busy') !== 'true');
};
const state = () => Object.fromEntries(new URL(page.url()).searchParams);
const said = () => page.locator('#prompt .message .said').allTextContents();
const sum = () => page.locator('#sum').textContent();
const plain = (text) => text.replaceAll('\u202f', '');
const anchorOf = () => state().anchor;
const POLICY = (tokens) => `'{"preset": "chat", "max_tokens": ${tokens}}'`;

const service = await serve();
const latest = rows('SELECT id FROM memory_turns ORDER BY created_at DESC, id LIMIT 1')[0].id;

await test('the address that is printed opens it, and the token does not stay in the address', async () => {
  assert.match(service.address, /^http:\/\/127\.0\.0\.1:\d+\/#token=[0-9a-f]{32}$/);
  await page.goto(service.address);
  await page.getByRole('heading', { name: '5 sessions' }).waitFor();
  assert.ok(!page.url().includes('token'));
  assert.equal(await page.locator('#conversations .row').count(), 5);
  assert.match(await page.locator('#about').textContent(), /graph \u2068default\u2069 · role \u2068/);
});

await test('without the token it asks for it, and takes it where it is pasted', async () => {
  const other = await browser.newPage();
  await other.goto(new URL('/', service.address).href);
  await other.getByRole('heading', { name: 'The token is missing' }).waitFor();
  await other.getByLabel('Token').fill('0'.repeat(32));
  await other.getByRole('button', { name: 'Open' }).click();
  await other.getByRole('heading', { name: 'The token is missing' }).waitFor();
  await other.getByLabel('Token').fill(new URL(service.address).hash.slice('#token='.length));
  await other.getByRole('button', { name: 'Open' }).click();
  await other.getByRole('heading', { name: '5 sessions' }).waitFor();
  await other.close();
});

await test('a session opens at its latest turn, with the prompt that graph_messages gives', async () => {
  await page.locator('#conversations .row').first().click();
  await page.locator('#prompt .message').first().waitFor();
  assert.equal(anchorOf(), latest);
  const expected = rows(`SELECT content, tokens, cumulative_tokens FROM graph_messages('${latest}', 'chat')`);
  const total = expected.at(-1).cumulative_tokens;
  assert.equal(plain(await sum()), `${expected.length} messages, ${total} of 16000 tokens`);
  for (const button of await page.getByRole('button', { name: /^Show all/ }).all()) await button.click();
  const opened = await said();
  const all = expected.filter((message) => message.content.length <= 900).map((message) => message.content);
  assert.deepEqual(
    opened.filter((text) => text.length <= 900),
    all,
  );
});

/** What has the focus: its id, or its first class. */
const focused = () =>
  page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute('class')?.split(' ')[0] || null);

await test('what is cached is the beginning that the step before has, too', async () => {
  const text = plain(await page.locator('#cached').textContent());
  const before = rows(
    `SELECT e.parent_turn_id AS id FROM memory_turn_edges AS e WHERE e.child_turn_id = '${latest}'`,
  )[0].id;
  const [now, was] = [latest, before].map((id) => rows(`SELECT turn_id, tokens FROM graph_messages('${id}', 'chat')`));
  let [n, tokens] = [0, 0];
  while (n < was.length && now[n].turn_id === was[n].turn_id) tokens += now[n++].tokens;
  assert.match(text, new RegExp(`^As in the step before \\(user .*“.*”\\): the first ${n} messages, ${tokens} tokens`));
  assert.equal(await page.locator('#prompt .message.cached').count(), n);
  await page.getByRole('button', { name: 'show that prompt' }).click();
  await ready();
  assert.equal(anchorOf(), before);
  await page.goBack();
  await ready();
});

await test('the slider of tokens changes prompt and picture at once', async () => {
  const boxes = await page.locator('#picture .box:not(.out)').count();
  await page.locator('#max_tokens').focus();
  for (let step = 0; step < 170; step += 1) await page.keyboard.press('ArrowLeft');
  await ready();
  const tokens = Number(await page.locator('#max_tokens-number').inputValue());
  assert.ok(tokens < 1200, String(tokens));
  assert.equal(JSON.parse(state().policy).max_tokens, tokens);
  const expected = rows(`SELECT turn_id FROM graph_messages('${latest}', ${POLICY(tokens)})`);
  assert.equal(await page.locator('#prompt .message').count(), expected.length);
  assert.equal(await page.locator('#picture .box:not(.out)').count(), expected.length);
  assert.ok(expected.length < boxes);
});

await test('a turn that is missing says why, and which budget brings it in', async () => {
  const out = page.locator('#conversations li.out.onpath').first();
  const turn = await out.locator('.row').getAttribute('data-turn');
  await out.getByRole('button', { name: /^Why is this turn not in/ }).click();
  await page.getByRole('heading', { name: 'Why is this turn not in?' }).waitFor();
  await page.locator('#bring').waitFor();
  const answer = await page.locator('#answer').textContent();
  const [, tokens] = /with max_tokens (\d+) it is in/.exec(answer);
  await page.getByRole('button', { name: `Set max_tokens to ${tokens}` }).click();
  await page.getByRole('heading', { name: 'Why is this turn in?' }).waitFor();
  assert.equal(await page.locator(`#prompt [data-turn="${turn}"]`).count(), 1);
  const found = rows(`SELECT turn_id FROM graph_messages('${latest}', ${POLICY(tokens)}) WHERE turn_id = '${turn}'`);
  assert.equal(found.length, 1);
});

await test('an answer takes the focus and gives it back, and a list is one stop of the Tab key', async () => {
  await page.keyboard.press('Escape');
  const row = page.locator('#conversations .thread .row[aria-current]');
  await row.focus();
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowRight');
  assert.equal(await focused(), 'ask');
  const turn = await page.evaluate(() => document.activeElement.dataset.turn);
  await page.keyboard.press('Enter');
  await page.locator('#answer', { hasText: /\w/ }).waitFor();
  assert.equal(await focused(), 'why-title');
  await page.keyboard.press('Escape');
  await page.locator('#why').waitFor({ state: 'hidden' });
  assert.deepEqual(
    [await focused(), await page.evaluate(() => document.activeElement.dataset.turn)],
    ['ask', turn],
  );
  for (const list of ['#conversations .list', '#prompt .messages']) {
    assert.equal(await page.locator(`${list} [tabindex="0"]`).count(), 1, list);
    assert.equal(await page.locator(`${list} li > .ask:not([tabindex="-1"])`).count(), 0, list);
  }
  await page.locator('#reset').focus();
  await page.keyboard.press('Enter');
  await ready();
  assert.equal(await focused(), 'base');
  await page.goBack();
  await page.goForward();
  await ready();
});

await test('at 390 pixels an answer is seen where it is asked for, in a list that is at the anchor', async () => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.locator('#tabs').getByRole('button', { name: 'Turns' }).click();
  const within = (selector) =>
    page.locator(selector).evaluate((element) => {
      const { top, bottom } = element.getBoundingClientRect();
      return top >= 0 && bottom <= innerHeight;
    });
  assert.ok(await within('#conversations .row[aria-current]'));
  await page.locator('#conversations .row[aria-current] + .ask').click();
  await page.locator('#answer', { hasText: /anchor/ }).waitFor();
  assert.ok(await within('#why'));
  await page.locator('#why').getByRole('button', { name: 'Close' }).click();
  await page.locator('#why').waitFor({ state: 'hidden' });
  await page.locator('#tabs').getByRole('button', { name: 'Prompt' }).click();
  await page.setViewportSize({ width: 1280, height: 800 });
});

await test('a number holds without Enter, one that cannot be says so, and another policy does not lose it', async () => {
  const box = page.locator('#max_tokens-number');
  await box.fill('500');
  await page.locator('#sum', { hasText: 'of 500 tokens' }).waitFor();
  assert.equal(await focused(), 'max_tokens-number');
  const before = await said();
  for (const wrong of ['0', '-5', '1.5', '9999999999']) {
    await box.fill(wrong);
    await page.locator('#policy .wrong', { hasText: 'max_tokens is a whole number from 1 to' }).waitFor();
    assert.equal(await box.inputValue(), wrong);
    assert.deepEqual(await said(), before);
    await box.fill('500');
    await page.locator('#policy .wrong').waitFor({ state: 'detached' });
  }
  assert.ok(await page.locator('#notice').isHidden());
  await page.locator('#base').selectOption('focused');
  await ready();
  assert.match(await page.locator('#policy').textContent(), /focused counts turns, not tokens/);
  await page.locator('#base').selectOption('chat');
  await ready();
  assert.equal(await box.inputValue(), '500');
  assert.match(await page.locator('#remark').textContent(), /tokens are left free: .* cut, .*\(cut_share 0.5\)/);
  await page.locator('#cut_share').fill('0');
  await page.locator('#remark').waitFor({ state: 'detached' });
  const full = rows(`SELECT turn_id FROM graph_messages('${latest}',
    '{"preset": "chat", "max_tokens": 500, "cut_share": 0}')`);
  assert.equal(await page.locator('#prompt .message').count(), full.length);
  await box.fill('12');
  await page.locator('#remark', { hasText: 'More than max_tokens 12' }).waitFor();
  await page.getByRole('button', { name: 'Reset' }).click();
  await ready();
});

await test('the same address shows the same, and going back leads back', async () => {
  const [was, before] = [state(), await said()];
  await page.reload();
  await page.locator('#prompt .message').first().waitFor();
  await ready();
  assert.deepEqual(state(), was);
  assert.deepEqual(await said(), before);
  const turn = page.locator('#conversations .thread .row').first();
  await turn.click();
  await ready();
  assert.equal(anchorOf(), await turn.getAttribute('data-turn'));
  await page.goBack();
  await ready();
  assert.equal(anchorOf(), was.anchor);
});

await test('a turn is pinned by clicking, and unpinned', async () => {
  await page.keyboard.press('Escape');
  await page.locator('#max_tokens-number').fill('600');
  await page.keyboard.press('Tab');
  await ready();
  await page.locator('#conversations li.out .ask').first().click();
  await page.locator('#pin').click();
  await ready();
  const pins = JSON.parse(state().policy).pins;
  assert.equal(pins.length, 1);
  assert.equal(await page.locator(`#picture .box.pinned[data-turn="${pins[0]}"]`).count(), 1);
  assert.equal(await page.locator('#prompt .message.pinned').count(), 1);
  await page
    .locator('#policy')
    .getByRole('button', { name: /^Unpin/ })
    .click();
  await ready();
  assert.equal(await page.locator('#prompt .message.pinned').count(), 0);
});

await test('a question recalls, and its hits are seeds in the picture', async () => {
  await page.locator('#max_tokens-number').fill('1500');
  await page.keyboard.press('Tab');
  await ready();
  await page.locator('#query').click();
  await page.keyboard.type('duplicate invoices, leader lock', { delay: 5 });
  await ready();
  await page.locator('#prompt .message.recalled').first().waitFor();
  // A quarter of the tokens is left to what is found. It goes with the question: the address does not have it.
  assert.equal(JSON.parse(state().policy).recall_tokens, undefined);
  assert.equal(await page.locator('#recall_tokens').inputValue(), '375');
  const policy = { ...JSON.parse(state().policy), recall_tokens: 375 };
  const expected = rows(`SELECT m.turn_id, m.part FROM graph_recall(query_text => 'duplicate invoices, leader lock',
    anchor => '${latest}', policy => '${JSON.stringify({ preset: policy.base, ...policy, base: undefined })}') AS m`);
  const ids = await page
    .locator('#prompt .message .caption')
    .evaluateAll((list) => list.map((button) => button.dataset.turn));
  assert.deepEqual(
    ids,
    expected.map((message) => message.turn_id),
  );
  assert.ok((await page.locator('#picture .box.recalled.seed').count()) > 0);
  assert.equal(await page.locator('#query').inputValue(), 'duplicate invoices, leader lock');
  const [elsewhere] = rows(`SELECT (SELECT left(f.content_text, 20) FROM memory_turns AS f
    WHERE f.session_id = t.session_id ORDER BY f.created_at, f.id LIMIT 1) AS title FROM memory_turns AS t,
    memory_turns AS a WHERE t.id = ANY (ARRAY['${ids.join("','")}']::uuid[]) AND a.id = '${latest}'
    AND t.session_id <> a.session_id LIMIT 1`);
  assert.ok((await page.locator('#prompt .elsewhere').first().textContent()).startsWith('of “'));
  assert.ok((await page.locator('#prompt .elsewhere').allTextContents()).some((text) => text.includes(elsewhere.title)));
});

/** What is shown with less contrast than WCAG 2.2 asks for: 4.5 for text, 3 for large text and for what tells parts. */
const faint = () =>
  page.evaluate(() => {
    const channels = (color) => {
      const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number);
      return [r, g, b, a];
    };
    const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a), 1];
    const luminance = (color) => {
      const [r, g, b] = color
        .slice(0, 3)
        .map((value) => value / 255)
        .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ratio = (one, other) => {
      const [less, more] = [luminance(one), luminance(other)].sort((a, b) => a - b);
      return (more + 0.05) / (less + 0.05);
    };
    /** What is behind an element, with its own background or without it. */
    const ground = (element, isOwn = true) => {
      const box = element.closest?.('.box');
      if (box && element !== box && isOwn) {
        const own = element.classList.contains('letter') ? '.letterbox' : '.body';
        return channels(getComputedStyle(box.querySelector(own)).fill);
      }
      const layers = [];
      for (let at = isOwn ? element : element.parentElement; at; at = at.parentElement) {
        const color = channels(getComputedStyle(at).backgroundColor);
        layers.push(color);
        if (color[3] === 1) break;
      }
      return layers.reduceRight((under, color) => over(color, under), [255, 255, 255, 1]);
    };
    const found = [];
    const check = (element, what, color, behind, needed) => {
      const has = ratio(over(channels(color), behind), behind);
      if (has < needed) found.push(`${what} of ${element.outerHTML.slice(0, 90)}: ${has.toFixed(2)}`);
    };
    let texts = 0;
    for (const element of document.querySelectorAll('body *')) {
      if (!element.checkVisibility({ checkVisibilityCSS: true, opacityProperty: true })) continue;
      if (element.closest('.unseen, .skip, option')) continue;
      const style = getComputedStyle(element);
      const isText = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
      if (isText && !element.matches('title')) {
        const size = Number.parseFloat(style.fontSize);
        const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        const color = element.namespaceURI.endsWith('svg') ? style.fill : style.color;
        check(element, 'text', color, ground(element), isLarge ? 3 : 4.5);
        texts += 1;
      }
      if (element.matches('input[placeholder]')) {
        check(element, 'placeholder', getComputedStyle(element, '::placeholder').color, ground(element), 4.5);
      }
      if (element.matches('input:not([type=checkbox], [type=range]), select, textarea, .mark')) {
        check(element, 'border', style.borderTopColor, ground(element, false), 3);
      }
      if (element.matches('.box .body, .box .letterbox')) {
        const behind = element.matches('.body') ? element.closest('.canvas') : element;
        check(element, 'outline', style.stroke, element.matches('.body') ? ground(behind) : ground(element), 3);
      }
      if (element.matches('.edge')) check(element, 'line', style.stroke, ground(element.closest('.canvas')), 3);
    }
    return { found, texts };
  });

/** Every element that can be used, as a screen reader is told of it, that has no name. */
async function nameless() {
  const session = await browser.newCDPSession(page);
  const { nodes } = await session.send('Accessibility.getFullAXTree');
  await session.detach();
  const used = ['button', 'textbox', 'searchbox', 'combobox', 'checkbox', 'slider', 'spinbutton', 'link', 'image'];
  const among = nodes.filter((node) => !node.ignored && used.includes(node.role?.value));
  assert.ok(among.length > 3, `${among.length} controls`);
  return among.filter((node) => !node.name?.value?.trim()).map((node) => node.role.value);
}

async function shots(name) {
  assert.deepEqual(await nameless(), [], `names in ${name}`);
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [1280, 390]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: width === 390 ? 844 : 800 });
      await page.waitForTimeout(200);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${name} is ${wide} wide at ${width}`);
      const { found, texts } = await faint();
      assert.ok(texts > 5, `${texts} texts`);
      assert.deepEqual([...new Set(found)], [], `contrast of ${name}, ${colorScheme}`);
      await page.screenshot({ path: path.join(folder, `${name}-${colorScheme}-${width}.png`) });
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 800 });
}

await test('it is whole in light and dark, 1280 and 390 pixels wide', async () => {
  await page.locator('#picture .box.seed').first().scrollIntoViewIfNeeded();
  await shots('prompt');
  if (process.env.GRAPH_KERNEL_BLESS) {
    fs.copyFileSync(path.join(folder, 'prompt-light-1280.png'), path.join(root, 'docs/figures/page.png'));
  }
  await page.setViewportSize({ width: 390, height: 844 });
  for (const [name, id] of [
    ['Turns', 'conversations'],
    ['Picture', 'picture'],
    ['Prompt', 'prompt'],
    ['Policy', 'policy'],
  ]) {
    await page.locator('#tabs').getByRole('button', { name }).click();
    await page.locator(`#${id}`).waitFor({ state: 'visible' });
    await page.screenshot({ path: path.join(folder, `narrow-${id}.png`) });
  }
  await page.setViewportSize({ width: 1280, height: 800 });
});

await test('another policy, also one without tokens, is shown at once', async () => {
  await page.locator('#query').fill('');
  await ready();
  assert.equal(await page.locator('#recall_tokens').inputValue(), '');
  assert.equal(plain(await sum()).split(', ')[0], `${rows(`SELECT turn_id FROM graph_messages('${latest}', ${POLICY(1500)})`).length} messages`);
  await page.locator('#base').selectOption('focused');
  await ready();
  const expected = rows(`SELECT turn_id FROM graph_messages('${latest}', 'focused')`);
  assert.equal(await page.locator('#prompt .message').count(), expected.length);
  assert.equal(await page.locator('#max_tokens').count(), 0);
  await page.locator('#max_nodes').fill('5');
  await page.keyboard.press('Tab');
  await ready();
  assert.equal(await page.locator('#prompt .message').count(), 5);
  await page.getByRole('button', { name: 'Reset' }).click();
  await ready();
  assert.equal(await page.locator('#prompt .message').count(), expected.length);
});

await test('an error of the database says its word and its hint', async () => {
  await page.locator('#policy summary', { hasText: 'The whole policy' }).click();
  await page.locator('#whole').fill('{"max_nodes": 0}');
  await page.getByRole('button', { name: 'Use it', exact: true }).click();
  await page.locator('#notice', { hasText: 'INVALID_POLICY' }).waitFor();
  assert.match(await page.locator('#prompt .stale').textContent(), /still the prompt of before/);
  assert.match(await page.locator('#notice').textContent(), /max_nodes/);
  errors.length = 0; // the browser reports the status 400
  await page.locator('#base').selectOption('chat');
  await ready();
  assert.ok(await page.locator('#notice').isHidden());
});

await test('the picture is read and used by keyboard, and has zoom', async () => {
  const box = page.locator('#picture .box[tabindex="0"]');
  await box.focus();
  const name = await box.getAttribute('aria-label');
  assert.match(name, /, assistant, anchor, \d+ tokens, on the line: /);
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Why is this turn in?' }).waitFor();
  await page.keyboard.press('Escape');
  const width = () => page.locator('#picture .canvas > svg').getAttribute('width').then(Number);
  const was = await width();
  await page.getByRole('button', { name: 'Larger' }).click();
  assert.ok((await width()) > was);
  await page.getByRole('button', { name: 'The whole picture' }).click();
  assert.ok((await width()) < was);
  await page.getByRole('button', { name: 'Fit the width' }).click();
});

await test('a search by words finds turns of every session, and opens one', async () => {
  await page.keyboard.press('/');
  await page.keyboard.type('invoice numbers', { delay: 5 });
  await page.getByRole('list', { name: 'Turns that were found' }).waitFor();
  const first = rows(
    "SELECT turn_id, session_id FROM graph_search(query_text => 'invoice numbers', limit_count => 1)",
  )[0];
  assert.ok((await page.locator('#conversations mark').count()) > 0);
  const hit = page.locator('#conversations .list li').first();
  assert.match(await hit.textContent(), /(in, \d+|not in|anchor).*of “.+”.*Why/);
  const at = anchorOf();
  await hit.getByRole('button', { name: /^Why is this turn/ }).click();
  await page.locator('#answer', { hasText: /\w/ }).waitFor();
  assert.deepEqual([anchorOf(), state().turn], [at, first.turn_id]);
  await page.locator('#conversations .list .row').first().click();
  await ready();
  assert.deepEqual([anchorOf(), state().session], [first.turn_id, first.session_id]);
});

await test('two steps, and two policies, are compared', async () => {
  await page.goto(
    new URL(
      `/?session=${rows(`SELECT session_id FROM memory_turns WHERE id = '${latest}'`)[0].session_id}` +
        `&anchor=${latest}`,
      service.address,
    ).href,
  );
  await page.locator('#prompt .message').first().waitFor();
  await page.getByRole('navigation', { name: 'Views' }).getByRole('button', { name: 'Compare' }).click();
  await page.locator('#compared').waitFor();
  assert.match(
    plain(await page.locator('#compared').textContent()),
    /^0 turns only before \(0 tokens\), 1 turn only now/,
  );
  await page.locator('#with').selectOption('policy:focused');
  await page.locator('#compare table', { hasText: 'max_nodes' }).waitFor();
  assert.match(await page.locator('#compared').textContent(), /only with focused/);
  const last = await page.locator('#compare table tr').last().textContent();
  assert.match(last, /[0-9a-f]{16}/);
  assert.equal(await page.locator('#compare .message.both').first().isVisible(), false);
  await page.getByLabel('differences only').uncheck();
  assert.equal(await page.locator('#compare .message.both').first().isVisible(), true);
  await page.getByLabel('differences only').check();
  await page.locator('#compare .message .said:visible').first().click();
  await page.locator('#answer', { hasText: /\w/ }).waitFor();
  assert.equal(await focused(), 'why-title');
  await page.keyboard.press('Escape');
  assert.equal(await focused(), 'said');
  const [was, now] = ["'focused'", "'chat'"].map(
    (policy) =>
      new Set(rows(`SELECT turn_id FROM graph_messages('${latest}', ${policy})`).map((message) => message.turn_id)),
  );
  const gone = [...was].filter((id) => !now.has(id)).length;
  assert.equal(await page.locator('#compare .mark.gone').count(), gone);
  assert.equal(await page.locator('#compare .mark.fresh').count(), [...now].filter((id) => !was.has(id)).length);
  assert.match(await page.locator('#compare table').textContent(), /max_nodes/);
  await shots('compare');
});

await test('an export, a record and a proof that are pasted are checked', async () => {
  await page.getByRole('navigation', { name: 'Views' }).getByRole('button', { name: 'Check' }).click();
  const check = async (document, proof = '', key = '') => {
    await page.getByLabel('Document').fill(document);
    await page.locator('#check details').evaluate((details) => (details.open = true));
    await page.getByLabel('Proof, as graph_proof gives it').fill(proof);
    await page.getByLabel('Public key, in PEM').fill(key);
    await page.locator('#verdict').evaluate((element) => element.replaceChildren());
    await page.locator('#check-it').click();
    await page.locator('#verdict .answer').waitFor();
    return page.locator('#verdict').textContent();
  };
  await page.getByLabel('Document').fill('hello');
  await page.locator('#check-it').click();
  await page.locator('#notice', { hasText: 'The document is not JSON' }).waitFor();
  assert.match(await check('{}'), /not a document that can be checked.*An export has an anchor_turn_id/);
  for (const [copied, kind] of [
    ['export', 'an export of a slice'],
    ['record', 'a record of a prompt'],
  ]) {
    await page.getByRole('navigation', { name: 'Views' }).getByRole('button', { name: 'Prompt' }).click();
    await page.getByRole('button', { name: `Copy the ${copied}` }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const text = await page.evaluate(() => navigator.clipboard.readText());
    await page.getByRole('navigation', { name: 'Views' }).getByRole('button', { name: 'Check' }).click();
    assert.match(await check(text), new RegExp(`✓ valid This is ${kind}`));
    await ready();
  }
  const slice = sql(`SELECT graph_slice('${latest}', 'focused')`);
  assert.match(await check(slice), /✓ valid This is an export of a slice.*The same slice can be taken again/s);
  assert.match(await check(slice.replace('"role":"user"', '"role":"tool"')), /✗ not valid .*Reason: digest_mismatch/s);
  const record = sql(`SELECT graph_messages_record('${latest}', ${POLICY(300)})`);
  assert.match(await check(record), /✓ valid This is a record of a prompt.*unchanged/s);
  await shots('check');
  const proof = sql(`SELECT graph_proof($doc$${slice}$doc$::json)`);
  const key = sql("SELECT public_key FROM graph_kernel.proof_keys WHERE state = 'active'");
  assert.match(await check(slice, proof, key), /Proof: ✓ valid/);
  assert.match(await check(record, proof, key), /Proof: ✗ not valid other_export/);
});

await test('a policy is registered by a role that may, and then chosen', async () => {
  await page.getByRole('navigation', { name: 'Views' }).getByRole('button', { name: 'Prompt' }).click();
  await page.locator('#max_tokens-number').fill('777');
  await page.keyboard.press('Tab');
  await ready();
  await page.locator('#policy summary', { hasText: 'Register it' }).click();
  await page.getByLabel('Name of the policy').fill('of the page');
  await page.locator('#register').click();
  await page.locator('#base option[value="of the page"]').waitFor({ state: 'attached' });
  await ready();
  assert.equal(sql("SELECT (graph_policy('of the page')::jsonb ->> 'max_tokens')"), '777');
  assert.equal(await page.locator('#base').inputValue(), 'of the page');
  assert.match(plain(await sum()), / of 777 tokens$/);
});

await test('no value of the program stands among the texts', async () => {
  const text = await page.locator('#work').innerText();
  assert.doesNotMatch(text, /^(false|null|undefined|NaN|\[object.*)$/m);
});

await test('everything that can be used has a name', async () => {
  for (const details of await page.locator('details').all()) await details.evaluate((element) => (element.open = true));
  assert.deepEqual(await nameless(), []);
});

await test('a page of another origin, and another name, read nothing', async () => {
  const elsewhere = http.createServer((_, response) => response.end('<title>elsewhere</title>'));
  await new Promise((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
  const other = await browser.newPage();
  await other.goto(`http://127.0.0.1:${elsewhere.address().port}/`);
  const target = new URL('/page/sessions', service.address).href;
  const token = new URL(service.address).hash.slice('#token='.length);
  const read = await other.evaluate(
    async ([address, bearer]) => {
      const tries = [{}, { headers: { Authorization: `Bearer ${bearer}` } }, { mode: 'no-cors' }];
      return Promise.all(
        tries.map((options) =>
          fetch(address, options).then(
            (response) => response.text(),
            (error) => error.name,
          ),
        ),
      );
    },
    [target, token],
  );
  assert.deepEqual(read, ['TypeError', 'TypeError', 'TypeError']);
  await other.close();
  elsewhere.close();
});

await test('a payload that is too deep to be read hides nothing', async () => {
  const [id, next] = rows('SELECT gen_random_uuid() AS id UNION ALL SELECT gen_random_uuid()').map((row) => row.id);
  sql(`INSERT INTO memory_turns (id, session_id, role, content_text, payload, created_at)
    SELECT turn, 'deep', 'user', text, payload::jsonb, now() FROM (VALUES
      ('${id}'::uuid, NULL, repeat('[', 5000) || repeat(']', 5000)), ('${next}', 'after it', NULL)) AS v (turn, text, payload);
    INSERT INTO memory_turn_edges VALUES ('${id}', '${next}', 'reply')`);
  await page.goto(new URL(`/?session=deep&anchor=${next}`, service.address).href);
  await page.locator('#prompt .message').first().waitFor();
  assert.equal(await page.locator('#prompt .message').count(), 2);
  assert.equal(await page.locator('#picture .box').count(), 2);
  assert.ok(await page.locator('#notice').isHidden());
  sql(`DELETE FROM memory_turn_edges WHERE child_turn_id = '${next}'; DELETE FROM memory_turns WHERE session_id = 'deep'`);
});

await test('no stored text turns what stands beside it, and its control characters are shown', async () => {
  const turned = (letter) => `'${letter}\u202e${letter}\u2069\u202d' || chr(7) || chr(27) || '\u05d0'`;
  const [first, next] = rows('SELECT gen_random_uuid() AS id UNION ALL SELECT gen_random_uuid()').map((row) => row.id);
  sql(`INSERT INTO memory_turns (id, session_id, role, content_text, created_at)
    SELECT turn, ${turned('§')}, ${turned('§')}, ${turned('§')}, now() + n * interval '1 second'
    FROM (VALUES (1, '${first}'::uuid), (2, '${next}')) AS v (n, turn);
    INSERT INTO memory_turn_edges VALUES ('${first}', '${next}', 'reply')`);
  await page.goto(service.address);
  const check = async () => {
    const wrong = await page.evaluate(() => {
      const found = [];
      const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      let seen = 0;
      while (nodes.nextNode()) {
        const node = nodes.currentNode;
        if (/[^\P{Cc}\t\n]/u.test(node.data)) found.push(`control: ${node.data}`);
        if (!/\u202e/.test(node.data) || node.parentElement.matches('title')) continue;
        seen += 1;
        const style = getComputedStyle(node.parentElement);
        const isApart = style.unicodeBidi.startsWith('isolate') || !style.display.startsWith('inline');
        if (!isApart || /[^§\u202e\u2069\u202d\ufffd\u05d0]/.test(node.parentElement.textContent))
          found.push(node.parentElement.outerHTML);
      }
      return [seen, found];
    });
    assert.deepEqual(wrong[1], []);
    assert.ok(wrong[0] > 0);
  };
  await page.locator('#conversations .row', { hasText: '§' }).waitFor();
  await check();
  await page.locator('#conversations .row', { hasText: '§' }).click();
  await page.locator('#prompt .message').first().waitFor();
  await ready();
  await check();
  await page.locator('#prompt .caption').first().click();
  await page.locator('#answer', { hasNotText: '…' }).waitFor();
  await check();
  await page.locator('#conversations input[type=search]').fill('§');
  await ready();
  await check();
  sql(`DELETE FROM memory_turn_edges WHERE child_turn_id = '${next}';
    DELETE FROM memory_turns WHERE id IN ('${first}', '${next}')`);
});

await test('it ends when it is told to, and its log has no token', async () => {
  assert.equal(await service.end(), 0);
  assert.ok(!service.log().includes(new URL(service.address).hash.slice('#token='.length)), service.log());
});

const tables = await serve('--graph', 'chat', '--database', `user=page_reader`);

await test('tables of an application that are bound show the same, and no text becomes markup', async () => {
  await page.goto(tables.address);
  await page.locator('#conversations .row', { hasText: 'first' }).click();
  await page.locator('#prompt .message').first().waitFor();
  assert.equal(state().session, 'room <b>one</b>');
  assert.equal(await page.locator('#prompt .message').count(), 12);
  assert.match((await said())[0], /^<img src=x onerror=/);
  assert.match((await said())[3], /^<\/p><\/li><a href=/);
  assert.equal(await page.locator('#work img, #work a, #work script, #work b:has(b)').count(), 0);
  assert.deepEqual(
    await page.locator('#prompt .caption b').allTextContents(),
    Array.from({ length: 6 }, () => ['user', 'assistant']).flat(),
  );
  await page.locator('#conversations .thread .row').nth(5).click();
  await ready();
  assert.equal(await page.locator('#prompt .message').count(), 6);
  assert.equal(await page.title(), 'graph_kernel');
});

await test('a graph without words says so before a question, and a question of the address does not hide it', async () => {
  assert.ok(await page.locator('#query').isDisabled());
  assert.match(await page.locator('#no-words').textContent(), /no words to search by/);
  await page.locator('#conversations input[type=search]').fill('message 5');
  await page.locator('#conversations .hint', { hasText: '1 turn, with exactly this text' }).waitFor();
  await page.locator('#conversations input[type=search]').fill('');
  const token = new URL(tables.address).hash.slice('#token='.length);
  const answer = await page.evaluate(
    async ([anchor, bearer]) => {
      const body = JSON.stringify({ anchor, policy: { preset: 'chat' }, query: 'message' });
      const headers = { Authorization: `Bearer ${bearer}`, 'Content-Type': 'application/json' };
      const response = await fetch('/page/context', { method: 'POST', headers, body });
      return [response.status, (await response.json()).error];
    },
    [anchorOf(), token],
  );
  assert.equal(answer[0], 422);
  assert.match(answer[1].hint, /tsvector.*graph_kernel\.binding/);
  const address = new URL(page.url());
  address.searchParams.set('query', 'message');
  address.searchParams.set('policy', JSON.stringify({ base: 'chat', max_tokens: 500 }));
  await page.goto(address.href);
  await page.locator('#notice', { hasText: 'This graph has no words to search by' }).waitFor();
  assert.equal(await page.locator('#max_tokens-number').inputValue(), '500');
  await page.locator('#query').fill('');
  await page.locator('#prompt .message').first().waitFor();
  assert.ok(await page.locator('#notice').isHidden());
  await page.getByRole('button', { name: 'Reset' }).click();
  await ready();
  errors.length = 0; // the browser reports the status 422
});

await test('a role that may not register is told so', async () => {
  assert.match(await page.locator('#policy').textContent(), /The role \u2068page_reader\u2069 may not register policies/);
});

await test('a thousand turns are drawn', async () => {
  await page.getByRole('button', { name: '← Sessions' }).click();
  await page.locator('#conversations .row', { hasText: 'turn 1 of the long' }).click();
  await page.locator('#picture .box').first().waitFor();
  assert.equal(await page.locator('#picture .box').count(), 1000);
  assert.equal(await page.locator('#picture .edge.line').count(), 999);
  await page.getByRole('button', { name: 'The whole picture' }).click();
  const [drawing, pane] = await Promise.all(
    ['#picture .canvas > svg', '#picture .canvas'].map((of) => page.locator(of).boundingBox()),
  );
  assert.ok(drawing.height <= pane.height + 1, `${drawing.height} in ${pane.height}`);
  await page.getByRole('button', { name: /^Line begins/ }).click();
});
await tables.end();

await browser.close();
fs.rmSync(userFolder, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
