package ratelimit

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

const many = 100_000 // buckets

// filled returns a limiter whose buckets are all in use at the time 0.
func filled(rate, burst int) *Limiter {
	l := New(rate, burst, many)
	for client := range uint64(2 * many) {
		l.Take(client, 0)
	}
	return l
}

// clients are known clients in an order that no cache foresees.
func clients() []uint64 {
	list := make([]uint64, 1<<16)
	for i := range list {
		list[i] = rand.Uint64N(many / 2)
	}
	return list
}

func BenchmarkTake(b *testing.B) {
	run := func(name string, l *Limiter, client func(i int) uint64, now func(i int) int64) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				l.Take(client(i), now(i))
			}
		})
	}
	known := clients()
	one := func(int) uint64 { return 1 }
	some := func(i int) uint64 { return known[i%len(known)] }
	fresh := func(i int) uint64 { return 1<<40 + uint64(i) }
	slowly := func(i int) int64 { return int64(i) * 1e7 }
	still := func(int) int64 { return 0 }
	run("one client", New(100, 200, many), one, slowly)
	run("one client, refused", New(100, 200, many), one, still)
	known100k := New(100, 200, many)
	for client := range uint64(many / 2) {
		known100k.Take(client, 0)
	}
	run("50,000 clients", known100k, some, slowly)
	run("new clients, all others are idle", filled(100, 200), fresh, slowly)
	run("new clients, all others owe", filled(1, 200), fresh, still)
	l := filled(1, 1_000_000) // each hit makes an eviction correct its order
	run("new clients and known ones in turn", l, func(i int) uint64 {
		if i%2 == 0 {
			return fresh(i)
		}
		return some(i)
	}, still)
}

func BenchmarkLook(b *testing.B) {
	l, known := filled(100, 200), clients()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.look(known[i%len(known)], int64(i)*1e5)
	}
}

func BenchmarkTakeInParallel(b *testing.B) {
	for _, x := range []struct {
		name    string
		clients uint64
	}{{"one client", 1}, {"50,000 clients", many / 2}} {
		b.Run(x.name, func(b *testing.B) {
			l := New(1_000_000, 1_000_000, many)
			var next atomic.Uint64
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				client := next.Add(7919)
				for now := int64(0); p.Next(); now += 1000 {
					client = client*6364136223846793005 + 1442695040888963407
					l.Take(client>>33%x.clients, now)
				}
			})
		})
	}
}
