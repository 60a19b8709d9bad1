// The controls of the page: they change the state, which is run after every change and kept in the address.
import {
  decode, emptyState, emptyStep, encode, nameOf, scenarioOf, stateOf, stepsOf, words, writeWords,
} from "./state.js";
import {el, render} from "./results.js";

const $ = id => document.getElementById(id);
let state = emptyState();
let response = null; // the last response of the engine
let selected = -1; // index of the step whose result is shown, among all steps; -1 is the last step
let examples = [];

const page = {busy: true, runs: 0, time: 0, error: ""}; // for tests of the page
globalThis.playground = page;

// The engine is WebAssembly, in a worker.
const pending = new Map();
const worker = new Worker("worker.js");
let id = 0;
worker.onmessage = ({data}) => {
  if (data.error && data.id === undefined) tell("The engine could not be loaded: " + data.error, true);
  const waiting = pending.get(data.id);
  pending.delete(data.id);
  if (waiting) data.error ? waiting.reject(new Error(data.error)) : waiting.resolve(data);
};
worker.onerror = event => tell("The engine could not be loaded: " + event.message, true);
const ask = request => new Promise((resolve, reject) => {
  pending.set(++id, {resolve, reject});
  worker.postMessage({id, request});
});

function tell(text, failed = false) {
  $("message").textContent = text;
  $("message").classList.toggle("error", failed);
  $("message").hidden = text === "";
  page.error = failed ? text : "";
}

// run runs the steps. If it is called again meanwhile, only the response of the last call is shown.
let wanted = 0;
async function run() {
  const mine = ++wanted;
  page.busy = true;
  const {steps} = stepsOf(state);
  try {
    const data = await ask(JSON.stringify({steps}));
    if (mine !== wanted) return;
    response = JSON.parse(data.response);
    page.time = data.time;
    tell(response.error || "", Boolean(response.error));
    show();
  } catch (err) {
    if (mine === wanted) tell(String(err), true);
  }
  if (mine === wanted) {
    page.busy = false;
    page.runs++;
  }
}
page.ask = ask;
page.run = request => ask(request).then(data => data.response);

let timer = 0;
function changed() {
  page.busy = true;
  clearTimeout(timer);
  timer = setTimeout(() => { run(); remember(); }, 150);
}

// remember puts the state into the address.
async function remember() {
  const fragment = "#s=" + await encode(state);
  history.replaceState(null, "", fragment);
}

// show shows the step that is selected.
function show() {
  const {steps, first} = stepsOf(state);
  const at = selected < 0 || selected >= steps.length ? steps.length - 1 : selected;
  const strip = steps.map((step, i) => {
    const outcome = response.steps[i]?.outcome || "";
    const tab = el("button", "tab " + outcome, el("b", "", step.name), el("span", "badge", outcome));
    tab.type = "button";
    tab.id = "tab-" + i;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-selected", String(i === at));
    tab.tabIndex = i === at ? 0 : -1;
    tab.addEventListener("click", () => select(i));
    return tab;
  });
  $("strip").replaceChildren(...strip);
  [...$("steps").children].forEach((card, i) => {
    const outcome = response.steps[first + i]?.outcome || "";
    card.classList.toggle("selected", first + i === at);
    card.querySelector(".badge").textContent = outcome;
    card.querySelector(".badge").className = "badge " + outcome;
  });
  const step = response.steps[at];
  $("result").replaceChildren(...(step ? render(step, way => takeWay(at - first, way)) : []));
}

function select(i, focus = true) {
  selected = i;
  show();
  if (focus) $("tab-" + i)?.focus();
}

// takeWay adds a write that takes a way out of the conflicts of a step.
function takeWay(index, way) {
  const from = state.steps[index];
  state.steps.splice(index + 1, 0, {...from, force: way.force, body: way.intent});
  selected = stepsOf(state).first + index + 1;
  fill();
  changed();
  $("results").focus();
}

