package loadtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// A Sample is the server's metrics at one moment, from its operator's /metrics.
type Sample struct {
	At     float64 `json:"at"` // seconds since the load began
	RSS    float64 `json:"rss_bytes"`
	Heap   float64 `json:"heap_bytes"` // in use
	Disk   float64 `json:"disk_bytes"` // of the given folder; 0: none given
	CPU    float64 `json:"cpu_seconds"`
	Own    float64 `json:"own_cpu_seconds"` // of the load tester
	Open   float64 `json:"open_orders"`
	Placed float64 `json:"orders_placed"` // since the server started

	size      float64 // of the newest snapshot
	snapshot  span
	audit     span
	stages    [snapshotStages]float64 // seconds, of the newest snapshot
	rewriting float64
	start     float64 // of the process, in Unix time; 0: unknown
	appends   tally   // to the store, in seconds
	batches   tally   // of these, in records
	taken     time.Time
}

// A span is the newest run of the server's occasional work, in Unix time.
type span struct{ begin, end float64 }

// The reported stages of a snapshot.
const snapshotStages = 3

var stageNames = [snapshotStages]string{"image", "upload", "trim"}

// A Mark is a period of the server's occasional work.
type Mark struct {
	Kind  string  `json:"kind"` // snapshot, rewrite or audit
	From  float64 `json:"from"` // seconds since the load began
	To    float64 `json:"to"`
	Bytes float64 `json:"bytes,omitempty"` // of a snapshot
	// of a snapshot: duration by stage
	Stages map[string]float64 `json:"stages_ms,omitempty"`
}

// Kinds of marks.
const (
	markSnapshot = "snapshot"
	markRewrite  = "rewrite"
	markAudit    = "audit"
)

var markKinds = [...]string{markSnapshot, markRewrite, markAudit}

// A watcher samples the server while the load runs.
type watcher struct {
	rest       *rest
	disk       string
	stop       context.CancelFunc
	group      sync.WaitGroup
	samples    []Sample // owned by the goroutine until it ends
	unanswered int      // unanswered scrapes
	// why the newest scrape was not answered; nil: it was
	unsampled error

	status  status // last received
	unknown error  // why there was no status at the end; nil: there was
}

const (
	watchEvery   = time.Second // at most; short rows have four samples
	watchTimeout = 5 * time.Second
)

// watch starts sampling; nil if the operator's listener is unknown.
func watch(ctx context.Context, r *rest) *watcher {
	if !r.o.operated() {
		return nil
	}
	running, stop := context.WithCancel(ctx)
	w := &watcher{rest: r, disk: r.o.Disk, stop: stop}
	w.status, _ = r.status(ctx) // queried again at the end
	w.group.Go(func() {
		tick := time.NewTicker(max(min(watchEvery, r.o.Every/4), time.Millisecond))
		defer tick.Stop()
		for running.Err() == nil {
			w.sample(ctx)
			select {
			case <-running.Done():
			case <-tick.C:
			}
		}
		w.sample(ctx)
	})
	return w
}

// end takes the last sample and the status.
func (w *watcher) end(ctx context.Context) {
	if w == nil {
		return
	}
	w.stop()
	w.group.Wait()
	var now status
	if now, w.unknown = w.rest.status(ctx); w.unknown == nil {
		w.status = now
	}
}

// sample scrapes once. It retries a server that stands still in the next second.
func (w *watcher) sample(ctx context.Context) {
	s := Sample{taken: time.Now(), Own: processTime().Seconds(), Disk: folderSize(w.disk)}
	text, err := w.rest.metrics(ctx)
	if err == nil && !s.read(text) {
		err = errors.New("/metrics is not of an exchange")
	}
	if w.unsampled = err; err != nil {
		w.unanswered++
		return
	}
	w.samples = append(w.samples, s)
}

// metrics reads the server's metrics from the operator's listener.
func (r *rest) metrics(ctx context.Context) (string, error) {
	req := &fasthttp.Request{} // not pooled: see await
	req.SetRequestURI("/metrics")
	r.toOperator(req)
	req.SetTimeout(watchTimeout)
	resp, err := sendUntil(r.ops, req, ctx.Done(), func() bool { return false })
	if err != nil {
		return "", err
	}
	if resp.StatusCode() != fasthttp.StatusOK {
		return "", fmt.Errorf("/metrics was answered with %d", resp.StatusCode())
	}
	return string(resp.Body()), nil
}

