// connect loads a version of ccxt by its name in package.json, and returns it beside a function that
// makes clients of the exchange at an address: of ccxt's class btcalpha, unmodified but for its base
// URL.
import http from 'node:http';

export async function connect(url, name) {
  const { default: ccxt } = await import(name);
  const client = (apiKey, secret) => {
    // The base URL is plain HTTP, so it comes with Node's agent for that.
    const c = new ccxt.btcalpha({ apiKey, secret, rateLimit: 5, agent: new http.Agent({ keepAlive: true }) });
    c.urls.api.rest = `${url}/api`;
    return c;
  };
  return { ccxt, client };
}
