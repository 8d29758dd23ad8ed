// Runs: what a button has opened is brought into view, and the keyboard goes there.
window.ranloopSeeOpened = () => requestAnimationFrame(() => {
  const opened = ['#runs-detail h2', '#runs-differ h3', '#runs-trace h3']
    .flatMap((one) => [...document.querySelectorAll(`${one}:not([data-seen])`)]).pop();
  if (opened) {
    opened.dataset.seen = '';
    opened.tabIndex = -1;
    opened.focus();
    opened.scrollIntoView({block: 'start'});
  } else if (document.activeElement === document.body) {
    document.querySelector('#runs-words input, #runs-words textarea')?.focus();
  }
});