// A card is the form of one step.
function card(step, index) {
  const field = (name, title, hint) => {
    const input = el("input");
    input.type = "text";
    input.value = step[name];
    input.placeholder = hint;
    input.autocomplete = "off";
    input.spellcheck = false;
    input.dataset.field = name;
    input.addEventListener("input", () => { step[name] = input.value; changed(); });
    return el("label", "small", title + " ", input);
  };
  const word = el("select");
  word.setAttribute("aria-label", "Step " + (index + 1));
  for (const w of words) {
    const option = el("option", "", w);
    option.value = w;
    option.selected = w === step.word;
    word.append(option);
  }
  word.addEventListener("change", () => { step.word = word.value; fill(); changed(); });
  const isWrite = writeWords.includes(step.word);
  const first = el("div", "row", word);
  if (isWrite || step.word === "extract") first.append(field("manager", "as", "manager"));
  if (step.word === "apply") {
    const force = el("input");
    force.type = "checkbox";
    force.checked = step.force;
    force.addEventListener("change", () => { step.force = force.checked; changed(); });
    first.append(el("label", "small", force, " force"));
  }
  if (isWrite || step.word === "extract") first.append(field("subresource", "to", "subresource"));
  if (isWrite) first.append(field("version", "at", "version"));
  if (step.word === "schema" || step.word === "interleave" || step.rest) {
    first.append(field("rest", "", step.word === "schema" ? "versions" : "limit=N seed=N"));
  }
  first.append(el("span", "badge"));
  const buttons = el("span", "buttons");
  const button = (text, title, action, disabled) => {
    const b = el("button", "icon", text);
    b.type = "button";
    b.title = title;
    b.setAttribute("aria-label", title + ", step " + (index + 1));
    b.disabled = disabled;
    b.addEventListener("click", () => { action(); fill(); changed(); });
    buttons.append(b);
  };
  const move = by => { state.steps.splice(index + by, 0, ...state.steps.splice(index, 1)); };
  button("↑", "Move up", () => move(-1), index === 0);
  button("↓", "Move down", () => move(1), index === state.steps.length - 1);
  button("×", "Remove", () => { state.steps.splice(index, 1); }, false);
  first.append(buttons);
  const item = el("li", "card", first);
  if (!["deduced", "extract", "interleave"].includes(step.word)) {
    const body = el("textarea");
    body.value = step.body;
    body.rows = Math.min(16, Math.max(4, step.body.split("\n").length));
    body.spellcheck = false;
    body.autocapitalize = "off";
    body.setAttribute("aria-label", "Body of step " + (index + 1) + ", " + nameOf(step));
    body.addEventListener("input", () => { step.body = body.value; changed(); });
    item.append(body);
  }
  item.addEventListener("focusin", () => {
    const at = stepsOf(state).first + index;
    if (response && selected !== at) select(at, false);
  });
  return item;
}

const typeHints = {
  builtin: "The kind is that of the first write or of the stored object.",
  crd: "The definition, as YAML.",
  schema: "The fields of the kind Thing, as in a CustomResourceDefinition; a field called status makes a subresource.",
  deduced: "Without a schema, maps merge entry by entry, and lists are atomic.",
};

// fill shows the state in the controls.
function fill() {
  const {type} = state;
  $("type").value = type.word;
  $("type-hint").textContent = typeHints[type.word];
  $("definition").value = type.body;
  $("definition-field").hidden = type.word !== "crd" && type.word !== "schema";
  $("definition-title").textContent = type.word === "crd" ? "CustomResourceDefinition" : "Fields";
  $("versions").value = type.versions;
  $("versions-field").hidden = type.word !== "schema";
  $("live").value = state.live;
  $("steps").replaceChildren(...state.steps.map(card));
}

function add() {
  const last = state.steps.at(-1);
  const step = emptyStep();
  if (last && writeWords.includes(last.word)) step.body = last.body;
  state.steps.push(step);
  selected = -1;
  fill();
  changed();
  $("steps").lastElementChild.querySelector("input")?.focus();
}

