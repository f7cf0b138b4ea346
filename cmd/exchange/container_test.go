package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// The containers that the documentation starts have no rights that they do not need. That the program writes to its data
// folder alone is shown by TestNoSecretIsShownAndNoFileIsForOthers of crash/.
func TestContainersHaveNoRightsAndAReadOnlyRoot(t *testing.T) {
	text, err := os.ReadFile("../../docs/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			User        string   `yaml:"user"`
			ReadOnly    bool     `yaml:"read_only"`
			CapDrop     []string `yaml:"cap_drop"`
			CapAdd      []string `yaml:"cap_add"`
			SecurityOpt []string `yaml:"security_opt"`
			Privileged  bool     `yaml:"privileged"`
			Ports       []string `yaml:"ports"`
			Healthcheck any      `yaml:"healthcheck"`
		} `yaml:"services"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Services) != 2 {
		t.Errorf("there are %d services", len(file.Services))
	}
	for name, s := range file.Services {
		if s.User == "" || strings.HasPrefix(s.User, "0") || s.User == "root" || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 ||
			!slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) || s.Privileged || s.Healthcheck == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if ports := file.Services["redis"].Ports; len(ports) > 0 {
		t.Errorf("the store can be reached at %q", ports)
	}
	if ports := file.Services["exchange"].Ports; !slices.Equal(ports, []string{"127.0.0.1:8080:8080"}) {
		t.Errorf("the API, which is plain there, can be reached at %q", ports)
	}

	image, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	stages := regexp.MustCompile(`(?m)^FROM `).Split(string(image), -1)
	last := stages[len(stages)-1]
	for _, line := range []string{"gcr.io/distroless/static-debian12:nonroot", "\nUSER 65532:65532\n", "\nHEALTHCHECK ", "\nENTRYPOINT [\"/exchange\"]\n", "\nVOLUME /data\n"} {
		if !strings.Contains(last, line) {
			t.Errorf("the image has no %q", line)
		}
	}
	if strings.Contains(last, "\nRUN ") {
		t.Error("something is run in the image, which has no shell to run it")
	}
}
