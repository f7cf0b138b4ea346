package operate

import (
	"os/user"
	"regexp"
	"slices"
	"strings"
	"testing"

	"exchange/cmd/exchange/cli"
)

var word = regexp.MustCompile(`'[^']*'|\S+`)

// words splits a command line at blanks, but not between single quotes.
func words(line string) []string {
	list := word.FindAllString(line, -1)
	for i := range list {
		list[i] = strings.Trim(list[i], "'")
	}
	return list
}

const (
	frozen      = `{"account":"alice","on":true}`
	withdrawal7 = `{"withdraw":7,"account":"alice","currency":"BTC","amount":0.00000001,"status":1,"state":"verified","address":"bc1q","time":"2026-01-02T03:04:05.000006Z"}`
	withdrawal3 = `{"withdraw":3,"account":"bob","currency":"USDT","amount":120,"status":3,"state":"refused","address":"\u001b[2J\t\u202e","details":"Who is that?","time":"2026-01-01T03:04:05.000006Z"}`
	approved7   = `{"withdraw":7,"account":"alice","currency":"BTC","amount":0.00000001,"status":2,"state":"approved","address":"bc1q","time":"2026-01-02T03:04:05.000006Z"}`
	frozen7     = `{"withdraw":7,"account":"alice","currency":"BTC","amount":0.00000001,"status":2,"state":"approved","address":"bc1q","time":"2026-01-02T03:04:05.000006Z","frozen":true}`
	fees        = `{"account":"alice","pair":"BTC_USDT","own":true,"maker":0,"taker":0.0015,"repeated":false}`
	actions     = `{"actions":[{"sequence":18446744073709551615,"time":"2026-01-02T03:04:05.000006Z","who":"jane from 127.0.0.1","what":"account alice frozen: true","words":"froze alice"},` +
		`{"sequence":9,"time":"2026-01-01T03:04:05.000006Z","who":"","what":"maintenance: true \"a\nb\"","words":"began"}]}`
	shownAlice = `{"account":"alice","id":1,"email":"a@b.c","frozen":false,"sequence":41,` +
		`"holdings":[{"currency":"BTC","balance":100000000000000000.0000000000000001,"reserve":0.5,"available":99999999999999999.5000000000000001},{"currency":"USDT","balance":1,"reserve":0,"available":1}],` +
		`"open_orders":3,"newest_orders":[{"order":40,"pair":"BTC_USDT","type":"sell","price":50000,"amount":0.5,"remaining":0.25,"time":"T40"},{"order":9,"pair":"ETH_BTC","type":"buy","price":0.03125,"amount":10,"remaining":10,"time":"T9"}],` +
		`"pending_withdraws":[` + withdrawal7 + `]}`
)

const (
	plainOrder = `{"order":9,"account":"alice","pair":"BTC_USDT","type":"sell","price":100,"amount":2,"remaining":1.5,` +
		`"time":"2026-01-02T03:04:05.000006Z","client_order_id":"a-1","waiting":false}`
	stopOrder = `{"order":8,"account":"alice","pair":"BTC_USDT","type":"sell","price":85.5,"amount":1,"remaining":1,` +
		`"time":"2026-01-02T03:04:05.000006Z","waiting":true,"order_type":"market",` +
		`"time_in_force":"ioc","trigger_price":90,"trigger_when":"fall"}`
	icebergOrder = `{"order":7,"account":"alice","pair":"ETH_BTC","type":"sell","price":2,"amount":10,"remaining":10,` +
		`"time":"2026-01-02T03:04:05.000006Z","waiting":false,"order_type":"limit",` +
		`"time_in_force":"gtd","expires":"2026-02-02T03:04:05.000006Z","post_only":true,` +
		`"display_amount":0.5,"oco_trigger_price":1.5,"oco_price":1.4}`
)

