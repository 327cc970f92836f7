// The browser's permissions for camera and microphone, and how a person changes them. Imports no library: the page of a guest needs it before anything else.

import { byID, setText } from './dom.js';
import { hasText, t } from './texts.js';

/** `granted`, `denied`, or `prompt` if the browser will ask, for `camera` or `microphone`. Firefox before 132 does not tell. */
export const permissionOf = async (source) => (await statusOf(source))?.state ?? 'prompt';

async function statusOf(source) {
  try {
    return await navigator.permissions.query({ name: source });
  } catch {
    return undefined;
  }
}

/** Explains beside the buttons that lead to it that the browser will ask for the microphone, until it is allowed. */
export async function explainAsking() {
  const status = await statusOf('microphone');
  const show = () => document.body.classList.toggle('will-ask', (status?.state ?? 'prompt') === 'prompt');
  status?.addEventListener('change', show);
  show();
}

/**
 * Which steps change a permission: `chromium`, `firefox`, `safari`, `safari-phone` or `other`. The argument has the members of `Navigator`.
 * @param {{ userAgent?: string, userAgentData?: { brands: { brand: string }[] }, maxTouchPoints?: number }} facts
 */
export function browserOf({ userAgent = '', userAgentData, maxTouchPoints = 0 }) {
  if (userAgentData?.brands.some(({ brand }) => brand === 'Chromium')) return 'chromium';
  if (/\b(CriOS|FxiOS|EdgiOS)\//.test(userAgent)) return 'other'; // the settings of iOS have them
  if (/\bFirefox\//.test(userAgent)) return 'firefox';
  if (/Chrom(e|ium)\//.test(userAgent)) return 'chromium';
  if (!/\bVersion\/.*\bSafari\//.test(userAgent)) return 'other';
  // An iPad calls itself a Mac, which has no touch screen.
  return /\b(iPhone|iPad)\b/.test(userAgent) || maxTouchPoints > 1 ? 'safari-phone' : 'safari';
}

/** Why the browser did not open a camera or microphone, and what to do; `error` is the name of its error. */
export function wordsForDevice(source, error) {
  if (error === 'media.unsupported') return t('error.media.unsupported');
  const key = `${source}.${error}`;
  return t(hasText(key) ? key : `${source}.failed`);
}

/** Whether the steps of `showSteps` help against an error with this name. */
export const isDenied = (error) => error === 'NotAllowedError';

/** Shows how this browser is made to allow camera and microphone; `again()` is called when the person has done it. */
export function showSteps(again) {
  const dialog = byID('permission-dialog');
  setText(byID('permission-steps'), t(`permission.${browserOf(navigator)}`));
  byID('permission-close').onclick = () => dialog.close();
  byID('permission-again').onclick = () => {
    dialog.close();
    again();
  };
  dialog.showModal();
}
