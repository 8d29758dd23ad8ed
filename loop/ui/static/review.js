// Review: the folded fields, ticked cases, and the link to a case.
(() => {
  const button = () => document.getElementById('review-more');
  const fields = () => document.getElementById('review-expert');

  const fold = (open) => button()?.setAttribute('aria-expanded', String(open));

  // In use: a change is suggested, or one of the other folded fields is filled in.
  const isUsed = () => [...fields().querySelectorAll('input, textarea')].some((field) => {
    if (field.type === 'radio') return field.checked && !['none', ''].includes(field.value);
    if (field.type === 'checkbox') return field.checked;
    return !['', 'Not said'].includes(field.value.trim());
  });

  // What a form holds is seen; what somebody opened stays open.
  window.ranloopUnfold = () => { if (fields() && isUsed()) fold(true); };

  // Brings the open pair into view, with the fields that its form uses.
  window.ranloopSettle = () => {
    document.querySelector('#review-queue [aria-current=true]')
      ?.scrollIntoView({block: 'nearest'});
    for (const column of ['#review-middle', '#review-right'])
      document.querySelector(column)?.scrollTo(0, 0);
    window.ranloopUnfold();
  };

  // Counts real changes of the menus: what counts is what the list shows, or was asked
  // for since.
  let last = {count: 0};
  window.ranloopCount = (menus) => {
    const said = JSON.stringify(menus);
    const shown = document.querySelector('[data-menus]')?.dataset.menus;
    const now = shown === last.shown ? last.said : shown;
    if (said !== now) last = {said, shown, count: last.count + 1};
    return String(last.count);
  };

  document.addEventListener('click', (event) => {
    if (event.target.closest?.('#review-more')) fold(button().getAttribute('aria-expanded') !== 'true');
  });

  // A key for a folded field opens them first.
  window.ranloop.folds.push({
    holds: (target) => Boolean(button()?.getClientRects().length && fields().querySelector(target)),
    open: (target) => { if (!target.includes('value=none')) fold(true); },
  });

  // While the panel is open, words that are marked next are asked about at once.
  let marking;
  document.addEventListener('selectionchange', () => {
    clearTimeout(marking);
    marking = setTimeout(() => {
      const shown = document.querySelector('#review-phrases [data-words]');
      const words = window.ranloopSelection().replace(/\s+/g, ' ');
      if (shown && words && words !== JSON.parse(shown.dataset.words)) document.getElementById('review-phrase-turn').click();
    }, 400);
  });

  document.addEventListener('change', (event) => {
    const list = event.target.closest?.('[data-together]');
    if (!list) return;
    const ticked = [...list.querySelectorAll('input:checked')].map((box) => box.value);
    const submit = list.querySelector('[data-cases]');
    submit.dataset.cases = JSON.stringify(ticked);
    submit.disabled = ticked.length === 0;
    list.querySelector('[data-ticked]').textContent = ticked.length;
  });

  // What a menu shows is marked, so that what is typed next takes its place.
  document.addEventListener('focusin', (event) => {
    if (event.target.closest?.('#review-label, #review-cause')) event.target.select?.();
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
