//go:build prove && linux

package processes

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// An issuer makes certificates as a cluster's authority does, and others.
type issuer struct {
	t       *testing.T
	cluster string
	cert    *x509.Certificate
	key     any
	roots   *x509.CertPool
}

// issuerOf is the authority of a cluster, from the operator's folder.
func issuerOf(t *testing.T, folder string) *issuer {
	t.Helper()
	id, err1 := os.ReadFile(filepath.Join(folder, "cluster.id"))
	pair, err2 := tls.LoadX509KeyPair(filepath.Join(folder, "ca.crt"),
		filepath.Join(folder, "ca.key"))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, cluster: strings.TrimSpace(string(id)), cert: pair.Leaf,
		key: pair.PrivateKey, roots: x509.NewCertPool()}
	i.roots.AddCert(i.cert)
	return i
}

// identity is the name in the certificate of a node, or of an observer.
func (i *issuer) identity(role, name string) string {
	return strings.Join([]string{name, role, i.cluster, "exchange"}, ".")
}

// issue makes a certificate, which change may make another one.
func (i *issuer) issue(name string, change func(*x509.Certificate)) *tls.Certificate {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()),
		DNSNames: []string{name}, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(form)
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, i.cert, &key.PublicKey, i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// A foe is a hostile peer of one process, with an address of its own.
type foe struct {
	*issuer
	address string // that it attacks
	server  string // name in the certificate there
	own     string // its own address
}

// patience is how long a foe waits for its end. It says nothing of how soon that comes.
const patience = time.Minute

// dial opens a plain connection.
func (f *foe) dial() (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(f.own)}, Timeout: patience}
	conn, err := d.Dial("tcp", f.address)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(patience))
}

// secure opens a connection with a certificate; nil: without one.
func (f *foe) secure(cert *tls.Certificate) (net.Conn, error) {
	conn, err := f.dial()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{RootCAs: f.roots, ServerName: f.server, MinVersion: tls.VersionTLS13}
	if cert != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return cert, nil // whatever authority is asked for
		}
	}
	return tls.Client(conn, c), nil
}

// framed puts the length in front of a frame.
func framed(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

var errGoesOn = errors.New("the connection goes on")

// ends returns what comes until the connection ends, and an error if it does not.
func ends(conn net.Conn) (string, error) {
	defer conn.Close()
	all, err := io.ReadAll(io.LimitReader(conn, 16<<20))
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
		return string(all), errGoesOn
	}
	return string(all), nil // however it ends
}

// says opens a connection, sends pieces, and wants it to end.
func (f *foe) says(conn net.Conn, err error, pieces ...[]byte) (string, error) {
	if err != nil {
		return "", err
	}
	go func() {
		for _, b := range pieces {
			if _, err := conn.Write(b); err != nil {
				return
			}
		}
	}()
	return ends(conn)
}

// slowly is says, a byte each quarter of a second, and then again and again.
func (f *foe) slowly(conn net.Conn, err error, first, each []byte) (string, error) {
	if err != nil {
		return "", err
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		conn.Write(first) //nolint:errcheck // it may have ended
		next := time.NewTicker(250 * time.Millisecond)
		defer next.Stop()
		for i := 0; ; i++ {
			if _, err := conn.Write([]byte{each[i%len(each)]}); err != nil {
				return
			}
			select {
			case <-next.C:
			case <-over:
				return
			}
		}
	}()
	return ends(conn)
}

// A tapped way is where one node reaches another, through the test.
type tapped struct {
	to     string // address of the node
	listen net.Listener
	tap    atomic.Pointer[func(net.Conn)] // takes the next connections; nil: they go to the node

	mu    sync.Mutex
	conns []net.Conn   // guarded by mu
	seen  bytes.Buffer // what came first on the newest connection; guarded by mu
}

// seenBytes is how much of a connection a way keeps.
const seenBytes = 16 << 10

func newTapped(t *testing.T, to string) *tapped {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &tapped{to: to, listen: l}
	go w.run()
	t.Cleanup(func() {
		l.Close()
		w.cut()
	})
	return w
}

func (w *tapped) run() {
	for {
		conn, err := w.listen.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		w.conns = append(w.conns, conn)
		w.mu.Unlock()
		if tap := w.tap.Load(); tap != nil {
			go (*tap)(conn)
			continue
		}
		go w.pass(conn)
	}
}

func (w *tapped) pass(conn net.Conn) {
	defer conn.Close()
	there, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer there.Close()
	w.mu.Lock()
	w.seen.Reset()
	w.mu.Unlock()
	go func() {
		io.Copy(conn, there) //nolint:errcheck // the other direction ends, too
		conn.Close()
	}()
	for b := make([]byte, 32<<10); ; {
		n, err := conn.Read(b)
		w.mu.Lock()
		if w.seen.Len() < seenBytes {
			w.seen.Write(b[:n])
		}
		w.mu.Unlock()
		if err == nil {
			_, err = there.Write(b[:n])
		}
		if err != nil {
			return
		}
	}
}

// cut ends the connections.
func (w *tapped) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

// recorded returns how the newest connection began.
func (w *tapped) recorded() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.seen.Bytes())
}

// overhear stands in for the node at the other end, with that node's certificate, until a frame of
// raft has come. It returns the frame's head: which start of the sender it is from.
func (w *tapped) overhear(t *testing.T, node *tls.Certificate) []byte {
	t.Helper()
	frames := make(chan []byte, 1000)
	tap := func(conn net.Conn) {
		defer conn.Close()
		secure := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*node},
			ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13})
		for raft := false; ; {
			var head [4]byte
			if _, err := io.ReadFull(secure, head[:]); err != nil {
				return
			}
			b := make([]byte, binary.BigEndian.Uint32(head[:]))
			if _, err := io.ReadFull(secure, b); err != nil {
				return
			}
			if !raft {
				if raft = bytes.HasPrefix(b, []byte("exLINK1 ")); !raft {
					return
				}
				continue
			}
			select {
			case frames <- b:
			default:
			}
		}
	}
	w.tap.Store(&tap)
	defer func() {
		w.tap.Store(nil)
		w.cut()
	}()
	w.cut()
	select {
	case b := <-frames: // version, kind, format, id, boot, length of the nonce
		const fixed = 3 + 8 + 8 + 1
		n := fixed + int(b[fixed-1])
		if len(b) < n {
			t.Fatalf("a frame of %d bytes: %q", len(b), b)
		}
		return b[:n]
	case <-time.After(2 * time.Minute):
		t.Fatal("no frame comes")
	}
	return nil
}

// crowd opens connections that say nothing, calls then, and waits for their end, or closes them.
func (f *foe) crowd(n int, waits bool, then func() error) error {
	var all []net.Conn
	defer func() {
		for _, c := range all {
			c.Close()
		}
	}()
	for range n {
		conn, err := f.dial()
		if err != nil {
			return err
		}
		all = append(all, conn)
	}
	if err := then(); err != nil || !waits {
		return err
	}
	for i, c := range all {
		if _, err := ends(c); err != nil {
			return fmt.Errorf("connection %d of %d: %w", i, n, err)
		}
	}
	return nil
}
