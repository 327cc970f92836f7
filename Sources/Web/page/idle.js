// The heading and the controls of a call whose picture fills the window leave when nobody has touched anything for a while.

import { byID } from './dom.js';

const AWAY_AFTER_MS = 4_000;
const ACTIVE = ['pointermove', 'pointerdown', 'keydown', 'focusin', 'wheel'];

let timer;
let isWaking = false; // a finger has brought the controls back: it has pressed none of them

/** A person uses them, or has something to read; or needs one of them at any time. */
function areNeeded() {
  const call = byID('call');
  if (!call.classList.contains('filled') || document.querySelector('dialog[open]')) return true;
  if (call.matches('.simple, .talking, .calm') || (call.classList.contains('talks') && matchMedia('(pointer: coarse)').matches)) return true;
  if (!byID('muted-hint-unmute').hidden || byID('show-reactions').ariaExpanded === 'true') return true;
  if (!byID('second-ring').hidden || !byID('call-notice').hidden || byID('notices').childElementCount > 0) return true;
  return [...call.querySelectorAll('.call-bar, .toolbar')].some((part) => part.matches(':hover, :has(:focus-visible)'));
}

function rest() {
  if (areNeeded()) wait();
  else byID('call').classList.add('idle');
}

function wait() {
  clearTimeout(timer);
  timer = setTimeout(rest, AWAY_AFTER_MS);
}

function wake(event) {
  const { classList } = byID('call');
  if (event.type === 'pointerdown') isWaking = event.pointerType === 'touch' && classList.contains('idle');
  classList.remove('idle');
  wait();
}

/** They come back by themselves, because there is something to see among them. */
export function wakeControls() {
  byID('call').classList.remove('idle');
  wait();
}

export function beginIdle() {
  for (const name of ACTIVE) document.addEventListener(name, wake, { capture: true, passive: true });
  byID('call').addEventListener(
    'click',
    (event) => {
      if (!isWaking) return;
      isWaking = false;
      event.stopPropagation();
      event.preventDefault();
    },
    true,
  );
  wait();
}
