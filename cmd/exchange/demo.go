package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"exchange/actors"
	"exchange/core/event"
	"exchange/core/money"
)

// The demo's accounts, with keys that everybody knows: that is why it serves loopback addresses only.
var demoAccounts = []string{"alice", "bob"}

var demoDeposits = []struct {
	currency string
	amount   money.Amount
}{{"BTC", 100e8}, {"ETH", 1000e8}, {"USDT", 10_000_000e8}}

// demoOperator is who did it, for the log of actions.
const demoOperator = "the demo"

// fillDemo makes the demo's accounts, keys and deposits where they are not there yet.
func fillDemo(e *actors.Engine) error {
	for _, name := range demoAccounts {
		key := "demo-" + name
		if e.Key([]byte(key)) == nil {
			var exists *actors.RequestError
			if _, err := e.CreateAccount(demoOperator, name, name+"@demo.example"); err != nil && !errors.As(err, &exists) {
				return err
			}
			if _, err := e.CreateKey(demoOperator, name, key, key+"-secret", event.AllPermissions, nil); err != nil && !errors.As(err, &exists) {
				return err
			}
		}
		for _, d := range demoDeposits {
			if _, err := e.Deposit(demoOperator, name, d.currency, d.amount, "demo-"+name+"-"+d.currency); err != nil {
				return err
			}
		}
	}
	return nil
}

// printDemo shows what there is and a first signed call to copy.
func printDemo(w io.Writer, address string) {
	const form = "amount=0.5&pair=BTC_USDT&price=50000&type=sell"
	sign := func(key, message string) string {
		mac := hmac.New(sha256.New, []byte(key+"-secret"))
		mac.Write([]byte(key + message))
		return hex.EncodeToString(mac.Sum(nil))
	}
	fmt.Fprintf(w, `
The demo exchange is open at http://%[1]s

  pairs      BTC_USDT, ETH_USDT, ETH_BTC
  accounts   alice and bob, each with 100 BTC, 1000 ETH and 10,000,000 USDT
  keys       demo-alice, secret demo-alice-secret
             demo-bob,   secret demo-bob-secret

A first order: alice sells 0.5 BTC at 50000 USDT. X-SIGN is the HMAC-SHA256, under the secret, of the key
followed by the sorted form; X-NONCE must grow with each call.

  curl -s http://%[1]s/api/v1/order/ -d '%[2]s' \
    -H 'X-KEY: demo-alice' -H "X-NONCE: $(date +%%s%%3N)" \
    -H 'X-SIGN: %[3]s'

Bob buys it, and both can look at their wallets:

  curl -s http://%[1]s/api/v1/order/ -d '%[4]s' \
    -H 'X-KEY: demo-bob' -H "X-NONCE: $(date +%%s%%3N)" \
    -H 'X-SIGN: %[5]s'

  curl -s http://%[1]s/api/v1/wallets/ \
    -H 'X-KEY: demo-bob' -H "X-NONCE: $(date +%%s%%3N)" \
    -H 'X-SIGN: %[6]s'

The book needs no key:  curl -s http://%[1]s/api/v1/orderbook/BTC_USDT/

Ctrl-C stops the exchange; the next start finds everything as it was.

`, address, form, sign("demo-alice", form), buyForm, sign("demo-bob", buyForm), sign("demo-bob", ""))
}

const buyForm = "amount=0.5&pair=BTC_USDT&price=50000&type=buy"
