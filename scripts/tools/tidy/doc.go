// Command tidy checks the form of the repository's code and prose, beyond gofmt and go vet, and
// prints each violation as file:line: rule. scripts/tidy runs it.
//
//   - width.go: a line of Go or prose is at most 100 columns wide
//   - functions.go: a function is at most 70 lines long
//   - rooms.go: a package's doc.go names its files, and imports run along the list of arrows.txt
//   - surface.go: an exported name has a use in another package; names for tests are used by tests
//   - rings.go: a test of the gate has no real clock, process or listener (but in listeners.txt)
//   - figures.go: no room has grown by more than a twentieth over figures.txt (tidy -figures)
//   - words.go: no words of words.txt, and few names of a package that differ only by an ending
//   - arrows.go: how the files of one package use each other (tidy -arrows)
//   - load.go: the packages with their types, for each system and tag that the code is built for
//   - main.go: the command
//
// A comment "//tidy:keep REASON" after an exported name, or as the last line above it, keeps the
// name that has no use outside its package; above a declaration it keeps all names of that.
package main
