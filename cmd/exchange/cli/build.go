package cli

import (
	"runtime"
	"runtime/debug"

	"exchange/gateway/api"
)

// commit is what the linker was told of the commit that this program is built from, as `git
// describe` names it: -ldflags "-X exchange/cmd/exchange/cli.commit=$(git describe --always)".
var commit string

// A Build is what the program was built from.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // empty if neither Go nor the linker was told
	Modified bool   `json:"modified"` // the commit is not all of it
	Go       string `json:"go"`
}

// BuildVersion returns what this program was built from.
func BuildVersion() Build {
	v := Build{Version: api.Version, Commit: commit, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok && commit == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	return v
}
