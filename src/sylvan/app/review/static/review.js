// The page is a function of the state that the server sends. All requests go one after the other, and the next cell
// is shown when the decision before is on the disk. A key counts for a cell that somebody can have seen: one that is
// pressed while a decision is on its way, or that hits a cell which has only just come, is not taken. Text of users is
// only ever put in as text.

const $ = (id) => document.getElementById(id);
const SAID = { confirmed: "yes", rejected: "no", unsure: "cannot tell" };
const MARK = { confirmed: "✓", rejected: "✗", unsure: "?" };
const FILES = {
  "certificate.txt": "what is promised, in sentences", "report.html": "a short report that can be sent on",
  "decisions.csv": "all draws and decisions; a person's last word on a cell counts",
  table: "the table, with confirmed cells and the suggested ones of the list",
};
const HINTS = {
  count: "These cells narrow the count of missing labels. They bring no list nearer to its certificate.",
  list: "These cells bring a list nearer to its certificate. They do not narrow the count of missing labels.",
};
const LIKELY = [
  [0.95, "almost certainly present"], [0.75, "probably present"], [0.55, "rather present than not"],
  [0.45, "as likely as not"], [0.25, "rather absent"], [0.05, "probably absent"], [0, "almost certainly absent"],
];
const FIRST_VALUES = 12;
const GLANCE = 200; // milliseconds in which nobody has seen what is asked: a second key is a slip
const FEW_PIXELS = 64; // in a picture that is shown larger, dots and not a blur

let state = null; // what the server said last
let order = readOrder();
let trouble = null; // why the server cannot be reached now: "network" or "expired"
let era = 0; // keys pressed before a surprise are not meant for the cell that it shows
let turn = Promise.resolve();
let waiting = 0; // requests under way or in line
let deciding = false; // whether a decision is among them
let looks = 0; // cells that have come
let asked = 0; // times in a row that we have asked for what is not there yet
let timer = null;
let wake = () => {};
let finished = false; // whether the page shows what was written
const drawn = {}; // what parts of the page show, to leave alone what has not changed

// -- small helpers
const whole = (number) => Math.round(number).toLocaleString("en");
const many = (n, one, more) => `${whole(n)} ${Math.round(n) === 1 ? one : more}`;
const known = (number) => typeof number === "number" && Number.isFinite(number);
function number(text) { return /^[\d.]+$/.test(text ?? "") ? Number(text) : null; }
const announce = (text) => { $("live").textContent = text; };

function percent(share) {
  if (share > 0 && share < 0.005) return "under 1 %";
  return share < 1 && share > 0.995 ? "over 99 %" : `${Math.round(100 * share)} %`;
}

function make(node, props, children) {
  for (const name in props) name === "onclick" ? (node.onclick = props[name]) : node.setAttribute(name, props[name]);
  node.append(...children.filter((child) => child !== null));
  return node;
}

const SVG = "http://www.w3.org/2000/svg";
const el = (tag, props = {}, ...children) => make(document.createElement(tag), props, children);
const svg = (tag, props, ...children) => make(document.createElementNS(SVG, tag), props, children);

function show(id, ...parts) {
  $(id).replaceChildren(...parts);
  $(id).hidden = parts.join("") === "";
}

/** Say something above the cell, which makes room for it; where somebody has scrolled away, it is brought to sight. */
function tell(text) {
  const before = $("notice").textContent;
  show("notice", text ?? "");
  if (text && text !== before) $("notice").scrollIntoView({ block: "nearest" });
}

/** Whether a part of the page has to be drawn anew. */
function changed(part, ...facts) {
  const before = drawn[part];
  drawn[part] = JSON.stringify(facts);
  return drawn[part] !== before;
}

/** Keep something in this tab, also if it is loaded again, or in all tabs; private windows may refuse. */
function remember(key, value, where = "sessionStorage") {
  try { window[where].setItem(key, JSON.stringify(value)); } catch { /* it is lost with the page */ }
}
function recall(key, where = "sessionStorage") {
  try { return JSON.parse(window[where].getItem(key)); } catch { return null; }
}

// -- the server
function readOrder() {
  const said = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  return { by: said.by === "probability" ? "probability" : "value", label: number(said.label), row: number(said.row) };
}

const query = () => String(new URLSearchParams(Object.entries(order).filter(([, value]) => value !== null)));

