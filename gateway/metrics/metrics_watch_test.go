package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"exchange/actors"
	"exchange/actors/directory"
	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/metrics"
	"exchange/persistence"
	"exchange/prove/harness"
)

// Pending work, liabilities and settings are in one scrape, and fit the operator's page.
func TestPendingWorkIsInTheScrape(t *testing.T) {
	h := harness.Moderated(t)
	ask := harness.AsOperator(t, h.Gateway)
	for path, body := range map[string]string{"pairs/halt": `{"pair":"ETH_BTC","on":true}`,
		"accounts/freeze": `{"account":"bob","on":true}`} {
		ask("POST", "/operator/v1/"+path, body).Must(t, 200, path)
	}
	s := harness.Scraping(t, h.Gateway)()
	page := harness.Decode[harness.StatusPage](t, ask("GET", "/operator/v1/status", ""))
	for _, x := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{1, "exchange_pending_withdraws", []string{"status", "new"}},
		{1, "exchange_pending_withdraws", []string{"status", "verified"}},
		{1, "exchange_halted_pairs", nil},
		{1, "exchange_frozen_accounts", nil},
		{float64(page.Open), "exchange_pair_open_orders", nil},
		{float64(page.Open), "exchange_open_orders", nil},
		{0, "exchange_pair_open_orders", []string{"pair", "ETH_BTC"}},
		{0, "exchange_unlisted", nil},
		{0, "exchange_store_memory_bytes", nil},
		{0, "exchange_store_memory_limit_bytes", nil},
		{0, "exchange_archive_failures_total", nil},
		{0, "exchange_backup_success_timestamp_seconds", nil},
	} {
		if got := s.Value(x.name, x.labels...); got != x.want {
			t.Errorf("%s%v is %v, want %v", x.name, x.labels, got, x.want)
		}
	}
	if page.Open == 0 || !(s.Value("exchange_pair_volume", "pair", "BTC_USDT") > 0) ||
		!(s.Value("exchange_pending_withdraw_age_seconds", "status", "verified") > 0) {
		t.Errorf("%d open orders; %v %v", page.Open, s["exchange_pair_volume"],
			s["exchange_pending_withdraw_age_seconds"])
	}
	totals := harness.Decode[struct {
		Totals []struct {
			Currency            string
			Balances, Deposited float64
		}
	}](t, ask("GET", "/operator/v1/totals", ""))
	for _, x := range totals.Totals {
		if got := s.Value("exchange_liabilities", "currency", x.Currency); got != x.Balances ||
			got != x.Deposited {
			t.Errorf("liabilities in %s are %v, want %v", x.Currency, got, x.Balances)
		}
	}
	if len(totals.Totals) != 3 {
		t.Errorf("%d currencies", len(totals.Totals))
	}
}

// However many pairs and currencies there are, series are bounded, and none is counted twice.
func TestSeriesOfPairsAndCurrenciesAreBounded(t *testing.T) {
	const more = 3
	h := harness.New(t, func(o *actors.Options) {
		o.Currencies, o.Pairs = []directory.Currency{{Code: "USDT", Sign: "$"}}, o.Pairs[:1]
		rules := o.Pairs[0]
		o.Pairs = nil
		for i := range metrics.ShownPairs + more {
			code := fmt.Sprintf("C%c%c", 'A'+i/26, 'A'+i%26)
			o.Currencies = append(o.Currencies, directory.Currency{Code: code, Sign: "c"})
			rules.Name, rules.Base = code+"_USDT", code
			o.Pairs = append(o.Pairs, rules)
		}
	})
	h.Account("alice")
	last := h.Engine.Market(metrics.ShownPairs + more).Name
	base, _, _ := strings.Cut(last, "_")
	h.Deposit("alice", "10", base, "all")
	h.Post("alice", "/api/v1/order", harness.Order("sell", last, "1", "100")).Must(t, 201)
	s := harness.Scraping(t, h.Gateway)()
	for name, want := range map[string]int{"exchange_pair_open_orders": metrics.ShownPairs + 1,
		"exchange_pair_volume": metrics.ShownPairs,
		"exchange_liabilities": metrics.ShownCurrencies} {
		if got := len(s.Series(name)); got != want {
			t.Errorf("%s has %d series, want %d", name, got, want)
		}
	}
	if s.Value("exchange_pair_open_orders", "pair", "other") != 1 ||
		s.Value("exchange_unlisted", "kind", "pair") != more ||
		s.Value("exchange_unlisted", "kind", "currency") != more+1 {
		t.Errorf("%v", s["exchange_unlisted"])
	}
}

