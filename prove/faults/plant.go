package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// scripts makes the scripts of Redis from their files.
const scripts = "persistence/redis/scripts.go"

// overlay writes the files with the faults into dir, and returns the overlay for builds. The error
// names each fault whose text does not occur in its file exactly once.
func overlay(root, dir string, list []Fault) (string, error) {
	files, err := planted(root, list)
	if err != nil {
		return "", err
	}
	files["core/planted/planted.go"] = `package planted

import (
	"fmt"
	"os"
)

var fault = os.Getenv("PLANTED_FAULT")

func On(name string) bool { return name == fault }

// Lua begins each script of Redis.
func Lua() string { return fmt.Sprintf("local planted = %q\n", fault) }
`
	replace := map[string]string{}
	for file, text := range files {
		path := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = path
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, b, 0o600)
}

// marked matches «new» and «old→new».
var marked = regexp.MustCompile(`«(?:([^»→]*)→)?([^»]*)»`)

var clause = regexp.MustCompile(`(?m)^package \w+$`)

// planted returns the files with the faults.
func planted(root string, list []Fault) (map[string]string, error) {
	files, lua := map[string]string{}, false
	read := func(file string) (string, error) {
		if text, there := files[file]; there {
			return text, nil
		}
		b, err := os.ReadFile(filepath.Join(root, file))
		return string(b), err
	}
	var wrong []error
	for _, f := range list {
		text, err := read(f.File)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", f.Name, err))
			continue
		}
		on := fmt.Sprintf("planted.On(%q)", f.Name)
		if strings.HasSuffix(f.File, ".lua") {
			lua, on = true, fmt.Sprintf("(planted == %q)", f.Name)
		}
		old, now := marked.ReplaceAllString(f.Edit, "$1"), marked.ReplaceAllString(f.Edit, "$2")
		found := anySpace(old).FindAllStringIndex(text, -1)
		if len(found) != 1 {
			wrong = append(wrong, fmt.Errorf("%s: %s has its text %d times: change the edit "+
				"in prove/faults", f.Name, f.File, len(found)))
			continue
		}
		begin, end := found[0][0], found[0][1]
		files[f.File] = text[:begin] +
			strings.TrimSpace(strings.ReplaceAll(now, "FAULT", on)) + text[end:]
	}
	if lua {
		text, err := read(scripts)
		wrong = append(wrong, err)
		files[scripts] = strings.ReplaceAll(text, "redis.NewScript(",
			"redis.NewScript(planted.Lua() + ")
	}
	for file, text := range files {
		if strings.HasSuffix(file, ".go") {
			files[file] = clause.ReplaceAllString(text, "$0\n\nimport \"exchange/core/planted\"\n")
		}
	}
	return files, errors.Join(wrong...)
}

// anySpace matches a text with any spaces and line breaks between its words.
func anySpace(text string) *regexp.Regexp {
	words := strings.Fields(text)
	for i, word := range words {
		words[i] = regexp.QuoteMeta(word)
	}
	return regexp.MustCompile(strings.Join(words, `\s+`))
}

// build builds the tests of a package with the overlay.
func build(root, overlay, pkg, binary string) error {
	c := exec.Command("go", "test", "-c", "-tags=prove", "-vet=off", "-pgo=off", "-overlay",
		overlay, "-o", binary, "./"+pkg)
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("building the tests of %s with planted faults: %w\n%s", pkg, err, out)
	}
	return nil
}
