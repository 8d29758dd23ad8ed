// Sends a chosen or dropped file to the server, and says how far it is.
window.ranloopUploads = {
  connect(element, trigger) {
    let under_way = null;
    const box = () => element.querySelector('[data-upload]');
    const say = (text, state) => {
      const said = box().querySelector('.upload-said');
      said.textContent = text;
      said.setAttribute('role', state === 'failed' ? 'alert' : 'status');
      box().dataset.state = state;
    };
    const progress = (share) => {
      const bar = box().querySelector('progress');
      bar.hidden = share === null;
      bar.value = share ?? 0;
    };

    const send = (file) => {
      under_way?.abort();
      const request = under_way = new XMLHttpRequest();
      const failed = (why) => { progress(null); say(`Not uploaded: ${why}`, 'failed'); };
      say(`Uploading ${file.name}`, 'sending');
      progress(0);
      request.upload.addEventListener('progress', (event) => { if (event.lengthComputable) progress(event.loaded / event.total); });
      request.addEventListener('error', () => failed('the server does not answer. Try again.'));
      request.addEventListener('load', () => {
        let answer = {};
        try { answer = JSON.parse(request.responseText); } catch { /* said below */ }
        if (request.status !== 200) { failed(answer.detail || `the server refused it (${request.status}).`); return; }
        progress(null);
        say(`${answer.name} is uploaded. Check it below.`, 'there');
        trigger('uploaded', {id: answer.id});
      });
      request.open('POST', `/upload?name=${encodeURIComponent(file.name)}`);
      request.send(file);
    };

    element.addEventListener('change', (event) => { if (event.target.files?.[0]) send(event.target.files[0]); });
    element.addEventListener('dragover', (event) => event.preventDefault());
    element.addEventListener('drop', (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) send(event.dataTransfer.files[0]);
    });
  },

  // After a check the file has left the form.
  clear(id) {
    const box = document.getElementById(id)?.querySelector('[data-upload]');
    if (!box) return;
    box.querySelector('input').value = '';
    box.dataset.state = '';
    box.querySelector('.upload-said').textContent = 'Choose a file, or drop it here.';
  },
};
