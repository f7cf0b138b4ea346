package serve

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"exchange/actors/seal"
	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/gateway/listen"
)

// The listeners beside the public one: the operator's, and the one for monitoring.

// maxSocketPath bounds the path of a socket on every known system, in bytes: one less than the
// kernel's field for it, which is 104 bytes on macOS and 108 on Linux.
const maxSocketPath = 103

// listenForOperators listens on the operator's socket or address.
func listenForOperators(cfg *config.Config, log *slog.Logger) (net.Listener, error) {
	path := cfg.OperatorSocket()
	if path == "" {
		l, err := net.Listen("tcp", cfg.Operator)
		if err != nil {
			return nil, cannotListen(operatorListener, err)
		}
		if !cfg.OperatorTLS.On() {
			log.Warn(
				"the operator's listener is an address of this machine: its clients send the "+
					"token to whatever listens there; operator: unix:operator.sock needs none",
				"operator", l.Addr().String())
		}
		return l, nil
	}
	if err := mayHaveSocket(path, os.Geteuid()); err != nil {
		return nil, err
	}
	if err := removeDeadSocket(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, cannotListen(operatorSocket, err)
	}
	if err := os.Chmod(path, 0o600); err != nil { // it is made so where the program's umask holds
		return nil, errors.Join(failf(cli.SystemCode(err), "the operator's socket: %v", err),
			l.Close())
	}
	return l, nil
}

// mayHaveSocket returns the reason why operators cannot use a socket with this path of an exchange
// that runs as this user.
func mayHaveSocket(path string, user int) error {
	const instead = "set operator to an address such as 127.0.0.1:8081"
	switch {
	case !listen.Peers:
		return failf(cli.ExitUsage,
			"the operator's socket %s: this system does not report which user connects to a "+
				"socket; %s", path, instead)
	case len(path) > maxSocketPath:
		return failf(cli.ExitUsage,
			"the operator's socket %s: its path has %d bytes, and a socket's takes %d; %s, or to "+
				"unix: and a shorter path",
			path, len(path), maxSocketPath, instead)
	case user == listen.OverflowUser():
		return failf(cli.ExitUsage,
			"the operator's socket %s: the exchange runs as user id %d, as which the system "+
				"shows each user "+
				"of another user namespace; run it as another user, or %s", path, user, instead)
	}
	return nil
}

// isSocket reports whether a socket has this name. Any other file there is an error.
func isSocket(path string) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, failf(cli.SystemCode(err), "the operator's socket: %v", err)
	case info.Mode().Type() != fs.ModeSocket:
		return false, failf(cli.ExitUsage,
			"the operator's socket %s: there is something else under this name; move it away, or "+
				"name another socket", path)
	}
	return true, nil
}

// removeDeadSocket removes the socket of a process that was killed. A socket with a listening
// process stays, and so does a file that is no socket.
func removeDeadSocket(path string) error {
	if there, err := isSocket(path); err != nil || !there {
		return err
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		return errors.Join(failf(cli.ExitUnavailable,
			"the operator's socket %s: another process listens there", path), c.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return failf(cli.SystemCode(err), "the operator's socket %s: %v", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failf(cli.SystemCode(err), "the operator's socket: %v", err)
	}
	return nil
}

// listenForMetrics listens on the address that serves only /metrics; nil: none.
func listenForMetrics(cfg *config.Config) (net.Listener, error) {
	if cfg.Metrics.Listen == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", cfg.Metrics.Listen)
	if err != nil {
		return nil, cannotListen(metricsListener, err)
	}
	return l, nil
}

// A tokenSet holds the tokens of the listeners; "" for a listener without one.
type tokenSet struct{ operator, metrics string }

// tokens returns the tokens of the listeners. The first start writes the operator's: a random one,
// or on a node the one from its certificates' folder, which is the same on all nodes. Beside a
// socket no file is written.
func tokens(cfg *config.Config) (tokenSet, error) {
	s, kept, err := presentTokens(cfg)
	if err != nil || kept || cfg.OperatorSocket() != "" {
		return s, err
	}
	if s.operator == "" {
		s.operator = newToken()
	}
	if err := seal.WriteSecret(cfg.OperatorTokenFile, s.operator+"\n"); err != nil {
		return s, fmt.Errorf("the operator's token cannot be written: %w", err)
	}
	return s, nil
}

// presentTokens reads the tokens of the listeners; "": none. An operator's socket needs none, but
// the nodes of a cluster send theirs to each other for the users of their sockets. kept is false if
// the operator's is not in its file or the environment.
func presentTokens(cfg *config.Config) (s tokenSet, kept bool, err error) {
	if cfg.OperatorSocket() == "" || cfg.Cluster.On() {
		s.operator, kept, err = operatorToken(cfg)
	}
	if file := cfg.Metrics.TokenFile; cfg.Metrics.Listen != "" && file != "" {
		token, e := tokenIn(file, "the metrics' token")
		s.metrics, err = token, errors.Join(err, e)
	}
	return s, kept, err
}

// operatorToken reads the token from the environment, from its file, or from the folder of a node's
// certificates; "" if it is in none.
func operatorToken(cfg *config.Config) (token string, kept bool, err error) {
	if t := os.Getenv(config.EnvOperatorToken); t != "" {
		token, err = checkedToken(t, config.EnvOperatorToken)
		return token, true, err
	}
	const what = "the operator's token"
	token, err = tokenIn(cfg.OperatorTokenFile, what)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, true, err
	}
	if folder := cfg.Cluster.Folder; folder != "" {
		token, err = tokenIn(filepath.Join(folder, config.OperatorTokenName), what)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return token, false, err
}

// tokenIn reads a token that the server accepts from a file.
func tokenIn(file, what string) (string, error) {
	b, err := readSecret(what, file)
	if err != nil {
		return "", err
	}
	return checkedToken(string(b), file)
}

// newToken makes a random token.
func newToken() string {
	raw := make([]byte, 32)
	rand.Read(raw)
	return base64.RawURLEncoding.EncodeToString(raw)
}

// readSecret reads a file that only its owner may read.
func readSecret(what, file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", what, err)
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s %s has mode %04o and can be read by others: chmod 600 it", what,
			file, info.Mode().Perm())
	}
	return b, nil
}

// leastToken is the length of the shortest token that the server accepts, in characters: 128 bits
// where each has four.
const leastToken = 32

func checkedToken(text, source string) (string, error) {
	token, err := cli.CleanToken(text, source)
	if err == nil && len(token) < leastToken {
		err = fmt.Errorf(
			"the token in %s has %d characters and needs %d: take a random one, such as `openssl "+
				"rand -hex 32` prints, or for the operator remove it and one is made", source,
			len(token), leastToken)
	}
	return token, err
}
