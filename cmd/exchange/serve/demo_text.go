package serve

import (
	"fmt"
	"io"

	"exchange/cmd/exchange/demomarket"
	"exchange/config"
	"exchange/gateway/sign"
)

// printDemo shows a demo's content, and first signed calls to copy. address is that of its public
// listener.
func printDemo(w io.Writer, cfg *config.Config, address string) {
	scheme, trust, open := "http", "", ""
	if cfg.TLS.On() {
		scheme, trust = "https", demoTrust
	}
	address = scheme + "://" + address
	market, bobSells := "", demoSellsToAlice
	sell := "amount=0.01&pair=BTC_USDT&price=50000&type=sell"
	if !cfg.NoDemoMarket {
		market, bobSells = demoMarketText, demoSellsToMarket
		sell = "amount=0.01&pair=BTC_USDT&price=55000&type=sell"
	}
	mails := "nothing is sent, and no page shows them"
	if !cfg.NoPages {
		open = ": open that address in a browser to see the market"
		mails = "nothing is sent: " + address +
			"/demo/mails shows them, with the codes of withdrawals"
	}
	call := func(account, path, form string) string {
		key := demomarket.Key(account)
		text := fmt.Sprintf("  call %s %s %s", account,
			sign.New([]byte(demomarket.Secret(key))).Sign(nil, []byte(key+form)), path)
		if form != "" {
			text += " \\\n    '" + form + "'"
		}
		return text
	}
	const buy = "amount=0.5&pair=BTC_USDT&price=50000&type=buy"
	fmt.Fprintf(w, demoText, address, open, market, mails, trust,
		call("alice", "/api/v1/order/", buy), bobSells, call("bob", "/api/v1/order/", sell),
		call("bob", "/api/v1/wallets/", ""))
}

const (
	demoMarketText    = ", on which a market maker trades, near 65,000 USDT for a BTC"
	demoSellsToMarket = "Bob sells at what others pay now"
	demoSellsToAlice  = "Bob sells to her"
	demoTrust         = "\ncurl takes the certificate if this machine trusts it, or with --cacert."
)

// demoText takes the address, an end of its sentence, the market, the place of mails, the needs of
// TLS, the first order, bob's action, his order, and a query of his wallet.
const demoText = `
The demo exchange is open at %[1]s%[2]s.

  pairs      BTC_USDT, ETH_USDT, ETH_BTC%[3]s
  accounts   alice and bob, each with 100 BTC, 1000 ETH and 10,000,000 USDT
  keys       demo-alice, demo-bob: the nonces of a key grow
             demo-alice-parallel, demo-bob-parallel: for parallel use, as by the pages, a key takes
             nonces in any order, each once
             the secret of each is its name and "-secret", as demo-alice-secret
  mails      %[4]s

A first order: alice buys 0.5 BTC at 50000 USDT, which rests. X-SIGN is the HMAC-SHA256, under
the secret, of the key followed by the sorted form. X-NONCE is the time in milliseconds, and greater
than the key's last one: a refusal contains that one, and then the call goes once more.%[5]s

  call() { # account signature path [form]
    nonce=$(date +%%s%%3N)
    for try in 1 2; do
      answer=$(curl -s "%[1]s$3" ${4:+-d} ${4:+"$4"} \
        -H "X-KEY: demo-$1" -H "X-SIGN: $2" -H "X-NONCE: $nonce")
      case $answer in *'"code":"nonce","last":'*) ;; *) break ;; esac
      last=${answer##*:}
      nonce=$((${last%%\}} + 1))
    done
    echo "$answer"
  }
%[6]s

%[7]s, and both can look at their wallets:

%[8]s
%[9]s

The book needs no key:  curl -s %[1]s/api/v1/orderbook/BTC_USDT/

Ctrl-C stops the exchange; the next start finds everything as it was.

`