// Cases that the recorded session of prove/recorded does not show: the requests, and the texts
// after an answer.
func TestOperatorsCommandsAndTheirAnswers(t *testing.T) {
	const isSo = "\nAlready done: nothing was changed.\n"
	halted := `{"pair":"1INCH_BTC","on":false,"repeated":true,"later":1}`
	for _, x := range []struct{ line, answer, asked, after string }{
		{"account create bob", `{"account":"bob","id":2,"email":""}`,
			`POST /operator/v1/accounts {"name":"bob"}`, ""},
		{"key create alice",
			`{"key":"K","secret":"S&<","account":"alice","permissions":["read","trade"],"allow":[],"later":1}`,
			`POST /operator/v1/keys {"account":"alice","permissions":["read","trade"]}`,
			"\nThe secret is shown only now: keep it.\n"},
		{"key create alice --permissions withdraw,read --allow 10.0.0.0/8 --allow 192.168.1.7 " +
			"--allow 2001:db8::/32 --parallel 16",
			`{"key":"K","secret":"S","account":"alice","permissions":["read"],"allow":["10.0.0.0/8"],"parallel":16}`,
			`POST /operator/v1/keys {"account":"alice","permissions":["read","withdraw"],"allow":["10.0.0.0/8","192.168.1.7/32","2001:db8::/32"],"parallel":16}`,
			""},
		{"key list alice",
			`{"keys":[{"key":"K","account":"alice","permissions":[],"allow":[],"revoked":false}]}`,
			`GET /operator/v1/keys?account=alice`, ""},
		{"key revoke K123", `{"key":"K123","account":"alice","revoked":true}`,
			`POST /operator/v1/keys/revoke {"key":"K123"}`, ""},
		{"deposit alice BTC 1e-7 --reference R-1",
			`{"deposit":7,"account":"alice","currency":"BTC","amount":0.0000001,"balance":100000000000000000.0000000000000001,"reference":"R-1","repeated":true}`,
			`POST /operator/v1/deposits {"account":"alice","currency":"BTC","reference":"R-1","amount":"0.0000001"}`,
			isSo},
		{"adjust --reason=twice alice BTC --reference R-1 -5e-8",
			`{"adjustment":7,"account":"alice","currency":"BTC","amount":-0.00000005,"balance":5,"reference":"R-1","reason":"twice","repeated":true}`,
			`POST /operator/v1/adjustments {"account":"alice","currency":"BTC","reference":"R-1","reason":"twice","amount":"-0.00000005"}`,
			isSo},
		{"pair resume 1INCH_BTC", halted,
			`POST /operator/v1/pairs/halt {"pair":"1INCH_BTC","on":false}`,
			"\nTrading is open.\n" + isSo},
		{"pair resume 1INCH_BTC --all=false", halted,
			`POST /operator/v1/pairs/halt {"pair":"1INCH_BTC","on":false}`, ""},
		{"pair halt --all", `{"pairs":[` + halted + `]}`,
			`POST /operator/v1/pairs/halt {"all":true,"on":true}`, "\nTrading is halted.\n"},
		{"maintenance on --message 'Back at 14:00 & better.'",
			`{"on":true,"message":"Back at 14:00 & better."}`,
			`POST /operator/v1/maintenance {"on":true,"message":"Back at 14:00 \u0026 better."}`,
			""},
		{"maintenance on --message ''", `{"on":true}`, `POST /operator/v1/maintenance {"on":true}`,
			""},
		{"maintenance off", `{"on":false,"repeated":true}`,
			`POST /operator/v1/maintenance {"on":false}`, isSo},
		{"order list alice --pair BTC_USDT",
			`{"orders":[` + plainOrder + `,` + stopOrder + `,` + icebergOrder + `]}`,
			`GET /operator/v1/orders?account=alice&pair=BTC_USDT`, ""},
		{"switch list", `{"switches":[]}`, `GET /operator/v1/switches`, ""},
		{"switch list --account alice", `{"switches":[]}`,
			`GET /operator/v1/switches?account=alice`,
			""},
		{"order cancel 18446744073709551615",
			`{"order":18446744073709551615,"account":"alice","pair":"BTC_USDT"}`,
			`POST /operator/v1/orders/cancel {"order":18446744073709551615}`,
			"\nThe order is cancelled.\n"},
		{"order cancel-all alice", `{"orders":[1,22]}`,
			`POST /operator/v1/orders/cancel-all {"account":"alice"}`, "orders  1\n        22\n"},
		{"order cancel-all BTC_USDT", `{"orders":[5]}`,
			`POST /operator/v1/orders/cancel-all {"pair":"BTC_USDT"}`, ""},
		{"order cancel-all btc_usdt", `{"orders":[]}`,
			`POST /operator/v1/orders/cancel-all {"account":"btc_usdt"}`, "orders  -\n"},
		{"order cancel-all --account 1_2", `{"orders":[]}`,
			`POST /operator/v1/orders/cancel-all {"account":"1_2"}`, ""},
		{"order cancel-all --pair 1_2", `{"orders":[]}`,
			`POST /operator/v1/orders/cancel-all {"pair":"1_2"}`, ""},
		{"order cancel-all alice --pair BTC_USDT", `{"orders":[]}`,
			`POST /operator/v1/orders/cancel-all {"account":"alice","pair":"BTC_USDT"}`, ""},
		{"order cancel-all BTC_USDT --account alice", `{"orders":[]}`,
			`POST /operator/v1/orders/cancel-all {"account":"alice","pair":"BTC_USDT"}`, ""},
		{"withdraw list", `{"withdraws":[` + frozen7 + `,` + withdrawal3 + `]}`,
			`GET /operator/v1/withdraws?limit=1000`, ""},
		{"withdraw list --account alice --limit 1", `{"withdraws":[` + withdrawal7 + `]}`,
			`GET /operator/v1/withdraws?account=alice&limit=1`,
			"\nThere may be more: give a larger --limit.\n"},
		{"withdraw list alice --limit 2", `{"withdraws":[` + withdrawal7 + `]}`,
			`GET /operator/v1/withdraws?account=alice&limit=2`, "03:04:05.000006Z\n"},
		{"withdraw approve 7 --reference tx-7f --despite-freeze", frozen7,
			`POST /operator/v1/withdraws/approve {"withdraw":7,"reference":"tx-7f","despite_freeze":true}`,
			""},
		{"fees reset alice BTC_USDT",
			`{"account":"alice","pair":"BTC_USDT","own":false,"maker":1,"taker":0.00000001,"repeated":false}`,
			`POST /operator/v1/fees {"account":"alice","pair":"BTC_USDT","usual":true}`,
			"\nThe maker pays 100 %, and the taker 0.000001 %.\n"},
		{"actions", actions, `GET /operator/v1/actions?limit=100`, "began\n"},
		{"actions --limit 2 --before 18446744073709551615", actions,
			`GET /operator/v1/actions?before=18446744073709551615&limit=2`,
			"\nThere may be more: give a larger --limit, or --before.\n"},
	} {
		f := newFake(t, 200, x.answer)
		args := words(x.line)
		if r := runLine(f.environ, args...); r.Code != 0 || r.ErrOut != "" ||
			!strings.HasSuffix(r.Out, x.after) {
			t.Errorf("%s: %+v, want this end:\n%s", x.line, r, x.after)
		}
		runLine(f.environ, append(args, "--json")...).Want(t, 0, x.answer+"\n", "")
		f.wantAsked(x.asked, x.asked)
	}
}

