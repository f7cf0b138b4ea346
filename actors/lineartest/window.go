package lineartest

import "slices"

// A window holds the nonces of a key for parallel use. The exchange keeps the greatest nonces used,
// as a set: a nonce is valid once, in any order, until the set is full of greater ones. Not all is
// certain: an operation without an outcome may have used its nonce, and a restart may forget those
// of reads. A window never changes; its methods return another one.
type window struct {
	size  int
	sure  []uint64 // used, ascending
	kept  []uint64 // the part of sure used by commands, which survives restarts
	maybe []uint64 // perhaps used, and not in sure, ascending
}

func (w *window) equal(v *window) bool {
	return w == v || w != nil && v != nil && w.size == v.size && slices.Equal(w.sure, v.sure) &&
		slices.Equal(w.kept, v.kept) && slices.Equal(w.maybe, v.maybe)
}

// good reports whether a nonce may be accepted.
func (w *window) good(nonce uint64) bool {
	return nonce > 0 && !has(w.sure, nonce) && !w.isBelow(w.sure, nonce)
}

// bad reports whether a nonce may be refused.
func (w *window) bad(nonce uint64) bool {
	return has(w.sure, nonce) || has(w.maybe, nonce) || w.isBelow(w.used(), nonce)
}

// isBelow reports whether a set of used nonces has no room for one.
func (w *window) isBelow(used []uint64, nonce uint64) bool {
	return len(used) >= w.size && nonce < used[len(used)-w.size]
}

// used returns all nonces that may have been used.
func (w *window) used() []uint64 {
	all := slices.Concat(w.sure, w.maybe)
	slices.Sort(all)
	return all
}

// afterUse returns the window after an answered operation.
func (w *window) afterUse(nonce uint64, reads bool) *window {
	v := *w
	v.sure, v.maybe = with(w.sure, nonce), without(w.maybe, nonce)
	if !reads {
		v.kept = with(w.kept, nonce)
	}
	return &v
}

// afterMaybe returns the window after an operation that may have used its nonce.
func (w *window) afterMaybe(nonce uint64) *window {
	if has(w.sure, nonce) || w.isBelow(w.sure, nonce) {
		return w
	}
	v := *w
	v.maybe = with(w.maybe, nonce)
	return &v
}

// afterRefusal returns the window after a refusal, which contains the greatest used nonce; nil: the
// refusal is wrong.
func (w *window) afterRefusal(nonce, last uint64) *window {
	used := w.used()
	if !w.bad(nonce) || last < nonce || !has(used, last) ||
		len(w.sure) > 0 && last < w.sure[len(w.sure)-1] {
		return nil
	}
	v := *w
	v.maybe = slices.DeleteFunc(slices.Clone(w.maybe), func(n uint64) bool { return n > last })
	for _, n := range []uint64{nonce, last} {
		if has(v.maybe, n) && (n == last || !w.isBelow(used, n)) {
			v.sure, v.maybe = with(v.sure, n), without(v.maybe, n)
		}
	}
	return &v
}

// afterRestart returns the window after a restart.
func (w *window) afterRestart() *window {
	v := *w
	v.sure = w.kept
	for _, n := range w.sure {
		if !has(w.kept, n) {
			v.maybe = with(v.maybe, n)
		}
	}
	return &v
}

func has(list []uint64, n uint64) bool {
	_, there := slices.BinarySearch(list, n)
	return there
}

func with(list []uint64, n uint64) []uint64 {
	at, there := slices.BinarySearch(list, n)
	if there {
		return list
	}
	return slices.Insert(slices.Clone(list), at, n)
}

func without(list []uint64, n uint64) []uint64 {
	at, there := slices.BinarySearch(list, n)
	if !there {
		return list
	}
	return slices.Delete(slices.Clone(list), at, at+1)
}
