package edge_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"exchange/gateway/edge"
	"exchange/prove/harness"
)

// A socketBench answers each fuzzed input with a fresh stream, and some with a fresh engine.
type socketBench struct {
	bench
	panics *panics
	clock  *harness.TestClock
	inputs int    // of this engine
	order  uint64 // the newest one of alice, which sells 1 at 100
}

// inputsPerEngine is the number of inputs for an engine, because a fresh one takes most of the
// time.
const inputsPerEngine = 50

// panics is a log that keeps the first panic, because the server answers it and continues.
type panics struct{ first atomic.Pointer[string] }

func (p *panics) Enabled(context.Context, slog.Level) bool { return true }
func (p *panics) WithAttrs([]slog.Attr) slog.Handler       { return p }
func (p *panics) WithGroup(string) slog.Handler            { return p }
func (p *panics) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	if strings.Contains(text, "panic") {
		p.first.CompareAndSwap(nil, &text)
	}
	return nil
}

func newSocketBench(t testing.TB, observed bool) *socketBench {
	b := &socketBench{panics: new(panics), clock: new(harness.TestClock)}
	b.bench = newBenchOf(t, observed, func(o *edge.Options) {
		o.Log, o.Clock = slog.New(b.panics), b.clock.Ns.Load
		o.Stream.MessagesPerSecond, o.Stream.ConnectionsPerAddress = -1, 1000
		o.Stream.PingInterval, o.Stream.PingTimeout = 2*time.Second, time.Minute
	})
	return b
}

// begins begins an input. Clients may have inFlight commands without an answer.
func (b *socketBench) begins(t testing.TB, inFlight int) {
	t.Helper()
	b.Gateway.CloseStream()
	b.T, b.Doc.T = t, t
	if b.inputs%inputsPerEngine == 0 {
		b.fresh(t)
		b.order = 1
	} else {
		for _, name := range []string{"alice", "bob"} {
			b.posts(name, "order-cancel-after", "timeout=0")
			b.posts(name, "order-cancel-all", "all=1")
		}
		var placed struct{ OID uint64 }
		body := b.posts("alice", "order", harness.Order("sell", "BTC_USDT", "1", "100"))
		harness.Worked(t, json.Unmarshal([]byte(body), &placed))
		b.order = placed.OID
	}
	b.inputs++
	b.clock.Pass(time.Hour) // all buckets are full
	b.Gateway.SetOrdersInFlight(inFlight)
	b.Admits()
}

// posts sends a command that must succeed, and returns the body of its answer.
func (b *socketBench) posts(account, name, form string) string {
	b.T.Helper()
	a := b.Post(account, "/api/v1/"+name+"/", form)
	if a.Status > 201 {
		b.T.Fatalf("%s %s: %d %s", name, form, a.Status, a.Body)
	}
	return a.Body
}

// rests ends an input, when the sent packets of all clients are decided by their wallets.
func (b *socketBench) rests() {
	b.T.Helper()
	harness.Spin(func() bool {
		_, hub, _ := b.Gateway.StreamStats()
		return hub.Logins == 0
	})
	harness.Worked(b.T, harness.AtRest(b.Engine))
	if text := b.panics.first.Load(); text != nil {
		b.T.Fatal(*text)
	}
}

// A wild client sends any text by polling.
type wild struct {
	b     *socketBench
	path  string
	id    string // of its socket
	ended bool
	acks  map[uint64][]string // bodies of acknowledgements
}

func (b *socketBench) wild() *wild {
	b.T.Helper()
	w := &wild{b: b, path: edge.StreamPath + "?EIO=4&transport=polling",
		acks: map[uint64][]string{}}
	a := b.Do("GET", w.path, "", "")
	var open struct{ SID string }
	if a.Status != 200 || json.Unmarshal([]byte(a.Body[1:]), &open) != nil {
		b.T.Fatalf("%d %s", a.Status, a.Body)
	}
	w.path += "&sid=" + open.SID
	w.send("40")
	w.until(func() bool { return w.id != "" })
	return w
}

// send sends packets. The session ends with a packet that is none.
func (w *wild) send(packets string) {
	w.b.T.Helper()
	if w.ended {
		return
	}
	switch a := w.b.Do("POST", w.path, "text/plain", packets); {
	case a.Status == 200 && a.Body == "ok":
	case a.Status == 400:
		w.ended = true
	default:
		w.b.T.Fatalf("%q is answered with %d %s", packets, a.Status, a.Body)
	}
}

