package lineartest

import (
	"cmp"
	"slices"
)

// Keys are what decides whether an account's operations are looked at: its keys with their nonces,
// and whether it is frozen. A step makes new ones and leaves the old ones as they are.
type keys struct {
	frozen bool  // for the wallet
	barred bool  // for gateways
	keys   []key // by number
}

// A key's highest nonce lies between sure and most, which differ after an operation without an
// outcome, and after a restart: that may forget the nonces of reads, and keeps those up to kept.
type key struct {
	number           int
	permissions      uint8
	revoked          bool
	sure, most, kept uint64
}

func (s *keys) clone() *keys { return &keys{s.frozen, s.barred, slices.Clone(s.keys)} }

func (s *keys) equal(t *keys) bool {
	return s.frozen == t.frozen && s.barred == t.barred && slices.Equal(s.keys, t.keys)
}

func (s *keys) find(number int) (at int, there bool) {
	return slices.BinarySearchFunc(s.keys, number,
		func(k key, n int) int { return cmp.Compare(k.number, n) })
}

// after gives the keys that may be there after a part of an operation, as market.after does.
func (s *keys) after(p *part) []any {
	c := s.clone()
	done := c.step(p)
	switch {
	case p.fate == open && done && p.o.Kind.Needs() == 0:
		return []any{c, s}
	case p.fate == open && !done:
		return []any{s}
	case done:
		return []any{c}
	}
	return nil
}

func (s *keys) step(p *part) bool {
	o, r := p.o, p.r
	at, there := s.find(o.Key)
	switch o.Kind {
	case CreateKey:
		if !there {
			s.keys = slices.Insert(s.keys, at, key{number: o.Key, permissions: o.Permissions})
		}
		return !there && r.Outcome != RefusedState
	case RevokeKey:
		live := there && !s.keys[at].revoked
		if r.Outcome == RefusedState || !live {
			return !live && r.Outcome == RefusedState
		}
		s.keys[at] = key{number: o.Key, revoked: true}
		return true
	case Freeze:
		if p.door {
			s.barred = o.On
		} else {
			s.frozen = o.On
		}
		return true
	case ReadKeys:
		return s.frozen == r.Frozen && s.barred == r.Frozen &&
			slices.EqualFunc(s.keys, r.Keys, func(k key, row KeyRow) bool {
				return KeyRow{k.number, k.permissions, k.revoked} == row
			})
	case Restart:
		for i := range s.keys {
			s.keys[i].sure = s.keys[i].kept
		}
		return true
	}
	switch {
	case p.unfrozen && p.door:
		return !s.barred
	case p.unfrozen:
		return !s.frozen
	case o.Kind == ApproveWithdraw:
		return s.frozen && r.Outcome == RefusedFrozen
	}
	live := there && !s.keys[at].revoked
	if r.Outcome == RefusedKey || !live {
		return !live && r.Outcome == RefusedKey
	}
	return s.signed(p, &s.keys[at])
}

// signed is what a live key's operation comes to. Its wallet sees to the nonce, and then, for all
// but reads, to the freeze.
func (s *keys) signed(p *part, k *key) bool {
	o, r := p.o, p.r
	if may := k.permissions&o.Kind.Needs() != 0; r.Outcome == RefusedPermission || !may {
		return !may && r.Outcome == RefusedPermission
	}
	switch {
	case r.Outcome == Unknown:
		k.most = max(k.most, o.Nonce)
		return true
	case r.Outcome == RefusedFrozen: // before the nonce was looked at, or after
		k.most = max(k.most, o.Nonce)
		return s.barred || s.frozen && !o.Kind.reads()
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
