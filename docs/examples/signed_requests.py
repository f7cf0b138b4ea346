# Signed requests of the demo's alice, by Python's standard library alone:
#
#   python3 docs/examples/signed_requests.py

import hashlib, hmac, json, time, urllib.error, urllib.parse, urllib.request

last = {}  # the last nonce of each key: each one is greater, even if the clock goes back

def call(path, params=None, key="demo-alice", secret="demo-alice-secret", again=True):
    last[key] = max(last.get(key, 0) + 1, time.time_ns() // 1_000_000)
    body = urllib.parse.urlencode(sorted(params.items())) if params else ""
    sign = hmac.new(secret.encode(), (key + body).encode(), hashlib.sha256).hexdigest()
    request = urllib.request.Request("http://127.0.0.1:8080" + path, body.encode() or None,
        {"X-KEY": key, "X-SIGN": sign, "X-NONCE": str(last[key])})
    try:
        with urllib.request.urlopen(request) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:  # its body says what was wrong
        answer = json.load(error)
        if again and "last" in answer:  # the nonce of another program: continue above it
            last[key] = max(last[key], answer["last"])
            return call(path, params, key, secret, again=False)
        return {"status": error.code, "error": answer}

order = {"pair": "BTC_USDT", "type": "sell", "amount": "0.1", "price": "90500"}
print(call("/api/v1/order/", order))
print(call("/api/v1/orders/own/?status=1"))
print(call("/api/v1/order/", order | {"amount": "1000"}))  # too much