/** One request. Throws "network" or "expired"; anything else is an answer. */
async function request(path, body) {
  const how = { cache: "no-store", credentials: "same-origin" };
  if (body !== null) {
    how.method = "POST";
    how.headers = { "Content-Type": "application/json" };
    how.body = JSON.stringify({ ...body, order });
  }
  // Writing a large table takes its time; anything else is answered at once.
  how.signal = AbortSignal.timeout(path === "/api/finish" ? 3_600_000 : 30_000);
  const response = await fetch(path, how).catch(() => null);
  const answer = await response?.json().catch(() => null);
  if (response?.status === 401 || response?.status === 403) throw "expired";
  if (!answer) throw "network";
  return { status: response.status, answer };
}

/** Ask until there is an answer. A request that is sent twice has the same id, so that it counts once. */
async function insist(path, body = null) {
  for (let attempt = 0; ; attempt++) {
    try {
      const found = await request(path, body);
      if (trouble !== null) announce("The server answers again.");
      drawTrouble(null);
      return { ...found, again: attempt > 0 };
    } catch (why) {
      if (why !== "network" && why !== "expired") throw why;
      drawTrouble(why, body);
      await new Promise((resume) => { wake = resume; setTimeout(resume, Math.min(1000 * 2 ** attempt, 5000)); });
    }
  }
}

function inTurn(task, after = () => {}) {
  const mine = era;
  waiting += 1;
  clearTimeout(timer);
  $("cell").setAttribute("aria-busy", "true");
  turn = turn.then(() => (mine === era ? task() : null)).catch((problem) => {
    console.error(problem);
    tell(`Something went wrong on this page (${problem}). What was decided is stored; load the page again.`);
  }).finally(() => {
    after();
    waiting -= 1;
    $("cell").setAttribute("aria-busy", waiting > 0);
    later();
  });
}

/** Store what somebody said of a cell. It is kept in this tab until the server has it. */
async function store(path, body, again = false) {
  remember("unsent", { path, body, file: state.file, title: state.title });
  const found = await insist(path, body);
  remember("unsent", null);
  const now = found.answer.cell;
  const done = now?.cell === body.cell && now.decision === (body.decision ?? null);
  if (found.status === 409 && (again || found.again) && done) {
    // It was stored, and only the answer was lost.
    await (path === "/api/withdraw" ? accept({ status: 200, answer: { ...found.answer, notice: null } }) : goOn());
  } else {
    accept(found, body.decision ? `“${SAID[body.decision]}” was not stored. ` : "Nothing was undone. ");
  }
}

function accept({ status, answer }, failed = "") {
  asked = 0;
  if (status !== 200) era += 1;
  if (status === 200 || (status === 409 && "file" in answer)) draw(answer);
  if (status === 200) tell(answer.notice);
  else tell(failed + (answer.notice ?? answer.error ?? `The server answered ${status}.`));
}

/** What there is now. An address may name a label or a row that is not here: then all are shown. */
async function refresh() {
  const found = await insist(`/api/state?${query()}`);
  if (found.status !== 400 || (order.label === null && order.row === null)) return accept(found);
  order = { ...order, label: null, row: null };
  history.replaceState(null, "", `#${query()}`);
  await refresh();
  tell(`${found.answer.error} All labels and rows are shown.`);
}

const goOn = () => post("/api/show", { cell: null });
const post = async (path, body = {}) => accept(await insist(path, { ...body, id: crypto.randomUUID() }));

/** Ask again for what is on its way: reasons, counts, a fit. A cell is never exchanged under somebody's eyes. */
async function poll() {
  const { cell, phase } = state;
  const { status, answer } = await insist(`/api/state?${query()}`);
  if (status === 200) draw(cell === null || answer.cell?.cell === cell.cell ? answer : { ...answer, cell, phase });
}

function later() {
  clearTimeout(timer);
  if (waiting > 0 || state === null || document.hidden) return;
  const { cell, phase, bar, refit } = state;
  const unready = cell === null ? phase !== "done" : cell.pending;
  if (!(unready || bar.counting || refit.state === "running")) return;
  timer = setTimeout(() => inTurn(poll), Math.min(1000 * 1.5 ** asked, 15_000));
  asked += 1;
}

