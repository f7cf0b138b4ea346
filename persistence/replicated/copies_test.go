package replicated

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/codec"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
	"exchange/persistence/memory"
)

// A copier copies stores in memory: a copy is a sequence, an image and a digest.
type copier struct {
	c     *nodes
	i     int
	newer *memory.Disk
	// step is called at each step, and may fail it
	step   func(what string) error
	spoils atomic.Bool // the next copy is damaged in flight
	old    atomic.Bool // the next undamaged copy is of the first sequence
	// asked is called at the source with the least sequence; may be nil
	asked func(ctx context.Context, least uint64) error
}

func (k *copier) Write(ctx context.Context, local persistence.Store, least uint64,
	w io.Writer) error {
	if k.asked != nil {
		if err := k.asked(ctx, least); err != nil {
			return err
		}
	}
	seq, r, err := local.LoadSnapshot(ctx, 0)
	if err != nil {
		return err
	}
	image, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	spoils := k.spoils.CompareAndSwap(true, false)
	if !spoils && k.old.CompareAndSwap(true, false) {
		seq = 1
	}
	b := append(binary.BigEndian.AppendUint64(nil, seq), image...)
	b = binary.BigEndian.AppendUint64(b, codec.Digest(b))
	if spoils {
		b[9]++
	}
	_, err = w.Write(b)
	return err
}

func (k *copier) Fill(ctx context.Context, r io.Reader) (uint64, error) {
	if err := k.step("fill"); err != nil {
		return 0, err
	}
	b, err := io.ReadAll(r)
	if err != nil || len(b) < 16 {
		return 0, errors.Join(err, io.ErrUnexpectedEOF)
	}
	at := len(b) - 8
	if codec.Digest(b[:at]) != binary.BigEndian.Uint64(b[at:]) {
		k.step("refused") //nolint:errcheck // only recorded
		return 0, errors.New("a wrong digest")
	}
	seq := binary.BigEndian.Uint64(b)
	k.newer = memory.NewDisk()
	s := memory.Open(k.newer, persistence.Retention{})
	tok, _, err := s.Acquire(ctx, persistence.Claim{Owner: "a copy"})
	if err == nil {
		err = s.Begin(ctx, tok, seq)
	}
	if err == nil {
		err = s.Apply(ctx, tok, 0, seq, nil)
	}
	if err == nil {
		err = s.SaveSnapshot(ctx, tok, seq, bytes.NewReader(b[8:at]))
	}
	return seq, errors.Join(err, s.Close(), k.step("filled"))
}

func (k *copier) Swap(_ context.Context, local persistence.Store) (persistence.Store, error) {
	if err := local.Close(); err != nil {
		return nil, err
	}
	k.c.disks[k.i] = k.newer
	s := memory.Open(k.newer, persistence.Retention{})
	if err := k.step("swapped"); err != nil {
		return s, err
	}
	return s, nil
}

// noFailure is the step of a copy that succeeds.
func noFailure(string) error { return nil }

// forgetful are three nodes that have trimmed the beginning of their journal.
type forgetful struct {
	*nodes
	led *replica
	tok persistence.Token
	seq uint64 // of the journal's end

	copiers []*copier
}

const enough = trimEntries + 200

func newForgetful(t *testing.T) *forgetful {
	f := &forgetful{nodes: newNodes(t)}
	f.change = map[int]func(*Options){}
	for i := range voters {
		f.copies(i, noFailure)
	}
	f.all(0, 1, 2)
	i, tok := f.own()
	f.led, f.tok = f.stores[i].(*replica), tok
	f.append(enough)
	for _, s := range f.stores {
		if _, err := s.Follow(t.Context(), f.seq-1); err != nil {
			t.Fatal(err)
		}
		f.save(s, f.seq-10)
		f.save(s, f.seq-5)
		must(t, s.Trim(t.Context(), s.Own(), f.seq-10))
	}
	f.until("the journal's beginning is trimmed", func() bool {
		must(t, f.led.Trim(t.Context(), tok, f.seq-10))
		begins := uint64(0)
		must(t, f.led.onNode(t.Context(), func(n *node) { begins = n.trim.droppedTo }))
		return begins > 0
	})
	return f
}

// copies lets a node write and install copies.
func (f *forgetful) copies(i int, step func(string) error) {
	k := &copier{c: f.nodes, i: i, step: step}
	f.copiers = append(f.copiers, k)
	f.change[i] = func(o *Options) { o.Copies = k }
}