// until polls until a condition holds, or the session has ended.
func (w *wild) until(ok func() bool) {
	w.b.T.Helper()
	for began := time.Now(); !w.ended && !ok(); {
		a := w.b.Do("GET", w.path, "", "")
		if w.ended = a.Status == 400; w.ended {
			return
		}
		if a.Status != 200 {
			w.b.T.Fatalf("a poll is answered with %d %s", a.Status, a.Body)
		}
		for packet := range strings.SplitSeq(a.Body, "\x1e") {
			w.receives(packet)
		}
		if time.Since(began) > patience() {
			w.b.T.Fatalf("it did not happen, the client has %v", w.acks)
		}
	}
}

// patience bounds the wait for an acknowledgement. A fuzzed input that takes longer than 10 s ends
// the process without a report of the fault.
func patience() time.Duration {
	if flag.Lookup("test.fuzz").Value.String() != "" {
		return 8 * time.Second
	}
	return time.Minute
}

// ackPacket is an acknowledgement with one argument.
var ackPacket = regexp.MustCompile(`(?s)^43(\d+)\[(.*)\]$`)

// receives checks a packet against the protocol.
func (w *wild) receives(packet string) {
	w.b.T.Helper()
	event, isEvent := strings.CutPrefix(packet, "42")
	var list []json.RawMessage
	var joined struct{ SID string }
	ack := ackPacket.FindStringSubmatch(packet)
	switch {
	case packet == "2":
		w.send("3")
	case packet == "1":
		w.ended = true
	case packet == "6", strings.HasPrefix(packet, `44{"message":`):
	case strings.HasPrefix(packet, "40{") && json.Unmarshal([]byte(packet[2:]), &joined) == nil:
		w.id = joined.SID
	case isEvent && json.Unmarshal([]byte(event), &list) == nil && len(list) == 2:
	case ack != nil && json.Valid([]byte(ack[2])):
		id, _ := strconv.ParseUint(ack[1], 10, 64)
		w.acks[id] = append(w.acks[id], ack[2])
	default:
		w.b.T.Fatalf("the client received %q", packet)
	}
}

// ask sends an event and returns its acknowledgement, "" if the session has ended.
func (w *wild) ask(id uint64, event string) string {
	w.b.T.Helper()
	n := len(w.acks[id])
	w.send(fmt.Sprint("42", id, event))
	if w.until(func() bool { return len(w.acks[id]) > n }); len(w.acks[id]) == n {
		return ""
	}
	return w.acks[id][n]
}

// leave ends the session.
func (w *wild) leave() { w.send("1") }

// A reply is the acknowledgement of an operation over a logged-in socket.
type reply struct {
	Status     int
	Body       json.RawMessage
	RetryAfter *int `json:"retry_after"`
}

// replyOf reads an acknowledgement, which must be one of the described answers to an operation; "":
// to any.
func (b *socketBench) replyOf(text, operation string) reply {
	b.T.Helper()
	var r reply
	d := json.NewDecoder(strings.NewReader(text))
	if d.DisallowUnknownFields(); d.Decode(&r) != nil || r.Body == nil {
		b.T.Fatalf("%s is no answer", text)
	}
	body, err := jsonschema.UnmarshalJSON(strings.NewReader(string(r.Body)))
	if err != nil {
		b.T.Fatalf("%s: %v", text, err)
	}
	var schemas []string
	at := b.Doc.Follow(fmt.Sprint("/paths/", harness.Escaped("/api/v1/"+operation+"/"),
		"/post/responses/",
		r.Status)) + "/content/" + harness.Escaped(harness.JsonMedia) + "/schema"
	switch {
	case b.Doc.At(at) != nil:
		schemas = append(schemas, at)
	case operation == "" && r.Status >= 400 && r.Status != 500:
		for _, name := range []string{"Failure", "FieldErrors", "FundsError"} {
			schemas = append(schemas, "/components/schemas/"+name)
		}
	case operation == "" && r.Status < 400:
		return r
	}
	for _, s := range schemas {
		if err = b.Doc.Check(s, body); err == nil {
			return r
		}
	}
	b.T.Fatalf("%s %s is not described: %v", operation, text, err)
	return r
}