// A memoryStore is a store in the memory of a server.
type memoryStore struct {
	persistence.Store
	err error
}

func (s memoryStore) Memory(context.Context) (used, most int64, err error) {
	return 900, 1000, s.err
}

func TestTheMemoryOfRedisIsInTheScrape(t *testing.T) {
	for _, fails := range []error{nil, errors.New("no answer")} {
		h := harness.New(t, func(o *actors.Options) { o.Store = memoryStore{o.Store, fails} })
		used, most := 900.0, 1000.0
		if fails != nil {
			used, most = math.NaN(), math.NaN()
		}
		s := harness.Scraping(t, h.Gateway)()
		for name, want := range map[string]float64{"exchange_store_memory_bytes": used,
			"exchange_store_memory_limit_bytes": most} {
			if got := s.Value(name); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%v: %s is %v, want %v", fails, name, got, want)
			}
		}
	}
}

// Each process shows its own disks and the failures of its own archive, also without an engine.
func TestDisksAndArchiveAreInTheScrapeOfEachNode(t *testing.T) {
	cluster := harness.NewFakeCluster()
	g := gateway.New(edge.Options{Log: harness.Quiet(), BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections:   10,
		OperatorToken: harness.OperatorToken, Cluster: cluster, Archive: harness.DamagedArchive{},
		LogLost: func() uint64 { return 7 },
		Folders: []edge.Folder{{Name: "data", Path: t.TempDir()},
			{Name: "archive", Path: t.TempDir() + "/gone"}}})
	s := harness.Scraping(t, g)()
	free := s.Value("exchange_disk_free_bytes", "folder", "data")
	if size := s.Value("exchange_disk_size_bytes"); !(free > 0) || size < free ||
		len(s.Series("exchange_disk_free_bytes")) != 1 {
		t.Errorf("%v of %v bytes are free", free, size)
	}
	if lost := s.Value("exchange_log_lost_lines_total"); lost != 7 {
		t.Errorf("%v lines of the log were lost", lost)
	}
	if s.Value("exchange_archive_failures_total") != 3 || s["exchange_liabilities"] != nil ||
		s["exchange_pending_withdraws"] != nil {
		t.Errorf("%v", s["exchange_archive_failures_total"])
	}
}

// The last successful backup and audit are kept across a restart, and failed ones do not count.
func TestBackupAndAuditSurviveRestart(t *testing.T) {
	h := harness.Moderated(t)
	h.Stop()
	var kept []byte
	h.Tune = func(o *edge.Options) {
		o.Tasks.Text = kept
		o.Tasks.Keep = func(text []byte) error { kept = text; return nil }
	}
	h.Start()
	ask := harness.AsOperator(t, h.Gateway)
	ask("POST", "/operator/v1/audit", `{}`).Must(t, 200)
	ask("GET", "/operator/v1/backup", "").Must(t, 200)
	known := func() (at [2]float64) {
		t.Helper()
		s := harness.Scraping(t, h.Gateway)()
		for i, name := range []string{"backup", "audit"} {
			at[i] = s.Value("exchange_" + name + "_success_timestamp_seconds")
		}
		return at
	}
	page := harness.Decode[harness.StatusPage](t, ask("GET", "/operator/v1/status", ""))
	before := known()
	if before[0] == 0 || before[1] == 0 || before[0] < before[1] {
		t.Errorf("they began at %v", before)
	}
	h.Crash()
	h.Start()
	ask = harness.AsOperator(t, h.Gateway)
	again := harness.Decode[harness.StatusPage](t, ask("GET", "/operator/v1/status", ""))
	if got := known(); got != before || *again.Backup != *page.Backup ||
		*again.Audit != *page.Audit {
		t.Errorf("after a restart %v, %+v; before it %v, %+v", got, again, before, page)
	}
}
