package state

import (
	"cmp"
	"fmt"
	"slices"

	"exchange/core/event"
	"exchange/core/trading"
)

// SelfTrade returns the default self-trade mode of the account's orders.
func (a *Account) SelfTrade() trading.SelfTrade {
	if a.rare == nil {
		return trading.SelfTradeNone
	}
	return a.rare.selfTrade
}

// Switches returns the account's armed dead man's switches, by key, that of calls before that of
// sessions. Each equals the record that armed it, without its nonce. Read only.
func (a *Account) Switches() []event.Switch {
	if a.rare == nil {
		return nil
	}
	return a.rare.switches
}

// Maintained returns when the last maintenance ended, in microseconds since the epoch; 0: none yet.
func (s *State) Maintained() int64 { return s.maintainedUs }

func (s *State) set(set *event.Settings) error {
	a := s.Account(set.Account)
	if a == nil || set.SelfTrade > trading.SelfTradeCancelBoth {
		return fmt.Errorf("there is no account %d, or no self-trade mode %d", set.Account,
			set.SelfTrade)
	}
	if a.SelfTrade() != set.SelfTrade {
		a.own().selfTrade = set.SelfTrade
	}
	return s.useNonce(set.Key, set.Account, set.Nonce)
}

// switched applies a record that arms a dead man's switch, or disarms one.
func (s *State) switched(r *event.Record) error {
	w := r.Switch
	a := s.Account(w.Account)
	if a == nil || w.Key == 0 || w.Pair != 0 && s.Pair(w.Pair) == nil {
		return fmt.Errorf("there is no account %d or pair %d, or the switch is of no key (%d)",
			w.Account, w.Pair, w.Key)
	}
	if err := s.useNonce(w.Key, w.Account, w.Nonce); err != nil {
		return err
	}
	w.Nonce = 0
	at, armed := a.switchAt(w.Key, w.Session)
	switch {
	case w.Armed:
		if err := checkArmed(&w); err != nil {
			return err
		}
		own := a.own()
		if armed {
			own.switches[at] = w
		} else {
			own.switches = slices.Insert(own.switches, at, w)
		}
		return nil
	case w.DueUs != 0 && (!armed || a.rare.switches[at].DueUs != w.DueUs || r.TimeUs < w.DueUs ||
		s.maintenance.BarsCancels()):
		return fmt.Errorf("the switch of key number %d that was due at %d us has fired at %d us, "+
			"but armed are %+v", w.Key, w.DueUs, r.TimeUs, a.Switches())
	}
	if armed {
		a.rare.switches = slices.Delete(a.rare.switches, at, at+1)
	}
	return nil
}

// checkArmed checks a switch on its own: that of calls is due at a time, that of sessions once they
// have ended.
func checkArmed(w *event.Switch) error {
	if w.DueUs < 0 || w.Seconds > event.MaxSwitchSeconds || w.Side > trading.Sell ||
		!w.Session && (w.DueUs == 0 || w.Seconds == 0) {
		return fmt.Errorf("a switch of key number %d cannot be armed so: %+v", w.Key, *w)
	}
	return nil
}

// switchAt returns the index of a key's switch in the account's list, or where it belongs.
func (a *Account) switchAt(key uint32, session bool) (at int, armed bool) {
	return slices.BinarySearchFunc(a.Switches(), event.Switch{Key: key, Session: session},
		bySwitch)
}

// bySwitch orders switches by key, that of calls before that of sessions.
func bySwitch(a, b event.Switch) int {
	if c := cmp.Compare(a.Key, b.Key); c != 0 || a.Session == b.Session {
		return c
	}
	if a.Session {
		return 1
	}
	return -1
}

// checkSwept refuses a cancel by a switch that is not due, or does not cancel that order.
func (s *State) checkSwept(p *Pair, r *event.Record) error {
	c := &r.Cancel
	a := s.Account(c.Account)
	at, armed := a.switchAt(c.Key, c.Reason == trading.CancelledDisconnect)
	if !armed || s.maintenance.BarsCancels() {
		return fmt.Errorf("order %d is cancelled by a switch of key number %d, which is not "+
			"armed, or in maintenance (%v)", c.Order, c.Key, s.maintenance.BarsCancels())
	}
	w := &a.rare.switches[at]
	if w.DueUs == 0 || r.TimeUs < w.DueUs || w.Pair != 0 && w.Pair != p.Number ||
		w.Side != 0 && w.Side != c.Side || !a.ClientIDs.Of(c.Order).HasPrefix(w.Prefix) {
		return fmt.Errorf("order %d is cancelled at %d us by a switch that is not due, or is for "+
			"other orders: %+v", c.Order, r.TimeUs, *w)
	}
	return nil
}
