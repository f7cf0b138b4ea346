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

// Backups and audits are those of the leader. It remembers the newest ones, across restarts too.
// Other nodes do not have them.

// A Memory keeps a text for the next process of this node.
type Memory struct {
	// Text is the text kept by the previous process; nil: none.
	Text []byte
	// Keep replaces the text by another of at most MemoryBytes. nil: nothing is kept.
	Keep func(text []byte) error
}

// MemoryBytes bounds the text of a Memory.
const MemoryBytes = 64 << 10

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

// A past holds the newest task of a kind, and the begin of the newest successful one.
type past struct {
	Newest *taskEnded `json:"newest"` // nil: none; the value never changes
	Right  time.Time  `json:"right"`  // the zero time: none
}

// remembered is the text of a Memory.
type remembered struct {
	Version int  `json:"version"`
	Backup  past `json:"backup"`
	Audit   past `json:"audit"`
}

// tasks holds the past of backups and of audits.
type tasks struct {
	log     *slog.Logger
	keep    func(text []byte) error // nil: nothing is kept
	keeping sync.Mutex              // held while the text is kept; readers do not wait for that
	mu      sync.Mutex
	record  remembered // guarded by mu
}

// remember starts with the kept text.
func (t *tasks) remember(m Memory, log *slog.Logger) {
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

// ended records the end of a task. A refused one does not count.
func (t *tasks) ended(of *past, began time.Time, err error, result string, ok bool) {
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
	if of.Newest = x; ok {
		of.Right = began
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

// audited records the end of an audit, and logs one that finds something.
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

// TasksRight returns the begin of the newest backup that was sent completely, and of the newest
// audit without a difference; the zero time: none on this node. One from the future, by a wrong
// clock, does not count.
func (s *Server) TasksRight() (backup, audit time.Time) {
	t := &s.tasks
	t.mu.Lock()
	defer t.mu.Unlock()
	return notLater(t.record.Backup.Right), notLater(t.record.Audit.Right)
}

// notLater returns a time that is not ahead of the clock by more than clocks are wrong.
func notLater(t time.Time) time.Time {
	if time.Until(t) > time.Hour {
		return time.Time{}
	}
	return t
}
