package state

import (
	"fmt"

	"exchange/core/event"
	"exchange/core/money"
)

// operate applies an operator's decision, or the outcome of a mail: records that move no money. A
// note changes nothing.
func (s *State) operate(r *event.Record) error {
	switch r.Kind {
	case event.KindMailed:
		s.unmail(r.Mailed.ID) // a newer mail may have replaced it while it was being sent
	case event.KindHalt:
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
	case event.KindFreeze:
		a := s.Account(r.Freeze.Account)
		if a == nil || a.Frozen == r.Freeze.Frozen {
			return fmt.Errorf("account %d does not exist, or its freeze already is %v",
				r.Freeze.Account, r.Freeze.Frozen)
		}
		if err := s.mustBeOpen(a.ID); err != nil {
			return err
		}
		a.Frozen = r.Freeze.Frozen
	case event.KindMaintenance:
		if s.maintenance.On && !r.Maintenance.On {
			s.maintainedUs = r.TimeUs
		}
		s.maintenance = r.Maintenance
	case event.KindFees:
		return s.fees(r)
	case event.KindEmail:
		return s.email(r)
	case event.KindAccountClosed:
		return s.closeAccount(r)
	}
	return nil
}

func (s *State) fees(r *event.Record) error {
	f := &r.Fees
	a := s.Account(f.Account)
	if a == nil || s.Pair(r.Pair) == nil {
		return fmt.Errorf("account %d or pair %d does not exist", f.Account, r.Pair)
	}
	if max(f.Maker, f.Taker) > money.MaxRate { // no image could hold them
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