// -- what people do
/** Keys are not taken while nothing is answered: the cell that they would be about has not been shown. */
function ready() {
  if (trouble !== null) announce("The server does not answer; this key was not taken.");
  return trouble === null && state !== null && !finished;
}

/** A key is about the cell that is seen when it is pressed, even if another one is on its way. */
function say(send) {
  if (!ready() || (state.cell === null && send !== undo)) return;
  if (deciding || (send !== undo && !("seen" in $("cell").dataset))) {
    announce("Too quick: this key was not taken.");
    return;
  }
  const id = crypto.randomUUID();
  const { cell } = state;
  deciding = true;
  inTurn(() => send(id, cell), () => { deciding = false; });
}

const decide = (decision) => say((id, cell) =>
  store("/api/decide", { cell: cell.cell, decision, id, was: cell.decision }));

async function undo(id) {
  const [last] = state.recent;
  if (last === undefined) tell("There is nothing to undo.");
  else await store("/api/withdraw", { cell: last.cell, id, was: last.decision });
}

function showAgain(cell) {
  finished = false;
  inTurn(() => post("/api/show", { cell }).then(lookUp));
}

/** To where the bar and the question are. */
function lookUp() {
  $("cell").focus({ preventScroll: true });
  scrollTo(0, 0);
}

function setOrder(change) {
  order = { ...order, ...change };
  history.pushState(null, "", `#${query()}`);
  inTurn(refresh);
}

async function finish() {
  $("finish-note").textContent = "Writing …";
  const found = await insist("/api/finish", { id: crypto.randomUUID() });
  finished = found.status === 200;
  accept(found);
  drawNext();
  if (finished) lookUp();
}

function drawMore() {
  if (!$("n").reportValidity()) return;
  if (order.label !== null || order.row !== null) history.pushState(null, "", `#by=${order.by}`);
  order = readOrder(); // cells of an audit are of all rows and labels
  const wanted = { n: number($("n").value), precision: number($("precision").value) };
  inTurn(() => post("/api/audit", wanted).then(lookUp));
  $("draw").open = false;
}

const ACTIONS = {
  yes: () => decide("confirmed"), no: () => decide("rejected"), unsure: () => decide("unsure"),
  undo: () => say(undo),
  leave: () => { if (ready() && state.cell?.decision != null) inTurn(goOn); },
  again: () => wake(), audit: drawMore, refit: () => inTurn(() => post("/api/refit")), finish: () => inTurn(finish),
  help: () => $("keys").showModal(), close: () => $("keys").close(),
  "go-on": () => { finished = false; inTurn(refresh); }, all: () => setOrder({ label: null, row: null }),
  "one-row": () => setOrder({ row: order.row === null ? Number(state.cell.cell.split(".")[0]) : null }),
};
for (const [id, action] of Object.entries(ACTIONS)) {
  $(id).addEventListener("click", (event) => {
    if (state === null && !["again", "help", "close"].includes(id)) return;
    action();
    // A pointer leaves the focus on its button, where the next space would press it again.
    if (event.detail > 0 && event.currentTarget.closest("#buttons")) $("cell").focus({ preventScroll: true });
  });
}
$("by").addEventListener("change", () => setOrder({ by: $("by").value }));
$("label").addEventListener("change", () => setOrder({ label: number($("label").value) }));
const hint = () => { $("draw-hint").textContent = $("precision").value ? HINTS.list : HINTS.count; };
$("precision").addEventListener("change", hint);
hint(); // a browser may keep what was chosen before
$("use-keys").checked = recall("keys") ?? true;
$("use-keys").addEventListener("change", () => remember("keys", $("use-keys").checked));

const KEYS = { a: "yes", x: "no", " ": "unsure", Backspace: "undo", Escape: "leave", "?": "help" };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || $("keys").open) return;
  const at = event.target instanceof Element ? event.target : document.body;
  // A space on a button presses the button, and fields take what is typed.
  if (at.closest("input, select, textarea") || (event.key === " " && at.closest("button, summary, a"))) return;
  // Alphabets without a and x have others at their places.
  const letter = event.key > "\x7f" ? event.code.slice(3) : event.key;
  const key = letter.length === 1 ? letter.toLowerCase() : letter;
  if (!(key in KEYS) || (KEYS[key] !== "help" && !$("use-keys").checked)) return;
  event.preventDefault();
  if (!event.repeat) ACTIONS[KEYS[key]](); // a key that is held down says one thing
});

