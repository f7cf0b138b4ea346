package state

import (
	"fmt"

	"exchange/core/event"
	"exchange/core/money"
)

// Operated is an account's state set by operators alone. Images store it as a wire value: another
// field needs another imageVersion.
type Operated struct {
	// HoldEndsUs is the end of the hold on withdrawals after an e-mail address change, Unix
	// microseconds; 0: none ever. It stays after that time: a state depends on no clock.
	HoldEndsUs int64
	// ClosedUs is when the account was closed, Unix microseconds; 0: open. A closed account is
	// frozen, and has no money, no orders, no pending withdrawals and no live keys.
	ClosedUs int64
}

// Operated returns the account's state set by operators.
func (a *Account) Operated() (o Operated) {
	if a.rare != nil {
		o = a.rare.operated
	}
	return o
}

// operated reads an account's state set by operators.
func (r *reader) operated(a *Account) {
	var o Operated
	if r.Value(&o); o == (Operated{}) {
		return
	}
	a.own().operated = o
	r.Check(o.HoldEndsUs >= 0 && o.ClosedUs >= 0)
	if o.HoldEndsUs != 0 && a.Email == "" {
		r.Fail("account " + a.Name + " is held, but has no e-mail address")
	}
}

// operate applies an operator's decision, or the outcome of a mail: records that move no money. A
// note changes nothing. known is false for other records.
func (s *State) operate(r *event.Record) (known bool, err error) {
	switch r.Kind {
	case event.KindMailed:
		s.removeMail(r.Mailed.ID) // a newer mail may have replaced it meanwhile
	case event.KindHalt:
		err = s.halt(r)
	case event.KindMaintenance:
		if s.maintenance.On && !r.Maintenance.On {
			s.maintainedUs = r.TimeUs
		}
		s.maintenance = r.Maintenance
	case event.KindFees:
		err = s.fees(r)
	case event.KindEmail:
		err = s.email(r)
	case event.KindAccountClosed:
		err = s.closeAccount(r)
	case event.KindNote:
	default:
		return false, nil
	}
	return true, err
}

func (s *State) halt(r *event.Record) error {
	p := s.Pair(r.Pair)
	if p == nil || p.Halted == r.Halt.Halted {
		return fmt.Errorf("pair %d does not exist, or its halt already is %v", r.Pair,
			r.Halt.Halted)
	}
	if r.TimeUs < p.timeUs {
		return fmt.Errorf("its time %d us is before %d us, the last of %s", r.TimeUs, p.timeUs,
			p.Name)
	}
	p.Halted, p.timeUs = r.Halt.Halted, r.TimeUs
	return nil
}

func (s *State) freeze(f event.Freeze) error {
	a := s.Account(f.Account)
	if a == nil || a.Frozen == f.Frozen {
		return fmt.Errorf("account %d does not exist, or its freeze already is %v", f.Account,
			f.Frozen)
	}
	if err := s.mustBeOpen(a.ID); err != nil {
		return err
	}
	a.Frozen = f.Frozen
	return nil
}

func (s *State) fees(r *event.Record) error {
	f := &r.Fees
	a := s.Account(f.Account)
	if a == nil || s.Pair(r.Pair) == nil {
		return fmt.Errorf("account %d or pair %d does not exist", f.Account, r.Pair)
	}
	if max(f.Maker, f.Taker) > money.MaxRate { // images could not hold them
		return fmt.Errorf("fees of %v (maker) and %v (taker): the most is %v", f.Maker, f.Taker,
			money.MaxRate)
	}
	if err := s.mustBeOpen(f.Account); err != nil {
		return err
	}
	own := a.own()
	if !f.Own {
		delete(own.fees, r.Pair)
		return nil
	}
	if own.fees == nil {
		own.fees = make(map[uint16]FeeRates)
	}
	own.fees[r.Pair] = FeeRates{f.Maker, f.Taker}
	return nil
}
