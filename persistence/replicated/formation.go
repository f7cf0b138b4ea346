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

// ErrFolder: a retry is useless, because the folder cannot become the node's.
var ErrFolder = errors.New("the folder does not fit the configuration")

// errReplaced: the folder has no log, and the cluster has begun.
var errReplaced = errors.New("this node's folder has no log, and the cluster has begun: its disk " +
	"was replaced or emptied, or the folder is the wrong one; what this node has acknowledged is " +
	"gone, so it must not vote: bring the folder back, or " +
	"replace this node by itself: exchange cluster replace NODE NODE=HOST:PORT")

// A stage is a node's progress towards taking part in its cluster.
type stage uint8

const (
	stageEmpty  stage = iota + 1 // the folder has no log
	stageFormed                  // the log has never held an entry or a vote
	stageActive                  // the node takes part, or has done so
)

// A formation lets the nodes of a new cluster wait for each other. A node creates its log once each
// other node has reported that it has no log, or a log of this formation. It takes part once each
// has reported a log. So a node without a log meets a member only if its own log is lost: once two
// members say so, it is refused, and never votes.
//
// A message counts only if it echoes the nonce of this start, because an earlier one may predate
// the loss of a log. Like a node, a formation has no clock, goroutine or network.
type formation struct {
	cluster   string
	names     []string // of all nodes, sorted
	name      string   // this node's name
	nonce     string   // of this start
	stage     stage
	maxFormat uint8 // newest format that this program reads
	send      func(to string, frame []byte)
	logger    *slog.Logger

	nonces   map[string]string         // newest of each peer's starts
	messages map[string]formingMessage // newest message of each peer that echoes this start
	offer    *offer                    // nil: none received for this start

	// consecutive refusals of each member to let this node join; of a follower they count as one
	refusals map[string]int
}

// refusalsNeeded is how many refusals of one leader remove this node. They take longer than a
// cut-off node continues to lead, which may lack the change that lets this one join.
const refusalsNeeded = 3 * electionTicks

// A formingMessage is a node's report of its own state to another.
type formingMessage struct {
	Cluster string   `json:"cluster"`
	Names   []string `json:"names"`
	Stage   stage    `json:"stage"`
	Nonce   string   `json:"nonce"` // of the sender's start
	Echo    string   `json:"echo"`  // newest nonce that the sender has received from the receiver
	// of a member: whether it leads, and whether the receiver may join
	Leads   bool `json:"leads,omitempty"`
	Awaited bool `json:"awaited,omitempty"`
	// MaxFormat is the newest format that the sender's program reads, Format the applied one.
	MaxFormat uint8 `json:"reads"`
	Format    uint8 `json:"format,omitempty"`
}

// maxFormingBytes bounds an encoded formingMessage.
const maxFormingBytes = 2 << 10

func newFormation(cluster string, names []string, own, nonce string, at stage,
	send func(to string, frame []byte), logger *slog.Logger) *formation {
	return &formation{cluster: cluster, names: names, name: own, nonce: nonce, stage: at,
		send: send, maxFormat: machine.Newest, logger: logger, nonces: map[string]string{},
		messages: map[string]formingMessage{}, refusals: map[string]int{}}
}

// form creates this node's log: from the offer, or as one of a new cluster.
func (f *formation) form(files vfs.FS, dir string) error {
	if o := f.offer; o != nil {
		d := raftlog.Identity{Cluster: f.cluster, Name: f.name, Node: o.id}
		return raftlog.Form(files, dir, d, o.base)
	}
	state := machine.Formed(f.names)
	d := raftlog.Identity{Cluster: f.cluster, Name: f.name}
	for _, m := range state.Members() {
		if m.Name == f.name {
			d.Node = m.ID
		}
	}
	return raftlog.Form(files, dir, d, raftlog.Base{Machine: state.Encode()})
}

// tick sends this node's state to all others.
func (f *formation) tick() {
	for _, to := range f.names {
		if to != f.name {
			f.sendState(to)
		}
	}
}

func (f *formation) sendState(to string) { f.sendMessage(to, formingMessage{}) }

// sendMessage completes a message by the common fields and sends it.
func (f *formation) sendMessage(to string, w formingMessage) {
	w.Cluster, w.Names, w.Stage, w.MaxFormat = f.cluster, f.names, f.stage, f.maxFormat
	w.Nonce, w.Echo = f.nonce, f.nonces[to]
	text, err := json.Marshal(w)
	if err != nil {
		f.logger.Error("BUG: a forming message cannot be encoded", "error", err)
		return
	}
	b := frame{kind: frameForming}
	f.send(to, append(b.begin(), text...))
}

