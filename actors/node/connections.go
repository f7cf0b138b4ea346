package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"exchange/actors/observing"
	"exchange/persistence"
	"exchange/persistence/line"
)

// Kinds of connections that a node opens to another one. Those of observers are observing.Call, and
// callCommands.
const (
	callCommands  = 'c' // clients' commands: see forwardingSession
	callOperators = 'o' // one request of an operator
)

// callVersions are the versions of the connections that members accept from members,
// observerVersions from observers.
var (
	callVersions     = map[byte]uint64{callCommands: forwardVersion, callOperators: 1}
	observerVersions = map[byte]uint64{callCommands: forwardVersion,
		observing.Call: observing.Version}
)

// OperatorsAtOnce is the number of concurrent operators' requests that one node may forward to
// another, in addition to the slots of clients' commands.
const OperatorsAtOnce = 8

// openTo opens a connection of a kind to another node, and returns it with the answer to its
// greeting. ctx, which must have a deadline, bounds the wait.
func openTo(ctx context.Context, r persistence.Replica, node string, kind byte,
	greeting []byte) (net.Conn, []byte, error) {
	conn, err := r.Dial(ctx, node)
	if err != nil {
		return nil, nil, err
	}
	answer, err := line.Greet(ctx, conn, kind, callVersions[kind], greeting)
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, answer, nil
}

// DialOperators opens a connection for one request of an operator to the node with that name, and
// returns it once that node has accepted it. An error means that no part of the request was sent.
// ctx, which must have a deadline, bounds the wait. The caller closes the connection.
func DialOperators(ctx context.Context, r persistence.Replica, node string) (net.Conn, error) {
	conn, _, err := openTo(ctx, r, node, callOperators, nil)
	if err != nil {
		return nil, fmt.Errorf("node %s accepts no operator's request from this one: %w", node, err)
	}
	return conn, nil
}

// accept serves a connection of another member. It returns when the connection is closed.
func (n *Node) accept(from string, conn net.Conn) {
	g, ok := n.greet(from, conn, callVersions)
	switch {
	case !ok:
	case g.Kind == callCommands:
		n.acceptForwarding(from, g, false)
	case n.opts.Operators == nil:
		g.Refuse(line.ErrPurpose)
	default:
		n.serveOperator(from, g)
	}
}

// acceptObserver serves a connection of an observer, which may forward clients' signed requests,
// and no operators'.
func (n *Node) acceptObserver(from string, conn net.Conn) {
	g, ok := n.greet(from, conn, observerVersions)
	switch {
	case !ok:
	case g.Kind == callCommands:
		n.acceptForwarding(from, g, true)
	default:
		n.observers.Serve(from, g)
	}
}

// greet reads the greeting of a connection.
func (n *Node) greet(from string, conn net.Conn, versions map[byte]uint64) (*line.Greeting, bool) {
	g, err := line.Meet(conn, n.opts.Timing.OwnerStale, versions)
	if err == nil {
		return g, true
	}
	if _, long := errors.AsType[line.LongMessage](err); long || g != nil {
		n.badPeers.Warn(n.opts.Log, "malformed greeting from another node", from, err, "node",
			from)
	}
	conn.Close()
	return nil, false
}

// errOperators refuses operators' requests above OperatorsAtOnce.
var errOperators = errors.New("too many operators' requests in flight")

// serveOperator serves an operator's request forwarded by another node.
func (n *Node) serveOperator(from string, g *line.Greeting) {
	if !n.operatorSlots.enter(from) {
		g.Refuse(errOperators)
		return
	}
	defer n.operatorSlots.leave(from)
	if g.Take(nil) != nil {
		g.Conn.Close()
		return
	}
	n.opts.Operators(from, g.Conn)
}

// operatorSlots counts the operators' requests that other nodes have forwarded, by node.
type operatorSlots struct {
	mu sync.Mutex
	of map[string]int // guarded by mu
}

// enter takes a slot of a node, up to OperatorsAtOnce.
func (o *operatorSlots) enter(node string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[node] >= OperatorsAtOnce {
		return false
	}
	if o.of == nil {
		o.of = map[string]int{}
	}
	o.of[node]++
	return true
}

func (o *operatorSlots) leave(node string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[node]--; o.of[node] == 0 {
		delete(o.of, node)
	}
}
