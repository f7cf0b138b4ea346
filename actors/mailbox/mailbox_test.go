package mailbox

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// note is a message that is urgent if its number is negative.
type note int

const urgentAtOnce = 64

func (n note) Urgent() bool { return n < 0 }

// diary is an actor that records its notes.
type diary struct {
	notes []note
	full  sync.WaitGroup
	stuck chan struct{} // waits for its close before the first note
}

func (d *diary) Receive(ctx actor.Context) {
	if n, ok := ctx.Message().(note); ok {
		if len(d.notes) == 0 {
			<-d.stuck
		}
		d.notes = append(d.notes, n)
		d.full.Done()
	}
}

type noGuard struct{}

func (noGuard) Panicked(*Mailbox, any, any) {}

func TestUrgentMessagesComeFirstAndBothClassesKeepTheirOrder(t *testing.T) {
	sent := []note{1, 2, -1, 3, -2, -3, 4}
	for _, c := range []struct {
		atOnce int
		want   []note
	}{
		{0, sent},
		// the first is already in flight
		{urgentAtOnce, []note{1, -1, -2, -3, 2, 3, 4}},
	} {
		d := &diary{stuck: make(chan struct{})}
		system := actor.NewActorSystem()
		spawner := NewSpawner(system.Root, 0,
			&Host{Scheduler: Runners{}, Guard: noGuard{}, UrgentAtOnce: c.atOnce})
		pid, err := spawner.Spawn("diary", d)
		if err != nil {
			t.Fatal(err)
		}
		d.full.Add(len(sent))
		for i, n := range sent {
			system.Root.Send(pid, n)
			for i == 0 && spawner.Newest().UserMessageCount() > 0 {
				runtime.Gosched() // until the first has left the mailbox
			}
		}
		if got, want := spawner.Newest().UserMessageCount(), len(sent)-1; got != want {
			t.Errorf("%d messages wait, want %d", got, want)
		}
		close(d.stuck)
		d.full.Wait()
		if !slices.Equal(d.notes, c.want) {
			t.Errorf("%d urgent ones at once: the order is %v, want %v", c.atOnce, d.notes, c.want)
		}
	}
}

// relay is an actor's side of a manually run mailbox. It answers each urgent message with another
// one.
type relay struct {
	mailbox *Mailbox
	notes   []note
}

func (r *relay) InvokeSystemMessage(any)  {}
func (r *relay) EscalateFailure(_, _ any) {}
func (r *relay) InvokeUserMessage(message any) {
	n := message.(note)
	if r.notes = append(r.notes, n); n < 0 {
		r.mailbox.PostUserMessage(n - 1)
	}
}

// Urgent messages never starve the others.
func TestAnOrdinaryMessageWaitsForABoundedNumberOfUrgentOnes(t *testing.T) {
	m := New(0, &Host{Scheduler: Runners{}, Guard: noGuard{}, UrgentAtOnce: urgentAtOnce})
	r := &relay{mailbox: m} // it is not started, so only this goroutine runs it
	m.RegisterHandlers(r, nil)
	for _, n := range []note{-1, 1, 2} {
		m.PostUserMessage(n)
	}
	m.Turn(3 * urgentAtOnce)
	if first, second := slices.Index(r.notes, 1), slices.Index(r.notes, 2); first !=
		urgentAtOnce+1 || second != 2*urgentAtOnce+2 { // one was sent before the poll
		t.Errorf("the ordinary messages come %d. and %d.", first, second)
	}
}

// A client that observed an effect finds it, however many urgent messages came before.
func TestAnOrdinaryMessageOvertakesNoUrgentOneThatWasSentBefore(t *testing.T) {
	s := new(silent)
	m := New(0, &Host{Scheduler: Runners{}, Guard: noGuard{}, UrgentAtOnce: urgentAtOnce})
	m.RegisterHandlers(s, nil)
	for sent := range 3 * urgentAtOnce {
		for range sent {
			m.PostUserMessage(note(-1))
		}
		m.PostUserMessage(note(1))
		for last := note(0); last != 1; last = s.last {
			m.Turn(1)
		}
		if s.handled != sent+1 {
			t.Fatalf("the message after %d urgent ones is number %d", sent, s.handled)
		}
		s.handled, s.last = 0, 0
	}
}

// silent is an actor's side of a manually run mailbox.
type silent struct {
	handled int
	last    note
}

func (s *silent) InvokeSystemMessage(any)     {}
func (s *silent) InvokeUserMessage(n any)     { s.handled, s.last = s.handled+1, n.(note) }
func (s *silent) EscalateFailure(_, _ any)    {}
func (s *silent) room(m *Mailbox) (slots int) { return cap(m.in) + cap(m.spare) + cap(m.rest) }

// There may be a million wallets, and each may have had a burst.
func TestAMailboxDoesNotKeepTheMemoryOfABurst(t *testing.T) {
	for initial, want := range map[int]int{0: 2 * keepLeast, 16: 2 * keepTimes * 16} {
		s := new(silent)
		m := New(initial, &Host{Guard: noGuard{}})
		m.RegisterHandlers(s, nil)
		burst := 10 * want
		for range 2 { // both slices have been that long
			for i := range burst {
				m.PostUserMessage(note(i))
			}
			for m.Turn(turnMessages) {
			}
		}
		if s.handled != 2*burst {
			t.Fatalf("%d messages of %d were handled", s.handled, 2*burst)
		}
		if got := s.room(m); got > want {
			t.Errorf("with room for %d at first it keeps room for %d, want %d at most", initial,
				got, want)
		}
	}
}
