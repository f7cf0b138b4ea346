package actors

import "exchange/actors/lineartest"

// batch returns the operations as one engine batch; the recording is locked.
func (c *recordedClient) batch(e *Engine, list []lineartest.Operation) func() []answer {
	r := c.r
	ids := make([]uint64, len(list))
	for i := range list {
		ids[i] = lineartest.IDOf(r.Orders, list[i].Order)
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