func (f *forgetful) append(n int) {
	f.Helper()
	for range n {
		must(f.T, f.led.Append(f.Context(), f.tok, f.seq, f.seq+1,
			fmt.Append(nil, "batch ", f.seq+1)))
		f.seq++
	}
}

// save makes an image of a node.
func (f *forgetful) save(s persistence.Replica, seq uint64) {
	f.Helper()
	w, err := s.Watermark(f.Context())
	must(f.T, err)
	must(f.T, s.Apply(f.Context(), s.Own(), w, seq, nil))
	must(f.T, s.SaveSnapshot(f.Context(), s.Own(), seq,
		strings.NewReader(fmt.Sprint("image ", seq))))
}

func (f *forgetful) until(what string, is func() bool) {
	f.Helper()
	for ticks := 0; !is(); ticks++ {
		if ticks > 1000 {
			f.Fatal("it did not happen: ", what)
		}
		time.Sleep(usualTick)
	}
}

// fourth adds a fourth node, which is then awaited.
func (f *forgetful) fourth() {
	f.Helper()
	must(f.T, f.led.Add(f.Context(), "n4", f.add()))
}

// joined checks that the fourth node has a copy, and the journal after it.
func (f *forgetful) joined() {
	f.Helper()
	ctx, s := f.Context(), f.stores[3]
	if _, err := s.Follow(ctx, f.seq-1); err != nil {
		f.Fatal(err)
	}
	seq, r, err := s.LoadSnapshot(ctx, 0)
	must(f.T, err)
	image, err := io.ReadAll(r)
	must(f.T, err)
	watermark, err := s.Watermark(ctx)
	must(f.T, err)
	if string(image) != fmt.Sprint("image ", seq) || watermark != seq {
		f.Errorf("its image is %q, of %d; its projections are at %d", image, seq, watermark)
	}
	must(f.T, s.Read(ctx, seq, func(prev, next uint64, batch []byte) error {
		if prev != seq || string(batch) != fmt.Sprint("batch ", next) {
			f.Errorf("(%d, %d] is %q, after %d", prev, next, batch, seq)
		}
		seq = next
		return nil
	}))
	if seq != f.seq {
		f.Errorf("its journal ends at %d of %d", seq, f.seq)
	}
	if there, err := f.files[3].Stat("data/" + copyFile); err == nil {
		f.Errorf("%v is there", there)
	}
}

// A node joins a cluster that has trimmed the journal's beginning, under load. It is killed at each
// step of the copy: it has no log before its store is complete, and begins again. At last it is a
// voter.
func TestANodeJoinsAfterTheJournalWasTrimmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForgetful(t)
		for what, err := range map[string]error{
			"no address": f.led.Replace(t.Context(), "n1", "n4", ""),
			"a name":     f.led.Add(t.Context(), "N4", addressAt(4)),
			"no voter":   f.led.Replace(t.Context(), "", "n4", addressAt(4)),
			"unknown":    f.led.Remove(t.Context(), "n9"),
			"a voter":    f.led.Promote(t.Context(), "n1"),
		} {
			if !errors.Is(err, persistence.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		f.fourth()
		stop, load := make(chan struct{}), sync.WaitGroup{}
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f.append(1)
					time.Sleep(time.Millisecond)
				}
			}
		})
		for _, kill := range []string{"fill", "filled", "swapped"} {
			ctx, end := context.WithCancel(t.Context())
			f.copies(3, func(what string) error {
				if what == kill {
					end()
					return errors.New("killed")
				}
				return nil
			})
			if _, err := f.open(ctx, 3, f.change[3]); err == nil {
				t.Fatalf("it has joined, and was killed at %q", kill)
			}
			if there, err := raftlog.Formed(f.files[3], "data/"+logFolder); err != nil || there {
				t.Fatalf("killed at %q it has a log: %v", kill, err)
			}
			end()
		}
		f.copies(3, noFailure)
		f.all(3)
		close(stop)
		load.Wait()
		f.joined()
		f.until("it is a voter", func() bool { return f.led.Promote(t.Context(), "n4") == nil })

		// a crash between the log and the mark's end
		must(t, f.stores[3].Close())
		w := &startup{Options: Options{files: f.files[3], Folder: "data"}}
		must(t, w.setCopyMark())
		f.all(3)
		f.append(1)
		f.joined()
	})
}

