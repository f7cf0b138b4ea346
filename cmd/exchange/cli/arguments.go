package cli

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError words the parser's complaint about an argument that begins with a dash: -1 is parsed as
// flags.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() == "" {
		return err
	}
	given := "-" + unknown.GetSpecifiedShortnames()
	if n, names := len(c.Flags().Args()), argumentNames(c); n < len(names) {
		return Usage("%s of %s is %q: it cannot begin with a dash", names[n],
			strings.TrimPrefix(c.CommandPath(), "exchange "), given)
	}
	return Usage("%q is no flag: flags begin with two dashes", given)
}

// argumentNames returns the arguments of a command's usage line: of "refuse ID --details TEXT" it
// is ID.
func argumentNames(c *cobra.Command) (names []string) {
	for _, word := range strings.Fields(c.Use)[1:] {
		if strings.HasPrefix(word, "-") || strings.HasPrefix(word, "[") {
			break
		}
		names = append(names, word)
	}
	return names
}

// belowZero begins an amount below 0, which would be read as flags. No flag begins so.
var belowZero = regexp.MustCompile(`^-[0-9.]`)

// AmountLast moves the amount of an adjustment to the end, after "--".
func AmountLast(args []string) []string {
	command := slices.Index(args, "adjust")
	if command < 0 || slices.Contains(args, "--") {
		return args
	}
	for i := command + 1; i < len(args); i++ {
		if belowZero.MatchString(args[i]) && !takesNext(args[i-1]) {
			return append(slices.Delete(slices.Clone(args), i, i+1), "--", args[i])
		}
	}
	return args
}

// takesNext reports whether an argument is a flag whose value is the next argument.
func takesNext(arg string) bool {
	return strings.HasPrefix(arg, "--") && !strings.Contains(arg, "=") && arg != "--json" &&
		arg != "--help"
}
