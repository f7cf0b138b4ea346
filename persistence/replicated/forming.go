package replicated

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"exchange/persistence"
	"exchange/persistence/internal/machine"
	"exchange/persistence/internal/raftlog"
)

// ErrFolder: to try again is no use, because the folder cannot become the node's.
var ErrFolder = errors.New("the folder does not fit the configuration")

// errReplaced: a folder without a log, and a cluster that has begun.
var errReplaced = errors.New("this node's folder has no log, and the cluster has begun: its disk " +
	"was replaced or emptied, or the folder is a wrong one; what this node has acknowledged is " +
	"gone, so it must not vote: bring the folder back, or " +
	"replace this node by itself: exchange cluster replace NODE NODE=HOST:PORT")

// A stage is how far a node has come on the way into its cluster.
type stage uint8

const (
	empty  stage = iota + 1 // its folder has no log
	formed                  // it has a log, in which nothing ever was, and no vote
	begun                   // it takes part, or has done so
)

// A former lets the nodes of a new cluster wait for each other. A node makes its log once it knows
// that each other one has none, or has one that was made at this very forming. It takes part once
// it knows that each has one. So a node without a log finds a node that takes part only if its own
// log is gone: it is refused, once two nodes say so, and never votes.
//
// What a node says counts if it is an answer to this start, because an earlier word may be older
// than the loss of a log. The former has no clock, goroutine or network, like a node.
type former struct {
	cluster string
	names   []string // of all nodes, sorted
	own     string   // this node's name
	nonce   string   // of this start
	stage   stage
	reads   uint8 // newest format that this program reads
	send    func(to string, frame []byte)
	logger  *slog.Logger

	nonces map[string]string // newest of each peer
	heard  map[string]word   // newest of each peer that answers this start
	offer  *offer            // nil: none has come for this start

	// words in a row by which a node that takes part does not let this one join; of one that does
	// not lead they count as one
	unwanted map[string]int
}

// manyWords are said in more time than a node believes that it leads when no other one hears it.
// Such a node may not know of the change that lets this one join.
const manyWords = 3 * electionTicks

// A word is what one node says of itself to another.
type word struct {
	Cluster string   `json:"cluster"`
	Names   []string `json:"names"`
	Stage   stage    `json:"stage"`
	Nonce   string   `json:"nonce"` // of the start that says it
	Echo    string   `json:"echo"`  // the nonce of the receiver that the sender has seen last
	// Of a node that takes part: whether it leads, and whether the receiver may join.
	Leads   bool `json:"leads,omitempty"`
	Awaited bool `json:"awaited,omitempty"`
	// Reads is the newest format that the sender's program reads, Format the applied one.
	Reads  uint8 `json:"reads"`
	Format uint8 `json:"format,omitempty"`
}

// maxWord is how many bytes a word may have.
const maxWord = 2 << 10

func newFormer(cluster string, names []string, own, nonce string, at stage,
	send func(to string, frame []byte), logger *slog.Logger) *former {
	return &former{cluster: cluster, names: names, own: own, nonce: nonce, stage: at, send: send,
		reads: machine.Newest, logger: logger, nonces: map[string]string{},
		heard: map[string]word{}, unwanted: map[string]int{}}
}

// form makes the log of this node: with what it was offered, or as one of a new cluster.
func (f *former) form(files vfs.FS, dir string) error {
	if o := f.offer; o != nil {
		d := raftlog.Identity{Cluster: f.cluster, Name: f.own, Node: o.id}
		return raftlog.Form(files, dir, d, o.base)
	}
	state := machine.Formed(f.names)
	d := raftlog.Identity{Cluster: f.cluster, Name: f.own}
	for _, m := range state.Members() {
		if m.Name == f.own {
			d.Node = m.ID
		}
	}
	return raftlog.Form(files, dir, d, raftlog.Base{Machine: state.Encode()})
}

// tick says to all others how far this node is.
func (f *former) tick() {
	for _, to := range f.names {
		if to != f.own {
			f.say(to)
		}
	}
}

func (f *former) say(to string) { f.reply(to, word{}) }

// reply says a word, into which it puts what each word has.
func (f *former) reply(to string, w word) {
	w.Cluster, w.Names, w.Stage, w.Reads = f.cluster, f.names, f.stage, f.reads
	w.Nonce, w.Echo = f.nonce, f.nonces[to]
	text, err := json.Marshal(w)
	if err != nil {
		f.logger.Error("BUG: a word cannot be encoded", "error", err)
		return
	}
	b := frame{kind: frameForming}
	f.send(to, append(b.begin(), text...))
}

