package cli

import (
	"runtime"
	"runtime/debug"

	"exchange/gateway/api"
)

// commit is set by the linker to the commit of this build, as `git describe` names it: -ldflags "-X
// exchange/cmd/exchange/cli.commit=$(git describe --always)".
var commit string

// A Build is the source of the program.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // empty if neither Go nor the linker has it
	Modified bool   `json:"modified"` // the source differs from the commit
	Go       string `json:"go"`
}

// BuildVersion returns the source of this program.
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
