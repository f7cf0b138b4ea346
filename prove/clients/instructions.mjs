// Sends every instruction of docs/trading.md through ccxt's class btcalpha, under its name and under
// each of its aliases. Usage:
//
//   node instructions.mjs http://127.0.0.1:8080 PACKAGE
//
// against an exchange in demo mode whose state is new. The program ends with 0 when each order was
// what its parameters ask for, or was refused as they say.
import assert from 'node:assert/strict';
import { connect } from './connect.mjs';

const { ccxt, client } = await connect(process.argv[2], process.argv[3]);
const alice = client('demo-alice', 'demo-alice-secret');
const bob = client('demo-bob', 'demo-bob-secret');
const symbol = 'BTC/USDT';

const sell = (amount, price, params) => alice.createOrder(symbol, 'limit', 'sell', amount, price, params);
const buy = (amount, price, params) => bob.createOrder(symbol, 'limit', 'buy', amount, price, params);
const post = (c, path, params) => c.request(path, 'private', 'POST', params);
const none = async (c) => post(c, 'order-cancel-all/', { all: 1 });

// has compares some fields of an order as the exchange wrote them. ccxt keeps numbers as texts.
function has(order, fields) {
  for (const [name, value] of Object.entries(fields)) {
    assert.equal(String(order.info[name]), String(value), `${name} of ${JSON.stringify(order.info)}`);
  }
}

// refused wants an order to be refused by the market, as an error that no user of ccxt repeats.
const refused = (order, text) => assert.rejects(order, (e) => e instanceof ccxt.ExchangeError && text.test(e.message));

// misfit wants an order to be refused for its fields. ccxt 4 takes that for a server that is not there.
const misfit = (order, text) => assert.rejects(order, (e) => e instanceof ccxt.BaseError && text.test(e.message));

// Market: ccxt itself refuses the type, so it is a limit order with a worst price.
for (const name of ['order_type', 'orderType']) {
  await refused(post(bob, 'order/', { pair: 'BTC_USDT', type: 'buy', amount: 1, [name]: 'market' }), /Nothing to trade/);
  await sell(1, 50000);
  const order = await buy(0.5, 51000, { [name]: 'market' });
  has(order, { order_type: 'market', status: 3, average_price: 50000, price: 51000 });
  assert.deepEqual([order.filled, order.remaining, order.trades.length], [0.5, 0, 1]);
  await none(alice);
}
for (const name of ['quote_amount', 'cost']) {
  await sell(1, 50000);
  has(await buy(undefined, 51000, { order_type: 'market', [name]: 5000 }),
    { quote_amount: 5000, quote_filled: 5000, amount_original: 0.1, status: 3 });
  await none(alice);
}

// Time in force.
for (const name of ['time_in_force', 'timeInForce']) {
  await sell(1, 50000);
  has(await buy(2, 50000, { [name]: 'FOK' }), { status: 2, cancel_reason: 'fok', amount_cancelled: 2 });
  has(await buy(2, 50000, { [name]: 'IOC' }),
    { status: 2, cancel_reason: 'ioc', amount_filled: 1, amount_cancelled: 1, time_in_force: 'ioc' });
  const end = Math.floor(Date.now() / 1000) + 3600;
  has(await buy(1, 40000, { [name]: 'GTD', expire_time: end }), { time_in_force: 'gtd', expire_time: end, status: 1 });
  await sell(1, 50000);
  await refused(buy(1, 50000, { [name]: 'PO' }), /post-only/);
  has(await buy(1, 40000, { [name]: 'PO' }), { post_only: true });
  await none(alice);
  await none(bob);
}

// Post-only.
await sell(1, 50000);
for (const name of ['post_only', 'postOnly']) {
  for (const yes of [true, 1, '1', 'true']) {
    await refused(buy(1, 50000, { [name]: yes }), /post-only/);
  }
  has(await buy(1, 40000, { [name]: true }), { post_only: true, status: 1 });
  has(await buy(1, 50000, { [name]: 'slide' }), { price: 49999.99, price_asked: 50000 });
  await none(bob);
}
await none(alice);

