package operator

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"exchange/actors"
	"exchange/persistence"
)

// A task that failed or found differences does not replace a successful one.
func TestOnlyTasksThatAreRightCount(t *testing.T) {
	var kept []byte
	s := New(Options{Log: slog.New(slog.DiscardHandler), TaskStore: TaskStore{
		Keep: func(text []byte) error { kept = text; return nil }}})
	if backup, audit := s.TasksRight(); !backup.IsZero() || !audit.IsZero() {
		t.Errorf("at first %v, %v", backup, audit)
	}
	began := time.UnixMicro(1_700_000_000_000_001)
	s.tasks.ended(&s.tasks.record.Backup, began, nil, "all of it was sent", true)
	s.tasks.audited(began, &AuditAnswer{Sequence: 7}, nil)
	s.tasks.ended(&s.tasks.record.Backup, began.Add(time.Hour),
		errors.New(strings.Repeat("é", TaskStoreBytes)), "", true)
	s.tasks.audited(began.Add(time.Hour), &AuditAnswer{Differences: []string{"x"}}, nil)
	s.tasks.audited(began.Add(time.Hour), nil, errors.New("broken off"))
	s.tasks.ended(&s.tasks.record.Backup, began.Add(2*time.Hour),
		actors.NewRequestError("no"), "", true)
	for _, of := range []*Server{s, New(Options{Log: slog.New(slog.DiscardHandler),
		TaskStore: TaskStore{Text: kept}})} {
		if backup, audit := of.TasksRight(); !backup.Equal(began) || !audit.Equal(began) {
			t.Errorf("right ones began at %v and %v, want %v", backup, audit, began)
		}
		backup, audit := of.tasks.newest()
		if backup.OK || audit.OK || backup.Began != clock(began.Add(time.Hour).UnixMicro()) ||
			audit.Result != "it failed: broken off" {
			t.Errorf("the newest are %.200v and %v", backup, audit)
		}
	}
	if len(kept) > TaskStoreBytes {
		t.Errorf("%d bytes are kept", len(kept))
	}
}

// An audit that finds something is logged with what to do; one that was broken off is not.
func TestAnAuditThatFindsSomethingIsLogged(t *testing.T) {
	for words, audit := range map[string]func(*tasks){
		"damaged data": func(t *tasks) { t.audited(time.Now(), nil, persistence.ErrCorrupt) },
		"differences=2": func(t *tasks) {
			t.audited(time.Now(), &AuditAnswer{Differences: []string{"x", "y"}}, nil)
		},
		"": func(t *tasks) {
			t.audited(time.Now(), &AuditAnswer{}, nil)
			t.audited(time.Now(), nil, errors.New("broken off"))
		},
	} {
		var log bytes.Buffer
		s := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		audit(&s.tasks)
		if text := log.String(); !strings.Contains(text, words) || words != "" &&
			!strings.Contains(text, "docs/runbook.md") || words == "" && text != "" {
			t.Errorf("%q is logged as %q", words, text)
		}
	}
}

// A damaged text or one of another version is ignored, and stops no start.
func TestAMemoryThatCannotBeReadIsNone(t *testing.T) {
	const right = `{"version":1,"backup":{"newest":null,` +
		`"right":"2026-11-27T12:00:00.000001Z"},"audit":{}}`
	for text, readable := range map[string]bool{right: true, "": false, "{": false, "null": false,
		strings.Replace(right, `:1,`, `:2,`, 1):   false,
		strings.Replace(right, "2026-", "26-", 1): false} {
		var log bytes.Buffer
		s := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil)),
			TaskStore: TaskStore{Text: []byte(text)}})
		backup, _ := s.TasksRight()
		newer := strings.Contains(text, `:2,`)
		if backup.IsZero() == readable || (log.Len() == 0) != readable || newer &&
			!strings.Contains(log.String(),
				"of version 2 and this program reads version 1; run the newer program") {
			t.Errorf("%s: %v, log %q", text, backup, log.String())
		}
	}
}

// A failure to keep the text is logged, and the process itself has the task.
func TestUnsavedTaskIsStillReported(t *testing.T) {
	var log bytes.Buffer
	s := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil)), TaskStore: TaskStore{
		Keep: func([]byte) error { return errors.New("the disk is full") }}})
	s.tasks.ended(&s.tasks.record.Backup, time.Now(), nil, "all of it was sent", true)
	if backup, _ := s.TasksRight(); backup.IsZero() || !strings.Contains(log.String(),
		"the disk is full") {
		t.Errorf("%v, log %q", backup, log.String())
	}
}

// A task from a wrong clock's future does not hide for years that there is none.
func TestATaskOfLaterIsNone(t *testing.T) {
	s := New(Options{Log: slog.New(slog.DiscardHandler)})
	s.tasks.audited(time.Now().Add(24*time.Hour), &AuditAnswer{}, nil)
	if _, audit := s.TasksRight(); !audit.IsZero() {
		t.Errorf("an audit began at %v", audit)
	}
	now := time.Now()
	s.tasks.audited(now, &AuditAnswer{}, nil)
	if _, audit := s.TasksRight(); !audit.Equal(now) {
		t.Errorf("an audit began at %v, want %v", audit, now)
	}
}
