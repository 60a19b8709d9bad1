import {$, read, show, changeTheme} from "./lines.js";

const objects = new Map(), hues = {}, kindsOfFindings = ["conflict", "drift", "fight"];
const names = {conflict: "conflicts", drift: "drift", fight: "fights", changed: "changed"};
const recent = 5 * 60e3, rowsAtOnce = 200;
const open = new Set(), rows = new Map(); // groups that are open, and how many rows of them are shown
let selected = "", view = "live", version = 0, lines = [], facets = new Set(), answer = null, findings = "";

// Invisible characters in text from objects are shown as escapes.
const text = s => s.replace(/\p{C}/gu, c => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
const make = (tag, cls, ...children) => {
  const e = document.createElement(tag);
  e.className = cls;
  e.append(...children);
  return e;
};
const hued = (e, name) => { e.style.setProperty("--h", hues[name] ?? 0); return e; };
const chip = name => hued(make("span", "chip m", text(name) || "(no name)"), name);
const said = words => make("span", "hidden", words); // for screen readers
const counted = (n, one, many) => n.toLocaleString("en") + " " + (n === 1 ? one : many);
const existing = list => list.filter(o => !o.missing); // an application or a manifest names the others
const isRecent = o => o.changed > Date.now() - recent;
const has = (o, facet) => facet === "changed" ? isRecent(o) : (o.findings?.[facet] ?? 0) > 0;
const press = (buttons, isPressed) => { for (const b of buttons) b.ariaPressed = String(isPressed(b)); };

// The server sends objects as events: first all objects, then the changed ones.
const events = new EventSource("events");
let isFirst = true;
events.onopen = () => { isFirst = true; };
events.onerror = () => { $("state").className = "lost"; $("state").textContent = "Not connected: the command has ended"; };
events.onmessage = event => {
  const update = JSON.parse(event.data), before = isFirst ? new Map(objects) : null;
  if (isFirst) objects.clear();
  isFirst = false;
  Object.assign(hues, update.hues);
  for (const o of update.objects ?? []) {
    const [kind, namespace, name] = o.key.split("/");
    const words = [kind, namespace, name, ...o.managers, ...o.apps ?? []].join("\n").toLowerCase();
    const old = (before ?? objects).get(o.key);
    objects.set(o.key, {...o, kind, namespace, name, words, isNew: old && o.changed > (old.changed ?? 0)});
  }
  for (const key of update.gone ?? []) objects.delete(key);
  $("state").className = update.incomplete ? "warned" : "live";
  $("state").textContent = counted(existing([...objects.values()]).length, "object", "objects") +
    (update.incomplete ? ", and some that could not be read: see the terminal" : ", live");
  fillManagers();
  showList();
  if (selected && (before || update.gone?.includes(selected) || update.objects?.some(o => o.key === selected))) load();
};
setInterval(() => { showList(); if (!document.hidden) load(); }, 15e3); // ages grow, and changes become old

function fillManagers() {
  const counts = new Map();
  for (const o of objects.values()) for (const m of o.managers) counts.set(m, (counts.get(m) ?? 0) + 1);
  const names = [...counts.keys()].sort(), chosen = $("manager").value;
  $("manager").replaceChildren(new Option("All managers", ""), ...names.map(m => new Option(`${text(m)} (${counts.get(m)})`, m)));
  $("manager").value = counts.has(chosen) ? chosen : "";
  $("group").hidden = ![...objects.values()].some(o => o.apps);
}

// While a button is held down, showList must not replace it: the click would be lost.
let isHeld = false;
document.onpointerdown = () => { isHeld = true; };
document.onpointerup = document.onpointercancel = () => { isHeld = false; };

// showList shows the objects that match the search and the filters, by application or namespace and then by kind.
function showList() {
  if (isHeld) return void setTimeout(showList, 100);
  const words = $("find").value.trim().toLowerCase().split(/\s+/), manager = $("manager").value;
  const byApp = !$("group").hidden && $("group").value === "application";
  const groups = new Map(), counts = {conflict: 0, drift: 0, fight: 0, changed: 0};
  let count = 0, only = "";
  const isNarrow = words[0] !== "" || manager !== "" || facets.size > 0;
  for (const o of objects.values()) {
    if (!words.every(w => o.words.includes(w)) || manager && !o.managers.includes(manager)) continue;
    for (const f in counts) if (has(o, f)) counts[f]++;
    if (![...facets].every(f => has(o, f))) continue;
    count++;
    for (const top of byApp ? o.apps ?? ["(no application)"] : [o.namespace || "(cluster)"]) {
      if (!groups.has(top)) groups.set(top, new Map());
      const kinds = groups.get(top);
      if (!kinds.has(o.kind)) kinds.set(o.kind, []);
      kinds.get(o.kind).push(o);
      only = top;
    }
  }
  const focused = document.activeElement?.dataset.id;
  $("facets").replaceChildren(...Object.entries(counts).map(([f, n]) => {
    const b = make("button", f, names[f] + " ", make("small", "", n));
    b.type = "button"; b.dataset.id = b.dataset.facet = f; b.ariaPressed = String(facets.has(f));
    b.disabled = n === 0 && !facets.has(f);
    return b;
  }));
  $("groups").replaceChildren(...[...groups].sort(([a], [b]) => a < b ? -1 : 1).map(([top, kinds]) => {
    const all = [...kinds.values()].flat();
    const isWanted = list => count <= rowsAtOnce && isNarrow || list.some(o => o.findings || o.key === selected);
    return folder(top, text(top), all, isOpen(top, groups.size === 1 || isWanted(all)), () =>
      [...kinds].sort(([a], [b]) => a < b ? -1 : 1).map(([kind, list]) => {
        const id = top + "/" + kind;
        return folder(id, text(kind.split(".")[0]), list, isOpen(id, list.length < 8 || isWanted(list)), () => rowsOf(id, list));
      }));
  }), ...count === 0 ? [make("p", "none", objects.size ? "No object is like that." : "No objects yet.")] : []);
  if (focused) document.querySelector(`#list [data-id="${CSS.escape(focused)}"]`)?.focus();
  showOverview();
}

const isOpen = (id, otherwise) => open.has(id) || otherwise && !open.has("-" + id);

function folder(id, name, list, isShown, content) {
  const e = make("details", ""), line = make("summary", "", make("span", "name", name));
  e.open = isShown;
  line.dataset.id = id;
  line.title = text(id);
  for (const f of kindsOfFindings) {
    const n = list.reduce((sum, o) => sum + (o.findings?.[f] ?? 0), 0);
    if (n) line.append(make("span", "count " + f, n.toLocaleString("en"), said(" " + names[f])));
  }
  const managers = new Set(list.flatMap(o => o.managers)).size, n = existing(list).length;
  const size = make("small", "", `${n.toLocaleString("en")} · ${counted(managers, "manager", "managers")}`);
  size.title = counted(n, "object", "objects") + " of " + counted(managers, "manager", "managers");
  line.append(size);
  e.append(line, ...isShown ? content() : []);
  line.onclick = event => {
    event.preventDefault();
    open.delete(isShown ? id : "-" + id);
    open.add(isShown ? "-" + id : id);
    showList();
  };
  return e;
}

function rowsOf(id, list) {
  const shown = rows.get(id) ?? rowsAtOnce;
  const out = list.sort((a, b) => a.name < b.name ? -1 : 1).slice(0, shown).map(row);
  if (list.length > shown) {
    const more = make("button", "more", counted(list.length - shown, "more", "more"));
    more.onclick = () => { rows.set(id, shown + 5 * rowsAtOnce); showList(); };
    more.dataset.id = "more/" + id;
    out.push(more);
  }
  return out;
}

// row returns the button that selects an object.
function row(o) {
  const b = make("button", "row" + (o.isNew ? " flash" : ""), make("span", "name", text(o.name)));
  b.type = "button";
  b.dataset.id = b.dataset.key = o.key;
  if (o.key === selected) b.setAttribute("aria-current", "true");
  for (const f of kindsOfFindings) if (has(o, f)) b.append(make("span", "dot " + f, said(names[f])));
  if (o.missing) b.append(make("small", "", "missing"));
  if (isRecent(o)) b.append(make("span", "dot changed", said("changed")));
  b.append(...o.managers.slice(0, 8).map(m => hued(make("span", "pip"), m)));
  b.title = `${text(o.kind)} ${text(o.name)}: ${o.managers.map(text).join(", ")}`;
  o.isNew = false;
  return b;
}

// showOverview shows totals of all objects, while no object is selected.
function showOverview() {
  document.body.classList.toggle("whole", selected === "");
  $("overview").hidden = selected !== "";
  $("shown").hidden = selected === "";
  if (selected) return;
  const all = [...objects.values()], tile = (n, name, cls) => make("div", "tile " + cls, make("b", "", n.toLocaleString("en")), name);
  const sum = f => all.reduce((n, o) => n + (o.findings?.[f] ?? 0), 0), managers = new Map();
  for (const o of all) for (const m of o.managers) managers.set(m, (managers.get(m) ?? 0) + 1);
  const list = (title, found) => found.length ? [make("h2", "", title), ...found.slice(0, 12).map(o => {
    const b = row(o);
    b.firstChild.prepend(make("small", "", text(o.kind.split(".")[0]) + " "), o.namespace ? text(o.namespace) + "/" : "");
    return b;
  })] : [];
  const most = Math.max(...managers.values()), bars = make("div", "bars");
  for (const [m, n] of [...managers].sort((a, b) => b[1] - a[1]).slice(0, 12)) {
    const bar = hued(make("span", "fill"), m);
    bar.style.width = 100 * n / most + "%";
    bars.append(chip(m), make("span", "track", bar), make("small", "", n.toLocaleString("en")));
  }
  $("overview").replaceChildren(
    make("div", "tiles", tile(existing(all).length, "objects", ""), tile(managers.size, "managers", ""),
      ...kindsOfFindings.map(f => tile(sum(f), names[f], sum(f) ? f : "")),
      tile(all.filter(isRecent).length, "changed just now", "changed")),
    ...list("Wants a decision", all.filter(o => kindsOfFindings.some(f => has(o, f)))),
    ...list("Changed in the last minutes", all.filter(isRecent).sort((a, b) => b.changed - a.changed)),
    ...managers.size ? [make("h2", "", "Managers, by the objects that they own fields of"), bars] : []);
  $("findings").replaceChildren();
  findings = "";
}

// load shows the selected object, as it is now or at a version. If calls overlap, only the last one has an effect.
let calls = 0;
async function load() {
  if (!selected) return;
  const call = ++calls, query = new URLSearchParams({key: selected, version, view});
  const response = objects.has(selected) && await fetch("object?" + query);
  if (call !== calls) return;
  if (!response.ok) {
    const why = response ? await response.text() : "This object was not seen yet, or does not exist any more.";
    $("object").replaceChildren(make("p", "note", why));
    $("findings").replaceChildren();
    findings = "";
    return;
  }
  const next = await response.json();
  if (call !== calls || !getSelection().isCollapsed && $("shown").contains(getSelection().anchorNode)) return;
  const isNew = answer && answer.key === selected && version === 0 && next.number > answer.number;
  answer = {...next, key: selected};
  const pressed = [...document.querySelectorAll("#filters [aria-pressed=true]")].map(b => b.dataset.of);
  const focused = document.activeElement?.dataset.of;
  $("object").innerHTML = next.object; // html/template escaped it, and the Content Security Policy blocks scripts in it
  if (findings !== next.findings) {
    $("findings").innerHTML = findings = next.findings;
    for (const code of document.querySelectorAll(".command code")) { // lines break between arguments
      code.replaceChildren(...code.textContent.split(" ").flatMap((word, i) => [i ? " " : "", make("span", "", word)]));
    }
  }
  const title = $("object").querySelector("h2");
  $("title").replaceChildren(...title.childNodes);
  title.remove();
  const buttons = [...document.querySelectorAll("#filters button")];
  press(buttons, b => pressed.includes(b.dataset.of));
  buttons.find(b => b.dataset.of === focused)?.focus();
  lines = read($("object"));
  $("object").classList.toggle("flash", Boolean(isNew));
  showLines();
  showHistory();
}

const showLines = () => {
  $("count").textContent = show(lines, $("search").value, [...document.querySelectorAll("#filters button")]);
};

function showHistory() {
  const all = answer.versions, i = all.findIndex(v => v.number === answer.number);
  const isPlan = view === "plan" && answer.hasPlan;
  $("views").hidden = !answer.hasPlan;
  press($("views").children, b => b.dataset.view === (isPlan ? "plan" : "live"));
  $("history").hidden = isPlan || all.length === 0;
  if ($("history").hidden) return;
  $("slider").max = all.length - 1;
  $("slider").value = i;
  $("slider").disabled = all.length === 1;
  $("ticks").replaceChildren(...all.map((v, n) => {
    const e = make("span", n === i ? "current" : "");
    e.classList.toggle("known", v.by !== "");
    return hued(e, v.by);
  }));
  const v = all[i], what = v.by ? [" by ", chip(v.by), " ", counted(v.fields, "field", "fields")] : [v.number === 1 ? " as first seen" : ""];
  $("version").replaceChildren(version === 0 ? make("b", "now", "Now") : make("b", "", "Then"),
    ` version ${v.number} of ${all.at(-1).number}, ${new Date(v.seen).toLocaleTimeString()}`, ...what);
  $("slider").setAttribute("aria-valuetext", $("version").textContent);
}

function select(key) {
  selected = key; version = 0; view = "live"; answer = null;
  history.replaceState(null, "", key ? "#" + encodeURIComponent(key) : location.pathname);
  for (const e of document.querySelectorAll("#list [aria-current]")) e.removeAttribute("aria-current");
  if (key) document.querySelector(`#list [data-key="${CSS.escape(key)}"]`)?.setAttribute("aria-current", "true");
  showPane(key ? "object" : "list");
  showOverview();
  $("middle").scrollTop = 0;
  load();
}

function showPane(name) {
  document.body.dataset.pane = name;
  press($("panes").children, b => b.dataset.pane === name);
}

document.onclick = async event => {
  const b = event.target.closest("button");
  if (!b) return;
  if (b.dataset.key) select(b.dataset.key);
  if (b.dataset.pane) showPane(b.dataset.pane);
  if (b.dataset.view) { view = b.dataset.view; version = 0; load(); }
  if (b.dataset.of) { b.ariaPressed = String(b.ariaPressed !== "true"); showLines(); }
  if (b.dataset.facet) { facets.delete(b.dataset.facet) || facets.add(b.dataset.facet); showList(); }
  if ("copy" in b.dataset) {
    await navigator.clipboard.writeText(b.previousElementSibling.textContent);
    b.textContent = "Copied";
    setTimeout(() => { b.textContent = "Copy"; }, 1500);
  }
};
$("back").onclick = () => select("");
$("find").oninput = $("group").onchange = $("manager").onchange = showList;
$("search").oninput = showLines;
$("slider").oninput = () => {
  const all = answer.versions, i = Number($("slider").value);
  version = i === all.length - 1 ? 0 : all[i].number;
  load();
};
document.onkeydown = event => {
  const at = document.activeElement;
  if (event.key === "/" && at?.tagName !== "INPUT") { event.preventDefault(); showPane("list"); $("find").focus(); }
  if (event.key === "Escape" && at?.tagName === "INPUT") { at.value = ""; showList(); showLines?.(); }
  const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (step && at?.closest("#groups")) {
    const all = [...$("groups").querySelectorAll("summary, button")].filter(e => e.offsetParent);
    event.preventDefault();
    all[all.indexOf(at) + step]?.focus();
  }
};
changeTheme($("theme"));
select(decodeURIComponent(location.hash.slice(1)));
