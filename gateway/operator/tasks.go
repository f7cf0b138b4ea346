package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"exchange/actors"
	"exchange/core/wire"
	"exchange/persistence"
)

// The leader runs backups and audits. It stores the newest results, which survive a restart; other
// nodes do not have them.

// A TaskStore stores a text for the next process of this node.
type TaskStore struct {
	// Text is the text stored by the previous process; nil: none.
	Text []byte
	// Keep replaces the text by another of at most TaskStoreBytes. nil: nothing is stored.
	Keep func(text []byte) error
}

// TaskStoreBytes bounds the text of a TaskStore.
const TaskStoreBytes = 64 << 10

const (
	memoryVersion = 1
	resultBytes   = 2000 // kept part of a task's result
)

// A taskEnded is a completed backup or audit.
type taskEnded struct {
	Began  string `json:"began" doc:"When it began"`
	Ended  string `json:"ended" doc:"When it ended"`
	OK     bool   `json:"ok" doc:"Whether it was right"`
	Result string `json:"result" doc:"What came of it"`
}

// A past holds the newest result of a kind of task, and the begin of the newest successful task.
type past struct {
	Newest *taskEnded `json:"newest"` // nil: none; the value never changes
	Right  time.Time  `json:"right"`  // the zero time: none
}

// remembered is the text of a TaskStore, as JSON.
type remembered struct {
	Version int  `json:"version"`
	Backup  past `json:"backup"`
	Audit   past `json:"audit"`
}

// tasks holds the past of backups and of audits.
type tasks struct {
	log     *slog.Logger
	keep    func(text []byte) error // nil: nothing is stored
	keeping sync.Mutex              // held during keep, for which readers do not wait
	mu      sync.Mutex
	record  remembered // guarded by mu
}

// restore reads the stored text.
func (t *tasks) restore(m TaskStore, log *slog.Logger) {
	t.keep, t.log = m.Keep, log
	t.record.Version = memoryVersion
	if m.Text == nil {
		return
	}
	var kept remembered
	err := json.Unmarshal(m.Text, &kept)
	form := (*json.UnmarshalTypeError)(nil) // a newer version may have other types
	if (err == nil || errors.As(err, &form)) && kept.Version != memoryVersion {
		err = wire.Version(uint64(max(kept.Version, 0)), memoryVersion)
	}
	if err != nil {
		log.Warn("the record of the last backup and audit is unreadable: this node "+
			"reports none until the next", "error", err)
		return
	}
	t.record = kept
}

func (t *tasks) newest() (backup, audit *taskEnded) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.record.Backup.Newest, t.record.Audit.Newest
}

// ended stores the result of a task, unless err is a refused request.
func (t *tasks) ended(kind *past, began time.Time, err error, result string, ok bool) {
	var request *actors.RequestError
	if errors.As(err, &request) {
		return
	}
	if err != nil {
		result, ok = "it failed: "+err.Error(), false
	}
	result = strings.ToValidUTF8(result[:min(len(result), resultBytes)], "")
	x := &taskEnded{clock(began.UnixMicro()), clock(time.Now().UnixMicro()), ok, result}
	t.keeping.Lock()
	defer t.keeping.Unlock()
	t.mu.Lock()
	if kind.Newest = x; ok {
		kind.Right = began
	}
	kept := t.record
	t.mu.Unlock()
	if t.keep == nil {
		return
	}
	text, err := json.Marshal(&kept)
	if err == nil {
		err = t.keep(text)
	}
	if err != nil {
		t.log.Warn("the end of a backup or an audit was not recorded: after a restart this node "+
			"will not report it", "error", err)
	}
}

// audited stores the result of an audit, and logs findings.
func (t *tasks) audited(began time.Time, a *AuditAnswer, err error) {
	if errors.Is(err, persistence.ErrCorrupt) {
		t.log.Error("an audit found damaged data: keep a copy of the store, and see "+
			"docs/runbook.md, \"A journal that only an audit finds damaged\"", "error", err)
	}
	if err != nil {
		t.ended(&t.record.Audit, began, err, "", false)
		return
	}
	n := len(a.Differences)
	text := fmt.Sprintf("no difference up to sequence %d", a.Sequence)
	if n > 0 {
		text = fmt.Sprintf("%d differences up to sequence %d", n, a.Sequence)
		t.log.Error("an audit found differences: keep a copy of the store, and see "+
			"docs/runbook.md, \"Audit differences\"", "differences", n, "sequence", a.Sequence,
			"first", a.Differences[0])
	}
	t.ended(&t.record.Audit, began, nil, text, n == 0)
}

// TasksRight returns the begin of the newest complete backup, and of the newest audit without a
// difference; the zero time: none on this node, or one in the future by a wrong clock.
func (s *Server) TasksRight() (backup, audit time.Time) {
	t := &s.tasks
	t.mu.Lock()
	defer t.mu.Unlock()
	return notLater(t.record.Backup.Right), notLater(t.record.Audit.Right)
}

// notLater returns t, or the zero time if t is more than an hour in the future.
func notLater(t time.Time) time.Time {
	if time.Until(t) > time.Hour {
		return time.Time{}
	}
	return t
}
