// The page works without this script; it adds the details, the filters, folding,
// search, deep links and the theme. Text of the object only ever becomes text.
(() => {
"use strict";
// A line: its row, the facts about it, and what hides it.
const lines = [];
const byRow = new Map();
const byAnchor = new Map();
const sections = [...document.querySelectorAll(".object")];
sections.forEach((section, s) => {
  const object = data.objects[s];
  const first = lines.length;
  [...section.querySelectorAll(".line")].forEach((row, i) => {
    const facts = object.lines[i];
    const line = {
      row, object, section, index: lines.length,
      fields: facts.fields, continued: facts.continued, parent: facts.parent < 0 ? null : lines[first + facts.parent],
      last: first + facts.last, managers: facts.managers, unowned: facts.unowned,
      text: row.querySelector("code").textContent.toLowerCase(), who: row.querySelector(".who").textContent,
      folded: false,
    };
    lines.push(line);
    byRow.set(row, line);
    if (!line.continued) for (const f of line.fields) {
      const anchor = object.anchor + f.path;
      if (!byAnchor.has(anchor)) byAnchor.set(anchor, line);
    }
    line.paths = line.fields.map(f => f.path.toLowerCase()).join("\n");
  });
  const key = object.anchor;
  if (key && !byAnchor.has(key)) byAnchor.set(key, lines[first]);
});

// Filters: lines of any of the chosen managers that match the search; what they
// are in stays as context; what is folded away does not show.
const chosen = new Set();
let query = "";
function matches(line) {
  if (query && !line.paths.includes(query) && !line.text.includes(query)) return false;
  if (!chosen.size) return true;
  if (chosen.has("unowned") && line.unowned) return true;
  if (chosen.has("shared") && line.managers.length > 1) return true;
  return line.managers.some(m => chosen.has(String(m)));
}
function show() {
  const filtered = chosen.size > 0 || query !== "";
  let count = 0;
  for (const line of lines) {
    line.hit = matches(line);
    line.wanted = line.hit;
    if (line.hit) count++;
  }
  if (filtered) for (const line of lines) {
    if (line.hit) for (let p = line.parent; p && !p.wanted; p = p.parent) p.wanted = true;
  }
  let until = -1, before = null, last = null;
  const used = new Set();
  for (const line of lines) {
    const visible = line.wanted && line.index > until;
    line.row.hidden = !visible;
    if (!visible) continue;
    if (line.folded) until = line.last;
    if (line.section !== last) { before = null; last = line.section; }
    line.row.classList.toggle("context", filtered && !line.hit);
    line.row.classList.toggle("same", before === line.who && line.who !== "");
    before = line.who;
    used.add(line.section);
  }
  for (const section of sections) section.hidden = filtered && !used.has(section) && section.querySelector(".line") !== null;
  $("shown").textContent = filtered ? `${count} of ${lines.length} lines` : `${lines.length} lines`;
  $("clear").hidden = !filtered;
  if (at && at.row.hidden) move(lines.find(l => !l.row.hidden) || null, false);
}
const buttons = [...document.querySelectorAll(".manager")];
function choose(button, on) {
  button.setAttribute("aria-pressed", on);
  chosen[on ? "add" : "delete"](button.dataset.manager);
}
for (const button of buttons) button.addEventListener("click", () => {
  choose(button, button.getAttribute("aria-pressed") !== "true");
  show();
});
function clear() {
  buttons.forEach(b => choose(b, false));
  $("search").value = query = "";
  show();
}
$("clear").addEventListener("click", () => { clear(); buttons[0].focus(); });
$("search").addEventListener("input", e => { query = e.target.value.trim().toLowerCase(); show(); });

// Folding.
function fold(line, on) {
  const button = line.row.querySelector(".fold");
  if (!button || line.folded === on) return;
  line.folded = on;
  line.row.classList.toggle("folded", on);
  const n = line.last - line.index;
  line.row.querySelector("code").dataset.folded = on ? `${n} more ${n === 1 ? "line" : "lines"}` : "";
  button.setAttribute("aria-expanded", !on);
}
$("fold").addEventListener("click", e => {
  const on = e.target.getAttribute("aria-pressed") !== "true";
  for (const line of lines) fold(line, on);
  e.target.setAttribute("aria-pressed", on);
  e.target.textContent = on ? "Expand all" : "Collapse all";
  show();
});

// Details of the line that is pointed at, or else of the one that is kept.
const words = {
  owned: "owned itself", whole: "owned along with the atomic list or map that it is in", parent: "not owned itself, only what is in it",
  exempt: "never owned: the server fills it in, or it names the object", unowned: "owned by nobody",
};
const kinds = { value: "Value", map: "Map", "keyed list": "Keyed list", set: "Set", atomic: "Atomic list or map", list: "List" };
let at = null, kept = null, shownLine = null;
function details(line) {
  if (line === shownLine) return;
  shownLine = line;
  const out = [];
  // What the line is about first, then the item that begins in it.
  [...line.fields].reverse().forEach((f, i) => {
    const part = el("div", i ? "part" : "");
    part.append(el("h3", "", f.path || "(the object)"), el("p", "", `${kinds[f.kind]}, ${words[f.state]}${f.owners.length > 1 ? ", by several" : ""}`));
    const copy = el("button", "copy", "Copy path");
    copy.type = "button";
    copy.addEventListener("click", () => copyText(f.path, copy));
    part.append(copy);
    const same = i > 0 && f.owners.length > 0 && String(f.owners) === String(line.fields.at(-1).owners);
    if (same) part.append(el("p", "hint", "The owners are the same."));
    for (const o of same ? [] : f.owners) {
      const e = line.object.entries[o];
      const list = el("dl");
      const facts = [["Operation", e.operation], ["Subresource", e.subresource], ["Version", e.version], ["Time", e.time || "none recorded"], ["Age", e.age]];
      for (const [name, value] of facts) if (value) list.append(el("dt", "", name), el("dd", "", value));
      part.append(el("div", "owner " + e.class, el("b", "", e.manager), list));
    }
    if (f.state === "unowned") part.append(el("div", "owner nobody", el("b", "", "Nobody"), "No entry in managedFields holds this path. An apply that sets it owns it, without a conflict."));
    out.push(part);
  });
  $("field").replaceChildren(...out);
}
function copyText(text, button) {
  const done = ok => {
    if (!button) return;
    button.textContent = ok ? "Copied" : "Not allowed to copy";
    setTimeout(() => { button.textContent = "Copy path"; }, 1200);
  };
  const old = () => {
    const area = el("textarea", "hidden");
    area.value = text;
    document.body.append(area);
    area.select();
    let ok = false;
    try { ok = document.execCommand("copy"); } catch { /* done tells */ }
    area.remove();
    done(ok);
  };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => done(true), old); else old();
}
function move(line, focus) {
  if (at) { at.row.tabIndex = -1; at.row.classList.remove("at"); }
  at = line;
  if (!line) return;
  line.row.tabIndex = 0;
  if (focus) {
    line.row.classList.add("at");
    line.row.focus({ preventScroll: true });
    line.row.scrollIntoView({ block: "nearest" });
    details(line);
  }
}
function keep(line) {
  if (kept) kept.row.classList.remove("kept");
  kept = kept === line ? null : line;
  if (!kept) return;
  kept.row.classList.add("kept");
  details(kept);
  try { history.replaceState(null, "", kept.row.querySelector(".no").getAttribute("href")); } catch { /* not for this kind of address */ }
}
const lineOf = e => byRow.get(e.target instanceof Element ? e.target.closest(".line") : null);
const objects = $("objects");
objects.addEventListener("pointerover", e => { const line = lineOf(e); if (line && e.pointerType !== "touch") details(line); });
objects.addEventListener("pointerleave", () => { if (kept) details(kept); });
objects.addEventListener("focusin", e => { const line = lineOf(e); if (line) { if (line !== at) move(line, false); details(line); } });
objects.addEventListener("click", e => {
  const line = lineOf(e);
  if (!line) return;
  if (e.target.closest(".fold")) { fold(line, !line.folded); show(); return; }
  if (e.target.closest("a") || String(getSelection())) return;
  move(line, false);
  keep(line);
});

function step(by) {
  let i = at ? at.index + by : 0;
  while (lines[i] && lines[i].row.hidden) i += by;
  if (lines[i]) move(lines[i], true);
}
document.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "Escape") { clear(); if (e.target.blur && e.target.id === "search") e.target.blur(); return; }
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
  if (e.key === "/") { e.preventDefault(); $("search").focus(); return; }
  const here = lineOf(e);
  if (!here) {
    if ((e.key === "j" || e.key === "ArrowDown") && e.target === document.body) { e.preventDefault(); step(at ? 1 : 0); }
    return;
  }
  switch (e.key) {
  case "ArrowDown": case "j": step(1); break;
  case "ArrowUp": case "k": step(-1); break;
  case "Home": move(lines.find(l => !l.row.hidden), true); break;
  case "End": move(lines.findLast(l => !l.row.hidden), true); break;
  case "ArrowLeft":
    if (here.row.querySelector(".fold") && !here.folded) { fold(here, true); show(); } else if (here.parent) move(here.parent, true);
    break;
  case "ArrowRight": if (here.folded) { fold(here, false); show(); } else step(1); break;
  case "Enter": case " ": if (e.target !== here.row) return; keep(here); break;
  case "c": copyText(here.fields.at(-1)?.path || "", $("field").querySelector(".copy")); break;
  default: return;
  }
  e.preventDefault();
});

// Deep links: #.spec.replicas, with the object before it where there are several.
function follow() {
  let anchor = location.hash.slice(1);
  try { anchor = decodeURIComponent(anchor); } catch { /* as it stands */ }
  const line = byAnchor.get(anchor);
  if (!line) return;
  if (line.row.hidden) {
    clear();
    for (let p = line.parent; p; p = p.parent) fold(p, false);
    show();
  }
  if (kept !== line) keep(line);
  move(line, false);
  line.row.scrollIntoView({ block: "center" });
}
addEventListener("hashchange", follow);
$("jump")?.addEventListener("change", e => $(e.target.value).scrollIntoView());

show();
move(lines[0] || null, false);
follow();
performance.mark("tenure-ready");
})();
