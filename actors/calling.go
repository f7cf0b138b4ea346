package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"exchange/persistence"
)

// The first byte of a connection that a node opens to another one says what it is for.
const (
	callCommands  = 'c' // clients' commands: see forwarding
	callOperators = 'o' // one request of an operator, which follows once callTaken has come

	callTaken = 't'
)

// OperatorsAtOnce is how many operators' requests one node has answered by another at a time. The
// slots of clients' commands are others.
const OperatorsAtOnce = 8

// openTo opens a connection to another node. ctx, which must have a deadline, bounds the wait.
func openTo(ctx context.Context, r persistence.Replica, node string,
	purpose byte) (net.Conn, error) {
	conn, err := r.Dial(ctx, node)
	if err != nil {
		return nil, err
	}
	end, _ := ctx.Deadline()
	if err = conn.SetDeadline(end); err == nil {
		_, err = conn.Write([]byte{purpose})
	}
	if err == nil && purpose == callOperators {
		err = taken(conn)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// taken waits until the other node has taken a connection.
func taken(conn net.Conn) error {
	var answer [1]byte
	switch _, err := io.ReadFull(conn, answer[:]); {
	case errors.Is(err, io.EOF):
		return errors.New("it takes no more requests of operators for now")
	case err != nil:
		return err
	case answer[0] != callTaken:
		return fmt.Errorf("it answers an operator's connection with %d", answer[0])
	}
	return nil
}

// DialOperators opens a connection for one request of an operator to the node with that name, and
// returns it once that node has taken it. An error means that no part of the request was sent. ctx,
// which must have a deadline, bounds the wait. The caller closes the connection.
func DialOperators(ctx context.Context, r persistence.Replica, node string) (net.Conn, error) {
	conn, err := openTo(ctx, r, node, callOperators)
	if err != nil {
		return nil, fmt.Errorf("node %s takes no operator's request from this one: %w", node, err)
	}
	return conn, nil
}

// accept takes a connection of another member. It returns when the connection is over.
func (n *Node) accept(from string, conn net.Conn) {
	switch purpose := n.purpose(conn); {
	case purpose == callCommands:
		n.forwards(from, conn, false)
	case purpose == callOperators && n.opts.Operators != nil:
		n.operates(from, conn)
	default:
		n.useless.Warn(n.opts.Log, "a connection of another node is of no use", from, errPurpose,
			"node", from, "purpose", purpose)
		conn.Close()
	}
}

// errPurpose: see callCommands and callOperators.
var errPurpose = errors.New("it is not for anything that is done here for its other end")

// purpose returns what a connection is for; 0: the other side does not say.
func (n *Node) purpose(conn net.Conn) byte {
	var purpose [1]byte
	err := conn.SetReadDeadline(time.Now().Add(n.opts.Timing.OwnerStale))
	if err == nil {
		_, err = io.ReadFull(conn, purpose[:])
	}
	if err == nil {
		err = conn.SetReadDeadline(time.Time{})
	}
	if err != nil {
		return 0
	}
	return purpose[0]
}

// operates has an operator's request answered that another node passes on.
func (n *Node) operates(from string, conn net.Conn) {
	if !n.operating.enter(from) {
		conn.Close()
		return
	}
	defer n.operating.leave(from)
	err := conn.SetWriteDeadline(time.Now().Add(n.opts.Timing.OwnerStale))
	if err == nil {
		_, err = conn.Write([]byte{callTaken})
	}
	if err == nil {
		err = conn.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		conn.Close()
		return
	}
	n.opts.Operators(from, conn)
}

// operating counts the operators' requests that other nodes have passed on, by node.
type operating struct {
	mu sync.Mutex
	of map[string]int // guarded by mu
}

// enter counts one more, unless the node has as many as it may.
func (o *operating) enter(node string) bool {
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

func (o *operating) leave(node string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[node]--; o.of[node] == 0 {
		delete(o.of, node)
	}
}