// read parses a scrape. It is false for one that is not of an exchange.
func (s *Sample) read(text string) bool {
	wanted := map[string]*float64{
		"process_resident_memory_bytes":                   &s.RSS,
		"go_memstats_heap_inuse_bytes":                    &s.Heap,
		"process_cpu_seconds_total":                       &s.CPU,
		"exchange_open_orders":                            &s.Open,
		"exchange_orders_accepted_total":                  &s.Placed,
		"exchange_snapshot_bytes":                         &s.size,
		"exchange_snapshot_begin_timestamp_seconds":       &s.snapshot.begin,
		"exchange_snapshot_end_timestamp_seconds":         &s.snapshot.end,
		"exchange_audit_begin_timestamp_seconds":          &s.audit.begin,
		"exchange_audit_end_timestamp_seconds":            &s.audit.end,
		"exchange_store_rewriting":                        &s.rewriting,
		"process_start_time_seconds":                      &s.start,
		"exchange_store_append_duration_seconds_sum":      &s.appends.sum,
		"exchange_store_append_duration_seconds_count":    &s.appends.count,
		"exchange_journal_batch_records_sum":              &s.batches.sum,
		"exchange_journal_batch_records_count":            &s.batches.count,
		`exchange_snapshot_stage_seconds{stage="image"}`:  &s.stages[0],
		`exchange_snapshot_stage_seconds{stage="upload"}`: &s.stages[1],
		`exchange_snapshot_stage_seconds{stage="trim"}`:   &s.stages[2],
	}
	found := 0
	for line := range strings.Lines(text) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if at := wanted[series]; at != nil {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				*at = v
				found++
			}
		}
	}
	return found > 0
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// folderSize returns the size of the files in a folder; 0 of "". Files that vanish meanwhile count
// 0.
func folderSize(folder string) (size float64) {
	if folder == "" {
		return 0
	}
	_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += float64(info.Size())
			}
		}
		return nil
	})
	return size
}

// course gives samples and marks their times in the load, which began at that moment.
func course(samples []Sample, began time.Time) (all []Sample, marks []Mark) {
	since := func(unix float64) float64 { return unix - float64(began.UnixMicro())/1e6 }
	open := map[string]int{} // newest mark of each kind
	note := func(kind string, at float64, x span) *Mark {
		if x.begin == 0 || since(max(x.begin, x.end)) < 0 {
			return nil // before the load
		}
		from := since(x.begin)
		if i, ok := open[kind]; !ok || marks[i].From != from {
			open[kind] = len(marks)
			marks = append(marks, Mark{Kind: kind, From: from})
		}
		m := &marks[open[kind]]
		if m.To = at; x.end >= x.begin {
			m.To = since(x.end)
		}
		return m
	}
	rewrite := span{}
	for _, s := range samples {
		s.At = s.taken.Sub(began).Seconds()
		if m := note(markSnapshot, s.At, s.snapshot); m != nil {
			m.snapshot(&s)
		}
		note(markAudit, s.At, s.audit)
		if now := float64(s.taken.UnixMicro()) / 1e6; s.rewriting == 0 {
			rewrite = span{}
		} else {
			if rewrite.begin == 0 {
				rewrite.begin = now
			}
			rewrite.end = now
			note(markRewrite, s.At, rewrite)
		}
		all = append(all, s)
	}
	return all, marks
}

// snapshot adds the finished stages. Before the end, those after the image are of the previous
// snapshot.
func (m *Mark) snapshot(s *Sample) {
	if m.Stages == nil {
		m.Stages = map[string]float64{}
	}
	m.Stages[stageNames[0]] = s.stages[0] * 1000
	if s.snapshot.end >= s.snapshot.begin {
		m.Bytes = s.size
		for i, took := range s.stages {
			m.Stages[stageNames[i]] = took * 1000
		}
	}
}
