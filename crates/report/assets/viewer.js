// The search viewer: one tree, expansion by expansion.
'use strict';
(() => {
  const data = Page.trees;
  if (!data) return;
  const { escape } = Page, at = (id) => document.getElementById(id);
  const OPEN = 0, PROVED = 1, REJECTED = 2;
  const glyph = ['\u25e6', '\u2713', '\u00d7'], verdicts = ['open', 'proved', 'rejected'];
  const signed = (v, digits) => v.toFixed(digits).replace('-', '\u2212');
  let tree = null, now = 0, playing = 0;

  const theorem = () => data.theorems[Number(at('v-theorem').value)];
  // A theorem that was asked for later brings texts of its own.
  const text = (i) => (theorem().strings || data.strings)[i] || '';
  const cell = () => theorem().cells[Number(at('v-cell').value)];

  // Nodes by the expansion that made them, 0 for the root: parent, depth, children, and whether they lie on the demonstrated
  // trace or on the proof found.
  function grow(cell, trace) {
    const nodes = [{ id: 0, depth: 0, children: [], verdict: OPEN, on: trace.length > 0 }];
    cell.expansions.forEach(([parent, tactic, logP, verdict, state, score], i) => {
      const from = nodes[parent];
      const node = { id: i + 1, parent, tactic, logP, verdict, state, score, depth: from.depth + 1, children: [] };
      // On the trace: the demonstrated tactic at a demonstrated state, or another that leads to the next demonstrated state.
      const step = trace[from.depth], after = trace[from.depth + 1];
      node.on = Boolean(from.on && step && verdict !== REJECTED && (tactic === step[0] || (after && state === after[1])));
      from.children.push(node.id);
      nodes.push(node);
    });
    for (const node of nodes) {
      if (node.verdict !== PROVED) continue;
      for (let k = node; k; k = k.parent === undefined ? null : nodes[k.parent]) k.won = k.won ?? node.id;
    }
    return nodes;
  }

  // Leaves take rows in order; a parent stands at the middle of its children. Iterative, since a search can be deep.
  function layout(nodes, rejected) {
    const shown = (id) => rejected || nodes[id].verdict !== REJECTED;
    let row = 0;
    const stack = [[0, 0]];
    while (stack.length) {
      const frame = stack[stack.length - 1], node = nodes[frame[0]];
      const children = node.children.filter(shown);
      if (frame[1] < children.length) stack.push([children[frame[1]++], 0]);
      else {
        node.row = children.length ? (nodes[children[0]].row + nodes[children[children.length - 1]].row) / 2 : row++;
        stack.pop();
      }
    }
    return row;
  }

  function draw() {
    const nodes = tree, rejected = at('v-rejected').checked, rows = layout(nodes, rejected), pane = at('v-pane');
    const deepest = nodes.reduce((d, n) => Math.max(d, rejected || n.verdict !== REJECTED ? n.depth : 0), 1);
    const pitch = Math.max(34, Math.min(110, (pane.clientWidth - 60) / deepest));
    const gap = Math.max(13, Math.min(30, (pane.clientHeight - 40) / Math.max(1, rows)));
    const x = (n) => 22 + n.depth * pitch, y = (n) => 20 + n.row * gap;
    const width = Math.max(pane.clientWidth - 2, 60 + deepest * pitch), height = Math.max(pane.clientHeight - 2, 40 + (rows - 1) * gap);
    let edges = '', marks = '';
    for (const n of nodes) {
      if (n.verdict === REJECTED && !rejected) continue;
      if (n.parent !== undefined) {
        const from = nodes[n.parent], middle = (x(from) + x(n)) / 2;
        const kind = n.verdict === REJECTED ? 'bad' : '';
        edges += `<path data-id="${n.id}" class="${kind}" d="M${x(from)} ${y(from)}C${middle} ${y(from)} ${middle} ${y(n)} ${x(n)} ${y(n)}"/>`;
      }
      const title = `<title>${n.id ? escape(`${n.id}. ${text(n.tactic)}`) : 'root'}</title>`;
      if (n.verdict === REJECTED) marks += `<text class="cross" data-id="${n.id}" x="${x(n)}" y="${y(n) + 4}">\u00d7${title}</text>`;
      else {
        marks += `<circle data-id="${n.id}" cx="${x(n)}" cy="${y(n)}" r="${n.verdict === PROVED ? 6 : 4.5}">${title}</circle>`;
        if (!rejected) marks += `<text data-count="${n.id}" x="${x(n) + 8}" y="${y(n) - 4}"></text>`;
      }
    }
    pane.innerHTML = `<svg class="tree" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" aria-hidden="true">${edges}${marks}</svg>`;
    for (const n of nodes) { n.x = x(n); n.y = y(n); }
    show();
  }

  function list() {
    at('v-log').innerHTML = tree.slice(1).map((n) =>
      `<li data-id="${n.id}"><span>${n.id}</span><span class="v${n.verdict}" title="${verdicts[n.verdict]}">${glyph[n.verdict]}</span><span>${escape(text(n.tactic))}</span><span>${signed(n.logP, 2)}</span></li>`).join('');
  }

  // Everything that depends on the moment: what has been grown, what is current, what is known of it.
  function show() {
    const pane = at('v-pane'), misses = new Map();
    const proof = tree.find((n) => n.verdict === PROVED && n.id <= now);
    for (let i = 1; i <= now; i++) if (tree[i].verdict === REJECTED) misses.set(tree[i].parent, (misses.get(tree[i].parent) || 0) + 1);
    for (const mark of pane.querySelectorAll('[data-id]')) {
      const n = tree[Number(mark.dataset.id)];
      mark.classList.toggle('later', n.id > now);
      mark.classList.toggle('now', n.id === now);
      mark.classList.toggle('on', Boolean(n.on));
      mark.classList.toggle('won', Boolean(proof) && n.won === proof.id);
    }
    for (const mark of pane.querySelectorAll('[data-count]')) {
      const id = Number(mark.dataset.count), count = misses.get(id);
      mark.textContent = count && id <= now ? `\u00d7${count}` : '';
    }
    for (const item of at('v-log').children) {
      const id = Number(item.dataset.id);
      item.classList.toggle('later', id > now);
      if (id === now) item.setAttribute('aria-current', 'step'); else item.removeAttribute('aria-current');
    }
    const n = tree[now], current = at('v-log').querySelector('[aria-current]');
    const follow = (box, top, left) => {
      if (top < box.scrollTop + 20 || top > box.scrollTop + box.clientHeight - 40) box.scrollTop = top - box.clientHeight / 2;
      if (left < box.scrollLeft || left > box.scrollLeft + box.clientWidth - 40) box.scrollLeft = left - box.clientWidth / 2;
    };
    const marked = n.verdict === REJECTED && !at('v-rejected').checked ? tree[n.parent] : n;
    follow(pane, marked.y, marked.x);
    if (current) follow(at('v-log-pane'), current.offsetTop, 0);
    at('v-time').value = now;
    at('v-count').textContent = `${now} of ${tree.length - 1}`;
    detail(n, proof);
  }

  function detail(n, proof) {
    const c = cell(), rows = [];
    const outcome = { proved: 'proved', exhausted: 'nothing left to expand', budget: 'budget spent', time: 'cut off by the clock', error: 'error' }[c.outcome] || c.outcome;
    rows.push(['search', escape(`${c.label}, N = ${c.budget}: ${outcome}`)]);
    if (n.id === 0) rows.push(['root', `<pre>${escape(text(c.root))}</pre>`]);
    else {
      rows.push(['tactic', `<pre>${escape(text(n.tactic))}</pre>`]);
      rows.push(['verdict', `<span class="v${n.verdict}">${verdicts[n.verdict]}</span>, log p ${signed(n.logP, 3)}${n.score === null ? '' : `, score ${signed(n.score, 3)}`}, sampled at depth ${n.depth - 1}${n.on ? ', on the demonstrated trace' : ''}`]);
      if (text(n.state)) rows.push([n.verdict === REJECTED ? 'error' : 'state', `<pre>${escape(text(n.state))}</pre>`]);
    }
    if (proof) {
      const path = [];
      for (let k = proof; k.parent !== undefined; k = tree[k.parent]) path.unshift(text(k.tactic));
      rows.push(['proof found', `<pre>${escape(path.join('\n'))}</pre>`]);
    }
    const trace = theorem().trace;
    if (trace.length) rows.push(['demonstrated', `<pre>${escape(trace.map(([tactic]) => text(tactic)).join('\n'))}</pre>`]);
    at('v-detail').innerHTML = rows.map(([k, v]) => `<dt>${k}</dt><dd>${v}</dd>`).join('');
  }

  function open() {
    stop();
    tree = grow(cell(), theorem().trace);
    now = tree.length - 1;
    at('v-time').max = now;
    at('v-rejected').checked = tree.length <= 60;
    list();
    draw();
  }

  function cells() {
    const kept = at('v-cell').selectedOptions[0]?.textContent;
    at('v-cell').innerHTML = theorem().cells.map((c, i) => `<option value="${i}">${escape(c.label)}${c.outcome === 'proved' ? ' \u2713' : ''}</option>`).join('');
    const bare = (s) => (s || '').replace(' \u2713', '');
    const same = [...at('v-cell').options].find((o) => bare(o.textContent) === bare(kept));
    // A reader who has chosen nothing yet sees a search that ends in a proof.
    const first = theorem().cells.findIndex((c) => c.outcome === 'proved' && c.expansions.length > 8);
    if (same) same.selected = true;
    else if (first >= 0) at('v-cell').selectedIndex = first;
    open();
  }

  // The address names the theorem, the search and the expansion.
  function place() {
    Page.at('searches', { theorem: theorem().name, search: cell().key, ...(now < tree.length - 1 ? { at: now } : {}) });
  }

  async function wanted(link) {
    const name = link.get('theorem'), key = link.get('search') || '';
    const tell = (said) => { at('v-detail').innerHTML = `<dt>${escape(name)}</dt><dd>${escape(said)}</dd>`; };
    let number = data.theorems.findIndex((t) => t.name === name);
    const there = number >= 0 && (!Page.searches || data.theorems[number].cells.some((c) => c.key === key));
    if (!there && Page.served) {
      if (Page.searches) tell('searched again, as the log says; a moment');
      const answer = await fetch(`trees.json?${new URLSearchParams({ theorem: name, search: key })}`);
      if (!answer.ok) return tell(await answer.text());
      const found = await answer.json();
      if (found.theorems.length && found.theorems[0].cells.length) {
        const fresh = { ...found.theorems[0], strings: found.strings };
        if (number < 0) number = data.theorems.push(fresh) - 1;
        else data.theorems[number] = fresh;
        theorems();
      }
    }
    if (number < 0) {
      at('v-detail').innerHTML = `<dt>${escape(name)}</dt><dd>no tree of this theorem was kept; <code>evaluation.trees</code> says for how many theorems they are</dd>`;
      return;
    }
    at('v-theorem').value = number;
    cells();
    const search = theorem().cells.findIndex((c) => c.key === key);
    if (search >= 0) { at('v-cell').value = search; open(); }
    if (link.has('at')) go(Number(link.get('at')));
  }

  function theorems() {
    at('v-theorem').innerHTML = data.theorems.map((t, i) => `<option value="${i}">${escape(t.name)}</option>`).join('');
  }

  function stop() {
    clearInterval(playing);
    playing = 0;
    at('v-play').textContent = '\u25b6';
    at('v-play').setAttribute('aria-label', 'Play');
  }
  function go(to) { if (!tree) return; now = Math.max(0, Math.min(tree.length - 1, to)); show(); }

  at('v-play').addEventListener('click', () => {
    if (playing || !tree) return stop();
    if (now === tree.length - 1) go(0);
    at('v-play').textContent = '\u23f8';
    at('v-play').setAttribute('aria-label', 'Pause');
    // A whole search takes about fifteen seconds, however long it is.
    playing = setInterval(() => { if (now >= tree.length - 1) stop(); else go(now + 1); }, Math.max(30, Math.min(500, 15000 / tree.length)));
  });
  at('v-back').addEventListener('click', () => { stop(); go(now - 1); });
  at('v-next').addEventListener('click', () => { stop(); go(now + 1); });
  at('v-time').addEventListener('input', () => { stop(); go(Number(at('v-time').value)); });
  at('v-rejected').addEventListener('change', () => { if (tree) draw(); });
  at('v-cell').addEventListener('change', () => { open(); place(); });
  at('v-theorem').addEventListener('change', () => { cells(); place(); });
  at('v-time').addEventListener('change', () => { if (tree) place(); });
  Page.on('searches', wanted);
  const jump = (e) => { const mark = e.target.closest('[data-id]'); if (mark) { stop(); go(Number(mark.dataset.id)); } };
  at('v-pane').addEventListener('click', jump);
  at('v-log').addEventListener('click', jump);
  let width = 0;
  addEventListener('resize', () => { if (innerWidth !== width) { width = innerWidth; if (tree) draw(); } });
  theorems();
  if (data.theorems.length) cells();
})();
