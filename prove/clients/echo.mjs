// socket.io-client, unmodified, against the echo server of the tests. Usage:
//
//   node echo.mjs http://127.0.0.1:8080
//
// The program ends with 0 when everything was as a user of the client expects it.
import assert from 'node:assert/strict';
import { io, Manager } from 'socket.io-client';

const url = process.argv[2];
const patience = setTimeout(() => {
  console.error('it takes too long');
  process.exit(1);
}, 50_000);

// next is the arguments of the next event.
const next = (emitter, name) => new Promise((resolve) => emitter.once(name, (...args) => resolve(args)));

// lost is the reason of a disconnect by the server. On polling it is an error if no poll was open to
// receive it.
const lost = /^transport (close|error)$/;

async function talk(socket) {
  let back = next(socket, 'message-back');
  socket.emit('message', 1, 'héllo €', { a: [true, null] });
  assert.deepEqual(await back, [1, 'héllo €', { a: [true, null] }]);

  back = next(socket, 'message-back');
  socket.emit('message', Buffer.from([1, 2, 3]), 'between', new Uint8Array([4, 5]), Buffer.alloc(0));
  const [first, between, second, empty] = await back;
  assert.deepEqual([...new Uint8Array(first)], [1, 2, 3]);
  assert.equal(between, 'between');
  assert.deepEqual([...new Uint8Array(second)], [4, 5]);
  assert.equal(new Uint8Array(empty).length, 0);

  assert.deepEqual(await socket.timeout(5000).emitWithAck('message-with-ack', 'x'), 'x');
  const ack = await new Promise((resolve) => socket.emit('message-with-ack', 1, Buffer.from([9]), (...args) => resolve(args)));
  assert.equal(ack[0], 1);
  assert.deepEqual([...new Uint8Array(ack[1])], [9]);

  const long = 'x'.repeat(200_000);
  assert.equal(await socket.timeout(5000).emitWithAck('message-with-ack', long), long);

  const many = [];
  for (let i = 0; i < 100; i++) many.push(socket.timeout(5000).emitWithAck('message-with-ack', i));
  assert.deepEqual(await Promise.all(many), [...Array(100).keys()]);
}

// All transports, a path of one's own, and what comes with each.
for (const [name, options] of Object.entries({
  default: {},
  'another path': { path: '/socket.v2/' },
  'websocket first': { transports: ['websocket', 'polling'] },
  websocket: { transports: ['websocket'] },
  polling: { transports: ['polling'] },
  'polling, no upgrade': { upgrade: false },
})) {
  const socket = io(url, { forceNew: true, reconnection: false, auth: { user: name }, ...options });
  const auth = next(socket, 'auth');
  const upgraded = next(socket.io.engine, 'upgrade');
  await next(socket, 'connect');
  assert.deepEqual(await auth, [{ user: name }]);
  assert.equal(socket.id.length, 20);
  assert.notEqual(socket.id, socket.io.engine.id);
  await talk(socket); // during the upgrade, if there is one
  if (name === 'default' || name === 'another path') {
    assert.equal((await upgraded)[0].name, 'websocket');
    await talk(socket);
  }
  const expected = name.startsWith('polling') ? 'polling' : 'websocket';
  assert.equal(socket.io.engine.transport.name, expected, name);

  // The server puts it out; it comes back by hand.
  const out = next(socket, 'disconnect');
  socket.emit('leave');
  assert.equal((await out)[0], 'io server disconnect');
  socket.connect();
  await next(socket, 'connect');
  await talk(socket);
  const closed = next(socket, 'disconnect');
  socket.emit('close');
  assert.match((await closed)[0], lost);
  socket.connect();
  await next(socket, 'connect');
  await talk(socket);
  socket.disconnect();
  console.log(`${name}: ok`);
}

// Namespaces of one connection.
{
  const manager = new Manager(url, { reconnection: false });
  const main = manager.socket('/');
  const custom = manager.socket('/custom', { auth: { token: '123' } });
  const [, , auth] = await Promise.all([next(main, 'connect'), next(custom, 'connect'), next(custom, 'auth')]);
  assert.deepEqual(auth, [{ token: '123' }]);
  await Promise.all([talk(main), talk(custom)]);

  const nobody = manager.socket('/random');
  assert.equal((await next(nobody, 'connect_error'))[0].message, 'Invalid namespace');
  const admin = manager.socket('/admin', { auth: { token: 'wrong' } });
  const [refusal] = await next(admin, 'connect_error');
  assert.equal(refusal.message, 'not you');
  assert.deepEqual(refusal.data, { status: 7 });
  admin.auth = { token: 'secret' };
  admin.connect();
  await next(admin, 'connect');
  await talk(admin);

  custom.disconnect();
  await talk(main);
  await talk(admin);
  main.disconnect();
  admin.disconnect();
  console.log('namespaces: ok');
}

// The server goes down and comes up: every client is there again by itself.
for (const transports of [['polling', 'websocket'], ['websocket'], ['polling']]) {
  const socket = io(url, { forceNew: true, transports, reconnectionDelay: 20, reconnectionDelayMax: 50, randomizationFactor: 0 });
  const upgraded = transports.length > 1 ? next(socket.io.engine, 'upgrade') : null;
  await next(socket, 'connect');
  await upgraded;
  await talk(socket);
  const id = socket.id;
  const gone = next(socket, 'disconnect');
  socket.emit('restart');
  const [reason] = await gone;
  assert.match(reason, lost);
  await next(socket, 'connect');
  assert.notEqual(socket.id, id);
  await talk(socket);
  socket.disconnect();
  console.log(`restart, ${transports}: ok`);
}

// What is not allowed is an error that the client sees.
{
  const socket = io(url, { forceNew: true, reconnection: false, query: { refuse: '1' } });
  const [error] = await next(socket, 'connect_error');
  assert.equal(error.message, 'xhr poll error');
  assert.equal(error.description, 403);
  console.log('refused: ok');
}
clearTimeout(patience);