// One printer shows all answers: digits unchanged, foreign text without control characters, a dash
// for empty values, and columns that any row has.
func TestAnAnswerIsShownByItsType(t *testing.T) {
	for _, x := range []struct{ line, answer, text string }{
		{"account show alice", shownAlice, `account      alice
id           1
email        a@b.c
frozen       no
sequence     41
open orders  3

holdings:
CURRENCY  BALANCE                              RESERVE  AVAILABLE
BTC       100000000000000000.0000000000000001  0.5      99999999999999999.5000000000000001
USDT      1                                    0        1

newest orders:
ORDER  PAIR      TYPE  PRICE    AMOUNT  REMAINING  TIME
40     BTC_USDT  sell  50000    0.5     0.25       T40
9      ETH_BTC   buy   0.03125  10      10         T9

pending withdraws:
WITHDRAW  ACCOUNT  CURRENCY  AMOUNT      STATE     ADDRESS  TIME
7         alice    BTC       0.00000001  verified  bc1q     2026-01-02T03:04:05.000006Z
`},
		{"withdraw list", `{"withdraws":[` + frozen7 + `,` + withdrawal3 + `]}`,
			"WITHDRAW  ACCOUNT  CURRENCY  AMOUNT      STATE     ADDRESS  DETAILS" +
				"       TIME                         FROZEN\n" +
				"7         alice    BTC       0.00000001  approved  bc1q     -      " +
				"       2026-01-02T03:04:05.000006Z  yes\n" +
				"3         bob      USDT      120         refused   \ufffd[2J" +
				"\ufffd\ufffd   Who is that?  2026-01-01T03:04:05.000006Z  -\n"},
		{"withdraw list", `{"withdraws":[]}`,
			"WITHDRAW  ACCOUNT  CURRENCY  AMOUNT  STATE  ADDRESS  TIME\n"},
		{"key create alice", `{"account":"alice","key":"K","secret":"S&<","permissions":["read",` +
			`"trade"],"allow":[],"parallel":16}`, "account      alice\nkey          K\n" +
			"permissions  read\n             trade\nallow        -\nparallel     16\n" +
			"secret       S&<\n\nThe secret is shown only now: keep it.\n"},
		{"key list alice", `{"keys":[{"key":"K","account":"alice","permissions":["read","trade"],` +
			`"allow":[],"revoked":false}]}`, "ACCOUNT  KEY  PERMISSIONS  ALLOW  REVOKED\n" +
			"alice    K    read, trade  -      no\n"},
	} {
		runLine(newFake(t, 200, x.answer).environ, words(x.line)...).Want(t, 0, x.text, "")
	}
}

func TestWrongArgumentsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	f := newFake(t, 500, "")
	for _, x := range []struct{ line, want string }{
		{"acount list", `unknown command "acount"`},
		{"-1 adjust a", `unknown command "a"`},
		{"account list --jason", "unknown flag: --jason"},
		{"account list --operator here", `the operator's address is "here"`},
		{"account list --operator h:0", `the operator's address is "h:0"`},
		{"account list --operator http://h:1", "write host:port"},
		{"health --listen x", `--listen is "x"`},
		{"actions --as '  '", `--as is "  ": a name needs at least one of A-Z, a-z and 0-9`},

		{"account create -alice",
			`NAME of account create is "-alice": it cannot begin with a dash`},
		{"account create -- -alice", `the account name "-alice" must be`},
		{"account create Alice", `the account name "Alice" must be`},
		{"account create " + strings.Repeat("a", 65), "must be 1 to 64"},
		{"account create 'a\n'", "must be 1 to 64"},
		{"account create a --email 'Alice <a@b.c>'", "must be one address"},
		{"account freeze Alice", `the account name "Alice" must be`},
		{"account show ''", `the account name "" must be`},
		{"account close Alice", `the account name "Alice" must be`},
		{"account email alice ''", "cannot lose it: name the new one"},
		{"account email alice a@b@c", "a@b@c"},

		{"key create a --permissions read,fly", `the permission "fly" does not exist`},
		{"key create a --permissions ''", "at least one permission"},
		{"key create a --allow 10.0.0.0/33", `--allow is "10.0.0.0/33"`},
		{"key create a --allow 10.0.0.1/8", "write 10.0.0.0/8, or 10.0.0.1 for the one address"},
		{"key create a --allow ::ffff:10.0.0.0/104", "write it as an IPv4 network"},
		{"key create a --allow fe80::1%eth0", "write a network"},
		{"key create a --allow example.org", "write a network"},
		{"key list A", "the account name"},
		{"key revoke 'a b'", `the key "a b" must be`},

		{"deposit a", "deposit needs CURRENCY AMOUNT"},
		{"deposit a btc 1", `the currency "btc" must be`},
		{"deposit a BTC 0", `the amount "0" must be a number above 0`},
		{"deposit a BTC -- -1", `the amount "-1" must be`},
		{"deposit a BTC 1.000000001", "at most 8 fractional digits"},
		{"deposit a BTC -1.5", `AMOUNT of deposit is "-1.5": it cannot`},
		{"deposit a BTC 1 --reference ''", `--reference "" must be`},
		{"deposit a BTC 1 --reference 'a\tb'", "--reference"},
		{"deposit --reference x a -BTC 1", `CURRENCY of deposit is "-BTC": it cannot`},
		{"adjust a BTC 1 --reason x", "use `exchange deposit`"},
		{"adjust a BTC -0 --reason x", "must be a number below 0"},
		{"adjust a BTC --reason x -- -x", "must be a number below 0"},
		{"adjust a BTC -0,5 --reason x", "must be a number below 0"},
		{"adjust a BTC --reason x -0.000000001", "at most 8 fractional digits"},
		{"adjust a BTC -92233720368.54775808 --reason x", "above -92,233,720,368"},
		{"adjust A BTC -1 --reason x", "the account name"},
		{"adjust a btc -1 --reason x", `the currency "btc" must be`},
		{"adjust a BTC -1", "adjust needs --reason"},
		{"adjust a BTC -1 --reason ''", "--reason"},
		{"adjust a BTC -1 --reason x --reference 'a b'", `the reference "a b" must be`},

		{"pair halt", "pair halt needs PAIR"},
		{"pair halt BTC", `the pair "BTC" must be two currencies with _ between, such as BTC_USDT`},
		{"pair halt btc_usdt", `the pair "btc_usdt" must be`},
		{"pair halt BTC_USDT_X", "must be two currencies"},
		{"pair halt ABCDEFGHIJKLM_X", "must be two currencies"},
		{"pair resume BTC_", "must be two currencies"},
		{"pair halt BTC_USDT --all", `pair halt takes a pair or --all, not both: "BTC_USDT" and --all`},

		{"maintenance off --message x", "unknown flag: --message"},
		{"maintenance off --cancels", "unknown flag: --cancels"},
		{"maintenance on --message ' x'", "without blanks at its ends"},
		{"maintenance on --message 'a\nb'",
			`--message "a\nb" must be 1 to 500 printable characters`},
		{"maintenance on --message " + strings.Repeat("m", 501), "1 to 500 printable characters"},

		{"order list alice bob", `"bob" is one argument too many for order list`},
		{"order list Alice", `the account name "Alice" must be`},
		{"order list --pair btc", `the pair "btc" must be`},
		{"order list --limit 0", "--limit is 0: write 1 to 100000"},
		{"order cancel x", `the order "x" must be its number, such as 17`},
		{"order cancel 0", `the order "0" must be`},
		{"order cancel -- -1", `the order "-1" must be`},
		{"order cancel +1", `the order "+1" must be`},
		{"order cancel 18446744073709551616", "must be its number"},
		{"order cancel-all", "order cancel-all needs an account or a pair"},
		{"order cancel-all ''", `the account name "" must be`},
		{"order cancel-all Alice", `the account name "Alice" must be`},
		{"order cancel-all BTC-USDT", `the account name "BTC-USDT" must be`},
		{"order cancel-all 1_2",
			`"1_2" can be an account or a pair: write --account or --pair before it`},
		{"order cancel-all alice BTC_USDT",
			`"BTC_USDT" is one argument too many for order cancel-all`},
		{"order cancel-all alice --account bob",
			`order cancel-all takes one account: "alice" and --account name two`},
		{"order cancel-all BTC_USDT --pair ETH_USDT", "order cancel-all takes one pair"},
		{"order cancel-all --account '' --pair BTC_USDT", `the account name "" must be`},
		{"order cancel-all --account alice --pair ''", `the pair "" must be`},
		{"order cancel-all alice --pair btc", `the pair "btc" must be`},

		{"withdraw list --account ''", `the account name "" must be`},
		{"withdraw list alice --account alice", "the account twice"},
		{"withdraw list alice bob", `"bob" is one argument too many`},
		{"withdraw list --limit 0", "--limit is 0: write 1 to 100000"},
		{"withdraw list --limit 100001", "--limit is 100001"},
		{"withdraw list --limit many", "--limit is many: write 1 to 100000"},
		{"withdraw approve 1.0", `the withdraw "1.0" must be its number`},
		{"withdraw approve -1", `ID of withdraw approve is "-1": it cannot begin with a dash`},
		{"withdraw approve 1 -1", `"-1" is no flag: flags begin with two dashes`},
		{"withdraw approve 1 --details x", "unknown flag: --details"},
		{"withdraw approve 1 --reference=", `--reference "" must be 1 to 1024 printable`},
		{"withdraw refuse 1 --details x --despite-freeze", "unknown flag: --despite-freeze"},
		{"withdraw refuse 1",
			"withdraw refuse needs --details"},
		{"withdraw refuse 1 --details ''", "1 to 1024 printable characters"},
		{"withdraw refuse 1 --details " + strings.Repeat("d", 1025),
			"1 to 1024 printable characters"},
		{"withdraw refuse x --details y", `the withdraw "x" must be`},

		{"fees set alice BTC_USDT", "fees set needs --maker and --taker"},
		{"fees set alice BTC_USDT --taker 0", "fees set needs --maker"},
		{"fees set alice BTC_USDT --maker 0.1% --taker 0",
			`--maker is "0.1%": write a fraction from 0 to 1`},
		{"fees set alice BTC_USDT --maker 0 --taker 1.1", "such as 0.001 for 0.1 %"},
		{"fees set alice BTC_USDT --maker 0 --taker -0.1", `--taker is "-0.1"`},
		{"fees set alice BTC_USDT --maker 0.000000001 --taker 0", "at most 8 digits"},
		{"fees set alice BTC_USDT --maker '' --taker 0", `--maker is ""`},
		{"fees set Alice BTC_USDT --maker 0 --taker 0", `the account name "Alice"`},
		{"fees set alice BTCUSDT --maker 0 --taker 0", `the pair "BTCUSDT"`},
		{"fees reset BTC_USDT alice", `the account name "BTC_USDT"`},

		{"actions --limit -1", "--limit is -1"},
		{"actions --before 0", "--before is 0: write a number, such as 17"},
		{"actions --before -1", "--before is -1"},
		{"audit --archive ''", "--archive is empty"},
		{"statement Alice", `the account name "Alice" must be`},
		{"statement alice --currency btc", `the currency "btc" must be`},
		{"statement alice --currency ''", `the currency "" must be`},
		{"backup ''", "DIR is empty"},

		{"export trades --format xml", `--format is "xml": write csv or ndjson`},
		{"export trades --format ''", `--format is "": write csv or ndjson`},
		{"export orders --from 2026-01-02 --to 2026-01-02", "there can be no order between them"},
		{"export orders --pair BTC_USDT", "unknown flag: --pair"},
		{"export balances --from 2026-01-02", "unknown flag: --from"},
		{"export trades --pair BTC", `the pair "BTC" must be`},
		{"export trades --pair ''", `the pair "" must be`},
		{"export trades --from yesterday", `--from is "yesterday": write a time such as`},
		{"export trades --to 2026-13-01", `--to is "2026-13-01"`},
		{"export trades --from ''", `--from is "": write a time such as`},
		{"export trades --to ''", `--to is "": write a time such as`},
		{"export trades --from 2026-01-02 --to 2026-01-02T01:00:00+02:00",
			`--from is "2026-01-02", which is not before --to, "2026-01-02T01:00:00+02:00"`},
		{"export trades --output ''", "--output is empty"},
	} {
		wantUsageError(t, f.environ, words(x.line), x.want)
	}
	runLine(append(f.environ, envOperatorName+"=\u674e"), "actions").WantError(t, cli.ExitUsage,
		`EXCHANGE_OPERATOR_NAME is "李"`)
	f.wantAsked()
}

