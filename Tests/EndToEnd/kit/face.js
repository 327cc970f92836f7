// A face in a room, for pictures of the page: a function that draws it on the whole of a canvas at a time in seconds. The person's name determines how the person
// and the room look.
function conclaveFaceOf(name) {
  const [WIDTH, HEIGHT] = [960, 540];
  let seed = [...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 7);
  const below = (count) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * count);
  };
  const skin = [24, 34, 48, 58, 70, 78][below(6)]; // lightness
  const hair = ['#15100c', '#3b2415', '#5f3d20', '#a8743a', '#7d7d80', '#8c3a1e'][below(6)];
  const [isLong, hasGlasses, wall, shirt] = [below(2) === 0, below(3) === 0, below(360), below(360)];
  const skinAt = (by) => `hsl(24 ${38 + skin / 5}% ${skin + by}%)`;

  return (context, time) => {
    context.setTransform(context.canvas.width / WIDTH, 0, 0, context.canvas.height / HEIGHT, 0, 0);
    const ellipse = (x, y, width, height, colour, from = 0, to = 7) => {
      context.fillStyle = colour;
      context.beginPath();
      context.ellipse(x, y, width, height, 0, from, to);
      context.fill();
    };
    const room = context.createLinearGradient(0, 0, WIDTH, HEIGHT);
    room.addColorStop(0, `hsl(${wall} 24% 74%)`);
    room.addColorStop(1, `hsl(${wall} 20% 48%)`);
    context.fillStyle = room;
    context.fillRect(0, 0, WIDTH, HEIGHT);
    context.fillStyle = 'rgb(255 255 255 / 40%)'; // a window
    context.fillRect(70, 60, 170, 210);
    context.fillStyle = `hsl(${wall + 20} 22% 34%)`; // a shelf with books
    context.fillRect(700, 190, 220, 12);
    for (let book = 0; book < 8; book += 1) {
      context.fillStyle = `hsl(${(wall + book * 47) % 360} 34% ${36 + book * 3}%)`;
      context.fillRect(712 + book * 25, 120 - ((book * 13) % 26), 18, 70 + ((book * 13) % 26));
    }
    const [x, y] = [WIDTH / 2 + Math.sin(time) * 10, 250 + Math.cos(time * 1.3) * 4];
    ellipse(WIDTH / 2 + Math.sin(time) * 5, 580, 235, 180, `hsl(${shirt} 34% 36%)`);
    context.fillStyle = skinAt(-8);
    context.fillRect(x - 42, y + 90, 84, 90);
    ellipse(x, y - 26, isLong ? 124 : 108, isLong ? 150 : 122, hair);
    if (isLong) context.fillRect(x - 122, y - 20, 244, 170);
    ellipse(x, y, 92, 122, skinAt(0));
    ellipse(x, y - 86, 94, 46, hair, Math.PI, 0);
    for (const side of [-36, 36]) {
      const isOpen = Math.floor(time * 2) % 9 !== 0;
      ellipse(x + side, y - 12, 15, isOpen ? 10 : 1.5, '#fff');
      if (isOpen) ellipse(x + side, y - 12, 7, 7, '#2b1e16');
      ellipse(x + side, y - 36, 20, 4, hair);
      if (!hasGlasses) continue;
      context.strokeStyle = '#20262a';
      context.lineWidth = 5;
      context.strokeRect(x + side - 27, y - 32, 54, 40);
    }
    ellipse(x, y + 22, 9, 15, skinAt(-7));
    ellipse(x, y + 66, 26, 5 + Math.abs(Math.sin(time * 4)) * 7, '#9c4646');
  };
}
