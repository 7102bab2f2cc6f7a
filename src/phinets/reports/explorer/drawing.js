// Pictures on canvases. A frame maps a box of numbers to the pixels of its canvas.

const MARGIN = { left: 44, right: 10, top: 8, bottom: 24 };

function colors() {
  const style = getComputedStyle(document.documentElement);
  const names = ["paper", "ink", "faint", "grid", "sink", "saddle", "source", "nullcline", "border", "alive", "collapse"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// x and y are ranges [low, high]; with `log`, x is shown by its logarithm.
function frameOf(canvas, x, y, log = false) {
  const [wide, tall] = [canvas.clientWidth, canvas.clientHeight];
  const [inner, height] = [wide - MARGIN.left - MARGIN.right, tall - MARGIN.top - MARGIN.bottom];
  const [to, from] = log ? [Math.log10, (v) => 10 ** v] : [(v) => v, (v) => v];
  const [low, high] = x.map(to);
  return {
    canvas, wide, tall, inner, height, x, y, log,
    px: (v) => MARGIN.left + (inner * (to(v) - low)) / (high - low),
    py: (v) => MARGIN.top + (height * (y[1] - v)) / (y[1] - y[0]),
    at: (px, py) => [
      from(low + ((high - low) * (px - MARGIN.left)) / inner),
      y[1] - ((y[1] - y[0]) * (py - MARGIN.top)) / height,
    ],
  };
}

// A clean sheet with ticks and the names of its axes; what is drawn after it stays within the frame.
function sheet(frame, nameX, nameY, ink) {
  const { canvas, wide, tall } = frame;
  const dense = window.devicePixelRatio || 1;
  canvas.width = Math.round(wide * dense);
  canvas.height = Math.round(tall * dense);
  const pen = canvas.getContext("2d");
  pen.scale(dense, dense);
  pen.fillStyle = ink.paper;
  pen.fillRect(0, 0, wide, tall);
  pen.font = "12px system-ui, sans-serif";
  ticks(pen, frame, ink);
  pen.fillStyle = ink.ink;
  pen.textAlign = "right";
  pen.fillText(nameX, wide - MARGIN.right, tall - 8);
  pen.textAlign = "left";
  pen.fillText(nameY, 4, MARGIN.top + 10);
  pen.beginPath();
  pen.rect(MARGIN.left, MARGIN.top, frame.inner, frame.height);
  pen.clip();
  return pen;
}

function ticks(pen, frame, ink) {
  const down = tickValues(frame.y, Math.max(2, frame.height / 55));
  const across = frame.log ? powers(frame.x) : tickValues(frame.x, Math.max(4, frame.inner / 90));
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const v of down) {
    rule(pen, [MARGIN.left, frame.py(v)], [MARGIN.left + frame.inner, frame.py(v)], v === 0 ? ink.faint : ink.grid);
    pen.fillStyle = ink.faint;
    if (frame.py(v) > MARGIN.top + 22) pen.fillText(brief(v), MARGIN.left - 5, frame.py(v));
  }
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  for (const v of across) {
    rule(pen, [frame.px(v), MARGIN.top], [frame.px(v), MARGIN.top + frame.height], v === 0 ? ink.faint : ink.grid);
    pen.fillStyle = ink.faint;
    if (frame.px(v) < frame.wide - 40) pen.fillText(brief(v), frame.px(v), frame.tall - 8);
  }
}

function rule(pen, from, to, color) {
  pen.strokeStyle = color;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(...from);
  pen.lineTo(...to);
  pen.stroke();
}

// About so many round numbers within a range.
function tickValues([low, high], about) {
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}

function powers([low, high]) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  return Array.from({ length: Math.floor(Math.log10(high)) - first + 1 }, (_, i) => 10 ** (first + i));
}

function brief(v) {
  return String(Number(v.toPrecision(3))).replace("-", "−");
}

// A line through points in pixels; `dash` as canvas knows it. Points further out than any screen break the line.
function line(pen, points, { color, width = 2, dash = [], alpha = 1 }) {
  pen.save();
  Object.assign(pen, { strokeStyle: color, lineWidth: width, globalAlpha: alpha });
  Object.assign(pen, { lineJoin: "round", lineCap: "round" });
  pen.setLineDash(dash);
  pen.beginPath();
  let drawing = false;
  for (const [x, y] of points) {
    const far = !(Math.abs(x) < 2e4 && Math.abs(y) < 2e4);
    if (!far) pen[drawing ? "lineTo" : "moveTo"](x, y);
    drawing = !far;
  }
  pen.stroke();
  pen.restore();
}

function arrowHead(pen, [x, y], [dx, dy], { color, size = 5, alpha = 1 }) {
  const length = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [(dx / length) * size, (dy / length) * size];
  pen.save();
  Object.assign(pen, { fillStyle: color, globalAlpha: alpha });
  pen.beginPath();
  pen.moveTo(x + ux, y + uy);
  pen.lineTo(x - ux - uy * 0.8, y - uy + ux * 0.8);
  pen.lineTo(x - ux + uy * 0.8, y - uy - ux * 0.8);
  pen.fill();
  pen.restore();
}

// A sink is a full dot, a saddle an open diamond, a source an open ring, a degenerate point a cross.
function mark(pen, [x, y], kind, ink) {
  pen.save();
  Object.assign(pen, { lineWidth: 2, strokeStyle: ink[kind] ?? ink.ink });
  pen.fillStyle = kind === "sink" ? ink.sink : ink.paper;
  pen.beginPath();
  if (kind === "saddle") {
    [[0, -7], [7, 0], [0, 7], [-7, 0]].forEach(([dx, dy]) => pen.lineTo(x + dx, y + dy));
    pen.closePath();
  } else if (kind === "degenerate") {
    [[-5, -5], [5, 5]].forEach(([dx, dy]) => pen.lineTo(x + dx, y + dy));
    pen.moveTo(x - 5, y + 5);
    pen.lineTo(x + 5, y - 5);
  } else {
    pen.arc(x, y, 5.5, 0, 2 * Math.PI);
  }
  pen.fill();
  pen.stroke();
  pen.restore();
}

function star(pen, [x, y], color) {
  pen.save();
  pen.fillStyle = color;
  pen.beginPath();
  for (let i = 0; i < 10; i += 1) {
    const [radius, angle] = [i % 2 ? 3.2 : 8, (Math.PI * i) / 5];
    pen.lineTo(x + radius * Math.sin(angle), y - radius * Math.cos(angle));
  }
  pen.fill();
  pen.restore();
}
