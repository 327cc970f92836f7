// The screen stays on during a call, if the browser can do that.

let isWanted = false;
let lock;
let isAsking = false;

export function keepAwake(isOn) {
  isWanted = isOn;
  update();
}

async function update() {
  if (!isWanted) {
    lock?.release().catch(() => {});
    lock = undefined;
    return;
  }
  if (isAsking || (lock && !lock.released) || document.hidden || !navigator.wakeLock) return;
  isAsking = true;
  lock = await navigator.wakeLock.request('screen').catch(() => undefined); // refused, for example because of a low battery
  isAsking = false;
  if (!isWanted) update();
}

// A page that is hidden loses the lock.
document.addEventListener('visibilitychange', () => isWanted && update());
