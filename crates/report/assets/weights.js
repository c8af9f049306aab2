// The weight of every step of one demonstrated trace, p_t * dJ/dp_t / J, for each objective of the explorer.
//
// Plain recurrences in double precision, with the derivative taken by one backward sweep: small enough to read, fast enough to
// follow a slider. The training code works in log space and is the reference; a test holds this file to it.
'use strict';

const Weights = (() => {
  // Budget in expansions once a miss costs kappa of them.
  const effective = (length, budget, kappa) => length + (budget - length) / kappa;

  // One step (or rollout) of success probability x within K tries, a miss surviving with probability 1 - q:
  // x (1 - c^K) / (1 - c) with c = (1 - x)(1 - q). Returns its logarithm and d log / d log x.
  function retry(x, tries, q) {
    const c = (1 - x) * (1 - q), logC = Math.log1p(-x) + Math.log1p(-q), rest = x + q - x * q;
    const hit = c === 0 ? 1 : -Math.expm1(tries * logC);
    const slope = c === 0 ? (tries === 1 ? 1 : 0) : tries * Math.exp((tries - 1) * logC) / hit;
    return { log: Math.log(x) + Math.log(hit) - Math.log(rest), weight: 1 + x * (1 - q) * (slope - 1 / rest) };
  }

  // Where a miss at step t (counted from 0) leads: rows of probabilities over steps 0..t.
  function missKernel(objective, p) {
    const length = p.length, kernel = [];
    const scores = [1];
    let logs = 0;
    for (let k = 1; k < length; k++) {
      logs += Math.log(p[k - 1]);
      scores.push(Math.exp(logs / k));
    }
    for (let t = 0; t < length; t++) {
      const row = new Float64Array(t + 1);
      if (objective === 'rdfs') row.fill(1 / (t + 1));
      else if (objective === 'vdfs') {
        let total = 0;
        for (let k = 0; k <= t; k++) total += scores[k];
        for (let k = 0; k <= t; k++) row[k] = scores[k] / total;
      } else row[t] = 1;
      kernel.push(row);
    }
    return kernel;
  }

  // bfs, dfs, rdfs, vdfs: J(b, t) = p_t J(b-1, t+1) + (1-p_t)(1-q) sum_k M_t(k) J(b-1, k).
  function walk(objective, p, budget, q) {
    const length = p.length, kernel = missKernel(objective, p), width = length + 1;
    const value = new Float64Array((budget + 1) * width);
    for (let b = 0; b <= budget; b++) {
      value[b * width + length] = 1;
      if (b === 0) continue;
      for (let t = 0; t < length; t++) {
        const below = (b - 1) * width;
        let back = 0;
        for (let k = 0; k <= t; k++) back += kernel[t][k] * value[below + k];
        value[b * width + t] = p[t] * value[below + t + 1] + (1 - p[t]) * (1 - q) * back;
      }
    }
    const success = value[budget * width];
    const weights = new Float64Array(length);
    const byKernel = kernel.map((row) => new Float64Array(row.length));
    let here = new Float64Array(length);
    here[0] = 1;
    for (let b = budget; b > 0; b--) {
      const next = new Float64Array(length), below = (b - 1) * width;
      for (let t = 0; t < length; t++) {
        if (here[t] === 0) continue;
        const missed = here[t] * (1 - p[t]) * (1 - q);
        let back = 0;
        for (let k = 0; k <= t; k++) {
          back += kernel[t][k] * value[below + k];
          byKernel[t][k] += missed * value[below + k];
          next[k] += missed * kernel[t][k];
        }
        if (t + 1 < length) next[t + 1] += here[t] * p[t];
        weights[t] += here[t] * p[t] * (value[below + t + 1] - (1 - q) * back);
      }
      here = next;
    }
    if (objective === 'vdfs') {
      // Raising p_j also raises the score s_k of every state beyond it: d log s_k / d log p_j = 1/k for j <= k.
      for (let t = 0; t < length; t++) {
        for (let j = 0; j < t; j++) {
          let mean = 0;
          for (let k = j + 1; k <= t; k++) mean += kernel[t][k] / k;
          for (let k = 0; k <= t; k++) weights[j] += byKernel[t][k] * kernel[t][k] * ((k > j ? 1 / k : 0) - mean);
        }
      }
    }
    return { success, weights: Array.from(weights, (w) => w / success) };
  }

  // mcts: every node has its own clock. One that advanced after T samples spends a tick on widening exactly when its clock
  // reads j^2 with j >= T; every other tick is its child's. f_k(n): success falls on tick n of node k.
  function widen(p, budget, q) {
    const length = p.length;
    const root = new Int32Array(budget + 1); // squares j^2 <= n, counted from j = 1
    for (let n = 0; n <= budget; n++) root[n] = Math.floor(Math.sqrt(n) + 1e-9);
    const isSquare = (n) => root[n] * root[n] === n;
    const f = Array.from({ length }, () => new Float64Array(budget + 1));
    // Every way for tick n of a node to be its child's: calls back with T, widenings so far, and the child's tick.
    function passes(n, then) {
      const clock = n - 1;
      for (let T = 1; T <= clock; T++) {
        if (isSquare(clock) && root[clock] >= T) continue;
        const widenings = clock === 0 ? 0 : Math.max(0, root[clock] - T + 1);
        const tick = n - T - widenings;
        if (tick >= 1) then(T, widenings, tick);
      }
    }
    const powers = (base) => {
      const table = new Float64Array(budget + 2).fill(1);
      for (let i = 1; i < table.length; i++) table[i] = table[i - 1] * base;
      return table;
    };
    const miss = p.map((x) => powers((1 - x) * (1 - q))), survive = p.map((x) => powers(1 - (1 - x) * q));
    for (let k = length - 1; k >= 0; k--) {
      for (let n = 1; n <= budget; n++) {
        if (k === length - 1) f[k][n] = p[k] * miss[k][n - 1];
        else {
          let sum = 0;
          passes(n, (T, w, tick) => { sum += miss[k][T - 1] * survive[k][w] * f[k + 1][tick]; });
          f[k][n] = p[k] * sum;
        }
      }
    }
    let success = 0;
    for (let n = 1; n <= budget; n++) success += f[0][n];
    const weights = [];
    let from = new Float64Array(budget + 1).fill(1);
    for (let k = 0; k < length; k++) {
      const c = (1 - p[k]) * (1 - q), to = new Float64Array(budget + 1);
      const perMiss = c > 0 ? -p[k] * (1 - q) / c : 0, perWidening = p[k] * q / (1 - (1 - p[k]) * q);
      let sum = 0;
      for (let n = 1; n <= budget; n++) {
        if (from[n] === 0) continue;
        if (k === length - 1) sum += from[n] * f[k][n] * (1 + (n - 1) * perMiss);
        else {
          passes(n, (T, w, tick) => {
            const way = from[n] * p[k] * miss[k][T - 1] * survive[k][w];
            to[tick] += way;
            sum += way * f[k + 1][tick] * (1 + (T - 1) * perMiss + w * perWidening);
          });
        }
      }
      weights.push(sum / success);
      from = to;
    }
    return { success, weights };
  }

  // The smallest budget that can succeed.
  function minimum(objective, length) {
    if (objective === 'pass' || objective === 'ce') return 1;
    if (objective !== 'mcts') return length;
    let clock = 1;
    for (let k = 1; k < length; k++) {
      // The parent's clock at which a child that needs `clock` ticks has had them, the parent having advanced at once (T = 1).
      let ticks = 0, n = 1;
      while (ticks < clock) {
        const r = Math.floor(Math.sqrt(n) + 1e-9);
        if (r * r !== n) ticks++;
        n++;
      }
      clock = n;
    }
    return clock;
  }

  // { success, weights, budget: the effective one, feasible, problem? } for p_1..p_L in (0, 1].
  function of({ objective, p, budget, kappa = 1, q = 0 }) {
    const length = p.length, ones = p.map(() => 1);
    const product = p.reduce((a, b) => a * b, 1);
    if (objective === 'ce') return { success: product, weights: ones, budget, feasible: true };
    if (objective === 'pass') {
      if (kappa !== 1) return { success: 0, weights: ones, budget, feasible: false, problem: 'Pass@N counts rollouts, so it has no \u03ba.' };
      const one = retry(product, budget, q);
      return { success: Math.exp(one.log), weights: p.map(() => one.weight), budget, feasible: true };
    }
    const real = effective(length, budget, kappa), whole = Math.floor(real), least = minimum(objective, length);
    if (budget < least || (objective !== 'ua' && whole < least) || real < length) {
      const problem = `A trace of ${length} steps needs at least ${least} expansions; below that every weight is 1, as in CE.`;
      return { success: 0, weights: ones, budget: whole, feasible: false, problem };
    }
    if (objective === 'ua') {
      const steps = p.map((x) => retry(x, real / length, q));
      return { success: Math.exp(steps.reduce((a, s) => a + s.log, 0)), weights: steps.map((s) => s.weight), budget: real, feasible: true };
    }
    const found = objective === 'mcts' ? widen(p, whole, q) : walk(objective, p, whole, q);
    return { ...found, budget: whole, feasible: true };
  }

  return { of, minimum };
})();

if (typeof module !== 'undefined') module.exports = Weights;