func wantUsageError(t *testing.T, environ, args []string, want string) {
	t.Helper()
	r := runLine(environ, args...)
	r.WantError(t, cli.ExitUsage, want)
	if !strings.Contains(r.ErrOut, "--help` for help.\n") {
		t.Errorf("%q does not say how to get help: %s", args, r.ErrOut)
	}
	runLine(environ, append([]string{"--json"}, args...)...).WantJSONError(t, cli.ExitUsage, want)
}

func TestEveryRequestNamesTheOperator(t *testing.T) {
	system := "operator"
	if u, err := user.Current(); err == nil {
		if name := cleanOperator(u.Username); name != "" {
			system = name
		}
	}
	for _, x := range []struct{ flag, variable, want string }{
		{"", "", system},
		{"", "jane", "jane"},
		{"joe", "jane", "joe"},
		{"", "Jane Doe", "Jane-Doe"},
		{`CORP\jane`, "", "CORP-jane"},
		{"jane@example.org", "", "jane@example.org"},
		{"a\r\nX-Evil: 1", "", "a-X-Evil-1"},
		{" -jane-é ", "", "jane"},
		{strings.Repeat("j", 70), "", strings.Repeat("j", 64)},
	} {
		f := newFake(t, 200, `{"actions":[]}`)
		args := []string{"actions"}
		if x.flag != "" {
			args = append(args, "--as", x.flag)
		}
		r := runLine(append(f.environ, envOperatorName+"="+x.variable), args...)
		if named := f.names(); r.Code != 0 || !slices.Equal(named, []string{x.want}) {
			t.Errorf("--as %q, variable %q: named %q, want %q; %+v", x.flag, x.variable, named,
				x.want, r)
		}
	}
	f := newFake(t, 200, frozen)
	runLine(f.environ, "--as", "joe", "account", "freeze", "alice").Want(t, 0,
		"account  alice\non       yes\n\nThe account is frozen.\n", "")
	if named := f.names(); !slices.Equal(named, []string{"joe"}) {
		t.Errorf("a change was named %q", named)
	}
}