// On a phone there is no room for what the list's certificate says, until somebody asks.
const narrow = matchMedia("(max-width: 44rem)");
const fold = () => { $("certificate").open = !narrow.matches; };
narrow.addEventListener("change", fold);
fold();
const sideways = new ResizeObserver(() => {
  $("sideways").hidden = $("beside").scrollWidth <= $("beside").clientWidth + 1;
});
for (const id of ["beside", "rows"]) sideways.observe($(id));

addEventListener("popstate", () => { order = readOrder(); inTurn(refresh); });
addEventListener("pageshow", (event) => { if (event.persisted) inTurn(refresh); });
addEventListener("online", () => wake());
addEventListener("beforeunload", (event) => { if (trouble !== null && recall("unsent")) event.preventDefault(); });
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  wake();
  // Another tab may have decided the cell meanwhile; one that is being changed stays.
  if (state !== null && waiting === 0 && !finished && state.cell?.decision == null) inTurn(refresh);
});

// -- what is shown
function drawTrouble(why, body = null) {
  const before = trouble;
  trouble = why;
  $("trouble").hidden = why === null;
  for (const button of $("buttons").children) button.setAttribute("aria-disabled", why !== null);
  if (why === null) return;
  const reason = why === "expired"
    ? "The link of this page has expired, since sylvan review was started again. Open its new link in any tab."
    : "The server does not answer. If sylvan review has ended, start it again.";
  const kept = body?.decision ? ` “${SAID[body.decision]}” is not stored yet; it is kept and will be sent.` : "";
  const safe = ` What was decided before is safe${state ? ` in ${state.file}` : ""}.`;
  if ($("trouble-text").textContent !== reason + kept + safe) $("trouble-text").textContent = reason + kept + safe;
  if (before === null) $("trouble").scrollIntoView({ block: "nearest" });
}

function draw(next) {
  const before = state?.cell ?? null;
  const focus = document.activeElement;
  state = next;
  show("title", state.title);
  show("who", `${many(state.n_rows, "row", "rows")} · ${state.user} · ${state.file}`);
  drawBar(state.bar, state.audit);
  drawCell(state.cell, before);
  drawRecent(state.recent, state.cell);
  drawOrder();
  drawNext();
  if (focus !== document.body && !focus?.checkVisibility()) $("cell").focus({ preventScroll: true });
}

function drawBar(bar, audit) {
  if (!changed("bar", bar, audit)) return;
  const note = (texts) => el("span", { class: "note" }, texts.filter(Boolean).join(" "));
  const line = (bold, ...soft) => [el("b", {}, bold), " ", note(soft)];
  const left = bar.wanted;
  const early = audit.planned > 0 && (left > 0 || !bar.audited);
  const wanted = left > 0 ? `: ${many(left, "more answer", "more answers")}` : "";
  const missing = early ? `Too early to count${wanted}`
    : `${many(bar.missing, "label", "labels")} missing (${whole(bar.low)} to ${whole(bar.high)})`;
  const counting = bar.counting && left === 0 ? "being counted …" : "";
  show("missing", ...line(missing, bar.audited || early ? "" : "by the model's word", counting));
  const counts = `${whole(bar.confirmed)} yes · ${whole(bar.rejected)} no · ${whole(bar.unsure)} cannot tell`;
  show("decided", ...line(`${whole(bar.decided)} decided`, counts));
  $("answered").hidden = audit.answered === audit.planned;
  $("answered").max = Math.max(audit.planned, 1);
  $("answered").value = audit.answered;
  show("progress", audit.planned ? `${whole(audit.answered)} of ${whole(audit.planned)} audit cells answered` : "");
  const certified = bar.certified ? `${many(bar.certified, "cell", "cells")} certified` : "No certified list yet";
  $("certified").textContent = certified;
  show("promise", bar.note ?? "");
  for (const id of ["interval", "scale"]) $(id).toggleAttribute("hidden", early);
  drawInterval(bar, bar.audited && !early);
}

