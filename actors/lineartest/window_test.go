package lineartest

import (
	"fmt"
	"strings"
	"testing"
)

// does adds an operation of key 9 to the history: a command with a nonce, a "read", a command that
// is "lost", one that is "refused" with the greatest nonce, or a restart.
func (s *script) does(text string) {
	var what string
	var nonce, last uint64
	if _, err := fmt.Sscan(text, &nonce); err != nil {
		_, _ = fmt.Sscan(text, &what, &nonce, &last) // as many as there are
	}
	o := Operation{Kind: CancelAll, Key: 9, Nonce: nonce}
	switch what {
	case "":
		s.did("", o, Result{Outcome: RefusedState})
	case "read":
		s.did("", Operation{Kind: ReadOpen, Key: 9, Nonce: nonce}, Result{})
	case "lost":
		s.begin("", o)
		s.Settle()
	case "refused":
		s.did("", o, Result{Outcome: RefusedNonce, LastNonce: last})
	case "restart":
		s.did("", Operation{Kind: Restart}, Result{})
	default:
		panic(text)
	}
}

// Requests of a key for parallel use overtake each other. It keeps three nonces here.
func TestNoncesOfAKeyForParallelUse(t *testing.T) {
	for _, x := range []struct {
		what, does string
		right      bool
	}{
		{"in any order", "5, 3, 4", true},
		{"twice", "5, 3, 5", false},
		{"overtaken, and twice", "5, 3, 3", false},
		{"a read's again", "read 3, 5, 3", false},
		{"refused the second time", "5, 3, refused 3 5, 4", true},
		{"refused though it is new", "5, refused 3 5", false},
		{"refused, with another one", "5, 3, refused 3 4", false},
		{"refused, with the least", "5, 3, refused 3 3", false},
		{"below a full set, and taken", "5, 3, 4, 2", false},
		{"below a full set, and refused", "5, 3, 4, refused 2 5", true},
		{"the least has left", "5, 1, 4, 3, refused 1 5, refused 2 5", true},
		{"of a set that is not yet full", "5, 4, 1", true},
		{"of a lost command, taken", "5, lost 3, 3", true},
		{"of a lost command, refused", "5, lost 3, refused 3 5", true},
		{"refused, so it was used", "5, lost 3, refused 3 5, 3", false},
		{"of a lost command, that filled", "5, 4, lost 3, refused 2 5", true},
		{"of a read before a restart", "5, read 3, restart, 3", true},
		{"kept of a read over a restart", "5, read 7, restart, refused 7 7", true},
		{"of a command before a restart", "5, 3, restart, 3", false},
		{"of a command after a restart", "5, 3, restart, 4", true},
		{"refused, and more was not used", "5, lost 7, refused 5 5, 7", true},
		{"refused, with the lost one", "5, lost 7, refused 5 7, 7", false},
	} {
		s := newScript()
		s.did("", Operation{Kind: CreateKey, Key: 9, Parallel: 3, Permissions: MayAll}, Result{})
		for text := range strings.SplitSeq(x.does, ", ") {
			s.does(text)
		}
		if err := s.Judge(decideWithin); (err == nil) != x.right {
			t.Errorf("%s: %v", x.what, err)
		}
	}
}

// A key's window decides its future, so two keys with different windows are different states.
func TestWindowsAreCompared(t *testing.T) {
	a := &window{size: 3, sure: []uint64{1, 4}, kept: []uint64{4}, maybe: []uint64{6}}
	for i, b := range []*window{nil, {size: 3}, a.afterUse(2, true), a.afterUse(1, false),
		a.afterMaybe(5),
		a.afterRestart()} {
		if a.equal(b) || b.equal(a) {
			t.Error(fmt.Sprint(i), " is the same")
		}
	}
	if b := *a; !a.equal(&b) || !(*window)(nil).equal(nil) {
		t.Error("the same is another")
	}
}