// load shows what a fragment names: a state, an example, or the first example of a rule.
async function load() {
  const fragment = decodeURIComponent(location.hash.slice(1));
  page.busy = true;
  selected = -1;
  if (fragment.startsWith("s=")) {
    try {
      state = await decode(fragment.slice(2));
      choose(null);
      fill();
      return run();
    } catch (err) {
      state = emptyState();
      fill();
      page.busy = false;
      return tell("The link can't be read: " + err.message, true);
    }
  }
  const name = fragment.replace(/^example=/, "");
  const example = examples.find(e => e.name === name) || examples.find(e => e.name.startsWith(name + "-")) ||
    examples.find(e => e.rules.includes(name)) ||
    examples.find(e => e.name === "5.1-conflict-force-and-sharing") || examples[0];
  state = example ? stateOf(example.steps) : emptyState();
  choose(example);
  fill();
  return run();
}

function choose(example) {
  $("example").value = example ? example.name : "";
  $("told").hidden = !example;
  if (!example) return;
  const rules = el("b", "", "Rule " + example.rules.join(", "));
  $("told").replaceChildren(rules, " " + example.about.replace(/\s+/g, " "));
}

function listExamples() {
  const chapters = new Map();
  for (const e of examples) {
    const chapter = e.name.split(".")[0];
    if (!chapters.has(chapter)) {
      const group = el("optgroup");
      group.label = "Chapter " + chapter;
      chapters.set(chapter, group);
    }
    const option = el("option", "", e.name.replace(/-/g, " "));
    option.value = e.name;
    chapters.get(chapter).append(option);
  }
  $("example").append(...chapters.values());
}

async function copy(button, text) {
  let done = "Copied";
  try { await navigator.clipboard.writeText(text); } catch { done = "Not copied"; }
  const before = button.textContent;
  button.textContent = done;
  setTimeout(() => { button.textContent = before; }, 1500);
}

$("type").addEventListener("change", () => { state.type.word = $("type").value; fill(); changed(); });
$("definition").addEventListener("input", () => { state.type.body = $("definition").value; changed(); });
$("versions").addEventListener("input", () => { state.type.versions = $("versions").value; changed(); });
$("live").addEventListener("input", () => { state.live = $("live").value; changed(); });
$("add").addEventListener("click", add);
$("example").addEventListener("change", () => {
  if ($("example").value) location.hash = "example=" + $("example").value;
});
$("link").addEventListener("click", async () => { await remember(); copy($("link"), location.href); });
$("scenario").addEventListener("click", () => copy($("scenario"), scenarioOf(state)));
addEventListener("hashchange", load);

const themes = ["auto", "light", "dark"];
let theme = 0;
$("theme").addEventListener("click", () => {
  theme = (theme + 1) % themes.length;
  if (theme) document.documentElement.dataset.theme = themes[theme];
  else delete document.documentElement.dataset.theme;
  $("theme").textContent = ["Auto", "Light", "Dark"][theme];
  $("theme").setAttribute("aria-label", "Theme: " + ["automatic", "light", "dark"][theme]);
});

addEventListener("keydown", event => {
  const count = response?.steps.length || 0;
  const at = selected < 0 || selected >= count ? count - 1 : selected;
  const onTab = event.target.getAttribute?.("role") === "tab";
  if (event.key === "Escape") document.activeElement.blur();
  else if (event.altKey && event.key === "a") { event.preventDefault(); add(); }
  let by = 0;
  if (event.altKey && event.key === "ArrowDown" || onTab && event.key === "ArrowRight") by = 1;
  if (event.altKey && event.key === "ArrowUp" || onTab && event.key === "ArrowLeft") by = -1;
  if (!by) return;
  event.preventDefault();
  if (at + by >= 0 && at + by < count) select(at + by);
});

try {
  examples = await (await fetch("examples.json")).json();
} catch (err) {
  tell("The examples could not be loaded: " + err, true);
}
page.examples = examples;
listExamples();
await load();
