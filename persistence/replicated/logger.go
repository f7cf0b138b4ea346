package replicated

import (
	"context"
	"fmt"
	"log/slog"
)

// A raftLogger passes raft's lines on. raft says the ordinary course of things as information and
// warnings, which is too much for a log of an exchange. A panic ends the process: raft has found
// that what it was told cannot be.
type raftLogger struct{ log *slog.Logger }

func (l raftLogger) Debug(v ...any)                   { l.log.Debug("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Debugf(format string, v ...any)   { l.say(format, v) }
func (l raftLogger) Info(v ...any)                    { l.Debug(v...) }
func (l raftLogger) Infof(format string, v ...any)    { l.say(format, v) }
func (l raftLogger) Warning(v ...any)                 { l.Debug(v...) }
func (l raftLogger) Warningf(format string, v ...any) { l.say(format, v) }
func (l raftLogger) Error(v ...any)                   { l.log.Error("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Errorf(format string, v ...any)   { l.Error(fmt.Sprintf(format, v...)) }
func (l raftLogger) Fatal(v ...any)                   { l.Panic(v...) }
func (l raftLogger) Fatalf(format string, v ...any)   { l.Panic(fmt.Sprintf(format, v...)) }
func (l raftLogger) Panic(v ...any)                   { panic("BUG: raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Panicf(format string, v ...any)   { l.Panic(fmt.Sprintf(format, v...)) }

func (l raftLogger) say(format string, v []any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("raft: " + fmt.Sprintf(format, v...))
	}
}
