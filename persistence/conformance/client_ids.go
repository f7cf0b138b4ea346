package conformance

import (
	"fmt"
	"strings"

	"exchange/persistence"
)

// wantClientOrders compares the lists of all client ids with the model's.
func (w *world) wantClientOrders(m *model) {
	w.Helper()
	for account := uint32(1); account <= accounts+1; account++ {
		for n := range clientIDs + 1 {
			q := persistence.OrderQuery{Account: account, ClientID: clientID(n)}
			w.wantOrders(q, m.ordersOf(q))
		}
	}
}

// clientOrders checks that a client id finds exactly its orders, newest first, in any order of
// closing and of any account.
func (w *world) clientOrders() {
	w.open(persistence.Retention{})
	long := strings.Repeat("x", 36)
	m := new(model)
	closed := func(orders ...persistence.Order) {
		writes := persistence.Writes{Orders: orders}
		m.add(&writes)
		w.apply(1, &writes)
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
		for _, client := range []string{"a", "aa", "b", "c", long, long[1:], "aaa", "A", long + "x",
			long[2:], "\x00", "a\x00"} {
			for account := uint32(1); account < 4; account++ {
				for _, before := range []uint64{0, 20, 256, 300} {
					q := persistence.OrderQuery{Account: account, ClientID: client, Before: before}
					w.wantOrders(q, m.ordersOf(q))
				}
			}
		}
		w.wantVerified()
		w.again(persistence.Retention{})
	}
}

// clientOrdersTrimmed checks that client ids are removed with their orders' rows.
func (w *world) clientOrdersTrimmed() {
	keep := persistence.Retention{Orders: 3}
	w.open(keep)
	m := &model{keep: keep}
	for id := uint64(1); id <= 40; id++ {
		o := order(id, 1+uint32(id%2), 1)
		if id%5 != 0 {
			o.ClientID = clientID(int(id/2) % 2) // reused while it is stored
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
	for i, kept := range []bool{true, true, true, false, false} {
		q := persistence.OrderQuery{Account: 3, ClientID: fmt.Sprint("late-", i)}
		if list := m.ordersOf(q); len(list) > 0 != kept {
			w.Fatalf("of %s there are %v", q.ClientID, list)
		}
		w.wantOrders(q, m.ordersOf(q))
	}
	w.wantVerified()
}

// wantVerified wants no findings of Verify.
func (w *world) wantVerified() {
	w.Helper()
	if rows, err := w.s.Verify(w.ctx, func(place string) { w.Error(place) }); err != nil {
		w.Fatalf("%d rows: %v", rows, err)
	}
}