// receive takes a frame of a peer; one that is no word and no offer is dropped.
func (f *former) receive(from string, b []byte) {
	frame, err := parseFrame(b)
	if err == nil && frame.kind == frameOffer && f.stage == empty {
		o, err := parseOffer(frame.payload, f.reads)
		if err == nil && o.nonce == f.nonce && !f.has(o) {
			f.offer = o
		}
		return
	}
	if err == nil && frame.kind == frameRemoved && f.offer != nil &&
		frame.names(f.offer.id) {
		f.unwanted[from] = manyWords // it counts at once: no ID is given twice
		return
	}
	if err != nil || frame.kind != frameForming || len(frame.payload) > maxWord || from == f.own ||
		!slices.Contains(f.names, from) {
		return
	}
	var w word
	if err := json.Unmarshal(frame.payload, &w); err != nil || len(w.Nonce) > maxNonce {
		f.logger.Warn("a word is dropped", "node", from, "error", err)
		return
	}
	f.nonces[from] = w.Nonce
	if w.Echo == f.nonce {
		f.heard[from] = w
		f.count(from, w)
	}
}

// count counts the words of unwanted.
func (f *former) count(from string, w word) {
	switch {
	case w.Stage != begun || w.Awaited:
		delete(f.unwanted, from)
	case w.Leads:
		f.unwanted[from]++
	default:
		f.unwanted[from] = 1
	}
}

// enough is how many nodes must say what would end this one: it believes no node alone, unless
// there is no other one.
func (f *former) enough() int { return min(2, len(f.names)-1) }

// removedBy returns the node by whose words this one, which was to join, is a member no more; "":
// there is none, or no other one says the same.
func (f *former) removedBy() (by string) {
	for name, words := range f.unwanted {
		if words >= manyWords {
			by = max(by, name)
		}
	}
	if len(f.unwanted) < f.enough() {
		return ""
	}
	return by
}

// refusal returns why the nodes of a cluster that has begun do not take this one, which has no log;
// nil: they do, or too few have said so.
func (f *former) refusal() error {
	without, newer := 0, 0
	var leads, has string
	for name, w := range f.heard {
		if w.Cluster != f.cluster || w.Stage != begun {
			continue
		}
		if !w.Awaited {
			without++
		}
		if !w.Awaited && w.Leads {
			leads = name
		}
		if w.Format > f.reads {
			newer++
			has = name
		}
	}
	switch {
	case f.stage != empty:
	case without >= f.enough() && leads != "":
		return fmt.Errorf("%w (node %s)", errReplaced, leads)
	case newer >= f.enough() && has != "":
		return fmt.Errorf("%w: format %d is applied at node %s, and this program reads formats up "+
			"to %d", persistence.ErrFormat, f.heard[has].Format, has, f.reads)
	}
	return nil
}

// has reports whether an offer is no newer than what this node has: a node that leads no more may
// send one late.
func (f *former) has(o *offer) bool {
	have := f.offer
	return have != nil && (o.id < have.id || o.id == have.id && o.base.Index <= have.base.Index)
}

// next reports whether this node may go on to the next stage. why says what it waits for.
func (f *former) next() (may bool, why string, err error) {
	if f.offer != nil && f.stage == empty {
		return true, "", nil
	}
	if err := f.refusal(); err != nil {
		return false, "", err
	}
	may = true
	var lacks []string
	for _, name := range f.names {
		if name == f.own {
			continue
		}
		w, heard := f.heard[name]
		switch {
		case !heard:
			may, lacks = false, append(lacks, name+" (not heard of)")
		case w.Cluster != f.cluster || w.Stage != begun && !slices.Equal(w.Names, f.names):
			may, lacks = false, append(lacks, fmt.Sprintf("%s (it names the nodes %.200q of "+
				"cluster %.64q)", name, w.Names, w.Cluster))
		case w.Stage == begun && f.stage == empty && w.Leads && !w.Awaited:
			may, lacks = false, append(lacks, name+" (the cluster has begun, and this "+
				"one leads it and does not await the node: if it is right, exchange cluster add "+
				"NODE=HOST:PORT)")
		case w.Stage == begun && f.stage == empty:
			may, lacks = false, append(lacks, name+" (the cluster has begun: this node waits for "+
				"the one that leads)")
		case w.Stage == begun:
			return true, "", nil // each node has had its log before any took part
		case w.Stage != formed && f.stage == formed:
			may, lacks = false, append(lacks, name+" (it has no log yet)")
		}
	}
	return may, strings.Join(lacks, ", "), nil
}

// check refuses a log that is not of the node and the cluster that the configuration names.
func (f *former) check(d raftlog.Identity) error {
	if d.Cluster == f.cluster && d.Name == f.own {
		return nil
	}
	return fmt.Errorf("%w: it is that of node %s of cluster %s; the configuration says node "+
		"%s of cluster %s: names never change, addresses may", ErrFolder, d.Name, d.Cluster,
		f.own, f.cluster)
}
