package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// An outputWriter is the standard output of a command. After an error, such as of a full disk, it
// only repeats it.
type outputWriter struct {
	to  io.Writer
	err error
}

func (w *outputWriter) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.to.Write(b)
	if err != nil {
		w.err = withExit(exitUnavailable,
			fmt.Errorf(
				"standard output cannot be written, what was asked for may be done all the "+
					"same: %w", err))
	}
	return n, w.err
}

// flagError words the parser's complaint about an argument that begins with a dash: -1 is taken for
// flags.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() == "" {
		return err
	}
	given := "-" + unknown.GetSpecifiedShortnames()
	if n, names := len(c.Flags().Args()), argumentNames(c); n < len(names) {
		return usage("%s of %s is %q: it cannot begin with a dash", names[n],
			strings.TrimPrefix(c.CommandPath(), "exchange "), given)
	}
	return usage("%q is no flag: flags begin with two dashes", given)
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