// socketPackets are events of bob, with %d for the id. $alice is the order of alice, and $next the
// one after it.
var socketPackets = [...]string{
	`42%d["order",{"pair":"BTC_USDT","type":"buy","amount":1,"price":90,"client_order_id":"a"}]`,
	`42%d["order",{"pair":"BTC_USDT","type":"buy","amount":"0.5","price":"100"}]`,
	`42%d["order",{"pair":"BTC_USDT","type":"sell","amount":2,"price":89.5}]`,
	`42%d["order",{"pair":"BTC_USDT","type":"buy","amount":"0.1","order_type":"market"}]`,
	`42%d["order",{"pair":"BTC_USDT","type":"sell","amount":1,"price":80,"trigger_price":91}]`,
	`42%d["order",{"pair":"BTC_USDT","type":"sell","amount":1e9,"price":1e9,"oco_trigger_price":1}]`,
	`42%d["order",{"pair":7,"type":[],"amount":{},"price":null}]`,
	`42%d["order",[1],{"pair":"BTC_USDT"}]`,
	`42%d["order"]`,
	`42%d["order-cancel",{"order":$alice}]`,
	`42%d["order-cancel",{"client_order_id":"a"}]`,
	`42%d["order-cancel-all",{"all":1}]`,
	`42%d["order-amend",{"client_order_id":"a","amount":0.25}]`,
	`42%d["order-amend",{"order":$next,"price":99}]`,
	`42%d["order-batch",{"orders":[{"do":"place","pair":"BTC_USDT","type":"buy","amount":1,` +
		`"price":88,"client_order_id":"a"},{"do":"cancel","client_order_id":"a"},7]}]`,
	`42%d["order-batch",{"orders":"[{}"}]`,
	`42%d["order-test",{"pair":"BTC_USDT","type":"buy","amount":1,"price":100}]`,
	`42%d["order-cancel-after",{"timeout":5}]`,
	`42%d["order-cancel-after",{"timeout":0}]`,
	`42%d["own.subscribe",{"after":null}]`,
	`42%d["own.subscribe",{"after":1e400}]`,
	`42%d["own.unsubscribe"]`,
	`42%d["subscribe","depth.BTC_USDT",["trades","x"],7]`,
	`42%d["unsubscribe","depth"]`,
	`42%d["challenge"]`,
	`42%d["login",{"key":"key-bob","sign":"00","ends":"x"}]`,
	`42%d["logout"]`,
	"451-%d" + `["order-cancel",{"order":{"_placeholder":true,"num":0}}]` + "\x1ebAAEC",
	"452-%d" + `["order-batch",{"orders":{"_placeholder":true,"num":9}},1]` + "\x1eb\x1ebAA==",
	`42["order",{"pair":"ETH_USDT","type":"buy","amount":1,"price":10}]`,
	`42["nothing",{}]`,
	"3",
}

const (
	packetIDs = 256 / len(socketPackets) // so few that some come twice
	lastID    = uint64(1<<53 - 1)        // of the event after an input
)

// A sentPacket wants an acknowledgement. Its name is "" if it is written in another way.
type sentPacket struct {
	id   uint64
	name string
}

// named matches a packet that wants an acknowledgement, as strictly as the server or less. A name
// with other characters has no quote at the end.
var named = regexp.MustCompile(
	`(?:^|\x1e)4[25](?:\d+-)?(?:/[^,\x1e]*,)?(\d{1,16})\s*\[\s*"([a-z.-]*)("?)`)

// packetsIn returns the packets of a text that may be acknowledged.
func packetsIn(text string) (list []sentPacket) {
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		id, _ := strconv.ParseUint(m[1], 10, 64)
		if m[3] == "" {
			m[2] = ""
		}
		list = append(list, sentPacket{id, m[2]})
	}
	return list
}

// Bits of the byte that selects how an input of FuzzSocketPackets is sent.
const (
	oneByOne = 1 << iota // one command has no answer at a time
	atOnce               // all packets in one body
)

