// The screen stays on during a call, where the browser can do that.

let isWanted = false;
let lock;

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
  if ((lock && !lock.released) || document.hidden || !navigator.wakeLock) return;
  const asked = await navigator.wakeLock.request('screen').catch(() => undefined); // refused, as with a low battery
  if (isWanted) lock = asked;
  else asked?.release().catch(() => {});
}

// A page that is hidden loses the lock.
document.addEventListener('visibilitychange', () => isWanted && update());
