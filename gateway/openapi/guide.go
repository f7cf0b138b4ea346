package openapi

import (
	_ "embed"
	"fmt"
	"strings"

	"exchange/core/market"
	"exchange/gateway/api"
)

// The text before the operations: guide.md about requests, and stream.md about the stream.

//go:embed guide.md
var guide string

//go:embed stream.md
var streamChapter string

// introduction returns the text before the operations. In its files a line that begins with two
// blanks continues the previous line.
func introduction() string {
	var frames []string
	for f := range market.Frame(market.FrameCount) {
		frames = append(frames, "`"+f.String()+"`")
	}
	var refusals strings.Builder
	for _, f := range []*api.Failure{api.NoChallenge, api.LoggedIn, api.TooManyLogins,
		api.LoginEnded, api.NotLoggedIn} {
		fmt.Fprintf(&refusals, "- %d `%s`\n", f.Status, f.Detail)
	}
	chapter := strings.NewReplacer("{timeframes}", strings.Join(frames, ", "), "{refusals}\n",
		refusals.String()).Replace(streamChapter)
	return strings.TrimSpace(strings.ReplaceAll(guide+"\n"+chapter, "\n  ", " "))
}
