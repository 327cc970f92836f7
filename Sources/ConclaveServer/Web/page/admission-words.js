// Who let somebody into the call, in words.

import { labelFor } from './names.js';
import { t } from './texts.js';

/** Of what `call.admissionOf` brings; an empty text where it is not known. */
export function wordsForAdmission(admission) {
  if (!admission) return '';
  return t(`admission.${admission.how}`, { name: admission.by ? labelFor(admission.by) : '' });
}
