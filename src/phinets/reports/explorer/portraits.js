// The three pictures of the page: PhiNet's plane, SimSiam's line, and the strip of equilibria over ρ.

const STRIP = [1e-5, 0.5];

// A box that shows every equilibrium with room around it, and never less than the neighborhood of 0 and 1/s.
function boxAround(equilibria, sigma2) {
  const s = 1 + sigma2;
  const range = (values, least) => {
    const [low, high] = [Math.min(...values, least[0]), Math.max(...values, least[1])];
    return [low - 0.08 * (high - low), high + 0.08 * (high - low)];
  };
  return {
    psi: range(equilibria.map((e) => e.psi), [-0.25 / s, 1.3 / s]),
    gamma: range(equilibria.map((e) => e.gamma), [-0.3, 1.1]),
  };
}

function drawPlane(frame, scene, ink) {
  const { setting, equilibria, box } = scene;
  const pen = sheet(frame, "ψ", "γ", ink);
  const pixel = ([psi, gamma]) => [frame.px(psi), frame.py(gamma)];
  field(pen, frame, flowOf(setting), ink);
  const green = { color: ink.nullcline, width: 2.2 };
  line(pen, [[0, box.gamma[0]], [0, box.gamma[1]]].map(pixel), green);
  line(pen, broken(psiNullcline(setting)).map(pixel), green);
  const across = Array.from({ length: 401 }, (_, i) => box.psi[0] + ((box.psi[1] - box.psi[0]) * i) / 400);
  line(pen, across.map((psi) => pixel([psi, gammaNullcline(setting, psi)])), { ...green, dash: [1, 5] });
  for (const saddle of equilibria.filter((e) => e.kind === "saddle")) {
    for (const arm of separatrices(setting, saddle, box)) {
      line(pen, arm.map(pixel), { color: ink.border, width: 1.6, dash: [6, 4] });
    }
  }
  for (const run of scene.runs) drawRun(pen, run.states.map(pixel), run, ink);
  for (const e of sinksLast(equilibria)) mark(pen, pixel([e.psi, e.gamma]), e.kind, ink);
}

// Where marks cover one another, a sink stays on top.
function sinksLast(equilibria) {
  return [...equilibria].sort((a, b) => (a.kind === "sink") - (b.kind === "sink"));
}

// A nullcline with the pole at ψ = 0 taken out: no line joins the two sides of it.
function broken(points) {
  return points.flatMap((point, i) => (i && point[0] * points[i - 1][0] < 0 ? [[NaN, NaN], point] : [point]));
}

// Short pieces of stream lines on a grid of pixels, with heads; the faster, the stronger.
function field(pen, frame, flow, ink) {
  const [sx, sy] = [frame.px(1) - frame.px(0), frame.py(1) - frame.py(0)];
  const rate = (at) => {
    const [u, v] = flow(frame.at(...at));
    return [u * sx, v * sy];
  };
  const gap = 34;
  for (let x = MARGIN.left + gap / 2; x < frame.wide - MARGIN.right; x += gap) {
    for (let y = MARGIN.top + gap / 2; y < frame.tall - MARGIN.bottom; y += gap) {
      const points = streak(rate, [x, y], 10, 2);
      const speed = Math.hypot(...rate([x, y]));
      const alpha = Math.min(0.85, Math.max(0.22, 0.5 + 0.12 * Math.log10(speed)));
      const [end, before] = [points.at(-1), points.at(-2)];
      line(pen, points, { color: ink.faint, width: 1.3, alpha });
      arrowHead(pen, end, [end[0] - before[0], end[1] - before[1]], { color: ink.faint, size: 3.2, alpha });
    }
  }
}

// A few steps of equal length along the flow.
function streak(rate, start, steps, length) {
  const points = [start];
  for (let i = 0; i < steps; i += 1) {
    const [x, y] = points.at(-1);
    const [u, v] = rate([x, y]);
    const speed = Math.hypot(u, v) || 1;
    points.push([x + (length * u) / speed, y + (length * v) / speed]);
  }
  return points;
}

