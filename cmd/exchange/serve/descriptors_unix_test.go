//go:build unix

package serve

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"exchange/config"
)

// The documentation has the number of file descriptors that the program keeps.
func TestTheKeptDescriptorsAreThoseOfTheDocumentation(t *testing.T) {
	page := must(os.ReadFile("../../../docs/operations/watch.md"))
	kept := fmt.Sprint(keptDescriptors)
	least := fmt.Sprintf("Below %d it is refused with 64", keptDescriptors+leastConnections)
	for _, text := range []string{kept + " of them are kept", least} {
		if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), text) {
			t.Errorf("docs/operations/watch.md does not say %q", text)
		}
	}
	for i := range config.Options {
		if o := &config.Options[i]; o.Key == "limits.connections" &&
			!strings.Contains(o.Help, kept+" are kept") {
			t.Errorf("the help of limits.connections does not say %s: %s", kept, o.Help)
		}
	}
}
