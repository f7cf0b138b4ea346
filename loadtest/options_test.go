package loadtest

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func good() Options {
	return Options{Addresses: []string{"127.0.0.1:8080"}, Operator: "127.0.0.1:8081", Token: "t",
		Name: "loadtest", Accounts: 8, Connections: 4, Threads: 1,
		Duration: time.Second, Model: "random-walk", Timeout: time.Second,
		Subscribers: map[string]int{"diff": 1}}
}

func TestWrongOptionsAreRefusedByTheirNames(t *testing.T) {
	o := good()
	if err := o.Validate(); err != nil || o.Mix != (Mix{60, 40, 0}) {
		t.Error(err, o.Mix)
	}
	for name, change := range map[string]func(o *Options){
		"--address": func(o *Options) { o.Addresses = []string{"http://127.0.0.1:8080"} },
		"names 0":   func(o *Options) { o.Addresses = nil },
		"twice":     func(o *Options) { o.Addresses = []string{"a:1", "a:1"} },
		"names 5": func(o *Options) {
			o.Addresses = []string{"a:1", "b:1", "c:1", "d:1", "e:1"}
		},
		"operator's address":  func(o *Options) { o.Operator = "nowhere" },
		"--keys":              func(o *Options) { o.Token = "" },
		"--model":             func(o *Options) { o.Model = "up" },
		"--pairs":             func(o *Options) { o.Pairs = -1 },
		"--pairs-per-account": func(o *Options) { o.PairsPerAccount = -1 },
		"--accounts":          func(o *Options) { o.Accounts = 0 },
		"--connections":       func(o *Options) { o.Connections = 0 },
		"--threads":           func(o *Options) { o.Threads = 0 },
		"--duration":          func(o *Options) { o.Duration = 0 },
		"--disk":              func(o *Options) { o.Disk = "/no/such/folder" },
		"--warmup":            func(o *Options) { o.Warmup = -1 },
		"--rate":              func(o *Options) { o.Rate = -1 },
		"--open-orders":       func(o *Options) { o.OpenOrders = -1 },
		"1 to 4000":           func(o *Options) { o.OpenOrders = 7 },
		"keeps a level": func(o *Options) {
			o.OpenOrders, o.Mix = 9, Mix{90, 0, 10}
		},
		"--deposits": func(o *Options) { o.Deposits = -1 },
		"--deposits needs": func(o *Options) {
			o.Deposits, o.Token, o.Operator, o.Keys = 1, "", "", []Key{{"a", "b"}}
		},
		"--row":                func(o *Options) { o.Every = time.Millisecond },
		"--stall":              func(o *Options) { o.Stall = -1 },
		"--growth":             func(o *Options) { o.Growth = -1 },
		"--allow-refused":      func(o *Options) { o.AllowRefused = 101 },
		"--allow-refused is N": func(o *Options) { o.AllowRefused = math.NaN() },
		"--growth needs": func(o *Options) {
			o.Growth, o.Token, o.Operator, o.Keys = 1, "", "", []Key{{"a", "b"}}
		},
		"--mix":             func(o *Options) { o.Mix = Mix{50, 40, 0} },
		"nothing to cancel": func(o *Options) { o.Mix = Mix{0, 50, 50} },
		"--timeout":         func(o *Options) { o.Timeout = 0 },
		"--p99":             func(o *Options) { o.Ramp = true },
		"--ramp":            func(o *Options) { o.P99 = time.Second },
		"--subscribers":     func(o *Options) { o.Subscribers = map[string]int{"news": 1} },
		"100001 of diff":    func(o *Options) { o.Subscribers = map[string]int{"diff": 100_001} },
	} {
		o := good()
		change(&o)
		err := o.Validate()
		var u Usage
		if err == nil || !strings.Contains(err.Error(), name) || !errors.As(err, &u) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTextsOfOptions(t *testing.T) {
	if m, err := ParseMix("50, 30,20"); err != nil || m != (Mix{50, 30, 20}) {
		t.Error(m, err)
	}
	for _, text := range []string{"", "60,40", "60,40,1", "60,40,x", "160,-60,0"} {
		if _, err := ParseMix(text); err == nil {
			t.Errorf("the mix %q is taken", text)
		}
	}
	if s, err := ParseSubscribers("diff=2,trades=10"); err != nil || s["diff"] != 2 ||
		s["trades"] != 10 {
		t.Error(s, err)
	}
	if s, err := ParseSubscribers("none"); err != nil || len(s) != 0 {
		t.Error(s, err)
	}
	for _, text := range []string{"diff", "diff=x", "diff=-1", "diff=1,diff=2"} {
		if _, err := ParseSubscribers(text); err == nil {
			t.Errorf("the subscribers %q are taken", text)
		}
	}
	keys, err := ParseKeys("# mine\nk1,s1\n\n k2 , s2 \r\n")
	if err != nil || len(keys) != 2 || keys[1] != (Key{"k2", "s2"}) {
		t.Error(keys, err)
	}
	for _, text := range []string{"", "k1", "k1,", "k 1,s", "k1,s1\nk1,s2"} {
		if _, err := ParseKeys(text); err == nil || strings.Contains(err.Error(), "s1") {
			t.Errorf("the keys %q: %v", text, err)
		}
	}
}
