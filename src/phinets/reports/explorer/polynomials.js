// Polynomials as arrays of coefficients, lowest power first, and all of their real roots.

function times(p, q) {
  const product = new Array(p.length + q.length - 1).fill(0);
  p.forEach((a, i) => q.forEach((b, j) => { product[i + j] += a * b; }));
  return product;
}

function plus(p, q) {
  return Array.from({ length: Math.max(p.length, q.length) }, (_, i) => (p[i] ?? 0) + (q[i] ?? 0));
}

function scaled(p, factor) {
  return p.map((a) => a * factor);
}

// By Horner's rule; the innermost loop of the page.
function valueOf(p, x) {
  let sum = 0;
  for (let i = p.length - 1; i >= 0; i -= 1) sum = sum * x + p[i];
  return sum;
}

function derivativeOf(p) {
  return p.slice(1).map((a, i) => (i + 1) * a);
}

// Every real root, rising, a repeated one once. Between two neighboring turning points a polynomial is monotone and so
// has one root where its sign changes; the turning points are the roots of the derivative, found in the same way. A
// turning point whose value is lost in rounding counts as a root itself.
function realRoots(p) {
  while (p.length > 1 && p.at(-1) === 0) p = p.slice(0, -1);
  if (p.length < 2) return [];
  if (p.length === 2) return [-p[0] / p[1]];
  const bound = rootBound(p);
  const slope = derivativeOf(p);
  const cuts = [-bound, ...realRoots(slope).filter((x) => Math.abs(x) < bound), bound];
  const signs = cuts.map((x) => signOf(p, x));
  const roots = [];
  cuts.forEach((x, i) => {
    if (signs[i] === 0) roots.push(x);
    if (signs[i] * signs[i + 1] < 0) roots.push(rootBetween(p, slope, x, cuts[i + 1]));
  });
  return roots;
}

// Fujiwara's bound, and a little more: every root is nearer to 0.
function rootBound(p) {
  const n = p.length - 1;
  return 2.01 * Math.max(...p.slice(0, n).map((a, i) => Math.abs(a / p[n]) ** (1 / (n - i)))) || 1;
}

// The sign of p(x), 0 where it is no larger than what rounding alone can make of it.
function signOf(p, x) {
  const value = valueOf(p, x);
  let size = 0;
  for (let i = p.length - 1; i >= 0; i -= 1) size = size * Math.abs(x) + Math.abs(p[i]);
  return Math.abs(value) <= 4 * p.length * Number.EPSILON * size ? 0 : Math.sign(value);
}

// The one root between low and high, where the signs differ: Newton's step where it stays inside, else halving.
function rootBetween(p, slope, low, high) {
  const rising = valueOf(p, low) < 0;
  let x = (low + high) / 2;
  for (let step = 0; step < 200; step += 1) {
    const value = valueOf(p, x);
    if (value === 0) return x;
    if (value < 0 === rising) low = x; else high = x;
    const newton = x - value / valueOf(slope, x);
    const next = newton > low && newton < high && step % 3 ? newton : (low + high) / 2;
    if (next === x || Math.abs(next - x) <= Number.EPSILON * Math.abs(x)) return next;
    x = next;
  }
  return x;
}
