// The page Judges: rows of errors that come and go, and what stands in the form.
window.ranloopJudges = (element, trigger, watch) => {
  const QUIET_MS = 600;
  let timer = 0;

  const pair = () => element.querySelector('[data-pair]');

  const gather = () => {
    const said = {};
    for (const one of pair().querySelectorAll('[name]')) {
      if (one.type === 'radio' && !one.checked) continue;
      if (one.type === 'checkbox') { if (one.checked) said[one.name] = 'yes'; } else said[one.name] = one.value;
    }
    return said;
  };

  // A draft that is on its way to the server must not arrive behind what is handed in.
  const PATIENCE_MS = 8000;
  let keeping = 0;
  let again = false;
  let waiting = null;

  const settle = () => {
    clearTimeout(keeping);
    keeping = 0;
    const next = waiting;
    waiting = null;
    if (next) next();
    else if (again && pair()) send('keep');
    again = false;
  };
  window.ranloopJudgesKept = settle;

  const send = (name, more = {}) => {
    clearTimeout(timer);
    timer = 0;
    const data = {...pair().dataset, ...more, fields: gather()};
    if (name === 'keep') {
      if (keeping) { again = true; return; }
      keeping = setTimeout(settle, PATIENCE_MS);
      trigger('keep', data);
      return;
    }
    const said = document.querySelector('.judges-said');
    const go = () => { if (said) said.textContent = ''; trigger(name, data); };
    if (keeping) waiting = go; else go();
  };

  const keepSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => send('keep'), QUIET_MS);
  };

  const add = (kind) => {
    const rows = element.querySelector(`[data-rows="${kind}"]`);
    const last = rows.lastElementChild?.querySelector('[name]')?.name.split('.')[1] ?? '-1';
    const made = element.querySelector(`template[data-new="${kind}"]`).content.cloneNode(true);
    for (const one of made.querySelectorAll('[name]')) one.name = one.name.replace('#', Number(last) + 1);
    rows.append(made);
    rows.lastElementChild.querySelector('select').focus();
  };

  element.addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (!button || !element.contains(button)) return;
    const {add: kind, move, send: act, verdict} = button.dataset;
    if (button.dataset.allRight !== undefined) {
      event.preventDefault();
      for (const one of element.querySelectorAll('select[name^="listed."]')) if (!one.value) one.value = 'ok';
      keepSoon();
      return;
    }
    if (kind) { event.preventDefault(); add(kind); keepSoon(); }
    else if (button.dataset.remove !== undefined) {
      event.preventDefault();
      const row = button.closest('[data-row]');
      const next = row.nextElementSibling?.querySelector('select') ?? row.closest('fieldset').querySelector('[data-add]');
      row.remove();
      next.focus();
      keepSoon();
    }
    else if (move) { event.preventDefault(); if (timer) send('keep'); trigger('move', {...pair().dataset, act: move}); }
    else if (act) { event.preventDefault(); send(act, verdict ? {verdict} : {}); }
  });

  // What was typed last is kept before one leaves, but not behind what is handed in.
  const flush = () => { if (timer && pair()) send('keep'); };
  element.addEventListener('focusout', (event) => { if (!event.relatedTarget?.closest?.('[data-send]')) flush(); });
  window.addEventListener('pagehide', flush);

  element.addEventListener('input', (event) => { if (event.target.name) keepSoon(); });

  watch('value', () => {
    clearTimeout(timer);
    timer = 0;
    // A box keeps what was chosen when its attributes change: the server says what holds.
    for (const one of element.querySelectorAll('[name]')) {
      if (one.tagName === 'SELECT') one.value = one.querySelector('option[selected]')?.value ?? one.options[0].value;
      else if (one.type === 'checkbox' || one.type === 'radio') one.checked = one.hasAttribute('checked');
      else one.value = one.defaultValue;
    }
  });

  window.ranloopJudgesSettled = () => requestAnimationFrame(() => {
    const heading = element.querySelector('h2');
    heading?.focus({preventScroll: true});
    document.getElementById('judges-status')?.scrollIntoView({block: 'start'});
  });
};
