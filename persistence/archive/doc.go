// Package archive keeps the parts of a journal that its store trims. They are files in a folder,
// each a run of batches, compressed and with a checksum. Together they are the journal from its
// first record on.
//
//	a, err := archive.Open(dir)
//	trim, err := a.Save(ctx, store, by, history, upTo) // then store.Trim(ctx, token, trim)
//	a = a.Under(by)                                    // each part read must be authentic
//	seq, image, err := a.Base(ctx)                     // its beginning: nothing, or a state
//	err = a.Read(ctx, seq, fn)                         // every batch, verified
//
// An archive belongs to one history. Sequences do not distinguish histories: another exchange has
// the same ones, and so has a restored store that diverged. So the store never trims the archive's
// last batch. An archive is only continued from a journal that has the very same batch, byte by
// byte.
//
// An archive may begin late: its store has trimmed its first records, or was restored from a backup
// without them. It then begins with a base: the image of the older snapshot's state.
//
// A file is named journal-<first record>-<last record>.zst, with twenty digits each. It is written
// beside its name, synced, and then renamed, so a file with such a name is whole. It has the form
// of package packed, with these parts in order:
//
//   - a line of text;
//   - a head in JSON, with its length as uvarint before it;
//   - the base, in pieces (length as uvarint, and bytes), and then a zero. The zero stands alone in
//     all files but the first of an archive with a base;
//   - each batch (its length and its two sequences as uvarints, and its bytes), and then a zero;
//   - the last record as uvarint, and the proof.
//
// Each part is authenticated with a key that is derived from the server's. Its head has the engine,
// the id of its history, its first record, and the HMAC of the part before. So changing, making,
// swapping, dropping or joining parts needs the key. Only the newest parts may be dropped without
// it, and the journal must then have their records. A history gets another id without another
// journal when HEAD was missing at a start. The archive then continues, linked by that HMAC.
//
//	archive.go     opening, fitting a journal, saving
//	write.go       writing one part
//	read.go        reading parts, their heads and proofs
//	files.go       folders and files that survive a power cut
//	lock_unix.go   one process at a time
//	lock_other.go  the same where the system has no such lock
package archive