// Self-trade prevention.
for (const [name, newest, oldest, both] of [
  ['self_trade', 'cancel_newest', 'cancel_oldest', 'cancel_both'],
  ['selfTradePrevention', 'EXPIRE_TAKER', 'EXPIRE_MAKER', 'EXPIRE_BOTH']]) {
  const own = (params) => alice.createOrder(symbol, 'limit', 'buy', 1, 50000, params);
  let maker = await sell(1, 50000);
  has(await own({ [name]: newest }), { status: 2, cancel_reason: 'self_trade', self_trade: 'cancel_newest' });
  assert.equal((await alice.fetchOrder(maker.id)).status, 'open');
  has(await own({ [name]: both }), { status: 2, cancel_reason: 'self_trade', self_trade: 'cancel_both' });
  assert.equal((await alice.fetchOrder(maker.id)).status, 'canceled');
  maker = await sell(1, 50000);
  const taker = await own({ [name]: oldest });
  assert.equal(String(taker.info.prevented[0].o_id), maker.id);
  assert.equal((await alice.fetchOrder(maker.id)).status, 'canceled');
  assert.equal((await alice.fetchOrder(taker.id)).status, 'open');
  await none(alice);
}
assert.equal((await post(alice, 'trading-settings/', { self_trade: 'cancel_newest' })).self_trade, 'cancel_newest');
assert.equal((await alice.request('trading-settings/', 'private', 'GET')).self_trade, 'cancel_newest');
await post(alice, 'trading-settings/', { self_trade: 'none' });

// Stops, take-profits and one-cancels-other. The last price is 50000.
await sell(0.01, 50000);
await buy(0.01, 50000);
for (const name of ['trigger_price', 'triggerPrice', 'stopPrice', 'stopLossPrice']) {
  await refused(sell(1, 49000, { [name]: 50000 }), /would trigger/);
  has(await sell(1, 44000, { [name]: 45000 }),
    { trigger_price: 45000, trigger_when: 'fall', triggered: false, status: 1 });
  has(await buy(1, 56000, { [name]: 55000 }), { trigger_price: 55000, trigger_when: 'rise', triggered: false });
  await none(bob);
}
for (const params of [{ takeProfitPrice: 55000 }, { triggerPrice: 55000, trigger_when: 'rise' }]) {
  has(await sell(1, 54000, params), { trigger_price: 55000, trigger_when: 'rise', triggered: false });
}
has(await sell(1, 44000, { trigger_price: 45000, order_type: 'market' }), { order_type: 'market', price: 44000 });
has(await sell(1, 60000, { oco_trigger_price: 45000, oco_price: 44000 }),
  { oco_trigger_price: 45000, oco_price: 44000, status: 1 });
assert.equal((await alice.fetchOpenOrders(symbol, undefined, undefined, { waiting: 1 })).length, 7);
assert.equal((await alice.fetchOpenOrders(symbol)).length, 8);
await none(alice);

// Icebergs, and amends.
const berg = await sell(10, 60000, { display_amount: 1, clientOrderId: 'berg' });
assert.deepEqual((await bob.fetchOrderBook(symbol)).asks, [[60000, 1]]);
const smaller = await post(alice, 'order-amend/', { order: berg.id, amount: 5 });
assert.deepEqual([String(smaller.oid), smaller.priority], [berg.id, 'kept']);
const moved = await post(alice, 'order-amend/', { clientOrderId: 'berg', price: 59000 });
assert.deepEqual([String(moved.oid), moved.priority], [berg.id, 'lost']);
await misfit(post(alice, 'order-amend/', { clientOrderId: 'no-such', price: 59000 }), /Order not found/);

// Trying an order, and the dead man's switch.
const batch = await post(bob, 'order-batch/', { orders: JSON.stringify([
  { do: 'place', pair: 'BTC_USDT', type: 'buy', amount: '0.01', price: '100', client_order_id: 'of-a-batch' },
  { do: 'cancel', client_order_id: 'of-a-batch' }]) });
assert.deepEqual(batch.results.map((r) => Number(r.status)), [201, 200]);
const tried = await post(bob, 'order-test/', { pair: 'BTC_USDT', type: 'buy', amount: 1, price: 59000 });
assert.deepEqual([tried.valid, String(tried.reserve.amount), tried.would_trade], [true, '59000', true]);
assert.equal(Number((await post(bob, 'order-cancel-after/', { timeout: 60 })).timeout), 60);
assert.equal(Number((await bob.request('order-cancel-after/', 'private', 'GET')).timeout), 60);
assert.equal(Number((await post(bob, 'order-cancel-after/', { timeout: 0 })).timeout), 0);

// A name and its alias together; and what is not offered.
for (const params of [{ postOnly: true, post_only: 1 }, { triggerPrice: 1, stopPrice: 1 },
  { stopLossPrice: 45000, takeProfitPrice: 55000 }, { timeInForce: 'IOC', time_in_force: 'ioc' },
  { timeInForce: 'IOC', postOnly: true }, { trailingPercent: 1 }, { trailingAmount: 1 },
  { stopLoss: { triggerPrice: 1 } }, { takeProfit: { triggerPrice: 1 } }]) {
  await misfit(sell(1, 60000, params), /Given twice|Not possible with|Not offered/);
}
await none(alice);
assert.equal((await alice.fetchBalance()).BTC.used, 0);
assert.equal((await bob.fetchBalance()).USDT.used, 0);

console.log('ccxt', ccxt.version, 'sends every instruction');
