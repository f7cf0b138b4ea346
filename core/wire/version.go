package wire

import "fmt"

// An OtherVersion is the error of stored bytes that are not damaged: another version of the program
// wrote them.
type OtherVersion struct {
	Of             string // what is counted; "": the version of a format
	Found          uint64
	Oldest, Newest uint64 // what this program reads
}

// Version returns the OtherVersion of something of which this program reads one version, or nil.
func Version(found, reads uint64) error {
	if found == reads {
		return nil
	}
	return &OtherVersion{Found: found, Oldest: reads, Newest: reads}
}

// Error names both versions, and the program to run.
func (o *OtherVersion) Error() string {
	of, reads, newer := o.Of, fmt.Sprintf(" %d", o.Newest), ""
	if of == "" {
		of = "version"
	}
	if o.Oldest != o.Newest {
		reads = fmt.Sprintf("s %d to %d", o.Oldest, o.Newest)
	}
	if o.Found > o.Newest {
		newer = "newer "
	}
	return fmt.Sprintf("it is of %s %d and this program reads %s%s; run the %sprogram that "+
		"wrote it", of, o.Found, of, reads, newer)
}
