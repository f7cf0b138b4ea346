package gateway

import (
	"context"
	"math"
	"strconv"
	"time"
	"weak"

	"exchange/actors"
)

// The metrics of what waits for operators, of what the exchange owes, and of what may run out.

// Bounds of series: pairs and currencies with higher numbers have none of their own. Numbers never
// change, so no series changes its meaning.
const (
	shownPairs      = 200
	shownCurrencies = 200
)

var (
	backupRight = describe("backup_success_timestamp_seconds",
		"When the newest backup that was sent whole began, in Unix time, as far as this node "+
			"knows, from before its start, too; 0: of none. In a cluster look at the newest of "+
			"all nodes: only the one that led then knows of it.")
	auditRight = describe("audit_success_timestamp_seconds",
		"When the newest audit without a difference began, in Unix time; 0 and clusters as of "+
			"exchange_backup_success_timestamp_seconds.")
	archiveFailures = describe("archive_failures_total",
		"How often the journal was not archived. It is not trimmed then, either, so the disk "+
			"fills. 0 without an archive. Each node of a cluster has its own.")
	diskFree = describe("disk_free_bytes",
		"Bytes that the exchange may still write to the disk of a folder: data, store where that "+
			"is another folder, archive. At 0 the process ends.", "folder")
	diskSize = describe("disk_size_bytes",
		"Size of the disk of a folder, to compare exchange_disk_free_bytes with.", "folder")
	storeMemory = describe("store_memory_bytes",
		"Memory that Redis uses, as it counts for maxmemory; 0 of other stores.")
	storeMemoryMost = describe("store_memory_limit_bytes",
		"maxmemory of Redis, or without one the memory of its machine; 0 of other stores. At it "+
			"Redis takes no writes, and no order is taken.")
	pendingWithdraws = describe("pending_withdraws",
		"Withdraws that wait, by status: new ones for their owner's code, verified ones for an "+
			"operator.", "status")
	pendingAge = describe("pending_withdraw_age_seconds",
		"How long ago the oldest pending withdraw was asked for, by status; 0: none is pending.",
		"status")
	haltedPairs = describe("halted_pairs",
		"Pairs that are halted by an operator. Watch that none is forgotten.")
	frozenAccounts = describe("frozen_accounts", "Accounts that are frozen by an operator.")
	liabilities    = describe("liabilities",
		"What the exchange owes: the sum of the balances of all accounts, fees included, by "+
			"currency, rounded to a float. What it holds must never be less.", "currency")
	pairOrders = describe("pair_open_orders",
		"Open orders of a pair, those that wait for a trigger included; all pairs without series "+
			"of their own are pair other.", "pair")
	pairVolume = describe("pair_volume",
		"What was traded of a pair within a day, in its base currency, as its ticker says.", "pair")
	unlisted = describe("unlisted",
		"Pairs and currencies above number "+strconv.Itoa(shownPairs)+", which have no series of "+
			"their own.", "kind")
)

var watchFamilies = []family{backupRight, auditRight, archiveFailures, diskFree, diskSize,
	storeMemory, storeMemoryMost, pendingWithdraws, pendingAge, haltedPairs, frozenAccounts,
	liabilities, pairOrders, pairVolume, unlisted}

// A survey is what a scrape cannot look up by itself of an engine.
type survey struct {
	of           weak.Pointer[actors.Engine]
	memory, most int64 // of the store
	silent       bool  // the store does not tell them
	pending      []awaiting
	frozen       int       // accounts
	owed         []float64 // by a currency's number-1; of those that have series
	currencies   int       // all of them
	pairs        []pairNow // by number-1; of those that have series
	halted       int       // pairs, of all
	others       int       // pairs without series
	otherOrders  int       // their open orders
}

// awaiting are the pending withdrawals of one status.
type awaiting struct {
	status string
	number int
	oldest time.Time // the zero time: none is pending
}

// A pairNow is the state of a pair.
type pairNow struct {
	open   int // orders
	volume float64
}

// surveyPatience bounds a survey, behind a snapshot that is being made or a store that hangs.
const surveyPatience = 20 * time.Second

