// The engine's result for one step, as elements. Text from the result is never parsed as HTML.

export const el = (tag, cls, ...children) => {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  e.append(...children);
  return e;
};

// hues returns a hue for each manager. It is chosen by a hash of the name, but so that managers have different hues,
// and no neighbouring ones, as long as there are enough hues.
export function hues(names) {
  const count = 20, room = names.length > count / 3 ? 0 : 1;
  const taken = new Array(count).fill(false);
  const free = at => {
    for (let i = -room; i <= room; i++) if (taken[(at + i + count) % count]) return false;
    return true;
  };
  const out = new Map();
  for (const name of names) {
    let sum = 0x811c9dc5;
    for (const b of new TextEncoder().encode(name)) sum = Math.imul(sum ^ b, 0x01000193) >>> 0;
    let at = sum % count;
    const by = [3, 7, 9, 11, 13, 17][Math.floor(sum / count) % 6], first = at;
    for (let n = 0; n < count; n++) {
      if (free((first + n * by) % count)) { at = (first + n * by) % count; break; }
    }
    taken[at] = true;
    out.set(name, at * (360 / count));
  }
  return out;
}

const managersOf = step => {
  const names = new Set();
  for (const line of step.object || []) for (const o of line.owners || []) names.add(o.name);
  for (const c of step.conflicts || []) names.add(c.owner);
  for (const o of step.ownership || []) names.add(o.manager);
  return [...names].sort();
};

export function render(step, takeWay) {
  const colours = hues(managersOf(step));
  const chip = (name, note) => {
    const c = el("span", "chip m", name || "(no name)");
    c.style.setProperty("--h", String(colours.get(name) ?? 0));
    if (note) c.append(el("em", "", note));
    return c;
  };
  const out = [];
  if (step.error) out.push(el("pre", "error", step.error));
  for (const w of step.warnings || []) out.push(el("p", "note", "Warning: " + w));
  if (step.conflicts) out.push(conflicts(step, chip), ways(step, takeWay));
  if (step.orders) out.push(part("Orders", el("pre", "text", step.orders)));
  if (step.intent) out.push(part("Intent that the manager’s entry speaks of", el("pre", "text", step.intent)));
  if (step.ownership?.length) out.push(ownership(step, chip));
  if (step.object) out.push(part("Object, and who owns each line", lines(step, chip)));
  if (step.before || step.after) out.push(managedFields(step));
  return out;
}

const part = (title, ...children) => el("section", "part", el("h3", "", title), ...children);

function table(headings, rows) {
  const head = el("tr", "", ...headings.map(h => { const th = el("th", "", h); th.scope = "col"; return th; }));
  const body = rows.map(r => el("tr", "", ...r.map(c => el("td", "", c))));
  return el("div", "scroll", el("table", "", el("thead", "", head), el("tbody", "", ...body)));
}

function conflicts(step, chip) {
  return part(step.conflicts.length === 1 ? "1 conflict" : step.conflicts.length + " conflicts",
    table(["Field", "Owner", "Their value", "Your value", "Since"], step.conflicts.map(c => [
      el("code", "", c.field), chip(c.owner, c.how), el("code", "", c.live), el("code", "", c.applied),
      c.since || "unknown",
    ])));
}

const wayText = {
  "force": ["Force", "apply again with force: your values are set, and only you own the fields"],
  "give-up": ["Give up", "leave the fields out: their values stay, and so does the owner"],
  "share": ["Share", "take their values: you and they own the fields"],
};

function ways(step, takeWay) {
  const list = (step.ways || []).map(way => {
    const [name, text] = wayText[way.way] || [way.way, ""];
    const button = el("button", "way", name);
    button.type = "button";
    button.dataset.way = way.way;
    button.addEventListener("click", () => takeWay(way));
    const about = el("span", "", text);
    for (const loss of way.losses || []) about.append(el("br"), el("small", "", loss));
    return el("div", "row", button, about);
  });
  return part("Ways out: each adds a write", ...list);
}

function ownership(step, chip) {
  const cell = list => {
    const c = el("div", "paths");
    for (const p of list || []) c.append(el("code", "", p));
    return c;
  };
  return part("Who gains and loses fields", table(["Manager", "Gains", "of these shared", "Loses", "of these removed"],
    step.ownership.map(o => [chip(o.manager, o.how), cell(o.gains), cell(o.shares), cell(o.loses), cell(o.removes)])));
}

// lines shows the object with the owners of each line; owners are not repeated if they are the same as in the line
// before.
function lines(step, chip) {
  const list = el("div", "lines");
  list.setAttribute("role", "list");
  let before = null;
  for (const line of step.object) {
    const owners = line.owners || [];
    const who = el("span", "who");
    const key = JSON.stringify(owners) + line.state;
    for (const o of owners) {
      const c = chip(o.name, o.item ? "item" : "");
      c.title = o.name + " (" + o.how + ")";
      who.append(c);
    }
    if (!owners.length && line.state === "unowned") who.append(el("span", "none", "unowned"));
    const same = key === before && who.childNodes.length ? " same" : "";
    const row = el("div", "line " + (line.state || "") + same, who, code(line.text));
    row.setAttribute("role", "listitem");
    if (line.path) row.title = line.path;
    list.append(row);
    before = key;
  }
  return list;
}

function code(text) {
  const c = el("code");
  const m = /^(\s*(?:- )*)([^\s"':][^:]*|"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')(:)(\s.*)?$/.exec(text);
  if (!m) c.append(text);
  else c.append(m[1], el("span", "k", m[2]), m[3], el("span", "s", m[4] || ""));
  return c;
}

// managedFields shows the entries before and after; lines that are only in one of them are highlighted.
function managedFields(step) {
  const before = step.before.split("\n"), after = step.after.split("\n");
  const common = longestCommon(before, after);
  const side = (title, text, kept, mark) => {
    const pre = el("pre", "text");
    text.forEach((line, i) => pre.append(el("span", kept.has(i) || line === "" ? "" : mark, line), "\n"));
    return el("div", "", el("h4", "", title), text.join("") ? pre : el("p", "hint", "none"));
  };
  return part("managedFields", el("div", "sides",
    side("Before", before, common[0], "gone"), side("After", after, common[1], "new")));
}

// longestCommon returns the positions of the lines of a longest common subsequence, in each of the lists.
function longestCommon(a, b) {
  if (a.length * b.length > 4e6) return [new Set(), new Set()];
  const width = b.length + 1, best = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) {
    best[i * width + j] = a[i] === b[j] ? best[(i + 1) * width + j + 1] + 1 :
      Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
  }
  const out = [new Set(), new Set()];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) { out[0].add(i++); out[1].add(j++); }
    else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i++;
    else j++;
  }
  return out;
}
