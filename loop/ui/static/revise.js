// Boxes and radios of a panel go along with every button that is pressed in it.
window.ranloopForm = (element, tell, watch) => {
  const boxes = (group) => [...element.querySelectorAll('input[data-id]')]
    .filter((box) => group === undefined || box.dataset.groups.split(' ').includes(group));

  const gather = () => ({
    ticked: boxes().filter((box) => box.checked).map((box) => box.dataset.id),
    chosen: Object.fromEntries(
      [...element.querySelectorAll('input[type=radio]:checked')].map((one) => [one.name, one.value])),
  });

  const recount = () => {
    for (const all of element.querySelectorAll('input[data-all]')) {
      const own = boxes(all.dataset.all);
      const on = own.filter((box) => box.checked).length;
      all.checked = on > 0 && on === own.length;
      all.indeterminate = on > 0 && on < own.length;
    }
    for (const place of element.querySelectorAll('[data-count]')) {
      place.textContent = boxes(place.dataset.count).filter((box) => box.checked).length;
    }
  };

  element.addEventListener('change', (event) => {
    if (event.target.type !== 'checkbox') return;
    if (event.target.dataset.all !== undefined) {
      for (const box of boxes(event.target.dataset.all)) box.checked = event.target.checked;
    }
    recount();
    tell('tick', gather());
  });

  element.addEventListener('click', (event) => {
    const button = event.target.closest('[data-act], [data-do]');
    if (!button || !element.contains(button)) return;
    event.preventDefault();
    if (button.dataset.do !== undefined) tell('do', {...button.dataset, ...gather()});
    else tell('act', {...button.dataset});
  });

  recount();
  watch('value', () => {
    // A box keeps what was clicked when its attributes change: the server says which are ticked.
    for (const box of element.querySelectorAll('input[data-off]')) box.checked = false;
    for (const box of element.querySelectorAll('input[data-on]')) box.checked = true;
    recount();
  });
};

// Proposals of an optimizer, or clusters, one of which is current; each is decided where
// it stands. Of a form that is begun the server hears as far as it is filled.
window.ranloopProposals = (element, trigger, watch) => {
  const PATIENCE_MS = 8000;
  const TYPING_MS = 400;
  let at = null;
  let place = 0;
  let typing = 0;
  let sent = false;

  const rows = () => [...element.querySelectorAll('.proposal')];
  const current = () => element.querySelector('.proposal.is-current');

  const mark = () => {
    const all = rows();
    const chosen = all.find((row) => row.dataset.id === at) || all.find((row) => !row.classList.contains('is-decided')) || all[0];
    for (const row of all) {
      row.classList.toggle('is-current', row === chosen);
      if (row === chosen) row.setAttribute('aria-current', 'true'); else row.removeAttribute('aria-current');
    }
    at = chosen ? chosen.dataset.id : null;
    place = all.indexOf(chosen);
  };

  const show = (row) => {
    at = row.dataset.id;
    mark();
    row.focus({preventScroll: true});
    row.scrollIntoView({block: 'nearest'});
  };

  const close = (row) => {
    for (const form of row.querySelectorAll('[data-form]')) {
      form.hidden = true;
      // A box keeps what was typed when the server writes its row anew.
      form.reset();
    }
    for (const one of row.querySelectorAll('[data-open]')) one.setAttribute('aria-expanded', 'false');
  };

  const giveUp = (row) => {
    close(row);
    clearTimeout(typing);
    trigger('begin', {form: '', id: row.dataset.id, fields: {}});
    row.focus();
  };

  const open = (row, name) => {
    at = row.dataset.id;
    mark();
    close(row);
    row.querySelector(`[data-open="${name}"]`).setAttribute('aria-expanded', 'true');
    const form = row.querySelector(`[data-form="${name}"]`);
    form.hidden = false;
    const box = form.querySelector('input, textarea');
    box.focus();
    if (box.matches('input')) box.select();
    form.scrollIntoView({block: 'nearest'});
  };

  // Until the server has answered, a key is not meant for what stands there.
  const watcher = new MutationObserver(() => { if (document.querySelector('.refusal')) settle(); });
  let timer = 0;
  const settle = () => {
    clearTimeout(timer);
    watcher.disconnect();
    element.querySelector('.proposals')?.classList.remove('is-moving');
    sent = false;
  };

  const fieldsOf = (form) => {
    const found = {};
    for (const [name, value] of form ? new FormData(form) : []) (found[name] ||= []).push(value);
    return found;
  };

  const decide = (row, how, form) => {
    if (sent) return;
    sent = true;
    clearTimeout(typing);
    at = row.dataset.id;
    mark();
    for (const one of document.querySelectorAll('.refusal')) one.remove();
    element.querySelector('.proposals').classList.add('is-moving');
    watcher.observe(document.body, {subtree: true, childList: true});
    timer = setTimeout(settle, PATIENCE_MS);
    const text = form ? form.querySelector('input, textarea').value : '';
    const seen = row.dataset.seen || '';
    trigger('decide', {decide: how, id: row.dataset.id, seen, text, fields: fieldsOf(form)});
  };

  element.addEventListener('click', (event) => {
    const button = event.target.closest('button');
    const row = event.target.closest('.proposal');
    if (!button) { if (row) { at = row.dataset.id; mark(); } return; }
    const {act, move, decide: how, open: name, close: shut} = button.dataset;
    if (act) trigger('act', {...button.dataset});
    else if (move) {
      const all = rows();
      const next = all.indexOf(current()) + (move === 'next' ? 1 : -1);
      if (all[next]) show(all[next]);
      else element.querySelector(`[data-turn=${move}]`)?.click();
    } else if (how) decide(row, how, null);
    else if (name) open(row, name);
    else if (shut !== undefined) giveUp(row);
  });

  element.addEventListener('submit', (event) => {
    event.preventDefault();
    decide(event.target.closest('.proposal'), event.target.dataset.form, event.target);
  });

  element.addEventListener('input', (event) => {
    const form = event.target.closest('[data-form]');
    const row = event.target.closest('.proposal');
    clearTimeout(typing);
    typing = setTimeout(() => trigger('begin', {form: form.dataset.form, id: row.dataset.id, fields: fieldsOf(form)}), TYPING_MS);
  });

  element.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || !event.target.closest('[data-form]')) return;
    giveUp(event.target.closest('.proposal'));
  });

  const resume = () => {
    mark();
    const form = element.querySelector('[data-begun]');
    if (form) open(form.closest('.proposal'), form.dataset.form);
  };

  resume();
  watch('value', () => {
    const decided = sent;
    settle();
    for (const row of rows()) close(row);
    const all = rows();
    if (!decided || !all.length) { resume(); return; }
    // What was decided stays in view; the next that is open takes its turn.
    const isOpen = (row) => !row.classList.contains('is-decided');
    const known = all.findIndex((row) => row.dataset.id === at);
    const after = known < 0 ? place : known + 1;
    show([...all.slice(after), ...all].find(isOpen) || all[Math.min(Math.max(known, 0), all.length - 1)]);
  });
};
