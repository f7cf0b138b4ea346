// Package seal keeps the secrets of API keys unreadable wherever they are stored. A secret is
// sealed with AES-256-GCM under the server's secret key before it becomes part of a record, and
// opened in memory only.
//
// The server's key is 32 bytes: in the environment as 64 hex digits, or in a file of the same form
// with mode 0600, which the first start creates. A sealed secret carries the id of its key, so
// there may be several keys, one a line: the first seals, and all of them open. To rotate, a new
// key is put first, the exchange starts and seals everything with it, and the old key can be
// retired to its own file beside the other. A retired key still opens secrets sealed with it, and
// verifies old backups and archives, but makes no codes.
//
//	seal.go        a Sealer: its keys, sealing and opening
//	keys.go        the file of the keys, rotation, retired keys
//	code.go        the codes that confirm withdrawals
//	file_unix.go   locks and owners of files
//	file_other.go  the same for systems without such locks
package seal
