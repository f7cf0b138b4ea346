package api

import (
	"errors"

	"exchange/actors"
)

// Derive runs a command's operation, and returns the commands instead of sending them. It returns
// nil after the operation wrote an error response.
func (c *Call) Derive(o *Operation) []*actors.Command {
	d := &recorder{Commands: c.commands}
	c.commands = d
	o.Run(c)
	return d.list
}

// A recorder keeps commands instead of sending them.
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

// Do runs the operation. Another node runs a signed read that this process cannot verify.
func (o *Operation) Do(c *Call) {
	if c.Key == nil || c.Key.Signed == nil || !o.Reads {
		o.Run(c)
	} else if a, err := c.commands.Verify(c.Key, c.Nonce); err != nil {
		c.FailWith(err)
	} else {
		c.useRemoteAnswer(a)
	}
}

// useRemoteAnswer copies another node's response.
func (c *Call) useRemoteAnswer(a *actors.RemoteAnswer) {
	c.Failure, c.Cause = nil, nil
	c.Status, c.wait, c.body = a.Status, a.Wait, append(c.body[:0], a.Body...)
	c.unproven = a.Unproven
}

// Unproven reports whether another node refused the call before checking its signature.
func (c *Call) Unproven() bool { return c.unproven }
