// Asking the service. The token comes in the part of the address after #, which no server sees; it is kept for this tab.

const KEY = 'graph_kernel.token';

/** What the service refused: its message, and the SQLSTATE, word and hint that it gave. */
export class Refused extends Error {
  constructor(status, error) {
    super(error.message ?? 'The service gave no answer.');
    this.status = status;
    this.word = error.detail ?? '';
    this.hint = error.hint ?? '';
    this.sqlstate = error.sqlstate ?? '';
  }
}

/** Takes the token out of the address. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!given) return;
  setToken(given);
  history.replaceState(history.state, '', location.pathname + location.search);
}

export function setToken(token) {
  sessionStorage.setItem(KEY, token.trim());
}

/** The answer of the service; with `body` it is a POST. With `isText` it is the very text, which may be signed. */
export async function ask(path, body, signal, isText = false) {
  const token = sessionStorage.getItem(KEY);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const request = { method: body === undefined ? 'GET' : 'POST', headers, signal, cache: 'no-store' };
  if (body !== undefined) request.body = JSON.stringify(body);
  let response;
  try {
    response = await fetch(path, request);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refused(0, { message: 'The service cannot be reached.', hint: 'Is graph-kernel serve still running?' });
  }
  const text = await response.text();
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new Refused(response.status, { message: `The answer is not JSON: ${text.slice(0, 200)}` });
  }
  if (!response.ok) throw new Refused(response.status, answer.error ?? {});
  return isText ? text : answer;
}
