package actors

import (
	"fmt"

	"exchange/actors/directory"
	"exchange/core/event"
	"exchange/core/state"
)

// A directory holds the data for clients with keys, at a leader and at a follower. It is filled
// from the fold's state once, and then updated after each record that changes it, in the committed
// side's turns. So it only contains durable data.

// Fill fills the directory from the fold's state. The keyring opens the secrets of keys. After an
// error no clients with keys are served.
func (p *Public) Fill(keys *Keyring) error {
	s := p.side.State()
	opened := make([]openedKey, len(s.Keys()))
	if p.sealer != nil {
		if err := keys.openAll(s); err != nil {
			return err
		}
		opened = keys.all()
	}
	dir := directory.New()
	for _, a := range s.Accounts() {
		dir.Update(a)
	}
	for i, k := range s.Keys() {
		if k.Revoked {
			continue
		}
		if err := dir.AddKey(&k.Key, opened[i].material); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	p.dir = dir
	return nil
}

// Apply updates the directory from a record that the fold has just applied.
func (p *Public) Apply(r *event.Record) {
	s := p.side.State()
	switch r.Kind {
	case event.KindAccount:
		p.dir.Update(s.Account(r.Account.ID))
	case event.KindFreeze:
		p.dir.Update(s.Account(r.Freeze.Account))
	case event.KindEmail:
		p.dir.Update(s.Account(r.Email.Account))
	case event.KindFees:
		p.dir.Update(s.Account(r.Fees.Account))
	case event.KindAccountClosed:
		a := s.Account(r.AccountClosed.Account)
		p.dir.Update(a)
		for _, number := range a.Keys {
			p.dropKey(s.Keys()[number-1])
		}
	case event.KindKey:
		if err := p.addKey(&r.Key); err != nil {
			p.Log().Error("requests with a new key are refused at this node", "error", err)
		}
	case event.KindKeyRevoked:
		p.dropKey(s.Keys()[r.KeyRevoked.Number-1])
	case event.KindHalt:
		if pair := p.Configured(r.Pair); pair != nil {
			pair.Halt(r.Halt.Halted)
		}
	case event.KindMaintenance:
		p.onMaintenance(s)
	}
}

// addKey adds a new key. An observer cannot open its secret.
func (p *Public) addKey(k *event.Key) error {
	if p.sealer == nil {
		return p.dir.AddKey(k, nil)
	}
	secret, err := openSecret(k, p.dir.Account(k.Account).Name, p.sealer)
	if err != nil {
		return err
	}
	return p.dir.AddKey(k, p.opts.KeyMaterial(secret))
}

// dropKey removes a revoked key, unless that has been done.
func (p *Public) dropKey(k *state.Key) {
	entry := p.dir.Key([]byte(k.Key.Key))
	if entry == nil {
		return
	}
	p.dir.RemoveKey(entry)
	if p.onKeyRevoked != nil {
		p.onKeyRevoked(entry)
	}
}
