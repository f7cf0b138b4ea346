package api

import (
	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/trading"
	"exchange/gateway/encode"
)

// tradingSettings shows the defaults of the account's orders.
func (c *Call) tradingSettings() {
	var q committed.TradingSettings
	if err := c.public.Ask(&q, c.Key, c.Nonce); err != nil {
		c.failRead(err)
		return
	}
	c.body = appendSettings(c.body, q.SelfTrade)
}

// setTradingSettings changes them.
func (c *Call) setTradingSettings() {
	if err := c.commands.Writable(); err != nil {
		c.FailWith(err)
		return
	}
	var i intent
	if c.readIntent(&i); !i.has(selfTrade) {
		c.addError("self_trade", FieldRequired)
	}
	if c.failOnBadFields() {
		return
	}
	cmd, err := c.do(actors.NewSettings(c.Key, c.Nonce, i.mode))
	if err != nil {
		c.failSetting(err, "GET /api/v1/trading-settings/ shows what is set.")
		return
	}
	if cmd.Outcome() == actors.Accepted {
		c.body = appendSettings(c.body, i.mode)
	} else {
		c.failRefused(cmd, orderShape{})
	}
	cmd.Free()
}

func appendSettings(b []byte, mode trading.SelfTrade) []byte {
	return append(encode.Text(append(b, `{"self_trade":`...), SelfTradeName(mode)), '}')
}
