package replicated

import (
	"context"
	"fmt"
	"log/slog"
)

// A raftLogger logs raft's lines. Raft logs its normal course as information and warnings, which is
// too much for an exchange's log, so they are logged at debug level. A panic ends the process: raft
// has found an impossible input.
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
