package state

import (
	"fmt"

	"exchange/core/event"
	"exchange/core/money"
)

// operate applies an operator's decision, or the outcome of a mail: records that move no money.
func (s *State) operate(r *event.Record) error {
	switch r.Kind {
	case event.KindMailed:
		s.unmail(r.Mailed.ID) // a newer mail may have replaced it while it was being sent
	case event.KindHalt:
		p := s.Pair(r.Pair)
		if p == nil || p.Halted == r.Halt.Halted {
			return fmt.Errorf("pair %d is not there, or its halt is %v already", r.Pair,
				r.Halt.Halted)
		}
		if r.TimeUs < p.timeUs {
			return fmt.Errorf("time %d us after %d us of %s", r.TimeUs, p.timeUs, p.Name)
		}
		p.Halted, p.timeUs = r.Halt.Halted, r.TimeUs
	case event.KindFreeze:
		a := s.Account(r.Freeze.Account)
		if a == nil || a.Frozen == r.Freeze.Frozen {
			return fmt.Errorf("account %d is not there, or that it is frozen is %v already",
				r.Freeze.Account, r.Freeze.Frozen)
		}
		a.Frozen = r.Freeze.Frozen
	case event.KindMaintenance:
		s.maintenance = r.Maintenance
	case event.KindFees:
		return s.fees(r)
	}
	return nil
}

func (s *State) fees(r *event.Record) error {
	f := &r.Fees
	a := s.Account(f.Account)
	if a == nil || s.Pair(r.Pair) == nil {
		return fmt.Errorf("there is no account %d or no pair %d", f.Account, r.Pair)
	}
	if max(f.Maker, f.Taker) > money.MaxRate { // no image could hold them
		return fmt.Errorf("fees of %v and %v", f.Maker, f.Taker)
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
