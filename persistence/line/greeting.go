package line

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"exchange/core/wire"
)

// A Greeting is the first message of the side that dialled.
type Greeting struct {
	Conn net.Conn
	Kind byte // what the connection is for
	Body []byte

	version uint64
	within  time.Duration
}

// maxGreeting bounds a greeting and its answer, in bytes.
const maxGreeting = 1 << 10

// ErrPurpose: see Meet.
var ErrPurpose = errors.New("it is not for a service of this node")

// Greet states what a connection is for, and returns the answer's body. version is that of all
// messages after the greeting. An error has the reason if the other side refuses. ctx, which must
// have a deadline, bounds the wait; when it ends the connection is closed.
func Greet(ctx context.Context, conn net.Conn, kind byte, version uint64,
	body []byte) (answer []byte, err error) {
	end, _ := ctx.Deadline()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	b := append(binary.AppendUvarint([]byte{kind}, version), body...)
	if err = exchange(conn, end, b); err == nil {
		b, err = receiveGreeting(conn, end)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	p := wire.Read(b)
	found, why := p.Uint(), p.Text(maxGreeting)
	answer = p.Rest()
	switch {
	case p.Bad():
		return nil, fmt.Errorf("%w: it answers a greeting with %.64q", ErrMalformed, b)
	case found != version:
		return nil, wire.Version(found, version)
	case why != "":
		return nil, fmt.Errorf("it refuses the connection: %s", why)
	}
	return answer, nil
}

// Meet receives a greeting. The caller takes it or refuses it. versions has those of the kinds that
// are taken: a greeting of another kind or version is refused, and returned with an error. If none
// comes, Meet returns nil and an error.
func Meet(conn net.Conn, within time.Duration, versions map[byte]uint64) (*Greeting, error) {
	b, err := receiveGreeting(conn, time.Now().Add(within))
	if err != nil {
		return nil, err
	}
	p := wire.Read(b)
	g := &Greeting{Conn: conn, Kind: p.Byte(), version: p.Uint(), Body: p.Rest(), within: within}
	reads, ok := versions[g.Kind]
	if err = ErrPurpose; ok && !p.Bad() {
		err, g.version = wire.Version(g.version, reads), reads
	}
	if err != nil {
		g.Refuse(err)
	}
	return g, err
}

// Take answers that the connection is taken.
func (g *Greeting) Take(body []byte) error { return g.answer("", body) }

// Refuse sends the reason to the other side, and closes the connection.
func (g *Greeting) Refuse(why error) {
	g.answer(cmp.Or(why.Error(), "without a reason"), nil) //nolint:errcheck // the connection ends
	g.Conn.Close()
}

func (g *Greeting) answer(why string, body []byte) error {
	b := binary.AppendUvarint(nil, g.version)
	b = wire.AppendText(b, why[:min(len(why), maxGreeting/2)])
	return exchange(g.Conn, time.Now().Add(g.within), append(b, body...))
}

// exchange sends a greeting or an answer.
func exchange(conn net.Conn, end time.Time, b []byte) error {
	defer conn.SetWriteDeadline(time.Time{}) //nolint:errcheck // the next write fails, too
	err := conn.SetWriteDeadline(end)
	if err == nil {
		_, err = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	}
	return err
}

// receiveGreeting reads a message that exchange has sent.
func receiveGreeting(conn net.Conn, end time.Time) ([]byte, error) {
	defer conn.SetReadDeadline(time.Time{}) //nolint:errcheck // the next read fails, too
	if err := conn.SetReadDeadline(end); err != nil {
		return nil, err
	}
	return ReadFrame(conn, maxGreeting)
}
