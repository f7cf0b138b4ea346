package api

import (
	"errors"
	"strconv"

	"exchange/actors"
	"exchange/actors/committed"
	"exchange/core/event"
	"exchange/gateway/encode"
)

// The dead man's switch of a key cancels orders unless the client calls again in time.

// LeastSwitch is the shortest time of a switch, in seconds.
const LeastSwitch = 5

// cancelAfter arms the switch of the key, or disarms it.
func (c *Call) cancelAfter() {
	if err := c.commands.Writable(); err != nil {
		c.FailWith(err)
		return
	}
	seconds, f := c.switchTimeout(), c.orderFilter()
	if c.failOnBadFields() {
		return
	}
	cmd, err := c.do(actors.NewSwitch(c.Key, c.Nonce, seconds, f))
	if err != nil {
		c.failSetting(err, "GET /api/v1/order-cancel-after/ shows what is set.")
		return
	}
	if cmd.Outcome() == actors.Accepted {
		c.body = c.appendSwitch(c.body, &cmd.Record().Switch, c.commands.SwitchFires(cmd))
	} else {
		c.failRefused(cmd, orderShape{})
	}
	cmd.Free()
}

// switchTimeout reads the switch's timeout, in seconds; 0: disarmed.
func (c *Call) switchTimeout() uint32 {
	text, ok := c.field("timeout")
	if !ok {
		return 0
	}
	n, ok := Integer(text)
	if !ok || n > event.MaxSwitchSeconds || n > 0 && n < LeastSwitch {
		c.addError("timeout", FieldInteger+" It must be 0, or "+strconv.Itoa(LeastSwitch)+" to "+
			strconv.Itoa(event.MaxSwitchSeconds)+".")
		return 0
	}
	return uint32(n)
}

// cancelSwitch shows the switch of the key.
func (c *Call) cancelSwitch() {
	q := committed.KeySwitch{Key: c.Key.Number}
	if err := c.public.Ask(&q, c.Key, c.Nonce); err != nil {
		c.failRead(err)
		return
	}
	c.body = c.appendSwitch(c.body, &q.Switch, c.public.SwitchFires(&q))
}

// appendSwitch writes a switch: its timeout, the time at which it fires, and its filter, if any.
func (c *Call) appendSwitch(b []byte, s *event.Switch, firesUs int64) []byte {
	if !s.Armed {
		return append(b, `{"timeout":0,"cancel_at":null}`...)
	}
	b = strconv.AppendUint(append(b, `{"timeout":`...), uint64(s.Seconds), 10)
	b = encode.Seconds(append(b, `,"cancel_at":`...), firesUs)
	if s.Pair != 0 {
		b = encode.Text(append(b, `,"pair":`...), c.public.Market(s.Pair).Name)
	}
	if s.Side != 0 {
		b = encode.Side(append(b, `,"type":`...), s.Side)
	}
	if !s.Prefix.IsZero() {
		b = append(s.Prefix.Append(append(b, `,"client_order_id_prefix":"`...)), '"')
	}
	return append(b, '}')
}

// failSetting writes the response for a setting command's error. hint tells the client how to find
// out an unknown outcome.
func (c *Call) failSetting(err error, hint string) {
	if errors.Is(err, committed.ErrTimeout) {
		c.Fail(OutcomeUnknown, " "+hint)
		return
	}
	c.FailWith(err)
}
