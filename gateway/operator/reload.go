package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNotNow is wrapped by errors of a Reloader that may succeed in a moment.
var ErrNotNow = errors.New("nothing was done")

// A Reloader reloads the configuration of this process, with its certificates and tokens.
type Reloader interface {
	// Reload returns the changes. An *actors.RequestError refuses the configuration with the
	// reason: then nothing of it applies. After another error the outcome is unknown.
	Reload(ctx context.Context) (*Reloaded, error)
}

// Reloaded is the result of a reload.
type Reloaded struct {
	Applied []ReloadedOption `json:"applied" doc:"Options that have another value now"`
	Faults  []string         `json:"faults" doc:"What stays as it was, and why"`
}

// A ReloadedOption is an option with a new value.
type ReloadedOption struct {
	Key    string `json:"key" doc:"The option"`
	Before string `json:"before" doc:"Its value before"`
	After  string `json:"after" doc:"Its value now"`
	Origin string `json:"origin" doc:"Where the value comes from"`
}

// Bounds of the words of a reload, in bytes: of a value, and of all, which fit into an action's
// note.
const shownValue, shownChanges = 60, 900

// InWords describes a reload's changes, for the log of actions: fees and limits first, and texts
// for customers last.
func (r *Reloaded) InWords() string {
	list := slices.Clone(r.Applied)
	slices.SortStableFunc(list, func(a, b ReloadedOption) int {
		return cmp.Compare(len(a.After)/shownValue, len(b.After)/shownValue)
	})
	text := "took up another configuration: "
	for i, x := range list {
		next := fmt.Sprintf("%s %s instead of %s", x.Key, short(x.After), short(x.Before))
		if len(text)+len(next) > shownChanges {
			return fmt.Sprintf("%sand %d more", text, len(list)-i)
		}
		if text += next; i+1 < len(list) {
			text += ", "
		}
	}
	return text
}

// short returns the beginning of a long value.
func short(value string) string {
	if len(value) <= shownValue {
		return cmp.Or(value, "none")
	}
	return strings.ToValidUTF8(value[:shownValue], "") + "..."
}

type reloadRequest struct{}

// reloadConfig makes this process reload its configuration.
func reloadConfig(c *call, q *reloadRequest) (*Reloaded, error) {
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
		c.server.log.Info("an operator reloaded the configuration", "operator", c.operator)
		c.note("%s", done.InWords())
	}
	return &Reloaded{append([]ReloadedOption{}, done.Applied...),
		append([]string{}, done.Faults...)}, nil
}
