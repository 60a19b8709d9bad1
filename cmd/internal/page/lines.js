// The lines of objects: colours for their YAML, and filters for the lines.
export const $ = id => document.getElementById(id);

// read returns the lines in an element, and colours them.
export function read(root) {
  return [...root.querySelectorAll(".line")].map(e => {
    const code = e.querySelector("code"), text = code.textContent;
    const m = /^(\s*(?:- )*)([^\s"':][^:]*|"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')(:)(\s.*)?$/.exec(text);
    if (m) {
      const part = (cls, t) => { const s = document.createElement("span"); s.className = cls; s.textContent = t; return s; };
      code.replaceChildren(m[1], part("k", m[2]), m[3], part("s", m[4] || ""));
    }
    return {e, list: e.parentNode, depth: text.search(/[^ -]|$/), of: JSON.parse(e.dataset.of),
      same: e.classList.contains("same"), text: (text + "\n" + e.title).toLowerCase()};
  });
}

// show shows the lines that contain the text and match one of the filters and, paler, the structs and lists around such
// lines. It returns the number of matching lines as text.
export function show(lines, search, filters) {
  const text = search.trim().toLowerCase();
  const wanted = filters.filter(b => b.ariaPressed === "true").map(b => b.dataset.of);
  const all = text === "" && wanted.length === 0;
  let count = 0, below = Infinity, list = null;
  for (const line of lines.toReversed()) {
    if (line.list !== list) { list = line.list; below = -1; }
    const isMet = line.text.includes(text) && (wanted.length === 0 || wanted.some(w => line.of.includes(w)));
    const isAround = !isMet && line.depth < below;
    if (isMet) count++;
    if (isMet || isAround) below = line.depth;
    line.e.hidden = !isMet && !isAround;
    line.e.classList.toggle("around", isAround);
    line.e.classList.toggle("same", all && line.same);
  }
  return count === 1 ? "1 line" : count + " lines";
}

// changeTheme makes a button switch between the themes.
export function changeTheme(button) {
  const themes = ["automatic", "light", "dark"];
  let theme = 0;
  button.onclick = () => {
    theme = (theme + 1) % themes.length;
    document.documentElement.dataset.theme = themes[theme];
    button.textContent = ["Auto", "Light", "Dark"][theme];
    button.ariaLabel = "Theme: " + themes[theme];
  };
}
