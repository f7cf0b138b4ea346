//go:build !linux && !darwin

package socketio

import "net"

// Here every write is the writer's, which may wait.

type rawWriter struct{}

const maxPieces = 64

type attempt struct{ pieces [][]byte }

func direct(net.Conn) *rawWriter { return nil }

func acquireAttempt() *attempt { return &attempt{} }

func (a *attempt) release() {}

func (w *rawWriter) write(*attempt, bool) (int, error) { panic("BUG: there is no raw writer here") }
func (w *rawWriter) closeWrite()                       {}
func (w *rawWriter) reset()                            {}