// A trajectory as far as it has been shown (run.shown from 0 to 1 of its length on the screen), and its start.
function drawRun(pen, points, run, ink) {
  const restless = run.sink ? ink.alive : ink.ink;
  const color = run.collapsed ? ink.collapse : restless;
  const lengths = points.map((p, i) => (i ? Math.hypot(p[0] - points[i - 1][0], p[1] - points[i - 1][1]) : 0));
  const whole = lengths.reduce((a, b) => a + b, 0);
  let left = whole * run.shown;
  const seen = points.filter((_, i) => (left -= lengths[i]) >= -1e-9);
  line(pen, seen, { color, width: 2.4 });
  if (seen.length > 1) {
    const middle = run.shown < 1 ? seen.length - 1 : Math.max(1, halfway(lengths, whole / 2));
    const [a, b] = [points[middle - 1], points[middle]];
    arrowHead(pen, b, [b[0] - a[0], b[1] - a[1]], { color });
  }
  star(pen, points[0], color);
}

function halfway(lengths, half) {
  let sum = 0;
  return lengths.findIndex((length) => (sum += length) >= half);
}

function drawLine(frame, scene, ink) {
  const { setting, equilibria, box } = scene;
  const pen = sheet(frame, "ψ", "ψ̇", ink);
  const flow = flowOf(setting);
  const across = Array.from({ length: 301 }, (_, i) => box.psi[0] + ((box.psi[1] - box.psi[0]) * i) / 300);
  line(pen, across.map((psi) => [frame.px(psi), frame.py(flow([psi])[0])]), { color: ink.nullcline, width: 2.2 });
  const level = frame.py(0);
  const edges = [box.psi[0], ...equilibria.map((e) => e.psi), box.psi[1]];
  edges.slice(1).forEach((end, i) => {
    const middle = (edges[i] + end) / 2;
    const apart = frame.px(end) - frame.px(edges[i]);
    if (apart < 24) return;
    const way = Math.sign(flow([middle])[0]);
    const reach = Math.min(40, apart / 2 - 9);
    const tip = [frame.px(middle) + way * reach, level];
    line(pen, [[frame.px(middle) - way * reach, level], tip], { color: ink.faint, width: 2 });
    arrowHead(pen, tip, [way, 0], { color: ink.faint });
  });
  for (const run of scene.runs) {
    drawRun(pen, run.states.map(([psi]) => [frame.px(psi), level]), run, ink);
  }
  for (const e of sinksLast(equilibria)) mark(pen, [frame.px(e.psi), level], e.kind, ink);
}

// Branches of ψ over ρ for one system or two; where sinks are drawn through, the rest is dashed.
function drawStrip(frame, layers, rho, ink) {
  const pen = sheet(frame, "ρ", "ψ", ink);
  for (const { branches, color } of layers) {
    for (const branch of branches.lines) {
      for (const piece of sameKind(branch)) {
        const stable = piece.kind === "sink";
        const points = piece.points.map((p) => [frame.px(p.rho), frame.py(p.psi)]);
        line(pen, points, { color, width: stable ? 2.4 : 1.6, dash: stable ? [] : [4, 4] });
      }
    }
    for (const fold of branches.folds) mark(pen, [frame.px(fold.rho), frame.py(fold.psi)], "degenerate", ink);
  }
  const here = frame.px(rho);
  line(pen, [[here, MARGIN.top], [here, frame.tall - MARGIN.bottom]], { color: ink.ink, width: 1.5 });
}

// A branch cut where its kind changes; the ends (folds) belong to the piece that they end.
function sameKind(branch) {
  const pieces = [];
  for (const point of branch) {
    const last = pieces.at(-1);
    if (!last || (point.kind !== last.kind && point.kind !== "degenerate" && last.kind !== "degenerate")) {
      pieces.push({ kind: point.kind, points: last ? [last.points.at(-1), point] : [point] });
    } else {
      if (last.kind === "degenerate") last.kind = point.kind;
      last.points.push(point);
    }
  }
  return pieces;
}
