// The reader's choice of light or dark, kept where the browser allows it.
'use strict';
(() => {
  const root = document.documentElement, key = 'catamount-theme';
  try { const kept = localStorage.getItem(key); if (kept) root.dataset.theme = kept; } catch { /* a page opened from a file may not store */ }
  document.addEventListener('DOMContentLoaded', () => {
    const button = document.getElementById('theme');
    button.hidden = false;
    button.addEventListener('click', () => {
      const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
      root.dataset.theme = dark ? 'light' : 'dark';
      try { localStorage.setItem(key, root.dataset.theme); } catch { /* as above */ }
    });
  });
})();
