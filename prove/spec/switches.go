package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"exchange/core/event"
	"exchange/core/trading"
)

// A switchOf identifies a dead man's switch: a key has one of its calls, and one of its sessions.
type switchOf struct {
	key     uint32
	session bool
}

// An armed switch cancels orders when it is due.
type armed struct {
	event.Switch
	seq uint64 // of the record that armed it
	// toEnd are the orders that it must have cancelled when it ends. They were open when it was
	// armed: a wallet may have sent a later one after the cancels, to a faster book.
	toEnd  []uint64
	firing bool
	before bool // armed by sessions of an earlier engine, which ended with it
}

// OverdueSwitch describes a switch that should have fired by a time; "": none.
func (m *Exchange) OverdueSwitch(timeUs int64) string {
	for _, k := range m.Keys {
		for _, session := range []bool{false, true} {
			s := m.switches[switchOf{k.Number, session}]
			if s == nil {
				continue
			}
			due := max(s.DueUs, m.MaintainedUs+m.SwitchGrace.Microseconds())
			if s.DueUs != 0 && due <= timeUs {
				return fmt.Sprintf("a switch of key %s was due at %d us", k.Name, due)
			}
		}
	}
	return ""
}

// concerns reports whether a switch cancels an order.
func concerns(s *event.Switch, o *Order) bool {
	return o.Account == s.Account && (s.Pair == 0 || s.Pair == o.Pair) &&
		(s.Side == 0 || s.Side == o.Side) &&
		strings.HasPrefix(o.ClientID.String(), s.Prefix.String())
}

// OpenOf returns the open orders that a switch cancels.
func (m *Exchange) OpenOf(s *event.Switch) (ids []uint64) {
	for _, p := range m.Pairs {
		for _, o := range p.Open() {
			if concerns(s, o) {
				ids = append(ids, o.ID)
			}
		}
	}
	return ids
}

// applySwitch arms a switch, disarms it, or ends one that has fired.
func (m *Exchange) applySwitch(r *event.Record) error {
	s := &r.Switch
	of := switchOf{s.Key, s.Session}
	now := m.switches[of]
	m.touched = append(m.touched, s.Account)
	switch {
	case s.Session && s.Nonce != 0:
		return fmt.Errorf("a session of key %d has nonce %d", s.Key, s.Nonce)
	case !s.Armed && s.DueUs != 0:
		return m.applyFired(r, now)
	case s.Session:
		return m.applySession(r, now)
	}
	if err := m.takeNonce(r.Kind, s.Key, s.Account, s.Nonce); err != nil {
		return err
	}
	switch {
	case now != nil && now.firing:
		return fmt.Errorf("the switch of key %d is set while it fires", s.Key)
	case !s.Armed:
		delete(m.switches, of)
		return nil
	case s.Seconds < 5 || s.DueUs != r.TimeUs+int64(s.Seconds)*1e6:
		return fmt.Errorf("the switch of key %d, set at %d us, is %+v", s.Key, r.TimeUs, *s)
	}
	m.arm(s)
	return nil
}

func (m *Exchange) arm(s *event.Switch) {
	next := &armed{Switch: *s, seq: m.Seq}
	next.toEnd = m.OpenOf(s)
	m.switches[switchOf{s.Key, s.Session}] = next
}

// applySession arms the switch of a key's sessions, sets its due time, or disarms it.
func (m *Exchange) applySession(r *event.Record, now *armed) error {
	s := &r.Switch
	lives := now != nil && now.DueUs == 0 && !now.before
	if s.DueUs == 0 { // requested by a client
		if err := m.mayCommand(m.Keys[s.Key-1], false); err != nil {
			return err
		}
	}
	switch {
	case now != nil && now.firing:
		return fmt.Errorf("the switch of the sessions of key %d is set while it fires", s.Key)
	case !s.Armed && !lives:
		return fmt.Errorf("the switch of the sessions of key %d is disarmed, and none lives",
			s.Key)
	case !s.Armed:
		delete(m.switches, switchOf{s.Key, true})
		return nil
	case s.DueUs == 0 && now != nil && now.before && now.DueUs == 0:
		return fmt.Errorf("a session of key %d begins before those of earlier engines have ended",
			s.Key)
	case s.DueUs != 0:
		was := event.Switch{}
		if now != nil {
			was = now.Switch
		}
		was.DueUs += r.TimeUs + int64(s.Seconds)*1e6
		if was != *s {
			return fmt.Errorf("the sessions of key %d end at %d us by %+v, and had armed %+v",
				s.Key, r.TimeUs, *s, was)
		}
	}
	m.arm(s)
	return nil
}