// A client that is logged in may send any packets: those that bytes choose, and then any text.
// Nothing panics. While its session lives, each packet with an id has one acknowledgement, and no
// acknowledgement has another id. What is answered is described, no money is made or lost, and in
// the end both sides of the engine agree.
func FuzzSocketPackets(f *testing.F) {
	benches := harness.BenchesOf(f,
		func(observed bool) *socketBench { return newSocketBench(f, observed) })
	all := make([]byte, len(socketPackets))
	for i := range all {
		all[i] = byte(i)
		f.Add([]byte{0, byte(i), 4, byte(i + len(socketPackets))}, "", byte(i))
	}
	f.Add(all, "", byte(atOnce))
	f.Add([]byte{0, 1, 2, 3, 0, 2}, `425["order-cancel-all",{"all":1}]`, byte(oneByOne))
	f.Add([]byte{0, 19, 26}, "4231[\"order\",{}]\x1e41\x1e40\x1e429[\"logout\"]", byte(atOnce))
	f.Add([]byte{0}, "451-4[\"order\",{\"_placeholder\":true,\"num\":0}]\x1e421[\"logout\"]",
		byte(0))
	f.Add([]byte{4, 2, 11}, `42["order",{"a":1,"a":2}]`+"\x1e"+`421e3["order"]`, byte(atOnce))
	f.Add([]byte{19, 0, 1}, "1", byte(atOnce|oneByOne))
	f.Add([]byte{14}, "42007[\"order-test\",null]\x1e4299999999999999999[\"order\"]", byte(atOnce))
	f.Add([]byte{9}, "40/other,{}\x1e42/other,5[\"order\",{}]", byte(0))
	spoilt := false
	f.Fuzz(func(t *testing.T, chosen []byte, text string, how byte) {
		if len(text) > 20_000 {
			return
		}
		defer func() { spoilt = spoilt || t.Failed() }()
		for i, bench := range benches {
			if spoilt {
				bench = newSocketBench(t, i > 0)
			}
			bench.packets(t, chosen[:min(len(chosen), 60)], text, how)
		}
	})
}

// packets tries an input of FuzzSocketPackets.
func (b *socketBench) packets(t testing.TB, chosen []byte, text string, how byte) {
	inFlight := 64
	if how&oneByOne != 0 {
		inFlight = 1
	}
	b.begins(t, inFlight)
	before := b.totals()
	w := b.wild()
	w.logIn("bob")
	var packets []string
	ids := strings.NewReplacer("$alice", fmt.Sprint(b.order), "$next", fmt.Sprint(b.order+1))
	for _, c := range chosen {
		p := ids.Replace(socketPackets[int(c)%len(socketPackets)])
		if strings.Contains(p, "%d") {
			p = fmt.Sprintf(p, int(c)/len(socketPackets)%packetIDs)
		}
		packets = append(packets, p)
	}
	known := packetsIn(strings.Join(packets, "\x1e"))
	if how&atOnce != 0 && text != "" {
		packets = append(packets, text)
	}
	if len(packets) > 0 {
		w.send(strings.Join(packets, "\x1e"))
	}
	all := append(packetsIn(text), known...)
	if how&atOnce == 0 {
		w.until(func() bool { return len(w.missing(known)) == 0 })
		if text != "" {
			w.send(text)
		}
	}
	w.ask(lastID, `["order-test",{}]`)
	if !w.ended && !strings.Contains(text, "41") { // it may have left the namespace
		w.until(func() bool { return len(w.missing(known)) == 0 })
	}
	w.check(append(all, sentPacket{lastID, "order-test"}))
	w.leave()
	b.rests()
	if after := b.totals(); !maps.Equal(after, before) {
		t.Fatalf("together they had %v and have %v", before, after)
	}
}

// missing returns the ids of packets that lack acknowledgements.
func (w *wild) missing(sent []sentPacket) (ids []uint64) {
	n := map[uint64]int{}
	for _, p := range sent {
		if n[p.id]++; n[p.id] > len(w.acks[p.id]) {
			ids = append(ids, p.id)
		}
	}
	return ids
}

// check compares all acknowledgements with the packets that may have them.
func (w *wild) check(sent []sentPacket) {
	w.b.T.Helper()
	names := map[uint64][]string{}
	for _, p := range sent {
		names[p.id] = append(names[p.id], p.name)
	}
	for id, acks := range w.acks {
		if len(acks) > len(names[id]) {
			w.b.T.Fatalf("the packets %v with the id %d are acknowledged with %v", names[id], id,
				acks)
		}
		for _, ack := range acks {
			operation := names[id][0]
			if len(names[id]) > 1 || !strings.HasPrefix(operation, "order") {
				operation = ""
			}
			if !strings.HasPrefix(ack, `{"challenge":"`) && !strings.HasPrefix(ack,
				`{"channels":[`) {
				w.b.replyOf(ack, operation)
			}
		}
	}
}