func TestAllPagesOfOrdersAreListed(t *testing.T) {
	f := newFake(t, 0, "")
	pages := []string{`{"orders":[` + plainOrder + `],"next":9}`, `{"orders":[` + stopOrder + `]}`}
	f.answer = func(n int) (int, string) { return 200, pages[n] }
	runLine(f.environ, "order", "list", "alice", "--json").Want(t, 0,
		`{"orders":[`+plainOrder+`,`+stopOrder+`]}`+"\n", "")
	f.wantAsked("GET /operator/v1/orders?account=alice",
		"GET /operator/v1/orders?account=alice&before=9")

	f = newFake(t, 0, "")
	f.answer = func(int) (int, string) { return 200, `{"orders":[` + plainOrder + `],"after":1}` }
	list := runLine(f.environ, "order", "list", "--limit", "1")
	list.Want(t, 0, list.Out, "")
	if !strings.Contains(list.Out, "\n\nThere may be more: give a larger --limit") {
		t.Errorf("a list that was cut ends with %s", list.Out)
	}
	runLine(f.environ, "order", "list", "--limit", "1", "--json").Want(t, 0,
		`{"orders":[`+plainOrder+`],"after":1}`+"\n", "")
}

func TestAllPagesOfAccountsAreListed(t *testing.T) {
	f := newFake(t, 0, "")
	pages := []string{
		`{"accounts":[{"account":"a","id":1,"email":"","frozen":false},{"account":"b","id":2,"email":"","frozen":true}],"next":2}`,
		`{"accounts":[{"account":"c","id":3,"email":"","frozen":false}],"next":3}`,
		`{"accounts":[]}`}
	f.answer = func(n int) (int, string) { return 200, pages[n] }
	runLine(f.environ, "account", "list").Want(t, 0,
		"ACCOUNT  ID  EMAIL  FROZEN\na        1   -      no\nb        2   -      yes\n"+
			"c        3   -      no\n", "")
	f.wantAsked("GET /operator/v1/accounts", "GET /operator/v1/accounts?after=2",
		"GET /operator/v1/accounts?after=3")
	f = newFake(t, 0, "")
	f.answer = func(n int) (int, string) { return 200, pages[n] }
	runLine(f.environ, "account", "list", "--json").Want(t, 0,
		`{"accounts":[{"account":"a","id":1,"email":"","frozen":false},{"account":"b","id":2,"email":"","frozen":true},{"account":"c","id":3,"email":"","frozen":false}]}`+
			"\n",
		"")
}
