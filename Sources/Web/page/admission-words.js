// The texts about who let somebody into the call.

import { labelFor } from './names.js';
import { t } from './texts.js';

/** `admission` is from `call.admissionOf`; an empty text if it is unknown. */
export function wordsForAdmission(admission) {
  if (!admission) return '';
  return t(`admission.${admission.how}`, { name: admission.by ? labelFor(admission.by) : '' });
}
