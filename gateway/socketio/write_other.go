//go:build !linux && !darwin

package socketio

import "net"

// On this system the writer makes every write, and may wait.

type rawWriter struct{}

const maxPieces = 64

type attempt struct{ pieces [][]byte }

func direct(net.Conn) rawWriter { return rawWriter{} }

func alive(net.Conn) bool { return true }

func acquireAttempt() *attempt { return &attempt{} }

func (a *attempt) release() {}

func (rawWriter) ok() bool                          { return false }
func (rawWriter) write(*attempt, bool) (int, error) { panic("BUG: there is no raw writer here") }
func (rawWriter) closeWrite()                       {}
func (rawWriter) reset()                            {}
