// What all pages do: the theme, and the height of the header. It comes before the script of a page.
"use strict";
const root = document.documentElement;
root.classList.add("js");
const $ = id => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const el = (tag, cls, ...children) => {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  e.append(...children);
  return e;
};

// The theme: as the system has it, or as chosen.
const themes = ["auto", "light", "dark"];
function theme(name) {
  if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
  $("theme").textContent = name[0].toUpperCase() + name.slice(1);
  $("theme").setAttribute("aria-label", `Theme: ${name === "auto" ? "automatic" : name}`);
}
const stored = () => { try { return localStorage.getItem("tenure-theme"); } catch { return null; } };
let current = themes.includes(stored()) ? stored() : "auto";
theme(current);
$("theme").addEventListener("click", () => {
  current = themes[(themes.indexOf(current) + 1) % themes.length];
  theme(current);
  try { localStorage.setItem("tenure-theme", current); } catch { /* for this visit only */ }
});

const headerHeight = () => root.style.setProperty("--top", `${$("top").offsetHeight}px`);
new ResizeObserver(headerHeight).observe($("top"));
headerHeight();
