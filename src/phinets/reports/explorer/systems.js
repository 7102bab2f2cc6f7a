// The flows, their Jacobians and all of their equilibria: the same equations as phinets.dynamics, s = 1 + σ².
//
// A setting is {system: "simsiam" or "phinet", version: "published" or "corrected", sigma2, rho}; a state is [ψ] or
// [ψ, γ].

function flowOf({ system, version, sigma2, rho }) {
  const s = 1 + sigma2;
  if (system === "simsiam") return ([psi]) => [(1 - s * psi) * psi ** 2 - rho * psi];
  const kept = version === "corrected" ? (gamma) => gamma : () => 1;
  return ([psi, gamma]) => [
    (1 + gamma - s * (1 + gamma ** 2) * psi) * psi ** 2 - rho * psi,
    (1 - s * kept(gamma) * psi) * psi ** 3 - rho * gamma,
  ];
}

// The Jacobian as rows: whose rate, then by which variable.
function jacobianOf({ system, version, sigma2, rho }, [psi, gamma]) {
  const s = 1 + sigma2;
  if (system === "simsiam") return [[2 * psi - 3 * s * psi ** 2 - rho]];
  const byPsi = version === "corrected"
    ? 3 * psi ** 2 - 4 * s * gamma * psi ** 3
    : 3 * psi ** 2 - 4 * s * psi ** 3;
  return [
    [2 * (1 + gamma) * psi - 3 * s * (1 + gamma ** 2) * psi ** 2 - rho, (1 - 2 * s * gamma * psi) * psi ** 2],
    [byPsi, (version === "corrected" ? -s * psi ** 4 : 0) - rho],
  ];
}

// γ̇ = 0 gives γ = N/D, polynomials in ψ: ψ³(1 − sψ)/ρ as published, ψ³/(ρ + sψ⁴) as corrected.
function gammaFraction({ version, sigma2, rho }) {
  const s = 1 + sigma2;
  return version === "corrected" ? [[0, 0, 0, 1], [rho, 0, 0, 0, s]] : [[0, 0, 0, 1, -s], [rho]];
}

function gammaNullcline(setting, psi) {
  const [N, D] = gammaFraction(setting);
  return valueOf(N, psi) / valueOf(D, psi);
}

// What remains of ψ̇ = 0 away from ψ = 0, with γ eliminated: ψD(D + N) − sψ²(D² + N²) − ρD² = 0, of degree 10.
function eliminated({ system, sigma2, rho, version }) {
  const s = 1 + sigma2;
  if (system === "simsiam") return [-rho, 1, -s];
  const [N, D] = gammaFraction({ sigma2, rho, version });
  const square = times(D, D);
  const first = times([0, 1], times(D, plus(D, N)));
  const second = times([0, 0, -s], plus(square, times(N, N)));
  return plus(plus(first, second), scaled(square, -rho));
}

// Every equilibrium, in order of ψ: {psi, gamma, kind, eigenvalues: [{re, im}, …]}.
function equilibriaOf(setting) {
  const found = [...realRoots(eliminated(setting)), 0].sort((a, b) => a - b);
  return found.map((psi) => {
    const state = polished(setting, setting.system === "simsiam" ? [psi] : [psi, gammaNullcline(setting, psi)]);
    const eigenvalues = eigenvaluesOf(jacobianOf(setting, state));
    return { psi: state[0], gamma: state[1] ?? 0, kind: kindOf(eigenvalues, setting.rho), eigenvalues };
  });
}

// Newton's method on the flow itself, for as long as it brings the flow nearer to 0; a degenerate point is left alone.
function polished(setting, state) {
  const flow = flowOf(setting);
  let rest = Math.hypot(...flow(state));
  for (let step = 0; step < 5 && rest > 0; step += 1) {
    const jacobian = jacobianOf(setting, state);
    if (kindOf(eigenvaluesOf(jacobian), setting.rho) === "degenerate") break;
    const move = solved(jacobian, flow(state));
    const next = state.map((x, i) => x - move[i]);
    const left = Math.hypot(...flow(next));
    if (!(left < rest)) break;
    [state, rest] = [next, left];
  }
  return state;
}

function solved(matrix, right) {
  if (matrix.length === 1) return [right[0] / matrix[0][0]];
  const [[a, b], [c, d]] = matrix;
  const determinant = a * d - b * c;
  return [(d * right[0] - b * right[1]) / determinant, (a * right[1] - c * right[0]) / determinant];
}

// Fastest decay first.
function eigenvaluesOf(matrix) {
  if (matrix.length === 1) return [{ re: matrix[0][0], im: 0 }];
  const [[a, b], [c, d]] = matrix;
  const half = (a + d) / 2;
  const square = ((a - d) / 2) ** 2 + b * c;
  const root = Math.sqrt(Math.abs(square));
  if (square < 0) return [{ re: half, im: -root }, { re: half, im: root }];
  const far = half + (half < 0 ? -root : root); // no cancellation; the other from the product
  const near = far === 0 ? 0 : (a * d - b * c) / far;
  return [Math.min(far, near), Math.max(far, near)].map((re) => ({ re, im: 0 }));
}

// Degenerate: some real part that no float can tell from 0, beside ρ.
function kindOf(eigenvalues, rho) {
  if (eigenvalues.some(({ re }) => Math.abs(re) <= 1e-7 * rho)) return "degenerate";
  const growing = eigenvalues.filter(({ re }) => re > 0).length;
  if (growing === 0) return "sink";
  return growing === eigenvalues.length ? "source" : "saddle";
}
