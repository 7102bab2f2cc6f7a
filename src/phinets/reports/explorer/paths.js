// What moves: trajectories, the manifolds of saddles, nullclines, and equilibria as ρ changes.

// Rosenbrock's method of Shampine and Reichelt (1997), of order 2 with an estimate of order 3. It solves with the
// Jacobian, and so takes long steps where a fast direction has settled and a slow one, at the rate ρ, has not.
const SHARE = 1 / (2 + Math.SQRT2);
const TOLERANCE = 1e-6;

// One step of length h (back in time where it is negative): the next state, and its error in units of the tolerance.
function stepped(setting, flow, state, h) {
  const jacobian = jacobianOf(setting, state);
  const matrix = jacobian.map((row, i) => row.map((value, j) => (i === j ? 1 : 0) - h * SHARE * value));
  const along = (by, rate) => state.map((x, i) => x + by * rate[i]);
  const f0 = flow(state);
  const k1 = solved(matrix, f0);
  const f1 = flow(along(h / 2, k1));
  const k2 = solved(matrix, f1.map((f, i) => f - k1[i])).map((k, i) => k + k1[i]);
  const next = along(h, k2);
  const f2 = flow(next);
  const k3 = solved(matrix, f2.map((f, i) => f - (6 + Math.SQRT2) * (k2[i] - f1[i]) - 2 * (k1[i] - f0[i])));
  const wrong = state.map((_, i) => Math.abs((h / 6) * (k1[i] - 2 * k2[i] + k3[i])));
  const allowed = state.map((x) => TOLERANCE * (1e-3 + Math.abs(x)));
  return { next, error: Math.max(...wrong.map((w, i) => w / allowed[i])) };
}

// The states from a start on, until `ended(state)` or too many steps; `direction` −1 goes back in time.
function path(setting, start, ended, direction = 1) {
  const flow = flowOf(setting);
  const states = [start];
  let state = start;
  let h = 1e-3;
  for (let count = 0; count < 20000 && !ended(state); count += 1) {
    const { next, error } = stepped(setting, flow, state, direction * h);
    if (error <= 1) {
      state = next;
      states.push(state);
    }
    h *= error >= 0 ? Math.min(5, Math.max(0.2, 0.9 * (error + 1e-12) ** (-1 / 3))) : 0.2;
  }
  return states;
}

// Where a start goes: its states, and the sink that it reaches (null if it reaches none in time).
function trajectoryOf(setting, start, equilibria = equilibriaOf(setting)) {
  const place = (e) => (setting.system === "simsiam" ? [e.psi] : [e.psi, e.gamma]);
  const sinks = equilibria.filter((e) => e.kind === "sink");
  const radius = (sink) => {
    const others = equilibria.filter((e) => e !== sink).map((e) => distance(place(e), place(sink)));
    return Math.min(1e-6, ...others.map((d) => d / 100));
  };
  const homes = sinks.map((sink) => ({ sink, at: place(sink), radius: radius(sink) }));
  const home = (state) => homes.find(({ at, radius: near }) => distance(state, at) < near);
  const states = path(setting, start, home);
  return { states, sink: home(states.at(-1))?.sink ?? null };
}

function distance(a, b) {
  return Math.hypot(...a.map((x, i) => x - b[i]));
}

// The two arms of a saddle's stable manifold, followed back in time until they leave the box: they part the basins.
function separatrices(setting, saddle, box) {
  const [[a, b], [c, d]] = jacobianOf(setting, [saddle.psi, saddle.gamma]);
  const stable = saddle.eigenvalues[0].re;
  const vector = Math.hypot(b, stable - a) > Math.hypot(stable - d, c) ? [b, stable - a] : [stable - d, c];
  const wide = [box.psi[1] - box.psi[0], box.gamma[1] - box.gamma[0]];
  const small = 1e-5 / Math.hypot(vector[0] / wide[0], vector[1] / wide[1]);
  const outside = ([psi, gamma]) => (
    psi < box.psi[0] - wide[0] || psi > box.psi[1] + wide[0]
    || gamma < box.gamma[0] - wide[1] || gamma > box.gamma[1] + wide[1]
  );
  return [-1, 1].map((side) => {
    const start = [saddle.psi + side * small * vector[0], saddle.gamma + side * small * vector[1]];
    return path(setting, start, outside, -1);
  });
}

