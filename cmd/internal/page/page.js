"use strict";
const $ = id => document.getElementById(id);
const lines = [...document.querySelectorAll(".line")].map(e => {
  const code = e.querySelector("code"), text = code.textContent;
  const m = /^(\s*(?:- )*)([^\s"':][^:]*|"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')(:)(\s.*)?$/.exec(text);
  if (m) {
    const part = (cls, t) => { const s = document.createElement("span"); s.className = cls; s.textContent = t; return s; };
    code.replaceChildren(m[1], part("k", m[2]), m[3], part("s", m[4] || ""));
  }
  return {e, list: e.parentNode, depth: text.search(/[^ -]|$/), of: JSON.parse(e.dataset.of),
    text: (text + "\n" + e.title).toLowerCase()};
});
const buttons = [...document.querySelectorAll("#filters button")];

// A line is shown if it has the text and one of the filters, and, paler, if such a line is in it.
function show() {
  const text = $("search").value.trim().toLowerCase();
  const wanted = buttons.filter(b => b.ariaPressed === "true").map(b => b.dataset.of);
  const all = text === "" && wanted.length === 0;
  let count = 0, below = Infinity, list = null;
  for (const line of lines.slice().reverse()) {
    if (line.list !== list) { list = line.list; below = -1; }
    const isMet = line.text.includes(text) && (wanted.length === 0 || wanted.some(w => line.of.includes(w)));
    const isAround = !isMet && line.depth < below;
    if (isMet) count++;
    if (isMet || isAround) below = line.depth;
    line.e.hidden = !isMet && !isAround;
    line.e.classList.toggle("around", isAround);
    line.e.classList.toggle("same", all && line.same);
  }
  $("count").textContent = count === 1 ? "1 line" : count + " lines";
}
for (const line of lines) line.same = line.e.classList.contains("same");
for (const b of buttons) b.onclick = () => { b.ariaPressed = String(b.ariaPressed !== "true"); show(); };
$("search").oninput = show;
document.onkeydown = event => {
  if (event.key === "/" && document.activeElement !== $("search")) { event.preventDefault(); $("search").focus(); }
  if (event.key === "Escape") { $("search").value = ""; show(); }
};
const themes = ["automatic", "light", "dark"];
let theme = 0;
$("theme").onclick = () => {
  theme = (theme + 1) % themes.length;
  document.documentElement.dataset.theme = themes[theme];
  $("theme").textContent = ["Auto", "Light", "Dark"][theme];
  $("theme").ariaLabel = "Theme: " + themes[theme];
};
show();
