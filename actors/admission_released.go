package actors

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"exchange/core/event"
)

// Admit lets commands of one account in, or none. What is admitted goes to their wallet.
func (e *Engine) Admit(list []*Command) error {
	for _, c := range list {
		e.stamp(c)
	}
	return e.TurnAway(e.admit(list))
}

// admit lets commands of one account in, or none, once this engine has released all that another
// node may have shown to their client: what was seen there can be used here.
func (e *Engine) admit(list []*Command) error {
	if list[0].kind == event.KindWithdrawal && e.mailer == nil {
		return ErrNoMail
	}
	if !e.HasReleased() {
		err := e.takes(list)
		if err == nil {
			err = e.awaitReleased()
		}
		if err != nil {
			return err
		}
	}
	return e.takeSlotsOrLower(list)
}

// HasReleased reports whether no other node can have more than this engine has released.
func (e *Engine) HasReleased() bool {
	if e.cluster == nil {
		return true
	}
	end, all := e.cluster.Replica.Known()
	return all && e.committed.Released() >= end
}

// awaitReleased waits until all is released that is committed now. The journal's writer mostly
// needs but a moment.
func (e *Engine) awaitReleased() error {
	end, all := e.cluster.Replica.Known()
	runtime.Gosched()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for until := time.Now().Add(e.opts.Timing.OwnerStale); ; {
		next := e.releases.wait()
		if !all {
			end, all = e.cluster.Replica.Known()
		}
		if all && e.committed.Released() >= end {
			return nil
		}
		select {
		case <-next:
		case now := <-again.C: // raft may have applied what no release follows
			if now.After(until) {
				return ErrNotConfirmed
			}
		case <-e.Dead():
			return ErrStopping
		}
	}
}

// releases tell the commands that wait for a release of it. The journal's writer calls told.
type releases struct {
	waiting atomic.Bool
	mu      sync.Mutex
	next    chan struct{} // closed by the next release; nil: no command waits; guarded by mu
}

// wait returns a channel that the next release closes.
func (r *releases) wait() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = make(chan struct{})
		r.waiting.Store(true)
	}
	return r.next
}

func (r *releases) told() {
	if !r.waiting.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.next)
	r.next = nil
	r.waiting.Store(false)
}