// Switches returns the armed switches, by account, key and kind.
func (m *Exchange) Switches() (list []event.Switch) {
	for _, s := range m.switches {
		list = append(list, s.Switch)
	}
	slices.SortFunc(list, func(a, b event.Switch) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Key, b.Key),
			map[bool]int{true: 1, false: -1}[a.Session])
	})
	return list
}

// SessionsSwitch returns the switch of a key's sessions, if it is armed.
func (m *Exchange) SessionsSwitch(key uint32) (s event.Switch, armed bool) {
	if now := m.switches[switchOf{key, true}]; now != nil {
		return now.Switch, true
	}
	return s, false
}

// applyFired ends a switch that has cancelled its orders.
func (m *Exchange) applyFired(r *event.Record, now *armed) error {
	s := &r.Switch
	if err := m.mayFire(r, now); err != nil {
		return err
	}
	// A clock before the end of maintenance counts the grace differently. The cancels before may
	// have a later time, of their pairs.
	if end := m.MaintainedUs; end != 0 && r.TimeUs >= end &&
		r.TimeUs < end+m.SwitchGrace.Microseconds() {
		return fmt.Errorf("the switch of key %d fires at %d us, too soon after the end of "+
			"maintenance at %d us", s.Key, r.TimeUs, end)
	}
	if s.Armed || s.DueUs != now.DueUs {
		return fmt.Errorf("the switch of key %d, due at %d us, ends as %+v", s.Key, now.DueUs, *s)
	}
	for _, id := range now.toEnd {
		if o, _ := m.Open(id); o != nil {
			return fmt.Errorf("the switch of key %d ends, and order %+v is open as before", s.Key,
				*o)
		}
	}
	delete(m.switches, switchOf{s.Key, s.Session})
	return nil
}

// mayFire returns an error if a switch must not cancel orders at the time of a record.
func (m *Exchange) mayFire(r *event.Record, s *armed) error {
	switch {
	case s == nil:
		return fmt.Errorf("a switch fires that is not armed")
	case s.DueUs == 0 || r.TimeUs < s.DueUs:
		return fmt.Errorf("the switch of key %d fires at %d us, and is due at %d us", s.Key,
			r.TimeUs, s.DueUs)
	case m.Maintenance.BarsCancels():
		return fmt.Errorf("the switch of key %d fires at %d us, in maintenance", s.Key, r.TimeUs)
	}
	return nil
}

// applySwept cancels an order by a switch that is due.
func (m *Exchange) applySwept(r *event.Record) error {
	c := &r.Cancel
	s := m.switches[switchOf{c.Key, c.Reason == trading.CancelledDisconnect}]
	if err := m.mayFire(r, s); err != nil {
		return fmt.Errorf("order %d of key %d: %w", c.Order, c.Key, err)
	}
	if o, _ := m.Open(c.Order); o != nil && !concerns(&s.Switch, o) {
		return fmt.Errorf("the switch %+v cancels order %+v", s.Switch, *o)
	}
	s.firing = true
	return m.applyCancel(r)
}

// refire records that an engine has started: a firing switch fires again, on the orders that are
// open then.
func (m *Exchange) refire() {
	for _, s := range m.switches {
		s.firing, s.before = false, true
	}
}

// applySettings sets the mode of an account's orders that name none.
func (m *Exchange) applySettings(r *event.Record) error {
	t := &r.Settings
	a := m.Accounts[t.Account-1]
	m.touched = append(m.touched, t.Account)
	a.modes = append(a.modes, mode{m.Seq, t.SelfTrade})
	return m.takeNonce(r.Kind, t.Key, t.Account, t.Nonce)
}

// A mode is an account's setting from a record on.
type mode struct {
	seq  uint64
	mode trading.SelfTrade
}

// SelfTrade returns the mode of the account's orders that name none.
func (a *Account) SelfTrade() trading.SelfTrade {
	if len(a.modes) == 0 {
		return trading.SelfTradeNone
	}
	return a.modes[len(a.modes)-1].mode
}

// ModesBetween returns the possible modes of an account's setting between two sequences. A wallet
// uses the settings that it has sent, so to may be any later sequence.
func (a *Account) ModesBetween(from, to uint64) map[trading.SelfTrade]bool {
	modes, last := map[trading.SelfTrade]bool{}, trading.SelfTradeNone
	for _, s := range a.modes {
		if s.seq > from && s.seq <= to {
			modes[s.mode] = true
		} else if s.seq <= from {
			last = s.mode
		}
	}
	modes[last] = true
	return modes
}
