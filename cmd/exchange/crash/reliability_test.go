//go:build linux

package crash

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// reliability is docs/reliability.md: what the campaign has done, and what it cannot show. commit
// is what the program was built from, "" if that is not known, and redis is the version that was
// killed and cut off.
func reliability(tallies []*tally, seed, commit, redis string) []byte {
	var b bytes.Buffer
	b.WriteString(reliabilityHead)
	var all tally
	for _, y := range tallies {
		fmt.Fprintf(&b, "| %s | %d | %s | %d | %d | %d | %d | %d | %d | 0 |\n", y.injection.name,
			y.rounds, y.injection.what, y.orders, y.cancels, y.trades, y.office, y.in, y.out)
		all.rounds, all.orders, all.cancels, all.trades = all.rounds+y.rounds, all.orders+y.orders,
			all.cancels+y.cancels, all.trades+y.trades
		all.office, all.in, all.out, all.took = all.office+y.office, all.in+y.in, all.out+y.out,
			all.took+y.took
	}
	fmt.Fprintf(&b, "| **all** | **%d** | | %d | %d | %d | %d | %d | %d | **0** |\n", all.rounds,
		all.orders, all.cancels, all.trades, all.office, all.in, all.out)
	if commit != "" {
		commit = ", of commit " + commit
	}
	fmt.Fprintf(&b, "\nIt took %v on %d cores (%s/%s) with Redis %s, %s%s, with the seed %s.\n",
		all.took.Round(time.Second), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, redis,
		time.Now().UTC().Format("2006-01-02"), commit, seed)
	b.WriteString(reliabilityTail)
	return b.Bytes()
}

const reliabilityHead = `# Reliability

What was done to a running exchange, and what came of it. ` + "`make chaos`" +
	` runs the campaign and writes this page; a sample of it is in ` + "`make test`" + `.

Each round is an exchange under load: ` + "`exchange loadtest`" +
	` with 6 connections and a subscriber of the stream, 400 requests a second (4,000 where a disk is filled). At a random
moment something happens to the exchange, to Redis or to what is between them. Then it must be ready again and accept orders. At the end of the round
every acknowledged order, cancel and trade must be there as it was told, no order that was refused may be there, wallets must be what the
trades make of them, the stream must be dense, the subscriber's book that of REST, and the audit must find nothing
([loadtest.md](loadtest.md#what-is-verified)). One exchange lives through 20 rounds, so what an earlier fault has left meets the next. Snapshots are taken every 50
to 100 records, so faults meet them too. An *order without an outcome* is one whose answer was lost; it may be in or not, never half.

Money and keys come and go beside that load, on accounts of their own, at every moment of each round: deposits; withdraws that are asked for, confirmed, cancelled, approved
and refused; API keys that are made, revoked and used; freezes. What was acknowledged must be there once, as it was told, and what was refused must not: deposits by their ids, and balances to the last digit;
each withdraw with its status, and what is reserved for those pending; each key with its permissions, signing if it is live and turned away if it is revoked; a frozen account
frozen. During the fault, too, a key is never answered against what was acknowledged of it before. Bytes that were taken are not taken again: their nonce is used. What has no outcome is asked for. The column
*money and keys* counts what was acknowledged of all this.

| injected | rounds | what happens | orders | cancels | trades | money and keys | no outcome: in | not in | missing, or more than was told |
|---|---|---|---|---|---|---|---|---|---|
`

