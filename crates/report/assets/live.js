// A study that is still running: its cells fill in, and the reader is told when there is more to see.
'use strict';
(() => {
  const at = (id) => document.getElementById(id), panel = at('live');
  let version = null, failures = 0;

  function table(cells) {
    const objectives = [...new Set(cells.map((c) => c.objective))], columns = [...new Set(cells.map((c) => c.column))];
    const places = new Map(cells.map((c) => [`${c.objective}\n${c.column}`, c]));
    const place = (c) => {
      if (!c) return '<td></td>';
      if (c.theorems === null) return '<td class="n v0">\u2013</td>';
      const whole = c.done >= c.theorems, share = 100 * c.done / Math.max(1, c.theorems);
      const text = whole ? `${(100 * c.proved / Math.max(1, c.done)).toFixed(1)} %` : `${c.done} of ${c.theorems}`;
      return `<td class="n"><div class="filling${whole ? ' whole' : ''}"><i style="width:${share}%"></i><span>${text}</span></div></td>`;
    };
    return `<table><thead><tr><th scope="col">objective</th>${columns.map((c) => `<th scope="col" class="n">${Page.escape(c)}</th>`).join('')}</tr></thead><tbody>`
      + objectives.map((o) => `<tr><th scope="row">${Page.escape(o)}</th>${columns.map((c) => place(places.get(`${o}\n${c}`))).join('')}</tr>`).join('')
      + '</tbody></table>';
  }

  async function look() {
    let live;
    try { live = await (await fetch('live.json')).json(); failures = 0; } catch {
      // One answer may get lost, and a server may be started again: it is asked less and less often, but asked.
      failures += 1;
      if (failures > 1) at('live-said').textContent = 'The server does not answer; is catamount view still running? Trying again.';
      setTimeout(look, Math.min(60, 2 ** failures) * 1000);
      return;
    }
    const whole = live.cells.filter((c) => c.theorems !== null && c.done >= c.theorems).length;
    const training = live.training.filter((t) => t.step < t.steps).map((t) => `training ${t.name}, step ${t.step} of ${t.steps}`);
    at('live-said').textContent = [`${whole} of ${live.cells.length} cells are complete`, ...training].join('; ');
    at('live-table').innerHTML = live.cells.length ? table(live.cells) : '';
    if (version === null) version = live.version;
    const fresh = live.version !== version;
    // A page that has nothing to lose shows what has come in by itself.
    if (fresh && document.body.classList.contains('waiting')) location.reload();
    at('live-show').hidden = !fresh;
    if (whole < live.cells.length || !live.cells.length) setTimeout(look, 2000);
  }

  Page.served = true;
  panel.hidden = false;
  at('live-show').addEventListener('click', () => location.reload());
  look();
})();
