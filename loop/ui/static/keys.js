// Keys of the workbench and the sheet that lists them.
(() => {
  const {add, dialog, folds, isVisible, tell} = window.ranloop;
  const TYPING = new Set(['text', 'search', 'email', 'url', 'number', 'password', 'tel', 'date']);

  // A text that is typed or dictated while no box has the focus must do nothing: letters
  // that follow each other faster than a hand, or that are no keys, are text.
  const HOLD_MS = 60;
  const QUIET_MS = 900;
  let held = null;
  let quietUntil = 0;

  const isTyping = (element) => {
    if (!element) return false;
    if (element.isContentEditable || element.tagName === 'TEXTAREA' || element.tagName === 'SELECT') return true;
    if (element.tagName === 'INPUT') return TYPING.has(element.type);
    return element.getAttribute('role') === 'combobox';
  };

  const find = (selector) => [...document.querySelectorAll(selector)].find(isVisible);

  const areOn = () => document.querySelector('[data-keys]')?.dataset.keys !== 'off';

  const keyName = (event) => {
    const parts = [];
    if (event.ctrlKey || event.metaKey) parts.push('ctrl');
    if (event.altKey) parts.push('alt');
    parts.push(event.key);
    return parts.join('+');
  };

  const isThere = (target) => Boolean(find(target)) || folds.some((one) => one.holds(target));

  // While a panel moves on to another case, what it shows is not what a key is meant for.
  const waiting = [];
  const runWaiting = () => {
    while (waiting.length) {
      if (find(waiting[0])?.closest('.is-moving')) { setTimeout(runWaiting, 30); return; }
      press(waiting.shift());
    }
  };
  const use = (target) => {
    waiting.push(target);
    if (waiting.length === 1) runWaiting();
  };

  const press = (target) => {
    for (const one of folds) if (one.holds(target)) one.open(target);
    const element = find(target);
    if (!element) return;
    if (!element.matches('textarea, input:not([type=radio]):not([type=checkbox])')) element.click();
    else {
      element.focus();
      // What is typed into a menu takes the place of the choice that stands there.
      if (element.getAttribute('role') === 'combobox' || element.closest('[role=listbox], .dropdown, .wrap-inner')) element.select();
    }
  };

  const release = () => {
    if (!held) return;
    clearTimeout(held.timer);
    const {target} = held;
    held = null;
    use(target);
  };

  const takeForText = (now) => {
    if (held) clearTimeout(held.timer);
    held = null;
    quietUntil = now + QUIET_MS;
    tell('Typing was ignored: no text box is selected.');
  };

  const onLetter = (event, shortcut) => {
    // A key that a page has held back while it was busy.
    if (!event.isTrusted) { if (shortcut) { event.preventDefault(); use(shortcut.target); } return; }
    // When it was pressed, not when a busy page comes to it.
    const now = event.timeStamp;
    if (now < quietUntil) {
      quietUntil = now + QUIET_MS;
      event.preventDefault();
      return;
    }
    if (event.repeat) {
      if (shortcut && 'jk'.includes(event.key)) { event.preventDefault(); use(shortcut.target); }
      return;
    }
    if (held && held.key === event.key && 'jk'.includes(event.key)) release();
    // A key that has nothing to press just now is no text yet.
    if (!held && !shortcut && window.ranloopKeys.some((one) => one.key === event.key)) return;
    if (held || !shortcut) { takeForText(now); return; }
    event.preventDefault();
    held = {key: event.key, at: now, target: shortcut.target, timer: setTimeout(release, HOLD_MS)};
  };

  const isLetter = (event) => event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey;

  // Before anything else hears of the next key: on a busy page a letter may wait longer
  // than it should, and what follows it is meant for what it leads to.
  window.addEventListener('keydown', (event) => {
    if (held && event.isTrusted && (!isLetter(event) || event.timeStamp - held.at >= HOLD_MS)) release();
  }, true);

  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]')) return;
    const name = keyName(event);
    // The key before may have led to a text box just now: what follows is the text.
    const typed = [event.target, document.activeElement].find(isTyping);
    if (typed) {
      if (event.key === 'Escape') typed.blur();
      if (!name.startsWith('ctrl+')) return;
    }
    const letter = isLetter(event);
    // Space presses what has the focus, and scrolls the page where nothing has.
    if (event.key === ' ' && event.target !== document.body) return;
    if (letter && !areOn()) return;
    const shortcut = window.ranloopKeys.find((one) => one.key === name && isThere(one.target));
    if (name === '?' && performance.now() >= quietUntil && !held) { event.preventDefault(); showKeys(); }
    else if (letter) onLetter(event, shortcut);
    else if (shortcut && !event.repeat) { event.preventDefault(); use(shortcut.target); }
  });

  // A menu does not stay open behind whoever leaves it with the keyboard.
  document.addEventListener('focusout', (event) => {
    const menu = event.target;
    if (menu.getAttribute?.('role') !== 'combobox') return;
    setTimeout(() => {
      if (document.activeElement === menu || menu.getAttribute('aria-expanded') !== 'true') return;
      menu.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));
    }, 150);  // One that has just begun to open says so a moment later.
  }, true);

  const groupsHere = () => {
    const here = window.ranloopKeys.filter((one) => one.group === 'Everywhere' || one.group === openPart());
    return [{key: '?', what: 'this sheet', group: 'Everywhere'}, {key: 'Escape', what: 'leave a text box, close a sheet', group: 'Everywhere'}, ...here];
  };

  const openPart = () => {
    const part = [...document.querySelectorAll('#readers-part input:checked')].find((one) => isVisible(one.closest('label')));
    return (part?.closest('label') || document.querySelector('[role=tab][aria-selected=true]'))?.innerText.trim();
  };

  function showKeys() {
    const sheet = dialog('keys', 'Keys');
    add(sheet, 'h2', `Keys on the page ${openPart() || ''}`);
    const columns = add(sheet, 'div');
    columns.className = 'key-groups';
    let group = null, list = null;
    for (const {key, what, group: name} of groupsHere()) {
      if (name !== group) {
        group = name;
        const section = add(columns, 'section');
        add(section, 'h3', name);
        list = add(section, 'dl');
      }
      const term = add(list, 'dt');
      for (const part of key.split(/(?<=.)\+(?=.)/)) add(term, 'kbd', part === ' ' ? 'Space' : part === 'ctrl' ? 'Ctrl' : part);
      add(list, 'dd', what);
    }
    const label = add(add(sheet, 'p'), 'label');
    const box = add(label, 'input');
    box.type = 'checkbox';
    box.checked = areOn();
    add(label, 'span', ' Use letters and numbers as keys. Ctrl+Enter works in any case.');
    box.addEventListener('change', () => document.querySelector(`[data-act=keys][data-on=${box.checked ? 'on' : 'off'}]`)?.click());
    const form = add(sheet, 'form');
    form.method = 'dialog';
    add(form, 'button', 'Close').autofocus = true;
    sheet.showModal();
  }

  document.addEventListener('click', (event) => {
    if (event.target.closest && event.target.closest('[data-help]')) showKeys();
  });
})();