// A source without a recent enough copy says so at once, and nothing is filled. A copy that was
// damaged in flight, or that the others have trimmed past, is refused, and requested again.
func TestAStaleCopyIsRequestedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForgetful(t)
		f.fourth()
		var asked atomic.Int64
		for _, k := range f.copiers {
			k.spoils.Store(true)
			k.old.Store(true) // after that
			k.asked = func(_ context.Context, least uint64) error {
				if least == 0 || least > f.seq-10 {
					t.Errorf("a copy of sequence %d or more is requested, and the journal up to "+
						"%d may be trimmed", least, f.seq-10)
				}
				if asked.Add(1) < 3 {
					return errors.New("all are older")
				}
				return nil
			}
		}
		steps := map[string]int{}
		f.copies(3, func(what string) error { steps[what]++; return nil })
		f.all(3)
		f.joined()
		if steps["fill"] != int(asked.Load())-2 || steps["refused"] == 0 || steps["filled"] < 2 {
			t.Errorf("%d copies are requested: %v", asked.Load(), steps)
		}
	})
}

// The log kept for a member that is down is bounded. The member is notified, still votes, and must
// be replaced.
func TestALogIsKeptForAMemberOnlyWithinItsBound(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	tok := w.own(s, 1).Token
	c := w.nodes[2]
	c.crash()
	for i := range uint64(60) {
		answer := s.ask(appendOf(tok, i, strings.Repeat("x", 10<<10)))
		w.settle()
		must(t, mustAnswer(t, answer).err)
	}
	trim := func() uint64 {
		answer := s.ask(&machine.Entry{Kind: machine.Trim, Token: tok, Next: 55})
		w.settle()
		must(t, mustAnswer(t, answer).err)
		return s.node.machine.Floor()
	}
	before := trim()
	if before >= 30 {
		t.Fatalf("without a bound the floor is %d", before)
	}
	s.node.logMax = s.node.log.Size() / 2
	floor := trim()
	if floor <= before || floor >= s.node.applied {
		t.Errorf("the floor is %d, and was %d, of %d entries", floor, before, s.node.applied)
	}
	c.start()
	s.node.trim.allowedSeq = 55
	w.pass(5)
	if begins := s.node.trim.droppedTo; begins <= c.node.applied {
		t.Fatalf("the log begins after %d, and the member has %d", begins, c.node.applied)
	}
	refused(t, s.change(machine.Remove, "b", ""), "can catch up: that is no majority")
	var lines bytes.Buffer
	c.node.logger = slog.New(slog.NewTextHandler(&lines, nil))
	s = w.nodes[0]
	says := func(first uint64) {
		must(t, c.node.receive("a", s.forged(frameBehind,
			binary.BigEndian.AppendUint64(nil, first))))
	}
	says(1)
	if lines.Len() > 0 {
		t.Errorf("it has all, and says %s", lines.String())
	}
	says(floor)
	if !strings.Contains(lines.String(), "exchange cluster replace") {
		t.Errorf("it lacks entries, and says %q", lines.String())
	}
	if !c.node.isVoter() {
		t.Error("it no longer votes")
	}
}

// The log is kept from a learner's beginning, which is no higher than the owner's trim.
func TestALogIsKeptForALearner(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	tok := w.own(s, 1).Token
	add := func(from, to uint64) {
		for i := from; i < to; i++ {
			answer := s.ask(appendOf(tok, i, "batch"))
			w.settle()
			must(t, mustAnswer(t, answer).err)
		}
	}
	trim := func(seq uint64) uint64 {
		w.pass(2)
		answer := s.ask(&machine.Entry{Kind: machine.Trim, Token: tok, Next: seq})
		w.settle()
		must(t, mustAnswer(t, answer).err)
		return s.node.machine.Floor()
	}
	add(0, 20)
	begins := trim(10)
	if want := s.node.index.upTo(10); begins != want {
		t.Errorf("the floor is %d, and sequence 10 ends at %d", begins, want)
	}
	must(t, s.change(machine.Add, "d", ""))
	w.nodes[3].start()
	w.pass(2)
	w.cut[0][3] = true // the learner gets no more frames
	add(20, 40)
	if floor := trim(30); len(s.node.peers) != 4 || floor > w.nodes[3].node.applied {
		t.Errorf("the floor is %d, and a learner begins after %d", floor, begins)
	}
}

