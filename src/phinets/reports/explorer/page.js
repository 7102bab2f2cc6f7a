// The page: what is set, what follows from it, and the hands that change it.

const RHO = [1e-5, 0.5];
const SIGMA2 = [0, 5];
const NAMES = { phinet: "PhiNet", simsiam: "SimSiam" };
const element = (id) => document.getElementById(id);
const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

const state = { show: "both", version: "corrected", sigma2: 1.5, rho: 0.03, zoom: null, starts: [] };
const memory = { key: "", layers: {} };
let scenes = {};
let frames = {};
let waiting = false;

function settingOf(system) {
  return { system, version: state.version, sigma2: state.sigma2, rho: state.rho };
}

function shownSystems() {
  return state.show === "both" ? ["phinet", "simsiam"] : [state.show];
}

// Everything that the settings imply: equilibria, boxes, and where each start goes.
function follow() {
  scenes = Object.fromEntries(["phinet", "simsiam"].map((system) => {
    const setting = settingOf(system);
    return [system, { setting, equilibria: equilibriaOf(setting), runs: [] }];
  }));
  const all = shownSystems().flatMap((system) => scenes[system].equilibria);
  const box = state.zoom ?? boxAround(all, state.sigma2);
  for (const scene of Object.values(scenes)) scene.box = box;
  for (const start of state.starts) {
    for (const system of shownSystems()) scenes[system].runs.push(runOf(scenes[system], start));
  }
}

function runOf({ setting, equilibria }, start) {
  const from = setting.system === "simsiam" ? [start.psi] : [start.psi, start.gamma];
  const { states, sink } = trajectoryOf(setting, from, equilibria);
  return { start, states, sink, collapsed: sink?.psi === 0, get shown() { return start.shown; } };
}

function branchLayers() {
  const key = `${state.version} ${state.sigma2}`;
  if (memory.key !== key) Object.assign(memory, { key, layers: {} });
  for (const system of shownSystems()) {
    memory.layers[system] ??= branchesOf(settingOf(system), ...STRIP);
  }
  return memory.layers;
}

function draw() {
  const ink = colors();
  const { psi, gamma } = scenes.phinet.box;
  const rise = 4 / (27 * (1 + state.sigma2) ** 2); // the highest that SimSiam's rate can be, at ρ = 0
  frames = {
    phinet: frameOf(element("phinet"), psi, gamma),
    simsiam: frameOf(element("simsiam"), psi, [-0.8 * rise, 1.2 * rise]),
  };
  if (state.show !== "simsiam") drawPlane(frames.phinet, scenes.phinet, ink);
  if (state.show !== "phinet") drawLine(frames.simsiam, scenes.simsiam, ink);
  const layers = branchLayers();
  const tints = { phinet: ink.alive, simsiam: ink.saddle };
  const shown = shownSystems().map((system) => ({ system, branches: layers[system], color: tints[system] }));
  const heights = shown.flatMap(({ branches }) => branches.lines.flat().map((p) => p.psi));
  const reach = [Math.min(...heights), Math.max(...heights)];
  const room = 0.12 * (reach[1] - reach[0]);
  frames.strip = frameOf(element("strip"), STRIP, [reach[0] - room, reach[1] + room], true);
  drawStrip(frames.strip, shown, state.rho, ink);
  element("folds").replaceChildren(...shown.map(({ system, branches }) => foldNews(system, branches.folds)));
}

function foldNews(system, folds) {
  const values = folds.map(({ rho }) => Number(rho.toPrecision(5))).reverse().join(", ");
  const text = `${NAMES[system]}: ${folds.length ? `folds at ρ = ${values}` : "no fold"}`;
  return Object.assign(document.createElement("span"), { className: system, textContent: text });
}

