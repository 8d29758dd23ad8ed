// What all scripts of the workbench share, times, and what to do when a session ends.
window.ranloop = (() => {
  const container = () => document.querySelector('.gradio-container') || document.body;

  const isVisible = (element) => element.getClientRects().length > 0;

  const add = (parent, tag, text) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };

  const dialog = (id, label) => {
    let element = document.getElementById(id);
    if (!element) {
      element = document.createElement('dialog');
      element.id = id;
      element.className = 'sheet';
      element.setAttribute('aria-label', label);
      container().append(element);
    }
    element.replaceChildren();
    return element;
  };

  // A remark that does not take the focus and goes by itself.
  const tell = (text) => {
    let line = document.getElementById('told');
    if (!line) {
      line = document.createElement('p');
      line.id = 'told';
      line.setAttribute('role', 'status');
      container().append(line);
    }
    line.textContent = text;
    clearTimeout(line.timer);
    line.timer = setTimeout(() => { line.textContent = ''; }, 8000);
  };

  // Parts of a page that are folded away, and hold what keys are for.
  const folds = [];

  return {add, dialog, folds, isVisible, tell};
})();

(() => {
  const {add, dialog} = window.ranloop;

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

  // Times are stored in UTC and shown in the reader's own zone.
  const clock = new Intl.DateTimeFormat('en-GB', {dateStyle: 'medium', timeStyle: 'short'});
  const showLocalTimes = () => {
    for (const one of document.querySelectorAll('time[datetime]:not([data-local])')) {
      const at = new Date(one.dateTime);
      one.dataset.local = '';
      if (Number.isNaN(at.getTime())) continue;
      one.title = one.textContent;
      one.textContent = clock.format(at);
    }
  };

  // Gradio gives each radio a name of its own: arrow keys and screen readers need the group.
  const groupRadios = () => {
    for (const group of document.querySelectorAll('fieldset[id]:has(input[type=radio])')) {
      const title = group.querySelector('[data-testid=block-info]');
      if (title && !title.id) {
        title.id = `${group.id}-name`;
        group.setAttribute('role', 'radiogroup');
        group.setAttribute('aria-labelledby', title.id);
      }
      for (const radio of group.querySelectorAll('input[type=radio]')) if (radio.name !== group.id) radio.name = group.id;
    }
  };

  // Gradio leaves its second, measuring copy of the tabs in the tree for readers.
  const tidy = () => {
    groupRadios();
    document.documentElement.lang = 'en';
    for (const element of document.querySelectorAll('[aria-controls=""]')) element.removeAttribute('aria-controls');
    showLocalTimes();
  };
  new MutationObserver(tidy).observe(document.documentElement, {subtree: true, childList: true, attributes: true, attributeFilter: ['aria-controls']});
})();

// Every element with data-act inside a panel is an event with its data attributes.
window.ranloopPanel = (element, trigger, name) => element.addEventListener('click', (event) => {
  const act = event.target.closest('[data-act]');
  if (act && element.contains(act)) {
    event.preventDefault();
    trigger(name, {...act.dataset});
  }
});
