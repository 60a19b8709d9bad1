// The state of the page: the type and the object that is stored, and the writes. It becomes the steps of a scenario,
// and the fragment of a link.

export const writeWords = ["apply", "update", "patch"];
export const words = [...writeWords, "extract", "interleave", "live", "schema", "crd", "deduced"];
const typeWords = ["schema", "crd", "deduced"];

export function emptyStep(word = "apply") {
  return {word, manager: "", force: false, subresource: "", version: "", rest: "", body: ""};
}

export function emptyState() {
  return {type: {word: "builtin", versions: "", body: ""}, live: "", steps: [emptyStep()]};
}

// nameOf returns the name of a step, as in a scenario.
export function nameOf(step) {
  const parts = [step.word];
  if (step.manager.trim()) parts.push(step.manager.trim());
  if (step.force && step.word === "apply") parts.push("force");
  if (writeWords.includes(step.word) && step.version.trim()) parts.push("version=" + step.version.trim());
  if ((writeWords.includes(step.word) || step.word === "extract") && step.subresource.trim()) {
    parts.push("subresource=" + step.subresource.trim());
  }
  if (step.rest.trim()) parts.push(step.rest.trim());
  return parts.join(" ");
}

// parseName returns the step with a name, without its body.
export function parseName(name) {
  const [word, ...rest] = name.split(/\s+/).filter(Boolean);
  const step = emptyStep(word);
  const others = [];
  for (const part of rest) {
    const named = /^(version|subresource)=(.*)$/.exec(part);
    if (named) step[named[1]] = named[2];
    else if (part === "force" && word === "apply") step.force = true;
    else if ([...writeWords, "extract"].includes(word) && !part.includes("=") && !step.manager) step.manager = part;
    else others.push(part);
  }
  step.rest = others.join(" ");
  return step;
}

// stepsOf returns all steps of a state, and the number of steps before the first write.
export function stepsOf(state) {
  const steps = [];
  if (state.type.word !== "builtin") {
    const name = state.type.word === "schema" ? "schema " + state.type.versions : state.type.word;
    steps.push({name: name.trim(), body: state.type.word === "deduced" ? "" : state.type.body});
  }
  if (state.live.trim()) steps.push({name: "live", body: state.live});
  const first = steps.length;
  for (const step of state.steps) steps.push({name: nameOf(step), body: step.body});
  return {steps, first};
}

// stateOf returns the state for steps. Its writes do not include a type and an object at the beginning.
export function stateOf(steps) {
  const state = emptyState();
  const rest = steps.map(s => ({...parseName(s.name), body: s.body}));
  if (rest.length && typeWords.includes(rest[0].word)) {
    const type = rest.shift();
    state.type = {word: type.word, versions: type.rest, body: type.body};
  }
  if (rest.length && rest[0].word === "live") state.live = rest.shift().body;
  state.steps = rest;
  return state;
}

// scenarioOf returns a scenario in text, for tenure test.
export function scenarioOf(state) {
  let text = "Made in the playground.\n\n";
  for (const {name, body} of stepsOf(state).steps) {
    text += "-- " + name + " --\n" + body + (body === "" || body.endsWith("\n") ? "" : "\n");
  }
  return text;
}

const maxFragment = 1 << 20;

async function through(bytes, stream) {
  const out = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const {done, value} = await out.read();
    if (done) break;
    size += value.length;
    if (size > maxFragment) throw new Error("the link holds more than " + maxFragment + " bytes");
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

// encode returns a state for the fragment of a link.
export async function encode(state) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(state)), new CompressionStream("deflate-raw"));
  let binary = "";
  for (const b of bytes) binary += String.fromCharCode(b);
  return btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

// decode returns the state in a link. It ignores invalid parts, because anybody may have made the link.
export async function decode(text) {
  const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  const bytes = Uint8Array.from(binary, c => c.charCodeAt(0));
  const given = JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"))));
  const str = v => typeof v === "string" ? v : "";
  const state = emptyState();
  const type = str(given?.type?.word);
  if (type === "builtin" || typeWords.includes(type)) {
    state.type = {word: type, versions: str(given.type.versions), body: str(given.type.body)};
  }
  state.live = str(given?.live);
  if (Array.isArray(given?.steps)) {
    state.steps = given.steps.slice(0, 100).filter(s => words.includes(s?.word)).map(s => ({
      word: s.word, manager: str(s.manager), force: s.force === true, subresource: str(s.subresource),
      version: str(s.version), rest: str(s.rest), body: str(s.body),
    }));
  }
  return state;
}