// receive handles a peer's formingMessage, offer or removal; other frames are dropped.
func (f *formation) receive(from string, b []byte) {
	frame, err := parseFrame(b)
	if err == nil && frame.kind == frameOffer && f.stage == stageEmpty {
		o, err := parseOffer(frame.payload, f.maxFormat)
		if err == nil && o.nonce == f.nonce && !f.isStaleOffer(o) {
			f.offer = o
		}
		return
	}
	if err == nil && frame.kind == frameRemoved && f.offer != nil &&
		frame.names(f.offer.id) {
		f.refusals[from] = refusalsNeeded // it counts at once: no ID is assigned twice
		return
	}
	if err != nil || frame.kind != frameForming || len(frame.payload) > maxFormingBytes ||
		from == f.name || !slices.Contains(f.names, from) {
		return
	}
	var w formingMessage
	if err := json.Unmarshal(frame.payload, &w); err != nil || len(w.Nonce) > maxNonce {
		f.logger.Warn("a forming message is dropped", "node", from, "error", err)
		return
	}
	f.nonces[from] = w.Nonce
	if w.Echo == f.nonce {
		f.messages[from] = w
		f.countRefusal(from, w)
	}
}

// countRefusal counts the refusals of a peer.
func (f *formation) countRefusal(from string, w formingMessage) {
	switch {
	case w.Stage != stageActive || w.Awaited:
		delete(f.refusals, from)
	case w.Leads:
		f.refusals[from]++
	default:
		f.refusals[from] = 1
	}
}

// nodesNeeded returns how many nodes must agree to end this one: two, or one if there is no second.
func (f *formation) nodesNeeded() int { return min(2, len(f.names)-1) }

// removedBy returns the node whose refusals show that this one may no longer join; "": none, or too
// few nodes agree.
func (f *formation) removedBy() (by string) {
	for name, count := range f.refusals {
		if count >= refusalsNeeded {
			by = max(by, name)
		}
	}
	if len(f.refusals) < f.nodesNeeded() {
		return ""
	}
	return by
}

// refusal returns why the members of a running cluster refuse this node, which has no log; nil:
// they accept it, or too few refuse.
func (f *formation) refusal() error {
	without, newer := 0, 0
	var leads, has string
	for name, w := range f.messages {
		if w.Cluster != f.cluster || w.Stage != stageActive {
			continue
		}
		if !w.Awaited {
			without++
		}
		if !w.Awaited && w.Leads {
			leads = name
		}
		if w.Format > f.maxFormat {
			newer++
			has = name
		}
	}
	switch {
	case f.stage != stageEmpty:
	case without >= f.nodesNeeded() && leads != "":
		return fmt.Errorf("%w (node %s)", errReplaced, leads)
	case newer >= f.nodesNeeded() && has != "":
		return fmt.Errorf("%w: format %d is applied at node %s, and this program reads formats up "+
			"to %d", persistence.ErrFormat, f.messages[has].Format, has, f.maxFormat)
	}
	return nil
}

// isStaleOffer reports whether an offer is no newer than the current one: a former leader's may
// arrive late.
func (f *formation) isStaleOffer(o *offer) bool {
	have := f.offer
	return have != nil && (o.id < have.id || o.id == have.id && o.base.Index <= have.base.Index)
}

// next reports whether this node may enter the next stage. why names the peers that it waits for.
func (f *formation) next() (may bool, why string, err error) {
	if f.offer != nil && f.stage == stageEmpty {
		return true, "", nil
	}
	if err := f.refusal(); err != nil {
		return false, "", err
	}
	may = true
	var lacks []string
	for _, name := range f.names {
		if name == f.name {
			continue
		}
		w, ok := f.messages[name]
		switch {
		case !ok:
			may, lacks = false, append(lacks, name+" (no answer)")
		case w.Cluster != f.cluster || w.Stage != stageActive && !slices.Equal(w.Names, f.names):
			may, lacks = false, append(lacks, fmt.Sprintf("%s (it names the nodes %.200q of "+
				"cluster %.64q)", name, w.Names, w.Cluster))
		case w.Stage == stageActive && f.stage == stageEmpty && w.Leads && !w.Awaited:
			may, lacks = false, append(lacks, name+" (the cluster has begun, and this "+
				"leader does not await the node: to add it, exchange cluster add NODE=HOST:PORT)")
		case w.Stage == stageActive && f.stage == stageEmpty:
			may, lacks = false, append(lacks, name+" (the cluster has begun: this node waits for "+
				"its leader)")
		case w.Stage == stageActive:
			return true, "", nil // each node had its log before any took part
		case w.Stage != stageFormed && f.stage == stageFormed:
			may, lacks = false, append(lacks, name+" (it has no log yet)")
		}
	}
	return may, strings.Join(lacks, ", "), nil
}

// check refuses a log of another node or cluster than the configured ones.
func (f *formation) check(d raftlog.Identity) error {
	if d.Cluster == f.cluster && d.Name == f.name {
		return nil
	}
	return fmt.Errorf("%w: it is that of node %s of cluster %s; the configuration says node "+
		"%s of cluster %s: names never change, addresses may", ErrFolder, d.Name, d.Cluster,
		f.name, f.cluster)
}
