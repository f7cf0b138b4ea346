package main

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// mostColumns is the width of a line; a tab counts 4 columns.
const mostColumns = 100

// A finding is a violation of a rule.
type finding struct {
	file string
	line int
	text string
}

// columns is the width of a line.
func columns(line string) int {
	return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
}

// tooWide finds the lines of a file that are too wide. Generated files are skipped.
func tooWide(name string, text []byte) (list []finding) {
	if isGenerated(text) {
		return nil
	}
	var exempt map[int]bool
	switch filepath.Ext(name) {
	case ".go":
		exempt = rawLines(text)
	case ".md":
		exempt = tableLines(text)
	}
	for i, line := range strings.Split(string(text), "\n") {
		if columns(line) > mostColumns && !exempt[i+1] &&
			columns(withoutAddresses(line)) > mostColumns {
			list = append(list, finding{name, i + 1,
				fmt.Sprintf("the line is %d columns wide; 100 are the most",
					columns(line))})
		}
	}
	return list
}

func isGenerated(text []byte) bool {
	head := text[:min(len(text), 2000)]
	return bytes.Contains(head, []byte("Code generated ")) &&
		bytes.Contains(head, []byte(" DO NOT EDIT.")) ||
		bytes.Contains(head, []byte("<!-- generated"))
}

// withoutAddresses is a line without the addresses in it: they cannot be broken.
func withoutAddresses(line string) string {
	fields := strings.Fields(line)
	kept := fields[:0]
	for _, f := range fields {
		if !strings.Contains(f, "://") {
			kept = append(kept, f)
		}
	}
	if len(kept) == len(fields) {
		return line
	}
	return strings.Join(kept, " ")
}

// rawLines are the lines of Go inside a raw string. The first one is not among them if the code
// before the string is too wide by itself.
func rawLines(text []byte) map[int]bool {
	lines := map[int]bool{}
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		p, t, literal := s.Scan()
		if t == token.EOF {
			return lines
		}
		if t == token.STRING && literal[0] == '`' {
			first := file.Line(p)
			for i := range strings.Count(literal, "\n") + 1 {
				lines[first+i] = true
			}
		}
	}
}

// row finds a row of a table in a code block: columns stand two blanks or more apart.
var row = regexp.MustCompile(`\S {2,}\S(.*\S)? {2,}\S`)

// tableLines are the lines of Markdown that are a table's, or those of a code block with one
// command.
func tableLines(text []byte) map[int]bool {
	lines := map[int]bool{}
	list := strings.Split(string(text), "\n")
	fence := -1
	for i, line := range list {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```") && fence < 0:
			fence = i
		case strings.HasPrefix(trimmed, "```"):
			if commands(list[fence+1:i]) == 1 {
				for j := fence; j < i; j++ {
					lines[j+1] = true
				}
			}
			fence = -1
		case fence < 0 && strings.HasPrefix(trimmed, "|"), fence >= 0 && row.MatchString(line):
			lines[i+1] = true
		}
	}
	return lines
}

// commands counts the commands of a code block: a line that ends with a backslash continues on the
// next.
func commands(block []string) (n int) {
	open := false
	for _, line := range block {
		if strings.TrimSpace(line) != "" && !open {
			n++
		}
		open = strings.HasSuffix(line, `\`)
	}
	return n
}
