// Text boxes tell the server what is in them whichever way it came there: typed, pasted,
// dropped, dictated, filled in by the browser. Gradio tells of typing only.
window.ranloopTyping = (element, trigger, selector) => {
  const WAIT_MS = 250;
  let timer = null;

  const tell = () => {
    clearTimeout(timer);
    timer = null;
    trigger('typed', {});
  };

  const isOurs = (target) => target instanceof Element && target.closest(selector) && target.matches('textarea, input:not([type=radio]):not([type=checkbox])');

  const later = (event) => {
    if (!element.isConnected || !isOurs(event.target)) return;
    clearTimeout(timer);
    timer = setTimeout(tell, WAIT_MS);
  };
  for (const kind of ['input', 'change']) document.addEventListener(kind, later, true);
  document.addEventListener('focusout', (event) => { if (timer && isOurs(event.target)) tell(); }, true);
  document.addEventListener('visibilitychange', () => { if (timer && document.hidden) tell(); });
  window.addEventListener('beforeunload', () => { if (timer) tell(); });
};