/** The interval on a scale that jumps seldom. The first one stays in pale, to show how far it has shrunk. */
function drawInterval(bar, settled) {
  const key = `first ${state.file} ${state.title}`;
  const kept = recall(key, "localStorage");
  const first = settled ? (kept?.length === 2 && kept.every(known) ? kept : [bar.low, bar.high]) : null;
  remember(key, first, "localStorage"); // none, as long as nothing is counted: another review began under this name
  const end = Math.max(bar.high, first?.[1] ?? 0, 10);
  const power = 10 ** Math.floor(Math.log10(end));
  const most = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * power >= end) * power;
  const box = (name, low, high, y) => svg("rect", {
    class: name, x: (1000 * low) / most, width: Math.max((1000 * (high - low)) / most, 4), y, height: 26 - 2 * y,
  });
  const parts = [box("axis", 0, most, 12), ...(first ? [box("pale", ...first, 4)] : [])];
  parts.push(box(bar.audited ? "range" : "word", bar.low, bar.high, 7), box("middle", bar.missing, bar.missing, 2));
  $("interval").replaceChildren(...parts);
  $("most").textContent = whole(most);
  $("pale").hidden = first === null || (first[0] === bar.low && first[1] === bar.high);
}

const instead = () => (finished ? "finished" : state.phase === "done" ? "done" : "preparing");

function drawCell(cell, before) {
  const there = cell !== null && !finished;
  for (const id of ["buttons", "evidence", "row", "kind"]) $(id).hidden = !there;
  for (const id of ["finished", "done", "preparing"]) $(id).hidden = there || id !== instead();
  $("leave").hidden = !there || cell.decision === null;
  if (!changed("cell", cell, order.by, there || [finished, state.phase, order])) return;
  if (!there) return drawNothing();
  const audited = cell.how === "audited";
  $("kind").className = audited ? "audit" : "note";
  $("kind").textContent = audited ? "Audit: drawn at random, so the probability is hidden"
    : `Queue: the cells that ${order.by === "value" ? "tell most" : "are most probable"} come first`;
  $("question").replaceChildren("Does this row have the label ", el("mark", {}, cell.label), "?");
  $("row").replaceChildren("Row ", el("b", {}, cell.row));
  const likely = known(cell.probability) ? LIKELY.find(([least]) => cell.probability + 0.005 >= least)[1] : "";
  show("chance", likely && el("b", {}, percent(cell.probability)), likely && ` ${likely}`);
  const said = cell.decision ? `So far: ${SAID[cell.decision]}. Another answer changes it.` : "";
  show("said", said);
  drawLabels(cell.labels);
  drawValues(cell);
  drawReasons(cell);
  drawSimilar(cell);
  const came = $("cell").dataset.cell !== cell.cell || before?.decision !== cell.decision;
  $("cell").dataset.cell = cell.cell;
  document.title = `Label ${cell.label}? Row ${cell.row} · ${state.title}`;
  if (!came) return; // only its reasons did
  $("cell").classList.toggle("even"); // starts the animation anew
  awaitLook();
  if ($("question").getBoundingClientRect().top < 0) $("cell").scrollIntoView({ block: "start" });
  const chance = likely && `${percent(cell.probability)}, ${likely}.`;
  const what = audited ? "Audit, the probability is hidden." : chance;
  announce(`Does this row have the label ${cell.label}? Row ${cell.row}. ${what} ${said}`);
}

/** From when on keys are about the cell that has come. */
function awaitLook() {
  const mine = ++looks;
  delete $("cell").dataset.seen;
  const seen = () => { if (mine === looks) $("cell").dataset.seen = ""; };
  requestAnimationFrame(() => setTimeout(seen, GLANCE)); // there are no frames in a tab that nobody sees
}

/** What is shown when there is no cell to decide: what was written, nothing left, or not ready yet. */
function drawNothing() {
  const limited = order.label !== null || order.row !== null;
  const done = limited ? "No cell is left here" : "No cell is left";
  const titles = { finished: "Finished", done, preparing: "One moment …" };
  looks += 1;
  delete $("cell").dataset.cell;
  delete $("cell").dataset.seen;
  show("chance");
  show("said");
  $("all").hidden = !limited;
  if (finished) {
    $("folder").textContent = state.finished.folder;
    const entries = state.finished.files.map((name) => [el("dt", {}, name), el("dd", {}, FILES[name] ?? FILES.table)]);
    $("files").replaceChildren(...entries.flat());
    const notes = state.finished.notes ?? [];
    $("notes").replaceChildren(...notes.map((note) => el("li", {}, note)));
    $("promised").hidden = notes.length === 0;
  }
  $("question").textContent = titles[instead()];
  document.title = `${titles[instead()]} · ${state.title}`;
  announce(`${titles[instead()]}. ${$(instead()).textContent}`);
}