// A node may join so slowly that the log is trimmed beyond the entry that raft tries first. Its own
// log begins above that entry, and it gets the rest.
func TestALearnerWhoseLogBeginsLaterGetsTheRest(t *testing.T) {
	w := newWorld(t, 1)
	s := w.lead(0)
	tok := w.own(s, 1).Token
	seq := uint64(0)
	add := func(n int) {
		for range n {
			answer := s.ask(appendOf(tok, seq, strings.Repeat("x", 10<<10)))
			w.settle()
			must(t, mustAnswer(t, answer).err)
			seq++
		}
	}
	add(10)
	must(t, s.change(machine.Add, "d", ""))
	d := w.nodes[3]
	w.cut[0][3] = true // no offer comes
	d.start()
	w.pass(3)
	joined := s.node.applied
	add(60)
	s.node.logMax, s.node.trim.allowedSeq = s.node.log.Size()/2, seq
	answer := s.ask(&machine.Entry{Kind: machine.Trim, Token: tok, Next: seq})
	w.settle()
	must(t, mustAnswer(t, answer).err)
	w.pass(5)
	if begins := s.node.trim.droppedTo; begins <= joined {
		t.Fatalf("the log begins after %d, and the node has joined at %d", begins, joined)
	}
	w.cut[0][3] = false
	w.pass(2 * logTicks)
	if d.node == nil || d.node.applied != s.node.applied {
		t.Fatal("the learner does not get the entries after its log")
	}
	must(t, s.change(machine.Promote, "d", ""))
}

// A node whose disk was replaced is removed while it waits for its copy. It ends.
func TestANodeRemovedDuringItsCopyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForgetful(t)
		i := slices.IndexFunc(f.stores, func(s persistence.Replica) bool { return s != f.led })
		name := f.list[i].Name
		must(t, f.stores[i].Close())
		f.files[i], f.disks[i] = vfs.NewMem(), memory.NewDisk()
		change := func(what func(persistence.Replica) error) {
			f.until("the members are changed", func() bool {
				for k, s := range f.stores {
					if k != i && what(s) == nil {
						return true
					}
				}
				return false
			})
		}
		change(func(s persistence.Replica) error { // once it counts as gone
			return s.Replace(t.Context(), name, name, f.list[i].Address)
		})
		asked := make(chan struct{}, 1)
		for _, k := range f.copiers {
			k.asked = func(ctx context.Context, _ uint64) error {
				select {
				case asked <- struct{}{}:
				default:
				}
				<-ctx.Done() // the copy never begins
				return ctx.Err()
			}
		}
		f.copies(i, noFailure)
		ended := make(chan error, 1)
		go func() {
			_, err := f.open(t.Context(), i, f.change[i])
			ended <- err
		}()
		select {
		case <-asked:
		case err := <-ended:
			t.Fatal(err)
		}
		change(func(s persistence.Replica) error { return s.Remove(t.Context(), name) })
		select {
		case err := <-ended:
			if !errors.Is(err, persistence.ErrRemoved) {
				t.Errorf("it ends with %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("it still waits for a copy")
		}
	})
}

// A deposed leader may still refuse a joining node. Refusals count only if they last longer than a
// deposed leader continues, and if another node refuses, too.
func TestFewRefusalsRemoveNoNode(t *testing.T) {
	names := []string{"a", "b", "c"}
	f := newFormation(cluster, names, "a", "own", stageEmpty, func(string, []byte) {}, quiet)
	f.offer = &offer{id: 7}
	says := func(from string, leads, awaited bool, times int) (by string) {
		for range times {
			f.receive(from, say(t, formingMessage{Cluster: cluster, Names: names,
				Stage: stageActive, Echo: "own", Leads: leads, Awaited: awaited}))
		}
		return f.removedBy()
	}
	for _, by := range []string{
		says("c", false, false, refusalsNeeded),                              // it does not lead
		says("b", true, false, refusalsNeeded-1), says("b", false, false, 1), // it no longer leads
		says("b", true, false, refusalsNeeded-2), says("b", true, true, 1), // it awaits it now
		says("c", false, true, 1), says("b", true, false, 2*refusalsNeeded), // another awaits it
	} {
		if by != "" {
			t.Errorf("node %s has removed it", by)
		}
	}
	if by := says("c", false, false, 1); by != "b" {
		t.Errorf("it is removed by %q", by)
	}
	for _, c := range []struct {
		id     uint64
		by     []string
		counts bool
	}{{6, []string{"b", "c"}, false}, {7, []string{"c", "c"}, false},
		{7, []string{"b", "c"}, true}} {
		f.refusals = map[string]int{}
		for _, from := range c.by {
			removed := frame{kind: frameRemoved}
			f.receive(from, binary.BigEndian.AppendUint64(removed.begin(), c.id))
		}
		if by := f.removedBy(); (by != "") != c.counts {
			t.Errorf("%v say that ID %d was removed, and that of the node is 7: %q", c.by, c.id, by)
		}
	}
}
