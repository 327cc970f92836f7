// A thread that runs worlds of mixed lies: `workerData` has the `seeds` of the worlds and the number of `mixes` in each.

import { parentPort, workerData } from 'node:worker_threads';
import { comes } from './lying.mjs';
import { MixedLies } from './mixed-lies.mjs';
import { randomOf } from './time.mjs';
import { World } from './world.mjs';

console.warn = process.env.LOUD ? console.log : () => {};

const STEPS = 3;
const STEP_MS = 400;

/** Sends lies into a call for a while; meanwhile people speak, chat, join and leave. */
async function mix({ world, call, random, ghost }) {
  const lies = new MixedLies({ world, call, random, ghost });
  world.server.lie = lies.lie;
  for (let step = 0; step < STEPS; step += 1) {
    for (const client of world.inCall) {
      await client.say();
      if (random() < 0.2) client.call.send({ text: `${client.name} writes ${step}` }).catch(() => {});
    }
    if (random() < 0.25) call.rotate();
    const somebody = world.clients[Math.floor(random() * 3)];
    if (random() < 0.1) somebody.call?.rejoin();
    if (random() < 0.1 && world.inCall.length > 2) somebody.call?.leave();
    if (random() < 0.3) await lies.forge();
    await world.run(STEP_MS);
  }
  world.server.lie = {};
  return lies;
}

/** The server is honest again: people who left or are stuck come back. */
async function recover(world, call) {
  await world.run(600);
  for (const client of world.clients) {
    if (!client.call) comes(call, client);
    else if (client.call.stop?.cause === 'broken-history') client.call.rejoin();
    else if (client.call.stop?.needsPerson) client.call.sendAnyway(client.call.stop.devices);
  }
  await world.run(900);
}

async function run(seed, mixes) {
  const world = await World.with(seed, 'alice', 'bob', 'carol');
  const random = randomOf(seed * 7_919);
  const counted = { frames: 0, heard: 0, warned: 0 };
  let said = '';
  try {
    const ghost = await world.add('zed');
    world.clients.pop(); // the server's own
    const call = await world.call(...world.clients);
    for (let index = 0; index < mixes; index += 1) {
      said += `\n${index}: ${await mix({ world, call, random, ghost })}`;
      await recover(world, call);
      await world.assertInvariants();
    }
    counted.frames = world.time.audit.sealed.size;
    counted.heard = world.clients.reduce((sum, { heard }) => sum + heard.length, 0);
    counted.warned = world.clients.reduce((sum, { warnings }) => sum + warnings.length, 0);
    // With an honest server, and after a rejoin where necessary, they hear each other again.
    for (let tries = 0; tries < 3 && call.epoch !== call.newest.epoch; tries += 1) await world.run(10_000);
    for (const client of world.inCall) client.call.rejoin();
    await world.until(() => call.epoch === call.newest.epoch && world.inCall.every((client) => client.call.epoch === call.epoch && client.call.confirmation.state === 'confirmed'), 60_000);
    await world.assertAllHear(undefined, 'after the truth');
    return counted;
  } catch (error) {
    error.message = `CONCLAVE_SEED=${seed}: ${error.message}\n${said}`;
    throw error;
  } finally {
    world.close();
  }
}

const total = { frames: 0, heard: 0, warned: 0 };
let failure;
try {
  for (const seed of workerData.seeds) {
    const counted = await run(seed, workerData.mixes);
    for (const name of Object.keys(total)) total[name] += counted[name];
  }
} catch (error) {
  failure = `${error.message}\n${error.stack}`; // V8 writes the stack before the seed is added to the message
}
parentPort.postMessage({ total, failure });
