//go:build prove

package actors

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	redisclient "github.com/redis/go-redis/v9"

	"exchange/persistence/redistest"
)

// Redis's lists and sorted sets of the history, by the name that an audit gives each.
var (
	historyLists = map[string]string{"trades": "trades", "trades:1": "trades of pair BTC_USD",
		"trades:2":         "trades of pair BTC_EUR",
		"trades:account:1": "trades of account ann", "trades:account:2": "trades of account ben",
		"deposits:1": "deposits of account ann",
		"deposits:2": "deposits of account ben", "actions": "actions",
		"candles:1:0": "candles of pair BTC_USD, timeframe 1",
		"candles:1:1": "candles of pair BTC_USD, timeframe 5",
		"candles:2:6": "candles of pair BTC_EUR, timeframe D"}
	historySets = map[string]string{
		"orders:1": "closed orders of account ann", "orders:2": "closed orders of account ben",
		"withdraws": "withdraws", "withdraws:1": "withdrawals of account ann"}
)

// A damagedHistory is an engine with a history in Redis, which a test damages.
type damagedHistory struct {
	t       *testing.T
	client  *redisclient.Client
	options Options
	e       *Engine
}

func newDamagedHistory(t *testing.T) *damagedHistory {
	t.Helper()
	server := redistest.Start(t)
	store := openRedis(t, server.URL(), "")
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &damagedHistory{t: t, client: server.Client(), options: testOptions(store)}
	d.options.Tests.rowRefs, d.options.Tests.deposits = 10, 3
	d.e = start(t, d.options)
	history(t, d.e)
	return d
}

// find damages a key, runs an audit that must find the damage, and restores the key.
func (d *damagedHistory) find(damage, key, want string, do func(key string) error) {
	d.t.Helper()
	full := "{main}:" + key
	was := must[string](d.t)(d.client.Dump(d.t.Context(), full).Result())
	succeeds(d.t, do(full))
	d.audit(damage, key, want)
	succeeds(d.t, d.client.RestoreReplace(d.t.Context(), full, 0, was).Err())
}

// audit wants a difference with the given prefix, or one that names the key as damaged.
func (d *damagedHistory) audit(damage, key, want string) {
	d.t.Helper()
	report, err := d.e.Audit(d.t.Context(), nil, func(uint64, uint64) {})
	if err != nil || !slices.ContainsFunc(report.Differences, func(d string) bool {
		return strings.HasPrefix(d, want) ||
			strings.HasPrefix(d, "damaged: ") && strings.Contains(d, " {main}:"+key+": ")
	}) {
		d.t.Errorf("%s of %s: the audit finds %+v, %v", damage, key, report, err)
	}
}

// restart ends the run that has written the rows.
func (d *damagedHistory) restart() {
	d.t.Helper()
	auditClean(d.t, d.e) // waits until the rows are written
	d.e.Abandon()
	d.e = start(d.t, d.options)
}

func (d *damagedHistory) findsAListMissing(list, name string) {
	d.t.Helper()
	d.find("all", list, name+": ", func(key string) error {
		return d.client.Del(d.t.Context(), key).Err()
	})
}

// findsARowMissing removes the newest or the oldest row of a list or set.
func (d *damagedHistory) findsARowMissing(row, key string) {
	d.t.Helper()
	ctx := d.t.Context()
	if name, isSet := historySets[key]; isSet {
		rank := map[string]int64{"the oldest": 0, "the newest": -1}[row]
		d.find(row, key, name+": ", func(key string) error {
			return d.client.ZRemRangeByRank(ctx, key, rank, rank).Err()
		})
		return
	}
	take := map[string]func(context.Context, string) *redisclient.StringCmd{
		"the oldest": d.client.LPop, "the newest": d.client.RPop}[row]
	d.find(row, key, historyLists[key]+": ", func(key string) error { return take(ctx, key).Err() })
}

// findsAChangedRow changes the last byte of the oldest row. That byte belongs to a trade's fees, to
// the text of a deposit or an action, or to a candle's volume.
func (d *damagedHistory) findsAChangedRow(list string) {
	d.t.Helper()
	ctx := d.t.Context()
	d.find("the words", list, historyLists[list]+": ", func(key string) error {
		row := []byte(must[string](d.t)(d.client.LIndex(ctx, key, 0).Result()))
		row[len(row)-1] ^= 1
		return d.client.LSet(ctx, key, 0, row).Err()
	})
}

// findsAnyDamage tries the damages that an audit finds in the running engine's rows and in those of
// an earlier run. It cannot check the words of an earlier run's actions.
func (d *damagedHistory) findsAnyDamage(ownActions bool) {
	d.t.Helper()
	for list, name := range historyLists {
		d.findsAListMissing(list, name)
		d.findsARowMissing("the newest", list)
		if list != "actions" || ownActions {
			d.findsAChangedRow(list)
		}
	}
	for set, name := range historySets {
		d.findsAListMissing(set, name)
		d.findsARowMissing("the newest", set)
	}
	d.findsADamagedField()
	// These are never trimmed.
	for _, key := range []string{"deposits:1", "actions", "withdraws", "withdraws:1"} {
		d.findsARowMissing("the oldest", key)
	}
	auditClean(d.t, d.e)
}

