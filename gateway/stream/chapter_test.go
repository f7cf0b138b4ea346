package stream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"exchange/gateway/openapi"
)

// chapter returns the chapter about the stream of the page at /docs.
func chapter(t *testing.T) string {
	t.Helper()
	var document struct{ Info struct{ Description string } }
	worked(t, json.Unmarshal(openapi.New(true, "").Text(), &document))
	_, text, ok := strings.Cut(document.Info.Description, "\n## The stream\n")
	if !ok {
		t.Fatal("the page has no chapter about the stream")
	}
	return text
}

func TestPageListsChannelsAndEvents(t *testing.T) {
	text := chapter(t)
	has := func(what, name string) {
		t.Helper()
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the chapter lacks the %s `%s`", what, name)
		}
	}
	for f := range families {
		k := &kinds[f]
		name, event := k.plain+".<pair>", k.event
		switch {
		case f == status:
			name = k.plain
		case f == book:
			name, event = bookPrefix+"<pair>", bookPrefix+"<pair>"
		case k.hasCandles():
			name = "candles.<timeframe>.<pair>"
			has("timeframe", k.watch.Frame.String())
		}
		if row := "\n| `" + name + "` | `" + event + "` | "; strings.Count(text, row) != 1 {
			t.Errorf("the table of channels lacks%s", row)
		}
	}
	for _, name := range []string{"subscribe", "unsubscribe", "subscribe.success",
		"subscribe.error", "own", "login.end"} {
		has("event", name)
	}
	for name := range accountEvents {
		has("event", name)
	}
	for name := range commands {
		has("event", name)
	}
}

func TestPageListsClientLimits(t *testing.T) {
	text := chapter(t)
	for _, limit := range []string{
		fmt.Sprintf("A client may have %d names.", maxNames),
		fmt.Sprintf("for %d seconds.", int(challengeLife.Seconds())),
		fmt.Sprintf("A key may be logged in on %d sockets of one node.", loginsPerKey),
		fmt.Sprintf("%d may be in flight (`stream.orders_in_flight`), and %d more wait;",
			usualInFlight, maxWaiting),
	} {
		if !strings.Contains(text, limit) {
			t.Errorf("the chapter lacks %q", limit)
		}
	}
}
