package operator

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"exchange/actors"
	"exchange/actors/metrics"
)

var clusterRoutes = []route{
	{"GET cluster", do(showCluster), byReceiver, "The nodes of the cluster",
		"As the asked node sees them: each node answers itself."},
	{"GET cluster/hash", do(showHash), byReceiver, "A digest of a node's state",
		"Each node answers itself."},
	{"POST cluster/transfer", do(transfer), byLeader, "Hand the lead over",
		"To a node, or to any."},
	{"POST cluster/apply", do(applyMarket), byLeader, "Agree on another market part",
		"The nodes use it from the next term on. The body may be larger than " +
			"others: 6 MiB."},
	{"POST cluster/add", do(membershipHandler(add)), byLeader, "Add a node",
		"Takes the next step that is possible: repeat it until `done`."},
	{"POST cluster/replace", do(membershipHandler(replace)), byLeader, "Replace a node",
		"Takes the next step that is possible: repeat it until `done`. `node` " +
			"takes the place of `old`."},
	{"POST cluster/remove", do(membershipHandler(remove)), byLeader, "Remove a node",
		"Repeat it until `done`."},
}

// A Cluster is this process as one of several nodes that share a journal.
type Cluster interface {
	// Standing is this node's view of itself and of the others. It does not wait.
	Standing() Standing
	// Transfer hands leadership over to a node, "": to any. It is called on the leader, and returns
	// when this node no longer leads. begins is called before, unless no node could take over.
	Transfer(ctx context.Context, to string, begins func()) error
	// Apply makes the nodes agree on another market part of the configuration, packed as gzip, from
	// the next term on. It returns the keys that differ from the previous one; nil: none. An
	// *actors.RequestError refuses it with the reason; after another error the outcome is unknown.
	Apply(ctx context.Context, packed []byte) (keys []string, err error)
	// Hash returns a digest of this node's state, and the state's sequence.
	Hash(ctx context.Context) (seq uint64, hash [sha256.Size]byte, err error)
	// Dial opens a connection for one operator's request to the node with that name, where
	// Gateway.ServeNode answers it. An error means that no part of the request was sent. ctx, which
	// must have a deadline, bounds the wait, not the connection.
	Dial(ctx context.Context, node string) (net.Conn, error)
	members
}

// A Standing is a node's view of the cluster.
type Standing struct {
	Node      string // its name
	Observer  bool   // not a node of the cluster: it observes one
	Leader    string // leading node; "": none is known
	LeaderURL string // its URL for clients; "": unknown
	Term      uint64
	Elections uint64 // begun by this node since its start
	// impossible messages of members since this node's start
	Impossible uint64
	Applied    uint64 // index of the newest entry applied here
	Committed  uint64 // index of the newest entry that a majority holds, as far as known here
	Folded     uint64 // newest sequence folded here
	LogBytes   uint64 // size of this node's log on disk
	Format     uint8  // the newest that may be written
	Fault      string // why this node cannot serve; "": it can
	// Starting: no process of the cluster serves clients yet, because the exchange creates its
	// first state.
	Starting bool
	// Differs lists the keys of the market part in which this node's file differs from the applied
	// one.
	Differs []string
	// ClockAhead is this node's clock minus the median of all.
	ClockAhead time.Duration
	ClockWrong bool // too far ahead or behind: the node may not lead
	Tick       time.Duration
	Links      *metrics.Links // traffic between nodes; nil: this one only votes
	// FedBatches and FedBytes count the members' messages to this observer: batches of the journal,
	// and bytes including images, without answers.
	FedBatches, FedBytes uint64
	Nodes                []NodeStanding // all of them, in the order of their names
}

// Leads reports whether the node itself leads.
func (s *Standing) Leads() bool { return !s.Observer && s.Node != "" && s.Node == s.Leader }

// role names what the process does.
func (s *Standing) role() string {
	switch {
	case s.Observer:
		return "observer"
	case s.Leads():
		return "leader"
	}
	return "follower"
}

// OtherLeaderURL returns the leader's client URL; "": unknown, or this node leads.
func (s *Standing) OtherLeaderURL() string {
	if s.Leads() {
		return ""
	}
	return s.LeaderURL
}

// About names the leader, for api.Following.
func (s *Standing) About() string {
	switch {
	case s.Fault != "":
		return " It cannot serve."
	case s.Leader == "":
		return " No node is known to lead."
	case s.Leads():
		return " It leads, and does not serve yet, or any more."
	}
	return " Node " + s.Leader + " leads."
}

// node returns the first member with a name; nil: none.
func (s *Standing) node(name string) *NodeStanding {
	for i := range s.Nodes {
		if s.Nodes[i].Name == name {
			return &s.Nodes[i]
		}
	}
	return nil
}

// change describes the membership change in progress; "": none.
func (s *Standing) change() string {
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; {
		case n.Role == leaving:
			return "node " + n.Name + " leaves"
		case n.Replaces != "":
			return "node " + n.Name + " is replacing " + n.Replaces
		case n.coming():
			return "node " + n.Name + " is joining"
		}
	}
	return ""
}