function write() {
  document.body.className = `show-${state.show}`;
  for (const name of ["show", "version"]) {
    document.querySelector(`input[name="${name}"][value="${state[name]}"]`).checked = true;
  }
  element("rho").value = Math.log10(state.rho);
  element("rho").setAttribute("aria-valuetext", `ρ = ${Number(state.rho.toPrecision(4))}`);
  element("sigma2").value = state.sigma2;
  for (const name of ["rho", "sigma2"]) {
    const box = element(`${name}-number`);
    if (document.activeElement !== box) box.value = Number(state[name].toPrecision(4));
  }
  const kept = state.version === "corrected" ? "(1+σ²)γψ" : "(1+σ²)ψ";
  element("phinet-equations").textContent =
    `ψ̇ = {(1+γ) − (1+σ²)(1+γ²)ψ}ψ² − ρψ\nγ̇ = {1 − ${kept}}ψ³ − ργ`;
  for (const system of ["phinet", "simsiam"]) writeTable(system, scenes[system].equilibria);
  element("news").textContent = news();
}

function writeTable(system, equilibria) {
  const sinks = equilibria.filter((e) => e.kind === "sink").length;
  element(`${system}-sinks`).textContent = sinks === 1 ? "1 sink" : `${sinks} sinks`;
  element(`${system}-table`).replaceChildren(...equilibria.map((e) => {
    const row = document.createElement("tr");
    row.className = e.kind;
    const values = e.eigenvalues.map(complexFigures).join(", ");
    const cells = [figures(e.psi), ...(system === "phinet" ? [figures(e.gamma)] : []), e.kind, values];
    row.append(...cells.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
    return row;
  }));
}

function figures(v) {
  const text = v !== 0 && Math.abs(v) < 1e-3 ? v.toExponential(2) : v.toFixed(4);
  return text.replaceAll("-", "−");
}

function complexFigures({ re, im }) {
  return im === 0 ? figures(re) : `${figures(re)} ${im < 0 ? "−" : "+"} ${figures(Math.abs(im))}i`;
}

// What became of the last start, in words.
function news() {
  const start = state.starts.at(-1);
  if (!start) return "";
  return shownSystems().map((system) => {
    const { sink, collapsed } = scenes[system].runs.at(-1);
    const name = NAMES[system];
    const place = (e) => (system === "phinet" ? `(${figures(e.psi)}, ${figures(e.gamma)})` : figures(e.psi));
    if (!sink) return `${name} from ${place(start)} has not come to rest.`;
    return `${name} from ${place(start)} ${collapsed ? "collapses" : `learns: ${place(sink)}`}.`;
  }).join(" ");
}

// Show the present state with the next picture of the screen, however many changes come before it.
function refresh() {
  follow();
  write();
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    draw();
    grow();
  });
}

// Let young trajectories grow to their whole length.
function grow() {
  const young = state.starts.filter((start) => start.shown < 1);
  if (!young.length) return;
  for (const start of young) start.shown = calm.matches ? 1 : Math.min(1, (performance.now() - start.born) / 900);
  requestAnimationFrame(() => {
    draw();
    grow();
  });
}

function change(changes) {
  Object.assign(state, changes);
  refresh();
}

// What the address asks for after its #, e.g. explorer.html#version=published&rho=0.08&start=0.08,0.5
function asked() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = (name, range) => {
    const value = parseFloat(words.get(name));
    return Number.isFinite(value) ? within(value, range) : state[name];
  };
  const one = (name, known) => (known.includes(words.get(name)) ? words.get(name) : state[name]);
  change({
    show: one("show", ["both", "phinet", "simsiam"]),
    version: one("version", ["published", "corrected"]),
    rho: number("rho", RHO),
    sigma2: number("sigma2", SIGMA2),
    zoom: null,
  });
  for (const start of words.getAll("start")) begin(...start.split(",").map(Number));
}

function within(value, [low, high]) {
  return Math.min(high, Math.max(low, value));
}

function begin(psi, gamma) {
  if (!Number.isFinite(psi) || !Number.isFinite(gamma)) return;
  change({ starts: [...state.starts, { psi, gamma, born: performance.now(), shown: 0 }] });
}

