// Sign language and video first: in a call the picture is what counts. The camera stays on, frames come before pixels, and what stands on the page stays there.

import { byID } from './dom.js';
import { saveSetting, savedSetting } from './session.js';

/** As the person has chosen, else as the operator has (`page.videoFirst` of the server's configuration, which marks the page). */
export const isVideoFirst = () => savedSetting('video-first') ?? 'videoFirst' in document.documentElement.dataset;

/** `capture` opens the camera for it from now on. */
export function beginVideoFirst(capture) {
  const apply = () => {
    const isOn = isVideoFirst();
    capture.choose({ isVideoFirst: isOn });
    byID('call').classList.toggle('calm', isOn);
  };
  byID('video-first').checked = isVideoFirst();
  byID('video-first').addEventListener('change', () => {
    saveSetting('video-first', byID('video-first').checked);
    apply();
  });
  apply();
}

/** Whether a ring is also seen: the page flashes, and with reduced motion it changes its colour (`.ring-light` in the style sheet). */
export function showRingLight(isRinging) {
  document.body.classList.toggle('ring-light', isRinging && isVideoFirst());
}
