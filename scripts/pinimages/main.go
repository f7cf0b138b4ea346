// Pinimages writes the digests of images into Dockerfiles and compose files: see
// scripts/pin-images.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

// The codes to exit with, as those of the exchange.
const (
	exitUsage       = 64
	exitBroken      = 70
	exitUnavailable = 75
)

// An exitError is an error with the code to exit with.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }

func failf(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, newRegistry(os.Getenv("PIN_REGISTRY")), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pin-images:", err)
		code := exitUnavailable // such as a file that cannot be written
		if e := (*exitError)(nil); errors.As(err, &e) {
			code = e.code
		}
		os.Exit(code)
	}
}

// run pins the images of all files, or of none if one of them cannot be pinned.
func run(ctx context.Context, r *registry, files []string, out io.Writer) error {
	texts := make([][]byte, len(files))
	digests := map[string]string{}
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return failf(exitUsage, "%v", err)
		}
		texts[i], err = pin(text, func(image string) (string, error) {
			if digests[image] == "" {
				digest, err := r.digest(ctx, image)
				if err != nil {
					return "", err
				}
				digests[image] = digest
				fmt.Fprintf(out, "%s@%s\n", image, digest)
			}
			return digests[image], nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	for i, file := range files {
		if err := replace(file, texts[i]); err != nil {
			return err
		}
	}
	return nil
}

// replace gives a file another content. It has the old or the new one at any time.
func replace(file string, text []byte) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".pin-images-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it has another name, if all went well
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

var (
	fromLine  = regexp.MustCompile(`(?i)^(FROM(?:\s+--\S+)*\s+)(\S+)(?:(\s+AS\s+)(\S+))?`)
	imageLine = regexp.MustCompile(`^(\s+image:\s+)([^\s#]+)`)
)

// pin returns a Dockerfile or a compose file with the digest that digest returns for each image. It
// replaces an earlier digest.
func pin(text []byte, digest func(image string) (string, error)) ([]byte, error) {
	stages := map[string]bool{"scratch": true}
	lines := bytes.SplitAfter(text, []byte("\n"))
	found := 0
	for i, line := range lines {
		m := fromLine.FindSubmatchIndex(line)
		if m == nil {
			m = imageLine.FindSubmatchIndex(line)
		}
		if m == nil {
			continue
		}
		image := string(line[m[4]:m[5]])
		stage := stages[strings.ToLower(image)]
		if len(m) > 8 && m[8] >= 0 {
			stages[strings.ToLower(string(line[m[8]:m[9]]))] = true
		}
		if stage {
			continue
		}
		found++
		image, _, _ = strings.Cut(image, "@")
		if err := checkImage(image); err != nil {
			return nil, err
		}
		d, err := digest(image)
		if err != nil {
			return nil, err
		}
		lines[i] = append(append(bytes.Clone(line[:m[4]]), image+"@"+d...), line[m[5]:]...)
	}
	if found == 0 {
		return nil, failf(exitUsage, "there is no line with an image (FROM or image:)")
	}
	return bytes.Join(lines, nil), nil
}

var imageName = regexp.MustCompile(
	`^[a-z0-9._:-]+(/[a-z0-9._-]+)*:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// checkImage is nil for an image with a tag, and without variables or quotes.
func checkImage(image string) error {
	if !imageName.MatchString(image) {
		return failf(exitUsage,
			"the image %q cannot be pinned: write its name and a tag, such as redis:7", image)
	}
	return nil
}
