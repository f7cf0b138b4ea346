package actors

import (
	"fmt"
	"testing"
	"time"

	"exchange/actors/committed"
	"exchange/persistence"
	"exchange/persistence/redistest"
)

// BenchmarkAudit audits an engine: it replays 1,000,000 records and finds all their rows, in a few
// long lists or in many short ones.
func BenchmarkAudit(b *testing.B) {
	for _, kind := range []string{"pebble", "redis"} {
		for _, accounts := range []int{100, 50_000} {
			b.Run(fmt.Sprintf("store=%s/accounts=%d", kind, accounts), func(b *testing.B) {
				var store persistence.Store
				if kind == "pebble" {
					store = openPebble(b, b.TempDir())
				} else {
					store = openRedis(b, redistest.Start(b).URL(), "")
				}
				defer store.Close()
				s := newScribe(b, store)
				s.accounts(accounts)
				s.trading(1_000_000, accounts)
				s.state = nil
				o := timedOptions(store)
				o.Limits.ProjectionLag, o.Snapshot = 10_000_000,
					committed.SnapshotPolicy{MinRecords: 1 << 40, MaxRecords: 1 << 40}
				o.Timing.Request = 10 * time.Minute // until all is written
				e := start(b, o)
				if err := e.Ask(new(committed.Written), nil, 0); err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				for range b.N {
					report, err := e.Audit(b.Context(), nil, func(uint64, uint64) {})
					if err != nil || len(report.Differences) > 0 || report.Records < 1_000_000 {
						b.Fatalf("%+v, %v", report, err)
					}
					b.ReportMetric(float64(report.Rows), "rows")
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/audit")
				b.StopTimer()
				e.Abandon()
			})
		}
	}
}
