package metrics

import (
	"cmp"
	"context"
	"math"
	"strconv"
	"time"
	"weak"

	"exchange/actors"
	"exchange/gateway/edge"
)

// Bounds of series: pairs and currencies with higher numbers have none of their own. Numbers never
// change, so no series changes its meaning.
const (
	shownPairs      = 200
	shownCurrencies = 200
)

// patience bounds the wait for a slow lookup.
func (c *Collector) patience() time.Duration {
	return cmp.Or(c.opts.PollPatience, pollPatience)
}

// A survey holds slowly gathered numbers of an engine.
type survey struct {
	engine weak.Pointer[actors.Engine]
	*actors.Survey
}

// surveyPatience bounds a survey, which may wait for a snapshot in progress or a hanging store.
const surveyPatience = 20 * time.Second

// surveyOf surveys an engine; nil: no answer.
func surveyOf(e *actors.Engine) *survey {
	patience, cancel := context.WithTimeout(context.Background(), surveyPatience)
	defer cancel()
	s, err := e.Survey(patience)
	if err != nil {
		return nil
	}
	return &survey{weak.Make(e), s}
}

// A disk is the free space and size of a folder's disk.
type disk struct {
	name       string
	free, size float64
}

func disksOf(folders []edge.Folder) *[]disk {
	list := make([]disk, 0, len(folders))
	for _, f := range folders {
		if free, size, ok := roomOf(f.Path); ok {
			list = append(list, disk{f.Name, free, size})
		}
	}
	return &list
}

// watch gives each process's own numbers.
func (c *Collector) watch(out sink) {
	backup, audit := c.Operator.TasksRight()
	out.metric("backup_success_timestamp_seconds",
		"When the newest backup that was sent whole began, in Unix time, as recorded by this "+
			"node, also before its start; 0: none. In a cluster look at the newest of all "+
			"nodes: only the leader of that time has recorded it.").moment(backup)
	out.metric("audit_success_timestamp_seconds",
		"When the newest audit without a difference began, in Unix time; 0 and clusters as of "+
			"exchange_backup_success_timestamp_seconds.").moment(audit)
	failures := uint64(0)
	if c.opts.Archive != nil {
		failures = c.opts.Archive.Failures()
	}
	out.metric("archive_failures_total",
		"How often the journal was not archived. It is not trimmed then, either, so the disk "+
			"fills. 0 without an archive. Each node of a cluster has its own.").counter(failures)
	lost := uint64(0)
	if c.opts.LogLost != nil {
		lost = c.opts.LogLost()
	}
	out.metric("log_lost_lines_total",
		"Lines of the log that were lost, because its reader has ended or stalls. Any "+
			"means that nobody sees the exchange's log.").counter(lost)
	disks := c.disks.newest(c.patience(),
		func() *[]disk { return disksOf(c.opts.Folders) })
	if disks == nil {
		return
	}
	free := out.metric("disk_free_bytes",
		"Bytes that the exchange may still write to the disk of a folder: data, store where that "+
			"is another folder, archive. At 0 the process ends.", "folder")
	size := out.metric("disk_size_bytes",
		"Size of the disk of a folder, to compare exchange_disk_free_bytes with.", "folder")
	for _, d := range *disks {
		free.gauge(d.free, d.name)
		size.gauge(d.size, d.name)
	}
}

// survey gives the newest survey of an engine, if any: operators' pending work, the exchange's
// liabilities, and resources that may run out.
func (c *Collector) survey(out sink, e *actors.Engine) {
	s := c.surveys.newest(c.patience(), func() *survey { return surveyOf(e) })
	if s == nil || s.engine.Value() != e {
		return // the survey is of the previous term's engine
	}
	if !s.Silent {
		out.metric("store_memory_bytes",
			"Memory that Redis uses, as it counts for maxmemory; 0 of other stores.").
			gauge(float64(s.Memory))
		out.metric("store_memory_limit_bytes",
			"maxmemory of Redis, or without one the memory of its machine; 0 of other stores. "+
				"At it Redis takes no writes, and no order is taken.").
			gauge(float64(s.MemoryMost))
	}
	withdrawals := out.metric("pending_withdraws",
		"Withdraws that wait, by status: new ones for their owner's code, verified ones for an "+
			"operator.", "status")
	oldest := out.metric("pending_withdraw_age_seconds",
		"How long ago the oldest pending withdrawal was asked for, by status; 0: none is pending.",
		"status")
	pending := func(status string, number int, oldestUs int64) {
		age := 0.0
		if oldestUs != 0 {
			age = max(0, time.Since(time.UnixMicro(oldestUs)).Seconds())
		}
		withdrawals.gauge(float64(number), status)
		oldest.gauge(age, status)
	}
	pending("new", s.New.Number, s.New.OldestUs)
	pending("verified", s.Verified.Number, s.Verified.OldestUs)
	out.metric("frozen_accounts", "Accounts that are frozen by an operator.").
		gauge(float64(s.Frozen))
	liabilities := out.metric("liabilities",
		"The liabilities of the exchange: the sum of the balances of all accounts, fees included, "+
			"by currency, rounded to a float. What it holds must never be less.", "currency")
	for i, x := range s.Currencies[:min(len(s.Currencies), shownCurrencies)] {
		liabilities.gauge(approximate(x.Balance), e.CurrencyCode(uint16(i+1)))
	}
	out.pairs(e, s.Survey)
	unlisted := out.metric("unlisted",
		"Pairs and currencies above number "+strconv.Itoa(shownPairs)+", which have no series of "+
			"their own.", "kind")
	unlisted.gauge(float64(max(0, len(s.Pairs)-shownPairs)), "pair")
	unlisted.gauge(float64(max(0, len(s.Currencies)-shownCurrencies)), "currency")
}

// pairs gives each pair's numbers.
func (s sink) pairs(e *actors.Engine, survey *actors.Survey) {
	orders := s.metric("pair_open_orders",
		"Open orders of a pair, those that wait for a trigger included; all pairs without series "+
			"of their own are pair other.", "pair")
	volume := s.metric("pair_volume",
		"Traded volume of a pair within a day, in its base currency, as its ticker says.", "pair")
	halted, otherOrders := 0, 0
	for i, x := range survey.Pairs {
		if x.Halted {
			halted++
		}
		if i >= shownPairs {
			otherOrders += x.Open
			continue
		}
		name := e.Market(uint16(i + 1)).Name
		orders.gauge(float64(x.Open), name)
		volume.gauge(approximate(x.Volume), name)
	}
	s.metric("halted_pairs",
		"Pairs that are halted by an operator. Watch that none is forgotten.").
		gauge(float64(halted))
	if len(survey.Pairs) > shownPairs {
		orders.gauge(float64(otherOrders), "other")
	}
}

// approximate returns a decimal number as a float.
func approximate(x interface{ String() string }) float64 {
	f, err := strconv.ParseFloat(x.String(), 64)
	if err != nil {
		return math.NaN() // no sum is that large
	}
	return f
}
