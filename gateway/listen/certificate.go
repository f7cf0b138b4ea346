package listen

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A Certificate is a chain and its key, from two PEM files. To renew a certificate the operator
// replaces the files. The new files are checked before the listener serves them. If they have a
// fault, the earlier certificate stays, because an old certificate is better than none.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	serving atomic.Pointer[tls.Certificate]
	unused  atomic.Bool // the files have changed, and the new ones are unusable

	mu          sync.Mutex
	loaded      [2]os.FileInfo // the files when last loaded; guarded by mu
	lastFault   string         // the last fault logged; guarded by mu
	lastWarning time.Time      // time of the last expiry warning; guarded by mu
}

const (
	// expiresSoon is the remaining life below which a certificate is worth a warning. Renewal
	// usually comes 30 days before the end.
	expiresSoon = 14 * 24 * time.Hour
	// warnAgain is the time between two warnings.
	warnAgain = 24 * time.Hour
	// maxPEM bounds each of the files, in bytes.
	maxPEM = 1 << 20
)

// LoadCertificate reads a certificate and its key. The key must not be readable by everyone on the
// machine.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	loaded, seen, err := c.load()
	if err != nil {
		return nil, err
	}
	c.loaded = seen
	c.serving.Store(loaded)
	c.warn(time.Now())
	return c, nil
}

// Reload loads the current content of the files. If the files are unusable, it logs the fault and
// keeps the served certificate, and Stale is true. Any goroutine may call it.
func (c *Certificate) Reload() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reload(time.Now())
}

// Refresh does the periodic work: it loads changed files, and warns when the end is near. It is
// cheap when nothing has changed.
func (c *Certificate) Refresh(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unused.Load() || c.changed() {
		c.reload(now)
	}
	c.warn(now)
}

func (c *Certificate) reload(now time.Time) {
	loaded, seen, err := c.load()
	if err == nil && now.Before(loaded.Leaf.NotBefore) {
		err = fmt.Errorf("the certificate in %s is not valid before %s", c.certFile,
			loaded.Leaf.NotBefore.Format(time.RFC3339))
	}
	if err == nil && now.After(loaded.Leaf.NotAfter) {
		err = fmt.Errorf("the certificate in %s expired on %s", c.certFile,
			loaded.Leaf.NotAfter.Format(time.RFC3339))
	}
	if err != nil {
		c.unused.Store(true)
		if c.lastFault != err.Error() {
			c.lastFault = err.Error()
			c.log.Error("the new certificate cannot be used, the one before stays", "error", err,
				"until", c.Expires())
		}
		return
	}
	c.loaded, c.lastFault, c.lastWarning = seen, "", time.Time{}
	c.serving.Store(loaded)
	c.unused.Store(false)
	c.log.Info("a certificate was loaded", "file", c.certFile, "until", loaded.Leaf.NotAfter)
}

// load reads the files. Errors name the files and show none of their content.
func (c *Certificate) load() (_ *tls.Certificate, seen [2]os.FileInfo, err error) {
	var text [2][]byte
	for i, name := range []string{c.certFile, c.keyFile} {
		if seen[i], err = os.Stat(name); err != nil {
			return nil, seen, err
		}
		if i == 1 && seen[i].Mode().Perm()&0o007 != 0 {
			return nil, seen,
				fmt.Errorf("the key %s has mode %04o and can be read by everyone: chmod 600 it",
					name, seen[i].Mode().Perm())
		}
		if seen[i].Size() > maxPEM {
			return nil, seen, fmt.Errorf("%s is longer than %d bytes: is it a PEM file?", name,
				maxPEM)
		}
		if text[i], err = os.ReadFile(name); err != nil {
			return nil, seen, err
		}
	}
	loaded, err := tls.X509KeyPair(text[0], text[1])
	if err != nil {
		return nil, seen, fmt.Errorf("%s and %s: %w", c.certFile, c.keyFile, err)
	}
	return &loaded, seen, nil
}

// changed reports whether the files differ from those last loaded. A missing file counts as
// changed; loading then reports the fault.
func (c *Certificate) changed() bool {
	for i, name := range []string{c.certFile, c.keyFile} {
		now, err := os.Stat(name)
		if err != nil || !os.SameFile(now, c.loaded[i]) ||
			!now.ModTime().Equal(c.loaded[i].ModTime()) || now.Size() != c.loaded[i].Size() {
			return true
		}
	}
	return false
}

func (c *Certificate) warn(now time.Time) {
	left := c.Expires().Sub(now)
	if left > expiresSoon || now.Sub(c.lastWarning) < warnAgain {
		return
	}
	c.lastWarning = now
	if left <= 0 {
		c.log.Error("the certificate has expired: clients refuse to connect", "file", c.certFile,
			"ended", c.Expires())
		return
	}
	c.log.Warn("the certificate expires soon: renew it", "file", c.certFile, "ends", c.Expires())
}

// Expires returns the end of the served certificate.
func (c *Certificate) Expires() time.Time { return c.serving.Load().Leaf.NotAfter }

// Stale reports whether the files contain a newer pair that is unusable.
func (c *Certificate) Stale() bool { return c.unused.Load() }
