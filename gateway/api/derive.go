package api

import (
	"errors"

	"exchange/actors"
)

// Derive runs a command's operation up to where its commands would be sent, and returns them; nil:
// the call is answered, as it would be without.
func (c *Call) Derive(o *Operation) []*actors.Command {
	d := &recorder{Commands: c.commands}
	c.commands = d
	o.Run(c)
	return d.list
}

// A recorder keeps the commands that it should send.
type recorder struct {
	actors.Commands
	list []*actors.Command
}

var errDerived = errors.New("the command is derived, and not sent")

// Do implements actors.Commands.
func (d *recorder) Do(c *actors.Command) (*actors.Command, error) {
	d.list = []*actors.Command{c}
	return nil, errDerived
}

// DoAll implements actors.Commands.
func (d *recorder) DoAll(list []*actors.Command, _ []error) error {
	d.list = append(d.list, list...)
	return errDerived
}

// Do runs the operation. A signed read that this process cannot verify is answered by another node.
func (o *Operation) Do(c *Call) {
	if c.Key == nil || c.Key.Signed == nil || !o.Reads {
		o.Run(c)
	} else if a, err := c.commands.Verify(c.Key, c.Nonce); err != nil {
		c.FailWith(err)
	} else {
		c.answered(a)
	}
}

// answered answers as another node did.
func (c *Call) answered(a *actors.RemoteAnswer) {
	c.Failure, c.Cause = nil, nil
	c.Status, c.wait, c.body = a.Status, a.Wait, append(c.body[:0], a.Body...)
	c.unproven = a.Unproven
}

// Unproven reports whether another node refused the call before checking its signature.
func (c *Call) Unproven() bool { return c.unproven }
