// The page works without this script; it adds sorting, search and copying, and shows an object's lines only
// when they are asked for.
(() => {
"use strict";
// Sorting: numbers from the largest, text from the first.
const collator = new Intl.Collator("en", { numeric: true });
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.querySelectorAll("th")];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const number = head.classList.contains("num");
    const before = head.getAttribute("aria-sort");
    const down = before ? before === "ascending" : number;
    for (const h of heads) h.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const compare = number
      ? (a, b) => Number(a.cells[column].dataset.value) - Number(b.cells[column].dataset.value)
      : (a, b) => collator.compare(a.cells[column].textContent, b.cells[column].textContent);
    rows.sort((a, b) => down ? compare(b, a) : compare(a, b));
    body.append(...rows);
  }));
}

// Search: rows that contain all words.
const rows = [...document.querySelectorAll("table.sortable tbody tr")].map(row => ({ row, text: row.textContent.toLowerCase() }));
function filter() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const { row, text } of rows) {
    row.hidden = !words.every(w => text.includes(w));
    if (!row.hidden) count++;
  }
  $("shown").textContent = words.length ? `${count} of ${rows.length} rows` : "";
}
$("search").addEventListener("input", filter);

for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = "Copied";
  } catch { button.textContent = "Not allowed"; }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});

// An object's lines: opened by its link, or by the address.
const back = new Map();
function open(id, from) {
  for (const section of document.querySelectorAll(".blame.opened")) section.classList.remove("opened");
  const section = id && $(id);
  if (!section || !section.classList.contains("blame")) return;
  section.classList.add("opened");
  if (from) back.set(id, from);
  section.scrollIntoView({ block: "start" });
}
const follow = () => open(decodeURIComponent(location.hash.slice(1)), document.activeElement);
addEventListener("hashchange", follow);
for (const button of document.querySelectorAll(".close")) button.addEventListener("click", () => {
  const section = button.closest(".blame");
  section.classList.remove("opened");
  history.replaceState(null, "", location.pathname + location.search);
  back.get(section.id)?.focus();
});
addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = document.activeElement === $("search");
  if (e.key === "/" && !typing) { e.preventDefault(); $("search").focus(); }
  if (e.key === "Escape") {
    if (typing) { $("search").value = ""; filter(); $("search").blur(); }
    else document.querySelector(".blame.opened .close")?.click();
  }
});
follow();
performance.mark("tenure-ready");
})();
