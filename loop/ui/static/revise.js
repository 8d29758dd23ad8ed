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
