// Shortcuts, the cheat sheet, the selected text, and what to do when a session ends.
(() => {
  const TYPING = new Set(['text', 'search', 'email', 'url', 'number', 'password', 'tel', 'date']);

  const isTyping = (element) => {
    if (!element) return false;
    if (element.isContentEditable || element.tagName === 'TEXTAREA' || element.tagName === 'SELECT') return true;
    if (element.tagName === 'INPUT') return TYPING.has(element.type);
    return element.getAttribute('role') === 'combobox';
  };

  const isVisible = (element) => element.getClientRects().length > 0;

  const find = (selector) => [...document.querySelectorAll(selector)].find(isVisible);

  const keyName = (event) => {
    const parts = [];
    if (event.ctrlKey || event.metaKey) parts.push('ctrl');
    if (event.altKey) parts.push('alt');
    parts.push(event.key);
    return parts.join('+');
  };

  const use = (element) => {
    if (!element.matches('textarea, input:not([type=radio]):not([type=checkbox])')) element.click();
    else {
      element.focus();
      // What is typed into a menu takes the place of the choice that stands there.
      if (element.getAttribute('role') === 'combobox' || element.closest('[role=listbox], .dropdown, .wrap-inner')) element.select();
    }
  };

  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.repeat && event.key !== 'j' && event.key !== 'k') return;
    const name = keyName(event);
    const open = document.querySelector('dialog[open]');
    if (open) return;
    if (isTyping(event.target)) {
      if (event.key === 'Escape') event.target.blur();
      if (!name.startsWith('ctrl+')) return;
    }
    if (name === '?') { event.preventDefault(); showKeys(); return; }
    for (const shortcut of window.ranloopKeys) {
      if (shortcut.key !== name) continue;
      const element = find(shortcut.target);
      if (!element) continue;
      event.preventDefault();
      use(element);
      return;
    }
  });

  const dialog = (id, label) => {
    let element = document.getElementById(id);
    if (!element) {
      element = document.createElement('dialog');
      element.id = id;
      element.className = 'sheet';
      element.setAttribute('aria-label', label);
      (document.querySelector('.gradio-container') || document.body).append(element);
    }
    element.replaceChildren();
    return element;
  };

  const add = (parent, tag, text) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };

  const addClose = (sheet, text) => {
    const form = add(sheet, 'form');
    form.method = 'dialog';
    add(form, 'button', text).autofocus = true;
  };

  function showKeys() {
    const sheet = dialog('keys', 'Keys');
    add(sheet, 'h2', 'Keys');
    let group = null, list = null;
    const rows = [{key: '?', what: 'this sheet', group: 'Everywhere'}, {key: 'Escape', what: 'leave a text box, close a sheet', group: 'Everywhere'}, ...window.ranloopKeys];
    for (const {key, what, group: name} of rows) {
      if (name !== group) { group = name; add(sheet, 'h3', name); list = add(sheet, 'dl'); }
      const term = add(list, 'dt');
      for (const part of key.split(/(?<=.)\+(?=.)/)) add(term, 'kbd', part === ' ' ? 'Space' : part === 'ctrl' ? 'Ctrl' : part);
      add(list, 'dd', what);
    }
    addClose(sheet, 'Close');
    sheet.showModal();
  }

  document.addEventListener('click', (event) => {
    if (event.target.closest && event.target.closest('[data-help]')) showKeys();
  });

  // What is marked inside the case text; everything else that is marked does not count.
  window.ranloopSelection = () => {
    const selection = window.getSelection();
    if (!selection || !selection.rangeCount) return '';
    const inside = (node) => node && (node.nodeType === 1 ? node : node.parentElement)?.closest('[data-case-text]');
    if (!inside(selection.anchorNode) || inside(selection.anchorNode) !== inside(selection.focusNode)) return '';
    return selection.toString().trim();
  };

  // A session that ended is said at once, instead of an error that nobody understands.
  const fetched = window.fetch.bind(window);
  let ended = false;
  window.fetch = async (...args) => {
    const response = await fetched(...args);
    if (response.status === 401 && !ended) {
      ended = true;
      const sheet = dialog('ended', 'Session ended');
      add(sheet, 'h2', 'Your session has ended');
      add(sheet, 'p', 'What you saved or began is kept. Sign in again to go on where you were.');
      const link = add(sheet, 'a', 'Sign in');
      link.className = 'button';
      link.href = '/sign-in';
      sheet.addEventListener('cancel', (event) => event.preventDefault());
      sheet.showModal();
    }
    return response;
  };

  // Gradio leaves its second, measuring copy of the tabs in the tree for readers.
  const observer = new MutationObserver(() => {
    document.documentElement.lang = 'en';
    for (const element of document.querySelectorAll('[aria-controls=""]')) element.removeAttribute('aria-controls');
  });
  observer.observe(document.documentElement, {subtree: true, childList: true, attributes: true, attributeFilter: ['aria-controls']});
})();
