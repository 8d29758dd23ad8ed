// Review: the folded fields, ticked cases, and the link to a case.
(() => {
  const more = () => document.getElementById('review-more');
  const toggle = () => more()?.querySelector('button.label-wrap');
  const isOpen = () => toggle()?.classList.contains('open');

  // In use: a change is suggested, or one of the other folded fields is filled in.
  const isUsed = () => [...more().querySelectorAll('input, textarea')].some((field) => {
    if (field.type === 'radio') return field.checked && !['none', ''].includes(field.value);
    return field.type === 'checkbox' ? field.checked : field.value.trim() !== '' && field.value !== 'Not said';
  });

  const open = () => {
    if (!more() || isOpen()) return;
    // At once, so that a key reaches what it names before Gradio has opened it.
    more().classList.add('is-opening');
    toggle().click();
  };

  window.ranloopUnfold = () => { if (more() && isUsed()) open(); };

  const tell = () => {
    if (!toggle()) return;
    toggle().setAttribute('aria-expanded', String(isOpen()));
    if (isOpen()) more().classList.remove('is-opening');
  };
  new MutationObserver(tell).observe(document.documentElement, {subtree: true, childList: true, attributes: true, attributeFilter: ['class']});

  const isTyping = (element) => element.closest?.('textarea, select, [contenteditable], [role=combobox], input:not([type=radio]):not([type=checkbox])');

  // Before the table of shortcuts looks for what is visible.
  window.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || !more()?.getClientRects().length) return;
    const row = (window.ranloopKeys || []).find((one) => one.key === event.key && more().querySelector(one.target));
    // A key that chooses nothing opens nothing.
    if (row && !row.target.includes('value=none')) open();
  }, true);

  document.addEventListener('change', (event) => {
    const list = event.target.closest?.('[data-together]');
    if (!list) return;
    const ticked = [...list.querySelectorAll('input:checked')].map((box) => box.value);
    const button = list.querySelector('[data-cases]');
    button.dataset.cases = JSON.stringify(ticked);
    button.disabled = ticked.length === 0;
    list.querySelector('[data-ticked]').textContent = ticked.length;
  });

  const copy = async (text) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    // Without TLS a browser has no clipboard for pages from another machine.
    const box = document.createElement('textarea');
    box.value = text;
    document.body.append(box);
    box.select();
    const done = document.execCommand('copy');
    box.remove();
    if (!done) throw new Error('refused');
  };

  document.addEventListener('click', async (event) => {
    const link = event.target.closest?.('#review-link');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const said = document.getElementById('review-copied');
    try {
      await copy(link.href);
      said.textContent = 'Copied.';
    } catch {
      said.textContent = 'Not copied: the browser refuses. Copy it from the menu of the link.';
    }
  });
})();
