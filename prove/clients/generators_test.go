//go:build prove

package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"exchange/gateway/openapi"
	"exchange/gateway/operator"
)

// Third-party tools generate complete types from the OpenAPI documents, and complain only about the
// API's trailing slashes.
func TestToolsOfOtherMakersTakeTheDocuments(t *testing.T) {
	for name, text := range map[string][]byte{
		"public":   openapi.New(true, "api@example.org").Text(),
		"operator": operator.Document(),
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			document := filepath.Join(folder, "openapi.json")
			if err := os.WriteFile(document, text, 0o600); err != nil {
				t.Fatal(err)
			}
			tool(t, "openapi-typescript", "openapi-typescript", document, "-o",
				filepath.Join(folder, "types.ts"))
			tool(t, "@hey-api/openapi-ts", "openapi-ts", "-i", document, "-o",
				filepath.Join(folder, "client"))
			for _, file := range []string{"types.ts", "client/types.gen.ts"} {
				typed(t, filepath.Join(folder, file))
			}
			tool(t, "@redocly/cli", "redocly", "lint", document, "--format=stylish",
				"--skip-rule=no-path-trailing-slash")
		})
	}
}

// hole is an unconstrained type next to others, which disables checks.
var hole = regexp.MustCompile(`(unknown (&|\|) |(&|\|) \(?unknown)[^\n]*`)

// typed expects generated types without holes.
func typed(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range hole.FindAllString(string(text), -1) {
		t.Errorf("%s has %q", filepath.Base(path), found)
	}
}

// tool runs a program of a package of package.json. It must succeed without warnings.
func tool(t *testing.T, name, program string, arguments ...string) {
	t.Helper()
	installed(t, name)
	cmd := exec.Command("../node_modules/.bin/"+program, arguments...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "REDOCLY_TELEMETRY=off",
		"REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "  warning  ") {
		t.Errorf("%s: %v\n%s", program, err, out)
	}
}
