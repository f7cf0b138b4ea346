// Package backup writes an exchange's whole state and history at one sequence into one stream. It
// fills an empty store from such a stream: a store of the same kind or of another.
//
//	err := backup.Write(ctx, w, store, image, by, progress) // while the exchange runs
//	err = backup.Authenticate(r, by)                        // unpacks nothing
//	info, err := backup.Verify(r, by)                       // reads all of it, changes nothing
//	b, err := backup.Open(r, by)                            // reads the state
//	info, err = b.Load(ctx, store, progress)                // into an empty store
//
// A backup has the state's image and the history up to its sequence, but no journal. An exchange
// that starts on the restored store continues from the image. A backup does not have the server's
// secret key, which sealed the API secrets in it: the key is kept apart.
//
// A whole backup is authenticated with a key that is derived from the server's, including its
// engine, history, sequence and time. A restored store gets its image last, after the proof is
// verified. Without an image the store cannot be served.
//
// The stream has the form of package packed. A line of text is followed by parts: a letter, a
// length as uvarint, and that many bytes. The last letter stands alone, before the proof. The first
// part describes the backup; then come the image, with the described length, and the rows. All
// lengths are bounded, and so is the unpacked size. So the size of the file bounds the memory of a
// restore.
//
//	backup.go  the form of the stream, and reading it
//	write.go   writing a backup of a store
//	load.go    filling a store from a backup
//	rows.go    rows as bytes, each kind
package backup
