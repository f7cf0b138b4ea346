package wire

import "fmt"

// An OtherVersion is the error for intact bytes that another version of the program wrote.
type OtherVersion struct {
	Of             string // what is numbered; "": the version of a format
	Found          uint64
	Oldest, Newest uint64 // range that this program reads
}

// Version returns an OtherVersion for a format of which this program reads one version, or nil.
func Version(found, reads uint64) error {
	if found == reads {
		return nil
	}
	return &OtherVersion{Found: found, Oldest: reads, Newest: reads}
}

// Error names both versions, and which program to run.
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
