// Camera and sound: which devices are used, with a preview and a level, before and during a call.

import { canBlur } from '../conclave/index.js';
import { byID, element, setText } from './dom.js';
import { wordsForDevice } from './notices.js';
import { saveSetting, savedSetting } from './session.js';
import { t } from './texts.js';

const SOURCES = ['camera', 'microphone', 'speaker'];
const LEVEL_MS = 100;
const LOUD = 0.25; // of full scale: speech close to the microphone

let conclave;
let opened = []; // what was opened only for the preview
let context;
let timer;
let turn = 0;
let followed; // the call whose devices the preview shows
let shown = {}; // the track of each source in the preview

/** Uses the choice that this browser remembers. */
export function beginSetup(connection) {
  conclave = connection;
  const saved = savedSetting('capture');
  if (saved) conclave.capture.choose(saved);
  conclave.capture.addEventListener('change', () => {
    // A phone's other camera is temporary: the next call begins with the one that faces the person.
    const { facing: _, ...lasting } = conclave.capture.choice;
    saveSetting('capture', lasting);
    if (byID('setup-dialog').open && !conclave.call) showPreview();
  });
  conclave.capture.addEventListener('inputs', () => byID('setup-dialog').open && showInputs());
  conclave.addEventListener('calls', () => {
    if (!byID('setup-dialog').open || conclave.call === followed) return;
    follow(conclave.call);
    showPreview();
  });
}

export async function openSetup() {
  byID('setup-dialog').showModal();
  follow(conclave.call);
  await showPreview();
}

/** A call opens a chosen device asynchronously: the preview is drawn again when it has another one. */
function follow(call) {
  followed?.removeEventListener('change', look);
  followed = call;
  followed?.addEventListener('change', look);
}

function look() {
  if (['camera', 'microphone'].some((source) => followed.local(source).track !== shown[source])) showPreview();
}

async function showInputs() {
  const inputs = await conclave.capture.inputs().catch(() => []);
  const { choice } = conclave.capture;
  for (const source of SOURCES) {
    const found = inputs.filter((input) => input.source === source && input.id && input.id !== 'default');
    const options = [['', t('setup.automatic')], ...found.map(({ id, label }, index) => [id, label || `${t(`setup.${source}`)} ${index + 1}`])];
    const select = byID(`setup-${source}`);
    // An unchanged list is not touched, because somebody may be choosing from it.
    const isShown = options.length === select.length && options.every(([id, name], index) => select[index].value === id && select[index].textContent === name);
    if (!isShown) select.replaceChildren(...options.map(([value, textContent]) => element('option', { value, textContent })));
    select.value = found.some(({ id }) => id === choice[source]) ? choice[source] : '';
    select.disabled = found.length === 0;
  }
  byID('setup-speaker-field').hidden = !('setSinkId' in HTMLMediaElement.prototype);
}

/** In a call the call's devices are shown; else both are opened for a moment. */
async function showPreview() {
  const own = (turn += 1);
  stopPreview();
  const { call } = conclave;
  const problems = [];
  const open = async (source) => {
    if (call) return call.local(source).track;
    try {
      const track = await conclave.capture.open(source);
      if (own !== turn || !byID('setup-dialog').open) return void track.stop();
      opened.push(track);
      return track;
    } catch (error) {
      problems.push(wordsForDevice(source, error.name));
      return undefined;
    }
  };
  const [camera, microphone] = await Promise.all([open('camera'), open('microphone')]);
  if (own !== turn) return;
  shown = { camera, microphone };
  await showInputs();
  if (own !== turn) return;
  setText(byID('setup-problem'), problems.join(' '));
  byID('setup-video').srcObject = camera ? new MediaStream([camera]) : null;
  byID('setup-video').hidden = !camera;
  byID('setup-off').hidden = Boolean(camera);
  byID('setup-video').classList.toggle('mirrored', conclave.capture.choice.facing === 'user');
  byID('setup-blur-field').hidden = !canBlur(camera);
  byID('setup-blur').checked = conclave.capture.choice.hasBlur;
  measure(microphone);
}

function measure(track) {
  byID('setup-level').value = 0;
  if (!track) return;
  try {
    context = new AudioContext();
  } catch {
    return; // a browser without it shows no level
  }
  const analyser = context.createAnalyser();
  context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  timer = setInterval(() => {
    analyser.getFloatTimeDomainData(samples);
    const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
    byID('setup-level').value = Math.min(1, Math.sqrt(power) / LOUD);
  }, LEVEL_MS);
}

function stopPreview() {
  clearInterval(timer);
  context?.close();
  context = undefined;
  for (const track of opened.splice(0)) track.stop();
}

for (const source of SOURCES) {
  byID(`setup-${source}`).addEventListener('change', () => conclave.capture.choose({ [source]: byID(`setup-${source}`).value }));
}
byID('setup-blur').addEventListener('change', () => conclave.capture.choose({ hasBlur: byID('setup-blur').checked }));
byID('setup-dialog').addEventListener('close', () => {
  turn += 1;
  follow(undefined);
  stopPreview();
  byID('setup-video').srcObject = null;
});
