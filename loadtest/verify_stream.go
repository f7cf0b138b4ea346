package loadtest

import (
	"time"

	"github.com/valyala/fasthttp"

	"exchange/core/money"
)

// streamPatience is how long a local book may take to reach the REST book.
const streamPatience = 10 * time.Second

// stream compares the local books with the REST books, and collects the faults found by
// subscribers.
func (v *verifier) stream(s *subscribers) error {
	for _, x := range s.all {
		if x.keeps && !v.isAlive(x.at) {
			v.skip("local books of a subscriber of an address that does not answer")
		} else if x.keeps {
			for _, p := range v.field.pairs {
				if err := v.book(x, p); err != nil {
					return err
				}
			}
		}
	}
	for _, x := range s.all {
		v.result.Updates += x.events.Load()
		x.mu.Lock()
		wrong := x.wrong
		x.mu.Unlock()
		for _, text := range wrong {
			v.flag("%s", text)
		}
	}
	return nil
}

// book compares one pair's book. While others trade, the local book may be ahead of the answer:
// then it is read again, at another address than the subscriber's, if there is one.
func (v *verifier) book(x *subscriber, p *pair) error {
	var update uint64
	r := v.rest.at(v.othersFirst(x.at)[0])
	for end := time.Now().Add(streamPatience); ; {
		sell, buy := map[money.Price]money.Amount{}, map[money.Price]money.Amount{}
		err := r.getWith(v.ctx, nil, bookOf(p), func(resp *fasthttp.Response) error {
			update = number(resp.Header.Peek("X-Update-Id"))
			return eachField(resp.Body(), func(name, value []byte) bool {
				switch string(name) {
				case "sell":
					_ = readLevels(value, sell) // an unreadable book differs
				case "buy":
					_ = readLevels(value, buy)
				}
				return true
			})
		})
		if err != nil {
			return err
		}
		for time.Now().Before(end) {
			text, equal, behind := x.compare(p.name, update, sell, buy)
			switch {
			case equal && text == "":
				v.result.Books++
				return nil
			case equal:
				v.flag("the book of %s at update %d: %s", p.name, update, text)
				return nil
			}
			if !pause(v.ctx, 5*time.Millisecond) {
				return v.ctx.Err()
			}
			if !behind {
				break
			}
		}
		if time.Now().After(end) {
			at, known := x.updateOf(p.name)
			v.flag(
				"the local book of %s is at update %d (known: %t), and does not come to %d, "+
					"which the REST book has", p.name, at, known, update)
			return nil
		}
	}
}

// bookOf returns the path of a pair's whole public book.
func bookOf(p *pair) string { return "/api/v1/orderbook/" + p.name + "/?group=1" }

// compare sets equal if the local book is at that update, with text for the differences. It sets
// behind if the local book is at an earlier one.
func (s *subscriber) compare(pair string, update uint64,
	sell, buy map[money.Price]money.Amount) (text string, equal, behind bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.books[pair]
	switch {
	case b == nil || !b.known || b.update < update:
		return "", false, true
	case b.update > update:
		return "", false, false
	}
	if text = firstDifference("sell", b.sell, sell); text == "" {
		text = firstDifference("buy", b.buy, buy)
	}
	return text, true, false
}

func (s *subscriber) updateOf(pair string) (update uint64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.books[pair]; b != nil {
		return b.update, b.known
	}
	return 0, false
}
