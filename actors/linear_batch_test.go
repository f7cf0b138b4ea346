package actors

import "exchange/actors/lineartest"

// Batches of recorded clients.

// drawRequest chooses one operation, or now and then a batch; the recording is locked.
func (c *recordedClient) drawRequest() []lineartest.Operation {
	if c.account < 0 || c.random.IntN(6) > 0 {
		return []lineartest.Operation{c.draw()}
	}
	list := c.drawBatch()
	c.drawKey(&list[0])
	for i := range list {
		list[i].Key, list[i].Nonce = list[0].Key, list[0].Nonce
	}
	return list
}

// drawBatch chooses a new order, and up to three more operations. Some concern the new order. Some
// go to the other pair.
func (c *recordedClient) drawBatch() []lineartest.Operation {
	r := c.r
	o := lineartest.Operation{Account: c.account}
	// No other client repeats the number: the pair of an operation that names it is sure.
	first := c.newOrder(o, len(r.sent)+1, c.random.IntN(lineartest.Pairs))
	list := []lineartest.Operation{first}
	for range 1 + c.random.IntN(3) {
		next := o
		next.Order, next.Pair, next.Named = first.Order, first.Pair, true
		if k, ok := c.pick(r.orders); ok && c.random.IntN(3) == 0 {
			next.Order, next.Pair, next.Named = k, r.pairOf[k], c.random.IntN(2) == 0
		}
		switch n := c.random.IntN(5); {
		case n < 2 || forceOf(next.Order) != lineartest.Rests:
			next = c.drawOrder(o)
		case n == 2:
			next.Kind = lineartest.Cancel
		default:
			c.drawAmend(&next)
		}
		list = append(list, next)
	}
	return list
}

// batch returns the operations as the engine takes them together; the recording is locked.
func (c *recordedClient) batch(e *Engine, list []lineartest.Operation) func() []answer {
	r := c.r
	ids := make([]uint64, len(list))
	for i := range list {
		ids[i] = idOf(r.orders, list[i].Order)
	}
	return func() []answer {
		answers := make([]answer, len(list))
		key, refused := admitted(e, &list[0])
		commands, errs := make([]*Command, len(list)), make([]error, len(list))
		for i := range list {
			if key == nil {
				answers[i].result.Outcome = refused
				continue
			}
			commands[i] = commandOf(e, key, &list[i], ids[i])
		}
		if key == nil {
			return answers
		}
		err := e.DoAll(commands, errs)
		for i, done := range commands {
			switch a := &answers[i]; {
			case err != nil:
				a.err = err
			case done == nil:
				a.err = errs[i]
			default:
				a.result, a.err = r.ended(&list[i], done)
			}
		}
		return answers
	}
}