// findsADamagedField damages nonces, references and wallets, which Redis stores as hashes.
func (d *damagedHistory) findsADamagedField() {
	d.t.Helper()
	ctx := d.t.Context()
	d.find("a nonce", "nonces",
		"key key-of-ann of account ann: projected is nonce 1, committed ",
		func(key string) error { return d.client.HSet(ctx, key, "key-of-ann", 1).Err() })
	d.find("a nonce", "nonces",
		"key key-of-ben of account ben: projected is nonce 0, committed ",
		func(key string) error { return d.client.HDel(ctx, key, "key-of-ben").Err() })
	const index = "references of deposits: "
	d.find("all", "references", index,
		func(key string) error { return d.client.Del(ctx, key).Err() })
	d.find("one reference", "references", index+"that of deposit 1 is missing",
		func(key string) error { return d.client.HDel(ctx, key, "ann0").Err() })
	d.find("a balance", "wallet:ann", "account ann, BTC: projected are 1 with 0 reserved",
		func(key string) error { return d.client.HSet(ctx, key, "BTC", "1:0").Err() })
}

func TestAnAuditFindsDamagedProjections(t *testing.T) {
	d := newDamagedHistory(t)
	report := auditClean(t, d.e)
	if report.Rows < 12*4+27+8+6+14 || report.Trimmed != 0 {
		t.Errorf("%+v", report)
	}
	d.findsAnyDamage(true)
	for list := range historyLists {
		if !strings.HasPrefix(list, "candles") {
			d.findsARowMissing("the oldest", list)
		}
	}
	for set := range historySets {
		d.findsARowMissing("the oldest", set)
	}
	stop(t, d.e)
}

// An earlier run may have kept fewer rows and written other words of operators' actions. So neither
// the oldest rows nor these words are compared.
func TestAnAuditFindsDamagedProjectionsOfAnEarlierRun(t *testing.T) {
	d := newDamagedHistory(t)
	d.restart()
	d.findsAnyDamage(false)
	stop(t, d.e)
}

// findsOlderRowsMissing deletes a list or set, and has the engine write new rows into it.
// Afterwards it restores the older rows beside the new ones.
func (d *damagedHistory) findsOlderRowsMissing(key, name string) {
	d.t.Helper()
	ctx, full := d.t.Context(), "{main}:"+key
	was := must[string](d.t)(d.client.Dump(ctx, full).Result())
	succeeds(d.t, d.client.Del(ctx, full).Err())
	trade(d.t, d.e, 1000+d.e.committed.Released())
	d.audit("all older rows", key, name+": ")
	newer := d.client.LRange(ctx, full, 0, -1).Val() // none of a set
	members := d.client.ZRangeWithScores(ctx, full, 0, -1).Val()
	if len(newer)+len(members) == 0 {
		d.t.Errorf("%s has no new rows", key)
	}
	errs := []error{d.client.RestoreReplace(ctx, full, 0, was).Err()}
	for _, row := range newer {
		errs = append(errs, d.client.RPush(ctx, full, row).Err())
	}
	for _, m := range members {
		errs = append(errs, d.client.ZAdd(ctx, full, m).Err())
	}
	succeeds(d.t, errors.Join(errs...))
}

func TestAnAuditFindsThatOnlyNewRowsAreLeft(t *testing.T) {
	d := newDamagedHistory(t)
	d.restart()
	d.findsOlderRowsMissing("orders:1", historySets["orders:1"])
	d.findsOlderRowsMissing("trades:1", historyLists["trades:1"])
	d.findsOlderRowsMissing("trades:account:1", historyLists["trades:account:1"])
	auditClean(t, d.e)
	stop(t, d.e)
}

// After its last snapshot an audit has no records to replay. It still checks the rows that are
// never trimmed, and the lists that cannot be empty.
func TestAnAuditWithoutRecordsFindsMissingListsAndRows(t *testing.T) {
	d := newDamagedHistory(t)
	stop(t, d.e)
	d.e = start(t, d.options)
	if report := auditClean(t, d.e); report.Records > 0 {
		t.Errorf("%+v", report)
	}
	for list, name := range historyLists {
		if list != "actions" {
			d.findsAListMissing(list, name)
		}
	}
	for set, name := range historySets {
		d.findsAListMissing(set, name)
	}
	for _, key := range []string{"deposits:1", "withdraws", "withdraws:1", "candles:1:0"} {
		d.findsARowMissing("the newest", key)
	}
	stop(t, d.e)
}
