package lineartest

import (
	"cmp"
	"slices"
)

// Keys are an account's keys with their nonces, and whether the account is frozen, which together
// admit or refuse the account's operations. A step changes a copy and leaves the old keys
// unchanged.
type keys struct {
	frozen           bool  // the wallet has applied the freeze
	frozenAtGateways bool  // the gateways have applied it
	keys             []key // by number
}

// A key's highest used nonce lies between sure and most. They differ after an operation without an
// outcome, and after a restart, which may forget the nonces of reads.
type key struct {
	number           int
	permissions      uint8
	revoked          bool
	sure, most, kept uint64  // kept: the highest nonce of a command, which survives restarts
	parallel         *window // of a key for parallel use, instead of these; nil: of another one
}

func (k key) equal(l key) bool {
	window := k.parallel.equal(l.parallel)
	k.parallel, l.parallel = nil, nil
	return window && k == l
}

func (s *keys) clone() *keys { return &keys{s.frozen, s.frozenAtGateways, slices.Clone(s.keys)} }

func (s *keys) equal(t *keys) bool {
	return s.frozen == t.frozen && s.frozenAtGateways == t.frozenAtGateways &&
		slices.EqualFunc(s.keys, t.keys, key.equal)
}

func (s *keys) find(number int) (at int, there bool) {
	return slices.BinarySearchFunc(s.keys, number,
		func(k key, n int) int { return cmp.Compare(k.number, n) })
}

// after returns the keys that a part of an operation may lead to, as market.after does. A signed
// operation without an outcome needs one state only: its step widens the bounds of the nonce, so
// that they hold whether it happened or not.
func (s *keys) after(p *part) []any {
	c := s.clone()
	done := c.step(p)
	switch {
	case p.fate == unknown && done && p.o.Kind.Needs() == 0:
		return []any{c, s}
	case p.fate == unknown && !done:
		return []any{s}
	case done:
		return []any{c}
	}
	return nil
}

// step does one part of an operation on s, and reports whether the result is right.
func (s *keys) step(p *part) bool {
	o, r := p.o, p.r
	if p.mixed {
		return false
	}
	at, there := s.find(o.Key)
	live := there && !s.keys[at].revoked
	switch o.Kind {
	case CreateKey:
		if !there {
			k := key{number: o.Key, permissions: o.Permissions}
			if o.Parallel > 0 {
				k.parallel = &window{size: o.Parallel}
			}
			s.keys = slices.Insert(s.keys, at, k)
		}
		return !there && r.Outcome != RefusedState
	case RevokeKey:
		if r.Outcome == RefusedState || !live {
			return !live && r.Outcome == RefusedState
		}
		s.keys[at] = key{number: o.Key, revoked: true}
		return true
	case Freeze:
		if p.atGateway {
			s.frozenAtGateways = o.On
		} else {
			s.frozen = o.On
		}
		return true
	case ReadKeys:
		return s.frozen == r.Frozen && s.frozenAtGateways == r.Frozen &&
			slices.EqualFunc(s.keys, r.Keys, func(k key, row KeyRow) bool {
				return KeyRow{k.number, k.permissions, k.revoked} == row
			})
	case Restart:
		for i := range s.keys {
			s.keys[i].sure = s.keys[i].kept
			if w := s.keys[i].parallel; w != nil {
				s.keys[i].parallel = w.afterRestart()
			}
		}
		return true
	}
	switch {
	case p.unfrozen && p.atGateway:
		return !s.frozenAtGateways
	case p.unfrozen:
		return !s.frozen
	case p.froze: // by a gateway, or by the wallet, which still allows reads
		return s.frozenAtGateways || s.frozen && !o.Kind.reads()
	case o.Kind == ApproveWithdrawal:
		return s.frozen && r.Outcome == RefusedFrozen
	}
	if r.Outcome == RefusedKey || !live {
		return !live && r.Outcome == RefusedKey
	}
	return s.sign(p, &s.keys[at])
}

// sign uses the nonce of an operation signed by a live key. The exchange checks the permission,
// then the nonce, and then the freeze, which does not stop reads there.
func (s *keys) sign(p *part, k *key) bool {
	o, r := p.o, p.r
	if may := k.permissions&o.Kind.Needs() != 0; r.Outcome == RefusedPermission || !may {
		return !may && r.Outcome == RefusedPermission
	}
	if k.parallel != nil {
		return s.signParallel(p, k)
	}
	switch {
	case r.Outcome == Unknown:
		k.most = max(k.most, o.Nonce)
		return true
	case r.Outcome == RefusedFrozen: // by a gateway, before the nonce was used, or by the wallet
		k.most = max(k.most, o.Nonce)
		return true
	case r.Outcome == RefusedNonce:
		if last := r.LastNonce; last < o.Nonce || last < k.sure || last > k.most {
			return false
		}
		k.sure, k.most = r.LastNonce, r.LastNonce
		return true
	case o.Nonce <= k.sure, s.frozen && !o.Kind.reads():
		return false
	}
	k.sure, k.most = o.Nonce, o.Nonce
	if !o.Kind.reads() {
		k.kept = o.Nonce
	}
	return true
}

// signParallel is the nonce and freeze part of sign, for a key for parallel use.
func (s *keys) signParallel(p *part, k *key) bool {
	o, r, reads := p.o, p.r, p.o.Kind.reads()
	switch {
	case r.Outcome == Unknown:
		k.parallel = k.parallel.afterMaybe(o.Nonce)
		return true
	case r.Outcome == RefusedFrozen:
		k.parallel = k.parallel.afterMaybe(o.Nonce)
		return true
	case r.Outcome == RefusedNonce:
		w := k.parallel.afterRefusal(o.Nonce, r.LastNonce)
		if w != nil {
			k.parallel = w
		}
		return w != nil
	case !k.parallel.good(o.Nonce), s.frozen && !reads:
		return false
	}
	k.parallel = k.parallel.afterUse(o.Nonce, reads)
	return true
}
