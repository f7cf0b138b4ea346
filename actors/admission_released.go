package actors

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"exchange/core/event"
)

// Admit stamps and admits all commands of one account's list, or none. It sends nothing.
func (e *Engine) Admit(list []*Command) error {
	for _, c := range list {
		e.stamp(c)
	}
	return e.CountRefusal(e.admit(list))
}

// admit admits all commands of one account's list, or none. Another node may have shown their
// client records that this node has yet to release. It first waits for those, so that the commands
// may depend on them.
func (e *Engine) admit(list []*Command) error {
	if list[0].kind == event.KindWithdrawal && e.mailer == nil {
		return ErrNoMail
	}
	if !e.HasReleased() {
		err := e.checkList(list)
		if err == nil {
			err = e.awaitReleased()
		}
		if err != nil {
			return err
		}
	}
	return e.takeSlotsOrLower(list)
}

// HasReleased reports whether this engine has released everything that another node may have shown.
func (e *Engine) HasReleased() bool {
	if e.cluster == nil {
		return true
	}
	end, all := e.cluster.Replica.Known()
	return all && e.committed.Released() >= end
}

// awaitReleased waits, usually for a moment, until everything committed at the call is released.
func (e *Engine) awaitReleased() error {
	end, all := e.cluster.Replica.Known()
	runtime.Gosched()
	retry := time.NewTicker(time.Millisecond)
	defer retry.Stop()
	for until := time.Now().Add(e.opts.Timing.OwnerStale); ; {
		next := e.releaseSignal.wait()
		if !all {
			end, all = e.cluster.Replica.Known()
		}
		if all && e.committed.Released() >= end {
			return nil
		}
		select {
		case <-next:
		case now := <-retry.C: // raft may have applied entries that no release follows
			if now.After(until) {
				return ErrNotConfirmed
			}
		case <-e.Dead():
			return ErrStopping
		}
	}
}

// releaseSignal wakes the commands that wait for a release. The journal's writer calls notify.
type releaseSignal struct {
	waiting atomic.Bool
	mu      sync.Mutex
	next    chan struct{} // closed by the next release; nil: no waiter; guarded by mu
}

// wait returns a channel that the next release closes.
func (r *releaseSignal) wait() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = make(chan struct{})
		r.waiting.Store(true)
	}
	return r.next
}

func (r *releaseSignal) notify() {
	if !r.waiting.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.next)
	r.next = nil
	r.waiting.Store(false)
}