function drawLabels(labels) {
  const tag = (word) => (name) => el("span", { class: `tag ${word}` }, name);
  const given = ["recorded", "confirmed", "rejected"].filter((word) => labels[word].length > 0);
  const tags = (word) => labels[word].flatMap((name) => [tag(word)(name), " "]);
  const list = (word) => el("div", {}, el("dt", {}, word), el("dd", {}, ...tags(word)));
  const none = el("div", {}, el("dt", {}, "recorded"), el("dd", {}, "none"));
  $("others").replaceChildren(...(given.length ? given.map(list) : [none]));
}

function level(word) {
  const arrow = { high: "▲ high", low: "▼ low", missing: "missing" }[word];
  return arrow ? el("span", {}, " ", el("span", { class: "level" }, arrow)) : null;
}

function image(src, alt) {
  const made = el("img", { src, alt });
  made.onload = () => made.classList.toggle("dots", made.naturalHeight <= FEW_PIXELS);
  return made;
}

function drawValues(cell) {
  const told = new Set((cell.reasons ?? []).map((reason) => reason.name));
  const plain = cell.values.filter(({ kind, name, value }) => kind === "value" && !told.has(name) && value !== cell.row);
  const content = (value) => {
    const alt = `${value.name} of row ${cell.row}`;
    if (value.kind === "image" && value.url) return image(value.url, alt);
    // What has to be scrolled must be reached by the keyboard.
    const long = value.value.length > 400 ? { tabindex: "0", role: "region", "aria-label": value.name } : {};
    return el("div", { class: "words", ...long }, value.value);
  };
  const large = cell.values.filter((value) => value.kind !== "value");
  const figure = (value) => el("figure", {}, el("figcaption", {}, value.name), content(value));
  $("shown").replaceChildren(...large.map(figure));
  $("shown").classList.toggle("one", large.filter(({ kind }) => kind === "image").length === 1);
  const entry = ({ name, value, level: word }) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value || "–", level(word)));
  const cut = plain.length > FIRST_VALUES + 3 ? FIRST_VALUES : plain.length;
  $("first").replaceChildren(...plain.slice(0, cut).map(entry));
  $("rest").replaceChildren(...plain.slice(cut).map(entry));
  $("values").hidden = cell.values.length > 0 && plain.length === 0;
  const title = told.size ? "Other values of the row" : "Values of the row";
  $("values-title").textContent = cell.pending && !cell.values.length ? `${title} are being read …` : title;
  $("more").hidden = cut === plain.length;
  const left = cell.more_values ? `; ${many(cell.more_values, "further one is", "further ones are")} left out` : "";
  $("more-title").textContent = many(plain.length - cut, "more value", "more values") + left;
}

function drawReasons({ how, reasons, base, rest }) {
  $("why").hidden = how === "audited" || reasons?.length === 0;
  const all = [...(reasons ?? [])];
  const end = all.reduce((sum, reason) => sum + reason.contribution, base + (rest ?? 0));
  // Numbers as they are shown add up: what rounding leaves over is with everything else.
  const rounded = (share) => Number((100 * share).toFixed(Math.abs(share) < 0.0095 ? 1 : 0));
  const told = all.reduce((sum, reason) => sum + rounded(reason.contribution), 0);
  const others = (Math.round(100 * end) - Math.round(100 * base) - told) / 100;
  if (all.length && Math.abs(others) > 0.0005) {
    all.push({ name: "everything else", value: "", level: "", contribution: others });
  }
  const most = Math.max(...all.map((reason) => Math.abs(reason.contribution)), 0.01);
  const way = known(base) ? `, from ${percent(base)} for any row to ${percent(end)} for this one` : "";
  const wait = "The reasons are being worked out; you need not wait for them.";
  $("why-note").textContent = reasons === null ? wait : `Percentage points${way}.`;
  $("sides").hidden = all.length === 0;
  $("reasons").replaceChildren(...all.map(({ name, value, level: word, contribution }) => {
    const side = contribution > 0 ? "for" : "against";
    const width = (98 * Math.abs(contribution)) / most;
    const points = name === "everything else" ? Number((100 * Math.abs(contribution)).toFixed(1)) : Math.abs(rounded(contribution));
    const bar = svg("svg", { viewBox: "0 0 200 12", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: side, x: side === "for" ? 100 : 100 - width, width, y: 1, height: 10 }),
      svg("rect", { class: "axis", x: 99.5, width: 1, y: 0, height: 12 }));
    return el("li", {},
      el("span", {}, `${name} `, el("b", {}, value), level(word)), bar,
      el("span", { class: "points" }, ` ${side === "for" ? "+" : "−"}${points}`,
        el("span", { class: "unseen" }, ` points ${side}`)));
  }));
}

