// A camera that shows the face of `conclaveFace`, a person's name (face.js).
(() => {
  const [WIDTH, HEIGHT, RATE] = [960, 540, 10];
  const draw = conclaveFaceOf(conclaveFace);
  const open = MediaDevices.prototype.getUserMedia;
  MediaDevices.prototype.getUserMedia = async function (wish) {
    const stream = await open.call(this, wish);
    for (const track of stream.getVideoTracks()) {
      const canvas = Object.assign(document.createElement('canvas'), { width: WIDTH, height: HEIGHT });
      const context = canvas.getContext('2d');
      const paint = () => draw(context, performance.now() / 1_000);
      paint();
      const [drawn] = canvas.captureStream(RATE).getVideoTracks();
      const painting = setInterval(paint, 1_000 / RATE);
      const stop = drawn.stop.bind(drawn);
      const settings = track.getSettings();
      drawn.stop = () => {
        clearInterval(painting);
        track.stop();
        stop();
      };
      drawn.getSettings = () => ({ ...settings, width: WIDTH, height: HEIGHT });
      drawn.applyConstraints = async () => {};
      stream.removeTrack(track);
      stream.addTrack(drawn);
    }
    return stream;
  };
})();
