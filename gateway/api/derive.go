package api

import (
	"errors"

	"exchange/actors"
)

// Derive runs the operation of a command up to where its commands would be sent, and returns them;
// nil: the call is answered, as it would be without.
func (c *Call) Derive(o *Operation) []*actors.Command {
	d := &deriving{Commands: c.commands}
	c.commands = d
	o.Run(c)
	return d.list
}

// deriving keeps the commands that it is to send.
type deriving struct {
	actors.Commands
	list []*actors.Command
}

var errDerived = errors.New("the command is derived, and not sent")

// Do implements actors.Commands.
func (d *deriving) Do(c *actors.Command) (*actors.Command, error) {
	d.list = []*actors.Command{c}
	return nil, errDerived
}

// DoAll implements actors.Commands.
func (d *deriving) DoAll(list []*actors.Command, _ []error) error {
	d.list = append(d.list, list...)
	return errDerived
}

// answered answers as the node that leads has.
func (c *Call) answered(a *actors.LeaderAnswer) {
	c.Failure, c.Cause = nil, nil
	c.Status, c.wait, c.body = a.Status, a.Wait, append(c.body[:0], a.Body...)
	c.unproven = a.Unproven
}

// Unproven reports whether the node that leads has refused the call before its signature was right.
func (c *Call) Unproven() bool { return c.unproven }
