package operator

import (
	"context"
	"strings"
)

// A Reloader takes up the configuration of this process anew, with its certificates and tokens.
type Reloader interface {
	// Reload returns what has changed. An *actors.RequestError refuses the configuration and says
	// why: then nothing of it counts. After another error it is not known.
	Reload(ctx context.Context) (*Reloaded, error)
}

// Reloaded is what a reload has done.
type Reloaded struct {
	Applied []ReloadedOption `json:"applied"`
	// Faults say which certificates and tokens stay as they were, and why.
	Faults []string `json:"faults"`
}

// A ReloadedOption is an option that has another value now.
type ReloadedOption struct {
	Key    string `json:"key"`
	Before string `json:"before"`
	After  string `json:"after"`
	Origin string `json:"origin"` // of the value
}

type reloadRequest struct{}

// reload has the process that is asked take up its configuration.
func reload(c *call) (any, error) {
	var q reloadRequest
	if err := c.parse(&q); err != nil {
		return nil, err
	}
	if c.server.reloader == nil {
		return nil, &badRequest{"this process has no configuration to take up"}
	}
	ctx, cancel := within(changePatience)
	defer cancel()
	done, err := c.server.reloader.Reload(ctx)
	if err != nil {
		return nil, err
	}
	if len(done.Applied) > 0 {
		keys := make([]string, 0, len(done.Applied))
		for _, x := range done.Applied {
			keys = append(keys, x.Key+" "+x.After)
		}
		c.server.log.Info("an operator has had the configuration taken up", "operator", c.operator)
		c.noted("took up another configuration: %s", strings.Join(keys, ", "))
	}
	return &Reloaded{append([]ReloadedOption{}, done.Applied...),
		append([]string{}, done.Faults...)}, nil
}
