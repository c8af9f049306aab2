// The weight explorer: sliders in, weights out.
'use strict';
(() => {
  const at = (id) => document.getElementById(id);
  const panel = at('explorer');
  if (!panel) return;
  const state = { logs: [-0.1, -1.7, -0.4, -0.9, -0.2, -2.4, -0.6, -0.1, -1.2, -0.3, -0.8, -0.5] };
  const colours = 8, deepest = -6, closest = 1 - 1e-6;
  const p = (log) => Math.min(Math.pow(10, log), closest);
  const read = () => ({
    objective: at('w-objective').value,
    budget: Math.round(Math.pow(2, Number(at('w-budget').value))),
    kappa: Number(at('w-kappa').value),
    q: Number(at('w-q').value),
    p: state.logs.slice(0, Number(at('w-length').value)).map(p),
  });
  const number = (v) => v === 0 ? '0' : v >= 0.001 && v < 1e4 ? (v >= 100 ? v.toFixed(0) : v.toPrecision(3)) : v.toExponential(1).replace('e', '·10^').replace('^-', '^\u2212').replace('^+', '^');

  function rows(length) {
    const body = at('w-steps');
    while (body.rows.length > length) body.deleteRow(-1);
    while (body.rows.length < length) {
      const t = body.rows.length, row = body.insertRow();
      row.innerHTML = `<th scope="row"><span class="cf-s${t % colours}" aria-hidden="true">${t < colours ? '\u2501' : '\u2505'}</span> ${t + 1}</th><td><input type="range" min="${deepest}" max="0" step="0.05" aria-label="log10 of p at step ${t + 1}"></td><td class="n"></td><td><div class="weight"><i></i><b></b></div></td><td class="n"></td>`;
      const input = row.querySelector('input');
      input.addEventListener('input', () => { state.logs[t] = Number(input.value); draw(); });
    }
    for (let t = 0; t < length; t++) body.rows[t].querySelector('input').value = state.logs[t];
  }

  function draw() {
    const asked = read();
    rows(asked.p.length);
    at('w-budget-out').textContent = asked.budget;
    at('w-length-out').textContent = asked.p.length;
    at('w-kappa-out').textContent = asked.kappa;
    at('w-q-out').textContent = asked.q;
    const found = Weights.of(asked);
    const most = Math.max(1, ...found.weights);
    found.weights.forEach((w, t) => {
      const row = at('w-steps').rows[t];
      row.cells[2].textContent = number(asked.p[t]);
      row.cells[4].textContent = w.toFixed(3);
      row.querySelector('i').style.width = `${100 * Math.max(0, w) / most}%`;
      row.querySelector('b').style.left = `${100 / most}%`;
    });
    at('w-success').textContent = number(found.success);
    at('w-effective').textContent = asked.objective === 'ce' ? '\u2013' : number(found.budget);
    at('w-sum').textContent = found.weights.reduce((a, b) => a + b, 0).toFixed(3);
    at('w-problem').textContent = found.problem || '';
    later(asked);
  }

  // The curves cost more than the bars, so they follow once the sliders rest.
  let waiting = 0;
  function later(asked) {
    clearTimeout(waiting);
    waiting = setTimeout(() => curves(asked), 60);
  }

  function curves(asked) {
    const svg = at('w-curves'), width = Math.max(300, svg.clientWidth || 720);
    const left = 40, right = width - 18, top = 26, bottom = 212, budgets = [];
    // MCTS costs the square of the budget: fewer points keep the sliders light.
    for (let e = 0; e <= 10; e += asked.objective === 'mcts' ? 1 : 0.25) budgets.push(Math.round(Math.pow(2, e)));
    const distinct = [...new Set(budgets)];
    const found = distinct.map((budget) => Weights.of({ ...asked, budget }).weights);
    const most = Math.max(1, ...found.flat()) * 1.05;
    const x = (n) => left + (right - left) * Math.log2(n) / 10, y = (w) => bottom - (bottom - top) * w / most;
    let out = '';
    for (const w of [0, 0.5, 1]) {
      out += `<g class="cf-grid"><line x1="${left}" x2="${right}" y1="${y(w)}" y2="${y(w)}" stroke="currentColor"/></g><g class="cf-soft"><text x="${left - 8}" y="${y(w) + 4}" text-anchor="end" font-size="12" fill="currentColor">${w}</text></g>`;
    }
    out += '<g class="cf-soft">';
    for (const n of [1, 4, 16, 64, 256, 1024]) out += `<text x="${x(n)}" y="${bottom + 18}" text-anchor="middle" font-size="12" fill="currentColor">${n}</text>`;
    out += `<text x="0" y="14" font-size="12" fill="currentColor">weight</text><text x="${(left + right) / 2}" y="${bottom + 36}" text-anchor="middle" font-size="12" fill="currentColor">budget N</text>`;
    out += `<line x1="${x(asked.budget)}" x2="${x(asked.budget)}" y1="${top}" y2="${bottom}" stroke="currentColor" stroke-dasharray="2 3"/></g>`;
    asked.p.forEach((_, t) => {
      const points = distinct.map((n, i) => `${x(n).toFixed(1)},${y(found[i][t]).toFixed(1)}`).join(' ');
      out += `<g class="cf-s${t % colours}"><polyline points="${points}" fill="none" stroke="currentColor" stroke-width="2" stroke-linejoin="round"${t >= colours ? ' stroke-dasharray="6 4"' : ''}><title>step ${t + 1}</title></polyline></g>`;
    });
    svg.setAttribute('viewBox', `0 0 ${width} 258`);
    svg.innerHTML = out;
  }

  for (const id of ['w-objective', 'w-budget', 'w-length', 'w-kappa', 'w-q']) at(id).addEventListener('input', draw);
  at('w-shuffle').addEventListener('click', () => { state.logs = state.logs.map(() => -3 * Math.random() * Math.random()); draw(); });
  addEventListener('resize', () => later(read()));
  draw();
})();