// The box, a factor larger or smaller, about a point that stays where it is.
function zoomed(factor, [psi, gamma] = middleOf(scenes.phinet.box)) {
  const about = ([low, high], x) => [x + (low - x) * factor, x + (high - x) * factor];
  const { box } = scenes.phinet;
  change({ zoom: { psi: about(box.psi, psi), gamma: about(box.gamma, gamma) } });
}

function middleOf({ psi, gamma }) {
  return [(psi[0] + psi[1]) / 2, (gamma[0] + gamma[1]) / 2];
}

function pointed(event, frame) {
  const { left, top } = frame.canvas.getBoundingClientRect();
  return frame.at(event.clientX - left, event.clientY - top);
}

function listen() {
  for (const input of document.querySelectorAll("input[type=radio]")) {
    input.addEventListener("change", () => change({ [input.name]: input.value, zoom: null }));
  }
  element("rho").addEventListener("input", (e) => change({ rho: within(10 ** Number(e.target.value), RHO) }));
  element("sigma2").addEventListener("input", (e) => change({ sigma2: within(Number(e.target.value), SIGMA2) }));
  for (const [name, range] of [["rho", RHO], ["sigma2", SIGMA2]]) {
    element(`${name}-number`).addEventListener("change", (e) => {
      if (e.target.value !== "") change({ [name]: within(Number(e.target.value), range) });
      e.target.value = Number(state[name].toPrecision(4));
    });
  }
  for (const button of document.querySelectorAll("[data-rho]")) {
    button.addEventListener("click", () => change({ rho: Number(button.dataset.rho), zoom: null }));
  }
  listenToPictures();
  window.addEventListener("resize", refresh);
  window.addEventListener("hashchange", asked);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
}

function listenToPictures() {
  element("start").addEventListener("submit", (event) => {
    event.preventDefault();
    begin(element("psi0").valueAsNumber, element("gamma0").valueAsNumber);
  });
  const clear = () => change({ starts: [] });
  element("clear").addEventListener("click", clear);
  for (const system of ["phinet", "simsiam"]) {
    const canvas = element(system);
    canvas.addEventListener("click", (event) => {
      const [psi, gamma] = pointed(event, frames[system]);
      begin(psi, system === "phinet" ? gamma : 0);
    });
    canvas.addEventListener("dblclick", clear);
  }
  element("phinet").addEventListener("wheel", (event) => {
    event.preventDefault();
    zoomed(Math.exp(event.deltaY / 500), pointed(event, frames.phinet));
  }, { passive: false });
  element("closer").addEventListener("click", () => zoomed(1 / 1.5));
  element("wider").addEventListener("click", () => zoomed(1.5));
  element("fit").addEventListener("click", () => change({ zoom: null }));
  const goTo = (event) => change({ rho: within(pointed(event, frames.strip)[0], RHO) });
  element("strip").addEventListener("pointerdown", goTo);
  element("strip").addEventListener("pointermove", (event) => event.buttons && goTo(event));
}

// For the console and for tests.
window.phinets = {
  roots: realRoots,
  equilibria: (system, version, sigma2, rho) => equilibriaOf({ system, version, sigma2, rho }),
  trajectory: (system, version, sigma2, rho, start) => trajectoryOf({ system, version, sigma2, rho }, start),
  folds: (system, version, sigma2) => branchesOf({ system, version, sigma2 }, ...STRIP).folds,
  state: () => ({
    show: state.show, version: state.version, sigma2: state.sigma2, rho: state.rho, box: scenes.phinet.box,
    runs: Object.fromEntries(shownSystems().map((system) => [
      system, scenes[system].runs.map(({ start, sink }) => ({ psi: start.psi, gamma: start.gamma, sink })),
    ])),
  }),
  place: (psi, gamma) => {
    const { left, top } = element("phinet").getBoundingClientRect();
    return { x: left + frames.phinet.px(psi), y: top + frames.phinet.py(gamma) };
  },
};

listen();
asked();
