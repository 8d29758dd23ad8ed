// A panel whose acts reach the server one after the other, and the rows of a sheet.
window.ranloopSettled = {};
window.ranloopOrdered = (element, sendNow, watch, panel) => {
  const STAYING = new Set(['answer', 'decide', 'comment']);

  const waiting = [];
  let flying = null;
  let overdue = 0;
  let held = [];
  let current = 0;
  let shown = '';
  // A comment that the server does not have yet, and the case it is about.
  let draft = null;
  let draftTimer = 0;
  // Which parts of the guideline are open: the next sheet opens them again.
  const folds = new Map();

  const sheet = () => element.querySelector('[data-case]');
  const rows = () => [...element.querySelectorAll('[data-row]')];
  const rowOf = (label) => rows().find((row) => row.dataset.row === label);
  const radios = (row) => [...row.querySelectorAll('input[type=radio]')];

  // While another case is on its way, what is typed is meant for that one: it is held and
  // typed again once the case is there. Clicks are not taken meanwhile.
  const moving = () => [flying, ...waiting].some((act) => act && !STAYING.has(act.act));

  const release = () => {
    const busy = moving();
    element.classList.toggle('is-moving', busy);
    while (held.length && !moving()) {
      const key = held.shift();
      (document.activeElement || document.body).dispatchEvent(new KeyboardEvent('keydown', {...key, bubbles: true, cancelable: true}));
    }
  };

  const send = () => {
    if (flying || !waiting.length) return;
    flying = waiting.shift();
    overdue = setTimeout(() => settle(false), 10000);
    sendNow(flying);
  };

  const push = (act) => {
    if (act.act !== 'comment') keepDraft();
    const last = waiting[waiting.length - 1];
    if (act.act === 'comment' && last?.act === 'comment' && last.case === act.case) Object.assign(last, act);
    else if (act.answers && last && last.answers && last.case === act.case) Object.assign(last.answers, act.answers);
    else waiting.push(act);
    if (moving()) element.classList.add('is-moving');
    send();
  };

  const box = () => element.querySelector('[data-comment]');

  const sayComment = (words) => {
    const place = element.querySelector('[data-comment-state]');
    if (place) place.textContent = words;
  };

  const keepDraft = () => {
    clearTimeout(draftTimer);
    if (!draft || draft.sent) return;
    draft.sent = true;
    push({act: 'comment', cohort: draft.cohort, guideline: draft.guideline, case: draft.case, comment: draft.text});
  };

  const settleDraft = (done, kept) => {
    if (done.act !== 'comment' || !draft || draft.case !== done.case) return;
    if (!kept) { draft.sent = false; sayComment('Not kept. Change it, or leave the box, to try again.'); return; }
    if (draft.text === done.comment) { draft = null; sayComment('Kept.'); }
  };

  const settle = (kept) => {
    if (!flying) return;
    clearTimeout(overdue);
    const done = flying;
    flying = null;
    if (!kept) {
      if (draft && waiting.some((act) => act.act === 'comment')) draft.sent = false;
      waiting.length = 0;
      held = [];
    }
    settleDraft(done, kept);
    for (const label of Object.keys(done.answers || {})) confirmRow(rowOf(label), kept);
    if (!kept) rows().forEach((row) => { if (row.dataset.state === 'saving') confirmRow(row, false); });
    send();
    // The new case is drawn a moment after the answer came.
    if (!moving()) setTimeout(release, 40);
  };

  // What the server has is what `checked` says as an attribute; a failed answer goes back to it.
  const confirmRow = (row, kept) => {
    if (!row) return;
    const later = waiting.some((act) => act.answers && row.dataset.row in act.answers);
    if (later) return;
    row.dataset.state = kept ? '' : 'failed';
    for (const radio of radios(row)) {
      if (kept) radio.defaultChecked = radio.checked;
      else radio.checked = radio.defaultChecked;
    }
    given(row);
  };

  const given = (row) => row.classList.toggle('is-given', radios(row).some((radio) => radio.checked));

  const say = (row, value) => {
    const place = sheet().dataset;
    row.dataset.state = 'saving';
    given(row);
    push({act: 'answer', cohort: place.cohort, guideline: place.guideline, case: place.case, answers: {[row.dataset.row]: value}});
  };

  const takeBack = (row) => {
    if (!radios(row).some((radio) => radio.checked)) return;
    for (const radio of radios(row)) radio.checked = false;
    say(row, '');
  };

  const mark = (at, focus) => {
    const all = rows();
    if (!all.length) return;
    current = Math.max(0, Math.min(at, all.length - 1));
    all.forEach((row, n) => {
      row.classList.toggle('is-current', n === current);
      row.classList.toggle('is-before', n === current - 1);
      row.classList.toggle('is-after', n === current + 1);
    });
    const row = all[current];
    const about = element.querySelector('[data-about]');
    if (about && about.dataset.of !== row.dataset.row) {
      const name = Object.assign(document.createElement('b'), {textContent: row.dataset.name});
      const meaning = element.querySelector(`[data-meaning="${row.dataset.row}"]`);
      about.replaceChildren(name, ...meaning.cloneNode(true).childNodes);
      about.dataset.of = row.dataset.row;
      about.scrollTop = 0;
    }
    if (focus) {
      (radios(row).find((radio) => radio.checked) || radios(row)[0]).focus({preventScroll: true});
      row.scrollIntoView({block: 'nearest'});
    }
  };

  const rendered = () => {
    for (const fold of element.querySelectorAll('[data-fold]')) {
      if (folds.has(fold.dataset.fold)) fold.open = folds.get(fold.dataset.fold);
    }
    for (const radio of element.querySelectorAll('input[type=radio]')) radio.checked = radio.defaultChecked;
    rows().forEach((row) => { row.dataset.state = ''; given(row); });
    const place = sheet();
    // Put back what was typed while the sheet was being replaced.
    if (box()) box().value = draft && place.dataset.case === draft.case ? draft.text : box().defaultValue;
    const now = place ? `${place.dataset.case}\n${place.dataset.label || ''}` : '';
    // What is left when the rest is absent is said next.
    const left = rows().filter((row) => !row.classList.contains('is-given'));
    if (now === shown) { mark(left.length === 1 ? rows().indexOf(left[0]) : current, false); return; }
    shown = now;
    for (const area of element.querySelectorAll('[data-case-text]')) area.scrollTop = 0;
    const focused = document.activeElement;
    mark(0, !focused || focused === document.body || element.contains(focused));
    element.querySelector('[aria-current=true]')?.scrollIntoView({block: 'nearest'});
  };

  element.addEventListener('change', (event) => {
    const row = event.target.closest('[data-row]');
    if (row && event.target.type === 'radio') { mark(rows().indexOf(row), false); say(row, event.target.value); }
  });

  // The browser's own event: also for what is pasted, dictated, dropped or filled in.
  element.addEventListener('input', (event) => {
    if (!event.target.matches('[data-comment]')) return;
    const place = sheet().dataset;
    if (draft && draft.case !== place.case) keepDraft();
    draft = {cohort: place.cohort, guideline: place.guideline, case: place.case, text: event.target.value, sent: false};
    sayComment('');
    clearTimeout(draftTimer);
    draftTimer = setTimeout(keepDraft, 700);
  });

  element.addEventListener('focusout', (event) => { if (event.target.matches('[data-comment]')) keepDraft(); });
  document.addEventListener('visibilitychange', () => { if (element.isConnected) keepDraft(); });

  element.addEventListener('focusin', (event) => {
    const row = event.target.closest('[data-row]');
    if (row) mark(rows().indexOf(row), false);
  });

  element.addEventListener('click', (event) => {
    const act = event.target.closest('[data-act]');
    if (act && element.contains(act)) {
      event.preventDefault();
      push({...(sheet()?.dataset || {}), ...act.dataset});
      return;
    }
    const row = event.target.closest('[data-row]');
    if (!row) return;
    if (event.target.closest('[data-take-back]')) takeBack(row);
    else if (!event.target.closest('label')) mark(rows().indexOf(row), true);
  });

  // The event does not bubble.
  element.addEventListener('toggle', (event) => {
    const {fold} = event.target.dataset;
    if (!fold || folds.get(fold) === event.target.open) return;
    folds.set(fold, event.target.open);
    if (fold !== 'guideline') return;
    if (event.target.open) event.target.scrollIntoView({block: 'start'});
    else rows()[current]?.scrollIntoView({block: 'nearest'});
  }, true);

  element.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !rows().length) return;
    if (event.target.closest('[data-case-text], [data-about], [data-fold], textarea')) return;
    const move = {ArrowUp: -1, ArrowDown: 1}[event.key];
    const group = /^[1-9]$/.test(event.key) && element.querySelector(`[data-group="${event.key}"] [data-row]`);
    if (move) mark(current + move, true);
    else if (group) mark(rows().indexOf(group), true);
    else if (event.key === 'Delete' || event.key === 'Backspace') takeBack(rows()[current]);
    else return;
    event.preventDefault();
  });

  document.addEventListener('keydown', (event) => {
    const typing = event.target.matches?.('textarea, input:not([type=radio]):not([type=checkbox]), [role=combobox]');
    if (typing || !event.isTrusted || !element.classList.contains('is-moving') || !element.isConnected) return;
    if (event.key === 'Tab' || event.key === 'Escape') return;
    held.push({key: event.key, ctrlKey: event.ctrlKey, metaKey: event.metaKey, altKey: event.altKey});
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);

  window.addEventListener('beforeunload', (event) => {
    keepDraft();
    if (element.isConnected && (flying || waiting.length || draft)) event.preventDefault();
  });

  window.ranloopSettled[panel] = settle;
  watch('value', rendered);
  rendered();
};
