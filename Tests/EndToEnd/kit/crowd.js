// Many people in one page, without a user interface, by their names: each accepts rings, sends a small picture, and requests none. With face.js each has a face;
// some of them are muted then, and some have no camera.
const [names, done] = arguments;
(async () => {
  const { Conclave } = await import(`${location.origin}/conclave/index.js`);
  const silence = new AudioContext().createMediaStreamDestination().stream.getAudioTracks()[0];
  const colour = (context, time) => {
    context.fillStyle = `hsl(${time * 50} 60% 50%)`;
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  };
  const hasFaces = typeof conclaveFaceOf === 'function';
  const size = hasFaces ? { width: 320, height: 180 } : { width: 160, height: 90 };
  const picture = (name) => {
    const canvas = Object.assign(document.createElement('canvas'), size);
    const context = canvas.getContext('2d');
    const draw = hasFaces ? conclaveFaceOf(name) : colour;
    const paint = () => draw(context, performance.now() / 1_000);
    setInterval(paint, 200);
    paint();
    return canvas.captureStream(5).getVideoTracks()[0];
  };
  window.crowd = names.map((name, index) => {
    const [user, device] = [name.toLowerCase(), 'crowd'];
    const [isMuted, isUnseen] = [hasFaces && index % 3 === 1, hasFaces && index % 7 === 5];
    const credentials = async () => {
      const response = await fetch('/demo/token', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ user, device, name }) });
      return { token: (await response.json()).token, user };
    };
    const conclave = new Conclave({ url: `ws://${location.host}/stomp`, device, name: 'Crowd', credentials });
    conclave.capture.open = async (source) => (source === 'camera' ? picture(name) : silence.clone());
    conclave.addEventListener('ring', async ({ detail }) => {
      const call = await conclave.accept(detail, { camera: !isUnseen, microphone: !isMuted });
      call.addEventListener('change', () => call.watch(new Map()).catch(() => {}));
    });
    conclave.connect();
    return conclave;
  });
  await Promise.all(crowd.map((conclave) => new Promise((resolve) => conclave.addEventListener('ready', resolve, { once: true }))));
})().then(() => done(''), (error) => done(String(error.stack)));
