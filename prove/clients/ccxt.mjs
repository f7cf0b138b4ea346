// Two accounts trade through ccxt's class btcalpha, unmodified but for its base URL. Usage:
//
//   node ccxt.mjs http://127.0.0.1:8080 PACKAGE
//
// against an exchange in demo mode whose state is new. PACKAGE is the name of a version of ccxt in
// package.json. The program ends with 0 when everything was as a user of ccxt expects it.
import assert from 'node:assert/strict';
import { connect } from './connect.mjs';

const { ccxt, client } = await connect(process.argv[2], process.argv[3]);
const alice = client('demo-alice', 'demo-alice-secret');
const bob = client('demo-bob', 'demo-bob-secret');
const symbol = 'BTC/USDT';

const markets = await alice.loadMarkets();
assert.deepEqual(Object.keys(markets).sort(), ['BTC/USDT', 'ETH/BTC', 'ETH/USDT']);
assert.equal(markets[symbol].precision.price, 0.01);
assert.equal(markets[symbol].precision.amount, 1e-8);
assert.equal(markets[symbol].limits.amount.min, 0.00001);
assert.equal(markets[symbol].limits.amount.max, 1000000);
assert.equal(markets['ETH/BTC'].precision.price, 0.000001);

let balance = await alice.fetchBalance();
assert.deepEqual([balance.BTC.free, balance.BTC.used, balance.BTC.total], [100, 0, 100]);
assert.equal(balance.USDT.total, 10000000);

// Alice offers 2 BTC; a part of it is in the book at once.
const sell = await alice.createOrder(symbol, 'limit', 'sell', 2, 50000.25);
assert.equal(sell.side, 'sell');
assert.deepEqual([sell.price, sell.amount, sell.filled, sell.remaining], [50000.25, 2, 0, 2]);
balance = await alice.fetchBalance();
assert.deepEqual([balance.BTC.free, balance.BTC.used, balance.BTC.total], [98, 2, 100]);
let book = await bob.fetchOrderBook(symbol);
assert.deepEqual([book.asks, book.bids], [[[50000.25, 2]], []]);

// Bob takes three quarters of it.
const buy = await bob.createOrder(symbol, 'limit', 'buy', 1.5, 50001);
assert.deepEqual([buy.amount, buy.filled, buy.remaining], [1.5, 1.5, 0]);
assert.equal(buy.trades.length, 1);
let order = await alice.fetchOrder(sell.id);
assert.deepEqual([order.status, order.filled, order.remaining, order.amount], ['open', 1.5, 0.5, 2]);
order = await bob.fetchOrder(buy.id);
assert.deepEqual([order.status, order.filled, order.symbol], ['closed', 1.5, symbol]);
balance = await bob.fetchBalance();
assert.deepEqual([balance.BTC.total, balance.USDT.total], [101.5, 10000000 - 1.5 * 50000.25]);

// Lists of orders: open, closed, and what was cancelled.
const rest = await alice.createOrder(symbol, 'limit', 'sell', 0.12345678, 60000);
let open = await alice.fetchOpenOrders(symbol);
assert.deepEqual(open.map((o) => o.id).sort(), [sell.id, rest.id].sort());
const cancelled = await alice.cancelOrder(rest.id, symbol);
assert.equal(String(cancelled.id ?? cancelled.order), rest.id); // 2.0.1 gives the answer as it is
assert.equal((await alice.fetchOrder(rest.id)).status, 'canceled');
await assert.rejects(alice.cancelOrder(rest.id, symbol));
open = await alice.fetchOpenOrders(symbol);
assert.deepEqual(open.map((o) => o.id), [sell.id]);
const closed = await bob.fetchClosedOrders(symbol);
assert.deepEqual(closed.map((o) => o.id), [buy.id]);
assert.equal((await alice.fetchOrders(symbol)).length, 2);

// The client's own name for an order, as ccxt calls it, and cancels by it.
const named = await alice.createOrder(symbol, 'limit', 'sell', 0.1, 61000, { clientOrderId: 'grid-1' });
const find = { clientOrderId: 'grid-1' };
assert.deepEqual((await alice.fetchOrders(symbol, undefined, undefined, find)).map((o) => o.id), [named.id]);
const gone = await alice.request('order-cancel/', 'private', 'POST', find);
assert.equal(String(gone.order), named.id);
await assert.rejects(alice.request('order-cancel/', 'private', 'POST', find), /already cancelled/);
await alice.createOrder(symbol, 'limit', 'sell', 0.1, 61000);
const swept = await alice.request('order-cancel-all/', 'private', 'POST', { type: 'buy' });
assert.deepEqual(swept.orders, []);
assert.equal((await alice.fetchOpenOrders(symbol)).length, 2);
assert.equal((await alice.request('order-cancel-all/', 'private', 'POST', { type: 'sell', pair: 'BTC_USDT' })).orders.length, 2);

// What is not offered is refused, and nothing is in the book. A plain order may say that it is one.
for (const params of [{ trailingPercent: 1 }, { trailingAmount: 1 }, { stopLoss: { triggerPrice: 1 } },
  { takeProfit: { triggerPrice: 1 } }]) {
  await assert.rejects(alice.createOrder(symbol, 'limit', 'sell', 1, 62000, params), /Not offered/);
}
assert.equal((await alice.fetchOpenOrders(symbol)).length, 0);
const usual = await alice.createOrder(symbol, 'limit', 'sell', 0.1, 62000, { postOnly: false, timeInForce: 'GTC' });
await alice.cancelOrder(usual.id, symbol);

// Trades: the public ones, and each account's own with its own side.
const trades = await alice.fetchTrades(symbol);
assert.equal(trades.length, 1);
assert.deepEqual([trades[0].side, trades[0].price, trades[0].amount], ['buy', 50000.25, 1.5]);
assert.equal((await alice.fetchMyTrades(symbol))[0].side, 'sell');
assert.deepEqual((await alice.fetchTrades(symbol, undefined, undefined, { after: 0 })).map((x) => x.id), [trades[0].id]);
assert.deepEqual(await alice.fetchTrades(symbol, undefined, undefined, { after: trades[0].id }), []);
assert.equal((await bob.fetchMyTrades(symbol))[0].side, 'buy');

// Errors are ccxt's own classes.
await assert.rejects(bob.createOrder(symbol, 'limit', 'sell', 5000, 50000), ccxt.InsufficientFunds);
await assert.rejects(client('nobody-here', 'x').fetchBalance(), ccxt.AuthenticationError);

console.log('ccxt', ccxt.version, 'agrees');
