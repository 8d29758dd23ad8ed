// What was refused is said beside the control that was pressed. Gradio says nothing of it.
(() => {
  const {add, isVisible} = window.ranloop;
  const EVENT = /\/gradio_api\/(?:run|api)\/(\w+)/;
  const LATE_MS = 5000;
  const SOON_MS = 500;
  const SILENT = 'The server does not answer. What you typed is still here: try again in a moment.';

  // `acting` is false for what was only typed: its box keeps the focus.
  let used = {element: null, at: -LATE_MS, acting: false};
  const note = (acting) => (event) => {
    if (event.target instanceof Element && !event.target.closest('.refusal')) used = {element: event.target, at: performance.now(), acting};
  };
  for (const kind of ['click', 'change', 'drop']) document.addEventListener(kind, note(true), true);
  document.addEventListener('input', note(false), true);
  // A control that is pressed may itself take the focus out of a box.
  document.addEventListener('focusout', (event) => { if (!used.acting || performance.now() - used.at > SOON_MS) note(false)(event); }, true);
  document.addEventListener('keydown', (event) => { if (event.key === 'Enter') note(true)(event); }, true);

  let touched = 0;
  for (const kind of ['pointerdown', 'keydown']) document.addEventListener(kind, () => { touched += 1; }, true);

  const clear = () => { for (const one of document.querySelectorAll('.refusal')) one.remove(); };

  const holdsOneLine = (element) => {
    const style = getComputedStyle(element);
    return style.display.includes('flex') && style.flexDirection.startsWith('row') && style.flexWrap === 'nowrap';
  };

  const placeOf = (element) => {
    if (!element?.isConnected || !isVisible(element)) return null;
    const control = element.closest('button, a, label, textarea, input') || element;
    let place = control.matches('input, textarea') && control.closest('.block') || control;
    while (place.parentElement && holdsOneLine(place.parentElement)) place = place.parentElement;
    return place;
  };

  const say = (title, text, from) => {
    clear();
    const message = document.createElement('div');
    message.className = 'refusal';
    message.setAttribute('role', 'alert');
    message.tabIndex = -1;
    add(message, 'b', `${title}: `);
    add(message, 'span', text);
    const close = add(message, 'button', '\u00d7');
    close.type = 'button';
    close.setAttribute('aria-label', 'Close this message');
    const leave = () => {
      message.remove();
      from.element?.closest('button, a, input, textarea')?.focus();
    };
    close.addEventListener('click', (event) => { event.stopPropagation(); leave(); });
    message.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      leave();
    });
    const place = placeOf(from.element);
    if (place) place.after(message);
    else document.getElementById('pages')?.before(message);
    const show = () => {
      if (from.acting) message.focus({preventScroll: true});
      message.scrollIntoView({block: 'nearest'});
    };
    show();
    // Whatever the page does after an event, this has the last word, unless a person has gone on.
    const before = touched;
    setTimeout(() => { if (touched === before) show(); }, 100);
  };

  // The text of an error is HTML with everything escaped.
  const plainOf = (html) => new DOMParser().parseFromString(html, 'text/html').body.textContent;

  const reasonOf = async (response) => {
    try {
      const told = await response.clone().json();
      if (told.error) return [told.title || 'Not done', plainOf(told.error)];
      return ['Not done', String(told.detail || SILENT)];
    } catch {
      return ['Not done', SILENT];
    }
  };

  const fetched = window.fetch;
  window.fetch = async (...args) => {
    const name = EVENT.exec(String(args[0]?.url || args[0]))?.[1];
    if (!name) return fetched(...args);
    // What the page asks by itself, as for progress, is nobody's doing.
    const from = performance.now() - used.at < LATE_MS ? used : {element: null, acting: false};
    if (from.acting) clear();
    try {
      const response = await fetched(...args);
      if (!response.ok && response.status !== 401) say(...await reasonOf(response), from);
      return response;
    } catch (error) {
      if (error.name !== 'AbortError' && from.element) say('Not done', SILENT, from);
      throw error;
    }
  };
})();

// What was done, or what is missing, gets the focus where a panel says so.
window.ranloopSaid = (element, watch) => watch('value', () => {
  const said = element.querySelector('.notice, .is-trouble');
  if (!said) return;
  said.tabIndex = -1;
  said.focus({preventScroll: true});
  said.scrollIntoView({block: 'nearest'});
});