function drawSimilar(cell) {
  const similar = cell.similar ?? [];
  $("similar").hidden = similar.length === 0;
  if (!similar.length) return;
  $("similar-title").replaceChildren("Similar rows that have ", el("b", {}, cell.label), " recorded");
  // Text is too long for a table, and the row has its name already.
  const told = similar[0].values.filter(({ kind, value }) => kind !== "text" && value !== similar[0].row);
  const here = new Map([...cell.values, ...(cell.reasons ?? [])].map((value) => [value.name, value]));
  const line = (row, share, values) => {
    const by = new Map(values.map((value) => [value.name, value]));
    const cells = told.map(({ name }) => {
      const { url, value } = by.get(name) ?? {};
      return el("td", {}, url ? image(url, `${name} of ${row}`) : value || "–");
    });
    return el("tr", {}, el("th", { scope: "row" }, row), ...cells, el("td", { class: "number" }, share));
  };
  const heads = ["row", ...told.map((value) => value.name), "leaves shared"];
  $("rows").replaceChildren(
    el("thead", {}, el("tr", {}, ...heads.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, line("this row", "", [...here.values()]),
      ...similar.map(({ row, share, values }) => line(row, percent(share), values))));
}

function drawRecent(recent, shown) {
  if (changed("recent", recent)) {
    $("none").hidden = recent.length > 0;
    $("recent").replaceChildren(...recent.map(({ cell, row, label, decision }) => el("li", {}, el("button",
      { type: "button", "data-of": cell, onclick: () => showAgain(cell) },
      el("span", { class: `mark ${decision}`, "aria-hidden": "true" }, MARK[decision] ?? ""), " ",
      el("span", { class: "what" }, el("b", {}, label), " ", el("span", {}, row), " ",
        el("small", {}, SAID[decision] ?? decision)), " ",
      el("span", { class: "change" }, "change")))));
  }
  for (const button of $("recent").querySelectorAll("button")) {
    const current = !finished && shown?.decision != null && button.dataset.of === shown.cell;
    current ? button.setAttribute("aria-current", "true") : button.removeAttribute("aria-current");
  }
}

function drawOrder() {
  $("order").hidden = state.phase === "audit";
  if (changed("label names", state.labels)) {
    const options = state.labels.map((name, at) => el("option", { value: String(at) }, String(name)));
    $("label").replaceChildren(el("option", { value: "" }, "all labels"), ...options);
  }
  $("by").value = order.by;
  $("label").value = order.label === null ? "" : String(order.label);
  $("one-row").setAttribute("aria-pressed", order.row !== null);
  $("one-row").disabled = order.row === null && state.cell === null;
}

function drawNext() {
  const running = state.refit.state === "running";
  $("fitting").hidden = !running;
  $("refit").disabled = running || (state.refit.state === "idle" && state.refit.message !== ""); // which says why
  show("refit-note", state.refit.message || (running ? "Fitting again; you can go on meanwhile." : ""));
  $("refit-note").classList.toggle("failed", state.refit.state === "failed");
  $("finish-note").textContent = state.finished
    ? `Written into ${state.finished.folder}. To finish again replaces the files.`
    : "Writes the completed table, the decisions, what is promised, and a report. You can go on afterwards.";
}

// -- start
inTurn(async () => {
  await refresh();
  const unsent = recall("unsent");
  if (!unsent || state === null) return;
  remember("unsent", null);
  if (unsent.file === state.file && unsent.title === state.title) await store(unsent.path, unsent.body, true);
});
