const lines = read(document), buttons = [...document.querySelectorAll("#filters button")];
const showLines = () => { $("count").textContent = show(lines, $("search").value, buttons); };
for (const b of buttons) b.onclick = () => { b.ariaPressed = String(b.ariaPressed !== "true"); showLines(); };
$("search").oninput = showLines;
document.onkeydown = event => {
  if (event.key === "/" && document.activeElement !== $("search")) { event.preventDefault(); $("search").focus(); }
  if (event.key === "Escape") { $("search").value = ""; showLines(); }
};
changeTheme($("theme"));
showLines();
