// The table of theorems: two searches side by side, filtered, sorted, each result linked to its tree.
'use strict';
(() => {
  const source = document.getElementById('outcomes');
  if (!source) return;
  const data = JSON.parse(source.textContent), at = (id) => document.getElementById(id);
  const FEW = 50;
  const proved = data.theorems.map((_, i) => data.cells.filter((c) => c.found[i] > 0).length);
  const kept = new Set(Page.served && Page.trees ? Page.trees.kept : []);
  const drawn = new Set((Page.trees ? Page.trees.theorems : []).flatMap((t) => t.cells.map((c) => `${t.name}\n${c.key}`)));
  let by = 'name', down = false, all = false;

  const shows = {
    all: () => true,
    a: (a, b) => a > 0 && b === 0,
    b: (a, b) => b > 0 && a === 0,
    differ: (a, b) => a >= 0 && b >= 0 && (a > 0) !== (b > 0),
    both: (a, b) => a > 0 && b > 0,
    neither: (a, b) => a === 0 && b === 0,
    none: (a, b, count) => count === 0,
    every: (a, b, count) => count === data.cells.length,
  };
  const orders = ['name', 'steps', 'a', 'b', 'proved'];
  // Unproved after proved, errors last, whichever way the expansions run.
  const place = (found) => [found > 0 ? 0 : found === 0 ? 1 : 2, found];

  function rows() {
    const a = data.cells[at('t-a').value].found, b = data.cells[at('t-b').value].found;
    const test = shows[at('t-show').value], find = at('t-find').value.trim().toLowerCase();
    const chosen = data.theorems.map((_, i) => i)
      .filter((i) => test(a[i], b[i], proved[i]) && data.theorems[i].toLowerCase().includes(find));
    const order = {
      name: () => [0, 0],
      steps: (i) => [data.steps[i] == null ? 1 : 0, data.steps[i]],
      a: (i) => place(a[i]),
      b: (i) => place(b[i]),
      proved: (i) => [0, proved[i]],
    }[by];
    // Names are in order already.
    return chosen.sort((i, j) => {
      const [p, x] = order(i), [q, y] = order(j);
      return p - q || (down ? -1 : 1) * (x - y || i - j);
    });
  }

  function result(cell, i) {
    const found = cell.found[i], name = data.theorems[i];
    const text = found > 0 ? `\u2713 ${found}` : found === 0 ? '\u2013' : 'error';
    const kind = found > 0 ? 'v1' : found === 0 ? 'v0' : 'v2';
    const inside = drawn.has(`${name}\n${cell.key}`) || kept.has(cell.key) || (Page.searches && found >= 0)
      ? `<a href="${Page.escape(Page.hash('searches', { theorem: name, search: cell.key }))}">${text}</a>` : text;
    return `<td class="n"><span class="${kind}">${inside}</span></td>`;
  }

  function draw() {
    const chosen = rows(), a = data.cells[at('t-a').value], b = data.cells[at('t-b').value];
    const shown = all ? chosen : chosen.slice(0, FEW);
    at('t-rows').innerHTML = shown.map((i) => `<tr><th scope="row">${Page.escape(data.theorems[i])}</th><td class="n">${data.steps[i] ?? ''}</td>${result(a, i)}${result(b, i)}<td class="n">${proved[i]} of ${data.cells.length}</td></tr>`).join('');
    const count = chosen.length === 1 ? '1 theorem' : `${chosen.length} theorems`;
    at('t-count').innerHTML = `<span><b>${count}</b> of ${data.theorems.length}</span><span>\u2713 and the expansion that found the proof</span>`;
    at('t-more').hidden = shown.length === chosen.length;
    at('t-more').textContent = `Show all ${chosen.length}`;
    for (const heading of document.querySelectorAll('.theorems th[data-by]')) {
      if (heading.dataset.by === by) heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
      else heading.removeAttribute('aria-sort');
    }
  }

  function changed() {
    all = false;
    draw();
    Page.at('theorems', {
      a: data.cells[at('t-a').value].key, b: data.cells[at('t-b').value].key, show: at('t-show').value,
      ...(at('t-find').value ? { find: at('t-find').value } : {}), ...(by === 'name' && !down ? {} : { by: down ? `-${by}` : by }),
    });
  }

  Page.on('theorems', (wanted) => {
    for (const side of ['a', 'b']) {
      const place = data.cells.findIndex((c) => c.key === wanted.get(side));
      if (place >= 0) at(`t-${side}`).value = place;
    }
    if (shows[wanted.get('show')]) at('t-show').value = wanted.get('show');
    at('t-find').value = wanted.get('find') || '';
    const order = wanted.get('by') || 'name', known = orders.includes(order.replace('-', ''));
    [by, down] = known ? [order.replace('-', ''), order.startsWith('-')] : ['name', false];
    draw();
  });
  const options = data.cells.map((c, i) => `<option value="${i}">${Page.escape(c.label)}</option>`).join('');
  at('t-a').innerHTML = options;
  at('t-b').innerHTML = options;
  // The two that a reader of a study asks about first: the control, and what is furthest from it under the same search.
  const total = (c) => c.found.filter((f) => f > 0).length;
  const [, strategy, budget] = (data.cells[data.cells.length - 1].key).split('/');
  const alike = data.cells.map((c, i) => i).filter((i) => data.cells[i].key.split('/').slice(1, 3).join('/') === `${strategy}/${budget}`);
  at('t-a').value = alike.find((i) => data.cells[i].key.startsWith('ce/')) ?? alike[0];
  at('t-b').value = alike.reduce((best, i) => total(data.cells[i]) > total(data.cells[best]) ? i : best, alike[alike.length - 1]);
  for (const id of ['t-a', 't-b', 't-show']) at(id).addEventListener('change', changed);
  at('t-find').addEventListener('input', changed);
  at('t-more').addEventListener('click', () => { all = true; draw(); });
  document.querySelector('.theorems thead').addEventListener('click', (event) => {
    const heading = event.target.closest('th[data-by]');
    if (!heading) return;
    down = by === heading.dataset.by && !down;
    by = heading.dataset.by;
    changed();
  });
  draw();
})();