// surveyOf surveys an engine; nil: it does not answer.
func surveyOf(e *actors.Engine) *survey {
	patience, cancel := context.WithTimeout(context.Background(), surveyPatience)
	defer cancel()
	t, err := e.Totals(patience)
	if err != nil {
		return nil
	}
	s := &survey{of: weak.Make(e), frozen: t.Frozen, currencies: len(t.Currencies),
		pending: []awaiting{{status: "new", number: t.New.Number},
			{status: "verified", number: t.Verified.Number}},
		others: max(0, len(t.Pairs)-shownPairs)}
	for i, us := range []int64{t.New.OldestUs, t.Verified.OldestUs} {
		if us != 0 {
			s.pending[i].oldest = time.UnixMicro(us)
		}
	}
	for _, x := range t.Currencies[:min(len(t.Currencies), shownCurrencies)] {
		s.owed = append(s.owed, approximate(x.Balance))
	}
	for i, x := range t.Pairs {
		if x.Halted {
			s.halted++
		}
		if i < shownPairs {
			s.pairs = append(s.pairs, pairNow{x.Open, approximate(x.Volume)})
		} else {
			s.otherOrders += x.Open
		}
	}
	s.memory, s.most, err = e.StoreMemory(patience)
	s.silent = err != nil
	return s
}

// A disk is that of a folder.
type disk struct {
	name       string
	free, size float64
}

func disksOf(folders []Folder) *[]disk {
	list := make([]disk, 0, len(folders))
	for _, f := range folders {
		if free, size, ok := roomOf(f.Path); ok {
			list = append(list, disk{f.Name, free, size})
		}
	}
	return &list
}

// watch gives what each process knows by itself.
func (c *collector) watch(out sink) {
	backup, audit := c.operator.TasksRight()
	out.moment(backupRight, backup)
	out.moment(auditRight, audit)
	failures := uint64(0)
	if c.opts.Archive != nil {
		failures = c.opts.Archive.Failures()
	}
	out.counter(archiveFailures, failures)
	disks := c.disks.newest(c.opts.pollPatience,
		func() *[]disk { return disksOf(c.opts.Folders) })
	if disks == nil {
		return
	}
	for _, d := range *disks {
		out.gauge(diskFree, d.free, d.name)
		out.gauge(diskSize, d.size, d.name)
	}
}

// survey gives the newest survey of an engine, if there is one.
func (c *collector) survey(out sink, e *actors.Engine) {
	s := c.surveys.newest(c.opts.pollPatience, func() *survey { return surveyOf(e) })
	if s == nil || s.of.Value() != e {
		return // of the reign before
	}
	if !s.silent {
		out.gauge(storeMemory, float64(s.memory))
		out.gauge(storeMemoryMost, float64(s.most))
	}
	for _, w := range s.pending {
		age := 0.0
		if !w.oldest.IsZero() {
			age = max(0, time.Since(w.oldest).Seconds())
		}
		out.gauge(pendingWithdraws, float64(w.number), w.status)
		out.gauge(pendingAge, age, w.status)
	}
	out.gauge(frozenAccounts, float64(s.frozen))
	out.gauge(haltedPairs, float64(s.halted))
	for i, x := range s.owed {
		out.gauge(liabilities, x, e.CurrencyCode(uint16(i+1)))
	}
	for i, x := range s.pairs {
		name := e.Market(uint16(i + 1)).Name
		out.gauge(pairOrders, float64(x.open), name)
		out.gauge(pairVolume, x.volume, name)
	}
	if s.others > 0 {
		out.gauge(pairOrders, float64(s.otherOrders), "other")
	}
	out.gauge(unlisted, float64(s.others), "pair")
	out.gauge(unlisted, float64(s.currencies-len(s.owed)), "currency")
}

// approximate returns a decimal number as a float.
func approximate(x interface{ String() string }) float64 {
	f, err := strconv.ParseFloat(x.String(), 64)
	if err != nil {
		return math.NaN() // no sum is as large
	}
	return f
}
