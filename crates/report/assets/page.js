// What the parts of the page share: text that is safe in HTML, links that name a state of a part, and the trees.
'use strict';
const Page = (() => {
  const escape = (s) => String(s).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
  const source = document.getElementById('trees');
  const listeners = {};

  // A link is `#searches?theorem=syl5&search=ce/bfs/256`: the section, and what is to be shown in it.
  const hash = (section, values) => `#${section}?${new URLSearchParams(values)}`;
  function follow() {
    const [section, values] = location.hash.slice(1).split(/\?(.*)/s);
    if (!values || !listeners[section]) return;
    listeners[section](new URLSearchParams(values));
    document.getElementById(section).scrollIntoView();
  }
  addEventListener('hashchange', follow);
  addEventListener('load', follow);
  return {
    escape,
    hash,
    trees: source ? JSON.parse(source.textContent) : null,
    // Calls back with the values of a link to the section, now or when one is followed.
    on(section, use) { listeners[section] = use; },
    // Keeps the address in step with what is shown, so that it can be copied.
    at(section, values) {
      try { history.replaceState(null, '', hash(section, values)); } catch { /* a page inside another has no address */ }
    },
  };
})();