const reliabilityTail = `
The page is written only when every round was as it must be: the last column has no other way to come about. ` + "`EXCHANGE_CRASH_SEED`" +
	` repeats a
campaign's choices, though not the moments at which a machine carries them out.

Network faults are those of a relay between the exchange and Redis. ` + "`every piece late`" +
	` delays each piece of either direction by 300 to 450 ms, and ` + "`little bandwidth`" + ` is 16 kB a
second for all connections together; both stay until at least 5 appends took longer than ` +
	"`timing.stall_ms`" + `, all clients waited at once, ` + "`/readyz`" + ` said that no
orders are taken, and orders were accepted all the same.
` + "`connections reset`" +
	` breaks all connections 3 to 6 times, each time while an append waits for its answer, which has arrived at Redis whole, in half or not at all.
` + "`nothing arrives`" + ` is a network that swallows what is sent and says nothing, ` +
	"`only answers are lost`" + ` one where commands are carried out and nobody learns of it.

Redis says ` + "`appendonly yes`" +
	` before its append-only file is in effect: after it was switched on, and after a full synchronisation, nothing is in a file until a first
rewrite has ended. Four kinds bring that about, with a rewrite that lasts and with one that fails: nothing may be appended until one has ended.

A second exchange that is started by mistake waits, or is refused on the same data folder, and ends nothing. One that takes over (` + "`--take-over`" +
	`, or a standby) has a client of its own, whose acknowledged orders, cancels and trades are counted here and are verified when the first is back. The stopped one
gets an order while it stands still: it must not accept it when it goes on, and the order must not be there.

The clock goes on from a jump when orders are an hour ahead, and when the exchange has said by how much its clock is behind what is stored. A full disk is a small file system in memory, or a limit on the size of files where none may be
mounted. A start on one ends with code 75 after a few lines, or, on a file system, finds files of its own to remove. Files are removed from copies of a killed exchange's folder, each file
from a copy of its own: a start of that ends with code 70, or has all that was acknowledged and a clean audit. It is killed when two of Pebble's logs hold what no table has, and a start
without the older of them must be refused. The clock is moved in the real program, whose ` +
	"`time.Now`" + ` is laid over for it (` + "`clock_test.go`" + `).

Bits are flipped one at a time, each in a copy of its own: in each kind of file of Pebble's folder, and in
what Redis starts from, its append-only file and the image under that. Redis refuses such a file, or a start
ends with code 70, or the exchange says damage: a deposit that is asked for again is not made, or the audit
names it, or a list does. Else the audit is clean, and all that was acknowledged and all that an operator
can list is what it was: trades, accounts, keys, withdrawals, actions and statements. No deposit is made
twice.

A round with a backup is an exchange of its own. Traders, a banker and a keeper of keys act while ` + "`exchange backup`" +
	` runs and
after it; then the exchange is killed, and the backup restored into an empty store of either kind. Each order, cancel and deposit that was
acknowledged before the backup began is there, what came later is there or not, nothing is there twice, and the audit is clean.
The restored exchange begins a new history: a code that was mailed before has expired, and another one is mailed. It trades on,
is killed, and compared once more. A backup is killed while it is written, or the exchange that it is of: each file that
has a backup's name can be restored, and the same command succeeds. A restore is killed at any moment, until one has filled its store by half:
a start on that ends with code 70, and the same command says to empty the store (code 64), and succeeds then.

The simulation ([proof.md](proof.md)) meets far more moments than these, of a store and a scheduler of its own; the campaign shows that the real ones are no worse.

## What is not promised

- **A Redis with ` + "`appendfsync everysec`" + ` or ` + "`no`" +
	`.** It answers before its file is written: a plain kill -9 of the process keeps what the kernel has, but not
  what Redis had not handed to it yet, and a power cut takes up to a second or more. The exchange refuses to start on it, and to go on with one that becomes so, unless ` + "`--accept-redis-durability`" +
	` says that this loss is accepted.
- **What is acknowledged between a change of Redis and the next look at it.** A new connection is looked at at once, and one that stays before an append, when the last look is half a
  second old. Until then orders are acknowledged as before, also where the change was ` +
	"`appendonly no`" + `, or a promotion after a full synchronisation: a kill of Redis loses those, and the next start says so (code 70):
  that of the same host, by its ` + "`HEAD.redis`" + `, and a standby that has seen them.
  Tests hold the real program to both: what is asked for half a second after the change is not acknowledged, and a kill of Redis
  before that takes nothing else. Nor does the history keep what the journal has lost, so ` +
	"`--take-over`" + ` can accept the loss.
- **Failover to a replica.** Replication is asynchronous: a master acknowledges before its replica has the write, so a promoted replica may lack a tail. The exchange sees
  that at its next append or beat (` + "`gap`" + `) or at its next start, by the file ` +
	"`HEAD.redis`" + ` in its data folder, and stops with code 70 rather than go on without acknowledged orders. It leaves a mark, so
  that no other host goes on either, and a standby refuses a journal that ends before the end it last saw. Nothing can bring back what only the lost master had. What a standby cannot see: records that were
  acknowledged behind its last look (` + "`timing.owner_check_ms`" +
	`), where their owner died together with the master. Only that owner's ` + "`HEAD.redis`" + ` knows of them. ` + "`WAIT`" + ` would not help: it
  counts replicas that received a write, not ones that have it on disk, and does not undo it where there are too few.
- **A disk or a kernel that says a sync is done when it is not.** What kill -9 leaves in the kernel's cache survives it; a machine that loses power was not part of this campaign. Syncs are
  asked for before each acknowledgement; that they are true is the hardware's part.
- **Loss of the only copy.** One store holds all. Backups ([operations.md](operations.md#backup-and-restore)) are as old as the last one, and an archive ends where its last part ends.
- **An answer for each request.** A client whose connection breaks, or who is told ` +
	"`outcome_unknown`" + `, asks by ` + "`client_order_id`" + `. The exchange never says *refused* of what it does not know.
- **The newest state from a machine that stood still with its clock**, as a suspended virtual machine does. Its private reads may be older than what another exchange has done since, for up to
  ` + "`timing.owner_stale_ms`" +
	` after it goes on. It acknowledges nothing meanwhile: each append is fenced.
- **Service without its store.** While the store is away, full or read-only, orders are refused and private reads end; nothing is acknowledged on credit.
`

// The page has every round, and one row for each kind.
func TestTheReliabilityPageCountsEveryRound(t *testing.T) {
	page := string(reliability([]*tally{
		{injection: &injections[0], rounds: 7, orders: 100, cancels: 20, trades: 3, office: 50,
			in: 1, out: 2, took: time.Minute},
		{injection: &injections[1], rounds: 5, orders: 1, office: 5, took: time.Minute},
	}, "4711", "abcdef0 with changes", "7.0.15"))
	for _, want := range []string{
		injections[0].name + " | 7 | " + injections[0].what + " | 100 | 20 | 3 | 50 | 1 | 2 | 0 |",
		"| **all** | **12** | | 101 | 20 | 3 | 55 | 1 | 2 | **0** |", "It took 2m0s",
		" with Redis 7.0.15, ", ", of commit abcdef0 with changes, with the seed 4711.\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	if page := string(reliability(nil, "4711", "", "7.0.15")); strings.Contains(page, "commit") {
		t.Errorf("a commit that nobody knows is in\n%s", page)
	}
}