// A NodeStanding is the state of a node as another one sees it.
type NodeStanding struct {
	Name     string
	Address  string // listening address in the membership; "": none there
	Role     string
	Replaces string // voter that it will replace; "": none
	Newest   bool   // joined with an empty folder, and no other node has joined since
	// index of its newest log entry; only the leader has it for other nodes
	Match  uint64
	Silent uint64 // ticks since its last message; 0 of the node itself
	Reads  uint8  // newest format that its program reads; 0: unknown
	Unfit  bool   // it reported that it could not serve
	// OwnMarket: the market part of its file is known. Differs: it is not the applied one.
	OwnMarket, Differs bool
}

// coming reports whether a node is joining, and has no vote yet.
func (n *NodeStanding) coming() bool { return n.Role == Learner || n.Role == Awaited }

// applyBytes bounds the body of a request that applies a market part: 4 MiB of text, which packing
// may not shorten, as base64.
const applyBytes = 6 << 20

// LongestBody returns the maximum of an operator's body for a path, in bytes; 0: the usual one.
func LongestBody(path string) int {
	if strings.TrimSuffix(path, "/") == "/operator/v1/cluster/apply" {
		return applyBytes
	}
	return 0
}

// transferPatience bounds the wait for a new leader, and for the commands in flight before. It is
// shorter than the client's timeout.
const transferPatience = 20 * time.Second

var errNoCluster = &badRequest{"this exchange is no node of a cluster: it runs on one machine"}

type nodeAnswer struct {
	Name     string  `json:"name"`
	Role     string  `json:"role"`
	Replaces string  `json:"replaces" doc:"Voter that it is replacing; \"\": none"`
	Match    *uint64 `json:"match" doc:"Index up to which it has the log; null: not known"`
	Lag      *uint64 `json:"lag"`
	Silent   *uint64 `json:"silent_ticks" doc:"Ticks since its last message; null: not known"`
	Reads    *uint8  `json:"reads" doc:"Newest format that its program reads; null: not known"`
	Differs  *bool   `json:"config_differs" doc:"Whether its file differs; null: not known"`
}

type clusterAnswer struct {
	Node         string       `json:"node"`
	Role         string       `json:"role"`
	Serves       bool         `json:"serves" doc:"Whether the node serves clients"`
	Leader       string       `json:"leader"`
	LeaderURL    string       `json:"leader_url" doc:"Where clients reach that node"`
	Term         uint64       `json:"term"`
	Elections    uint64       `json:"elections" doc:"Elections begun since its start"`
	Applied      uint64       `json:"applied" doc:"Index of the newest entry that is applied"`
	Committed    uint64       `json:"committed" doc:"Index of the newest entry that a majority has"`
	Folded       uint64       `json:"folded" doc:"Newest sequence that is folded"`
	LogBytes     uint64       `json:"log_bytes"`
	Format       uint8        `json:"format" doc:"Newest format that may be written"`
	Change       string       `json:"change" doc:"Change of members under way"`
	Fault        string       `json:"fault" doc:"Why the node cannot serve; \"\": it can"`
	Differs      []string     `json:"config_differs" doc:"Options that its file has otherwise"`
	ClockAheadMs int64        `json:"clock_ahead_ms" doc:"Its clock less the median of all"`
	ClockWrong   bool         `json:"clock_wrong" doc:"Whether that is too much for it to lead"`
	TickMs       int64        `json:"tick_ms" doc:"Length of a tick in milliseconds"`
	Nodes        []nodeAnswer `json:"nodes" doc:"All nodes, in the order of their names"`
}

func showCluster(c *call, _ *nothing) (*clusterAnswer, error) {
	if c.server.cluster == nil {
		return nil, errNoCluster
	}
	s := c.server.cluster.Standing()
	a := &clusterAnswer{Node: s.Node, Role: s.role(), Leader: s.Leader,
		Serves: c.engine != nil || c.server.servesClients.Load(), LeaderURL: s.LeaderURL,
		Term: s.Term, Elections: s.Elections, Applied: s.Applied, Committed: s.Committed,
		Folded:   s.Folded,
		LogBytes: s.LogBytes, Format: s.Format,
		Change: s.change(), Fault: s.Fault, TickMs: s.Tick.Milliseconds(),
		ClockAheadMs: s.ClockAhead.Milliseconds(), ClockWrong: s.ClockWrong,
		Differs: append([]string{}, s.Differs...), Nodes: []nodeAnswer{}}
	for _, n := range s.Nodes {
		one := nodeAnswer{Name: n.Name, Role: n.Role, Replaces: n.Replaces}
		if n.Role == Awaited {
			a.Nodes = append(a.Nodes, one)
			continue
		}
		if n.Reads > 0 {
			one.Reads = &n.Reads
		}
		if n.OwnMarket {
			one.Differs = &n.Differs
		}
		if s.Leads() || n.Name == s.Node || n.Name == s.Leader {
			one.Silent = &n.Silent
		}
		if s.Leads() || n.Name == s.Node {
			lag := Lag(&s, &n)
			one.Match, one.Lag = &n.Match, &lag
		}
		a.Nodes = append(a.Nodes, one)
	}
	return a, nil
}

