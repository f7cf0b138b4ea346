package conformance

import (
	"errors"
	"fmt"
	"strings"

	"exchange/persistence"
)

// wantClientOrders compares the newest order of each client id with the lists, which are the
// model's.
func (w *world) wantClientOrders(m *model) {
	w.Helper()
	watermark, err := w.s.Watermark(w.ctx)
	w.must(err)
	for account := uint32(1); account <= accounts+1; account++ {
		for n := range clientIDs + 1 {
			q := persistence.OrderQuery{Account: account, ClientID: clientID(n)}
			got, err := w.s.ClientOrder(w.ctx, watermark, account, q.ClientID)
			want := m.ordersOf(q)
			switch {
			case len(want) == 0:
				w.is(err, persistence.ErrNotFound)
			case err != nil || got != want[0]:
				w.Fatalf("the newest order of account %d with client id %q is %+v (%v), want %+v",
					account, q.ClientID, got, err, want[0])
			}
		}
	}
}

// clientOrders checks that the newest order of a client id has the highest id, in any order of
// closing and any account.
func (w *world) clientOrders() {
	w.open(persistence.Retention{})
	long := strings.Repeat("x", 36)
	want := map[string][3]uint64{} // by client id: the newest of each account
	closed := func(orders ...persistence.Order) {
		w.apply(1, &persistence.Writes{Orders: orders})
		for i := range orders {
			o := &orders[i]
			newest := want[o.ClientID]
			newest[o.Account] = max(newest[o.Account], o.ID)
			want[o.ClientID] = newest
		}
	}
	of := func(id uint64, account uint32, client string) persistence.Order {
		o := order(id, account, uint16(1+id%2))
		o.ClientID = client
		return o
	}
	closed(of(10, 1, "a"), of(11, 2, "a"), of(12, 1, "aa"), of(13, 1, ""), of(14, 1, long))
	closed(of(20, 1, "a"))
	closed(of(30, 2, "b"), of(29, 2, "b"), of(8, 1, "a"), of(9, 2, long[1:]))
	closed(of(15, 1, "aa"), of(300, 1, "c"), of(256, 1, "c"), of(255, 1, "c"))
	for range 2 {
		for client, accounts := range want {
			for account := uint32(1); account < 3; account++ {
				o, err := w.s.ClientOrder(w.ctx, 4, account, client)
				switch id := accounts[account]; {
				case id == 0 || client == "":
					w.is(err, persistence.ErrNotFound)
				case err != nil || o != of(id, account, client):
					w.Fatalf("account %d, client id %q: %+v (%v), want order %d", account, client,
						o, err, id)
				}
			}
		}
		for _, client := range []string{"", "aaa", "A", long + "x", long[2:], "\x00", "a\x00"} {
			_, err := w.s.ClientOrder(w.ctx, 4, 1, client)
			w.is(err, persistence.ErrNotFound)
		}
		w.wantVerified()
		w.again(persistence.Retention{})
	}
}

// clientOrdersTrimmed checks that client ids are forgotten with their orders' rows.
func (w *world) clientOrdersTrimmed() {
	keep := persistence.Retention{Orders: 3}
	w.open(keep)
	m := &model{keep: keep}
	for id := uint64(1); id <= 40; id++ {
		o := order(id, 1+uint32(id%2), 1)
		if id%5 != 0 {
			o.ClientID = clientID(int(id/2) % 2) // used again while it is kept
		}
		writes := persistence.Writes{Orders: []persistence.Order{o}}
		if id == 30 { // two that retention drops at once
			late := []persistence.Order{order(1000, 3, 1), order(2000, 3, 1), order(3000, 3, 1),
				order(500, 3, 1), order(600, 3, 1)}
			for i := range late {
				late[i].ClientID = fmt.Sprint("late-", i)
			}
			writes.Orders = append(writes.Orders, late...)
		}
		m.add(&writes)
		w.apply(1, &writes)
		w.wantClientOrders(m)
	}
	for i, want := range []error{nil, nil, nil, persistence.ErrNotFound, persistence.ErrNotFound} {
		_, err := w.s.ClientOrder(w.ctx, 40, 3, fmt.Sprint("late-", i))
		if !errors.Is(err, want) {
			w.Fatalf("of an order that retention drops at once: %v, want %v", err, want)
		}
	}
	w.wantVerified()
}

// noClientOrder asks for client ids that are not there, of a store that is behind, too.
func (w *world) noClientOrder() {
	w.open(persistence.Retention{})
	ask := func(watermark uint64, client string, want error) {
		w.Helper()
		got, err := w.s.ClientOrder(w.ctx, watermark, 1, client)
		if w.is(err, want); got != (persistence.Order{}) {
			w.Fatalf("with the error comes %+v", got)
		}
	}
	ask(0, "one", persistence.ErrNotFound)
	ask(1, "one", persistence.ErrGap)
	closed := order(7, 1, 1)
	closed.ClientID = "one"
	w.apply(10, &persistence.Writes{Orders: []persistence.Order{closed}})
	for _, client := range []string{"on", "one-", "two", ""} {
		ask(9, client, persistence.ErrNotFound)
		ask(10, client, persistence.ErrNotFound)
		ask(11, client, persistence.ErrGap)
	}
	// A store that is behind may lack a newer order with the id.
	ask(11, "one", persistence.ErrGap)
	got, err := w.s.ClientOrder(w.ctx, 10, 1, "one")
	if w.must(err); got != closed {
		w.Fatalf("the order is %+v, want %+v", got, closed)
	}
}

// wantVerified wants nothing to be wrong in the store.
func (w *world) wantVerified() {
	w.Helper()
	if rows, err := w.s.Verify(w.ctx, func(place string) { w.Error(place) }); err != nil {
		w.Fatalf("%d rows: %v", rows, err)
	}
}