// The curve of ψ̇ = 0 away from ψ = 0, exactly: the circle (2sψ−1)² + (2sψγ−1)² = 2 − 4sρ, by its angle. It has a pole
// at ψ = 0, and is empty for ρ > 1/2s.
function psiNullcline({ sigma2, rho }, pieces = 720) {
  const s = 1 + sigma2;
  const radius = Math.sqrt(2 - 4 * s * rho);
  if (!(radius > 0)) return [];
  return Array.from({ length: pieces + 1 }, (_, i) => {
    const angle = (2 * Math.PI * i) / pieces;
    const across = 1 + radius * Math.cos(angle);
    return [across / (2 * s), (1 + radius * Math.sin(angle)) / across];
  });
}

// The folds between two values of ρ: where a pair of equilibria appears or ends. [{rho, psi}, …], rising.
function foldsBetween(setting, low, high, first = simple(setting, low), last = simple(setting, high)) {
  if (first.length === last.length) return [];
  if (high / low - 1 < 1e-10) {
    const [more, less] = first.length > last.length ? [first, last] : [last, first];
    const pair = lostPair(more, less);
    return [{ rho: (low + high) / 2, psi: (more[pair].psi + more[pair + 1].psi) / 2 }];
  }
  const middle = Math.sqrt(low * high);
  const between = simple(setting, middle);
  return [
    ...foldsBetween(setting, low, middle, first, between),
    ...foldsBetween(setting, middle, high, between, last),
  ];
}

// The equilibria at ρ, without those that are just being born: exactly at a fold a pair looks like one point.
function simple(setting, rho) {
  return equilibriaOf({ ...setting, rho }).filter((e) => e.kind !== "degenerate");
}

// Which neighbors i, i + 1 of the longer list the shorter one lacks: those without which the two lists agree best.
function lostPair(more, less) {
  const cost = (pair) => more
    .filter((_, i) => i !== pair && i !== pair + 1)
    .reduce((sum, e, i) => sum + Math.abs(e.psi - less[i].psi), 0);
  const pairs = Array.from({ length: more.length - 1 }, (_, i) => i);
  return pairs.reduce((best, pair) => (cost(pair) < cost(best) ? pair : best), 0);
}

// Every branch of equilibria over a range of ρ, as lines of {rho, psi, kind}, and the folds where they meet.
function branchesOf(setting, low, high, columns = 120) {
  const rhos = Array.from({ length: columns + 1 }, (_, i) => low * (high / low) ** (i / columns));
  const rows = rhos.map((rho) => simple(setting, rho));
  const point = (rho) => ({ psi, kind }) => ({ rho, psi, kind });
  let open = rows[0].map((e) => [point(rhos[0])(e)]);
  const lines = [...open];
  const folds = [];
  for (let i = 1; i <= columns; i += 1) {
    const met = foldsBetween(setting, rhos[i - 1], rhos[i], rows[i - 1], rows[i]);
    let before = rows[i - 1];
    for (const fold of met) {
      const after = simple(setting, fold.rho * (1 + 1e-9));
      const end = { rho: fold.rho, psi: fold.psi, kind: "degenerate" };
      if (after.length < before.length) {
        open.splice(lostPair(before, after), 2).forEach((line) => line.push(end));
      } else {
        const born = [[end], [end]];
        open.splice(lostPair(after, before), 0, ...born);
        lines.push(...born);
      }
      before = after;
    }
    folds.push(...met);
    open.forEach((line, k) => line.push(point(rhos[i])(rows[i][k])));
  }
  return { lines, folds };
}