// Lag returns the number of committed entries that a node lacks.
func Lag(s *Standing, n *NodeStanding) uint64 { return max(s.Committed, n.Match) - n.Match }

// hashPatience bounds the wait for a hash. It is shorter than the client's timeout.
const hashPatience = 20 * time.Second

type hashAnswer struct {
	Node     string `json:"node"`
	Sequence uint64 `json:"sequence"`
	Hash     string `json:"hash" doc:"SHA-256 of the state, in hexadecimal digits"`
}

func showHash(c *call, _ *nothing) (*hashAnswer, error) {
	if c.server.cluster == nil {
		return nil, errNoCluster
	}
	patience, cancel := within(hashPatience)
	defer cancel()
	seq, hash, err := c.server.cluster.Hash(patience)
	if err != nil {
		return nil, fmt.Errorf("this node has no state to hash: %w", err)
	}
	return &hashAnswer{c.server.cluster.Standing().Node, seq, hex.EncodeToString(hash[:])}, nil
}

type transferRequest struct {
	To string `json:"to,omitempty" doc:"Name of the node; left out or empty: any"`
}

type transferAnswer struct {
	From string `json:"from" doc:"Node that led"`
	To   string `json:"to" doc:"Node that leads; \"\": none is known"`
}

// transfer hands leadership over to the node in "to", or to any.
func transfer(c *call, q *transferRequest) (*transferAnswer, error) {
	s, err := c.server.requireLeader()
	switch {
	case err != nil:
		return nil, err
	case q.To == s.Node:
		return nil, &badRequest{fmt.Sprintf("node %s leads already", s.Node)}
	case q.To != "" && s.node(q.To) == nil:
		return nil, &badRequest{fmt.Sprintf("there is no node %.80q", q.To)}
	}
	patience, cancel := within(transferPatience)
	defer cancel()
	begins := func() { // the term ends after the note; the operator does not wait for it
		go c.startNote("asked for the lead to be handed over from node %s to %s", s.Node,
			cmp.Or(q.To, "any other"))()
	}
	if err := c.server.cluster.Transfer(patience, q.To, begins); err != nil {
		return nil, &handoverFailed{err}
	}
	return &transferAnswer{s.Node, c.server.cluster.Standing().Leader}, nil
}

// note writes the operator's action on the cluster to the log of actions. The action takes effect
// even if a term that ends, or has not begun, loses the note.
func (c *call) note(format string, args ...any) { c.startNote(format, args...)() }

// startNote begins to write a note. wait returns when the note is written, and uses nothing of the
// request.
func (c *call) startNote(format string, args ...any) (wait func()) {
	what, operator, log := fmt.Sprintf(format, args...), c.operator, c.server.log
	written := func() error { return errNotServing }
	if c.engine != nil {
		written = c.engine.Note(operator, what)
	}
	return func() {
		if err := written(); err != nil {
			log.Warn("the log of actions may lack an operator's action", "action", what,
				"operator", operator, "error", err)
		}
	}
}

var errNotServing = errors.New("this node does not serve")

type applyRequest struct {
	Market []byte `json:"market" need:"yes" doc:"Market part of a configuration, as gzip"`
}

type applyAnswer struct {
	Keys []string `json:"keys" doc:"Options that differ from the ones before"`
}

// applyMarket makes the nodes agree on the market part in "market".
func applyMarket(c *call, q *applyRequest) (*applyAnswer, error) {
	if _, err := c.server.requireLeader(); err != nil {
		return nil, err
	}
	ctx, cancel := within(changePatience)
	defer cancel()
	keys, err := c.server.cluster.Apply(ctx, q.Market)
	if err != nil {
		return nil, changeFailed(err)
	}
	if len(keys) > 0 {
		c.server.log.Warn("another market part is applied, from the next term on", "keys",
			strings.Join(keys, ", "), "operator", c.operator)
		c.note("applied another market part, from the next term on: %s",
			strings.Join(keys, ", "))
	}
	return &applyAnswer{append([]string{}, keys...)}, nil
}

// within returns a context that ends by itself. The request's own will not do: goroutines use it
// for a moment after the request ends.
func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// requireLeader returns this node's view of the cluster, and an error if it does not lead.
func (s *Server) requireLeader() (*Standing, error) {
	if s.cluster == nil {
		return nil, errNoCluster
	}
	standing := s.cluster.Standing()
	if !standing.Leads() { // it led a moment ago
		return nil, actors.ErrNotConfirmed
	}
	return &standing, nil
}

// A handoverFailed error is the reason why leadership was not transferred.
type handoverFailed struct{ cause error }

func (e *handoverFailed) Error() string { return e.cause.Error() }
