package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"exchange/cmd/exchange/cli"
	"exchange/config"
	"exchange/gateway/operator"
)

// The operator's commands that change the nodes of a cluster.

// askAgain is the time between two requests of a change in progress.
const askAgain = 500 * time.Millisecond

func (p *Commands) clusterAddCommand() *cobra.Command {
	return p.memberCommand(&cobra.Command{
		Use:   "add NODE=HOST:PORT",
		Short: "Have a further node join the cluster",
		Long: "The cluster waits for the node; it joins with an empty folder, catches up " +
			"as a learner, and becomes a voter. Run it on any node of the cluster, and start the " +
			"new one. Repeat the command to continue.",
		Args: cli.Takes("NODE=HOST:PORT"),
	}, "add", func(args []string) (operator.MembershipRequest, error) {
		return membershipRequest("",
			args[0])
	})
}

func (p *Commands) clusterReplaceCommand() *cobra.Command {
	return p.memberCommand(&cobra.Command{
		Use:   "replace OLD NODE=HOST:PORT",
		Short: "Have a node take the place of another one, or of its own lost disk",
		Long: "The cluster waits for the node; it joins with an empty folder, catches " +
			"up as a learner, and replaces OLD in one step. Both names are equal if OLD has " +
			"lost its disk. Run it on any node of the cluster, and start the new one. Repeat " +
			"the command to continue.",
		Args: cli.Takes("OLD", "NODE=HOST:PORT"),
	}, "replace", func(args []string) (operator.MembershipRequest,
		error) {
		return membershipRequest(args[0], args[1])
	})
}

func (p *Commands) clusterRemoveCommand() *cobra.Command {
	return p.memberCommand(&cobra.Command{
		Use:   "remove NODE",
		Short: "Remove a node from the cluster",
		Long: "The node exits with code 77, and its folder cannot be used again. Removing a node " +
			"that has not become a voter yet ends its `add` or `replace`. Run it on another node.",
		Args: cli.Takes("NODE"),
	}, "remove", func(args []string) (operator.MembershipRequest, error) {
		return operator.MembershipRequest{Node: args[0]}, nil
	})
}

func membershipRequest(old, entry string) (operator.MembershipRequest, error) {
	n, err := config.ParseNode(entry)
	if err != nil {
		return operator.MembershipRequest{}, cli.Usage("%w", err)
	}
	return operator.MembershipRequest{Node: n.Name, Address: n.Address, Old: old}, nil
}

// memberCommand completes a command that repeats a change's request until it is done.
func (p *Commands) memberCommand(c *cobra.Command, verb string,
	parse func([]string) (operator.MembershipRequest, error)) *cobra.Command {
	patience := c.Flags().Duration("wait", 10*time.Minute,
		"how long the change may take until the command exits with 75; the change continues")
	c.RunE = cli.Run(func(ctx context.Context, args []string) error {
		w, err := parse(args)
		if err != nil {
			return err
		}
		if *patience < 0 {
			return cli.Usage("--wait is %s: it cannot be negative", *patience)
		}
		a, err := p.member(ctx, "/operator/v1/cluster/"+verb, &w, *patience)
		if err != nil {
			return err
		}
		return p.show(typeOf[operator.MembershipAnswer](), a)
	})
	return c
}

// member repeats the request of a change until it is done, and prints each progress.
func (p *Commands) member(ctx context.Context, path string, w *operator.MembershipRequest,
	patience time.Duration) (json.RawMessage, error) {
	client, err := p.client()
	if err != nil {
		return nil, err
	}
	end, printed := time.Now().Add(patience), ""
	for {
		var a operator.MembershipAnswer
		raw, err := client.call(ctx, path, w, typeOf[operator.MembershipAnswer]())
		_ = json.Unmarshal(raw, &a) // it is complete
		switch {
		case err == nil && a.Done:
			return raw, nil
		case err == nil:
			w.Begun = true
			err = cli.WithExit(cli.ExitUnavailable, errors.New(cli.Plain(a.Says)))
		case cli.ExitCode(err) != cli.ExitUnavailable:
			return nil, err
		}
		if printed != err.Error() {
			printed = err.Error()
			fmt.Fprintf(p.Stderr, "exchange: %s\n", printed)
		}
		if time.Now().After(end) || !wait(ctx, askAgain) {
			return nil, cli.WithExit(cli.ExitUnavailable,
				fmt.Errorf("%w; repeat the command to continue; "+
					"`exchange cluster status` shows the progress", err))
		}
	}
}
