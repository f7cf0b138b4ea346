// Package recorded has only tests. They run the real program, write down the names and the forms
// that its users depend on, and compare them with those that were recorded before, in testdata:
//
//   - openapi.json: the document of the API, whole
//   - operator.json: the document of the operator's API, whole
//   - commands.txt: commands, arguments, flags with their defaults, exit codes
//   - configuration.txt: the options with their defaults, and the variables of the environment
//   - session.txt: requests and commands with their answers: status, headers, body, text, JSON, CSV
//   - plain.txt: requests about plain limit orders with their answers, and the stream's events of
//     them, to the byte but for times
//   - metrics.txt: each metric with its type, its help and its labels
//   - stream.txt: events and the members of each
//   - files.txt: the files of a data folder, a backup and an archive
//   - keys.txt: the keys of a Redis, with their types
//   - scripts.txt: the scripts of Redis, by their hashes
//   - report.txt: the members of a load test's report
//   - source.txt: texts of the source that stored data, documentation, tests or alerts depend on,
//     and the attributes of the log lines among them
//
// Clients of a cluster are answered the same: what session.txt, plain.txt, stream.txt and
// openapi.json record is played through an observer as well, and must be the same to the byte.
// Operators' commands go to the node that leads. The other lists are of one process or its store,
// and not what clients are answered; a cluster's node has metrics and files of its own beside them.
//
// A test that fails here has found a change that users notice. Where that is meant, write the lists
// anew, read what differs, and tell users:
//
//	go test -tags=prove ./prove/recorded -record
//
// plain.txt is never written anew: a request that asks for nothing new keeps its answer for good.
package recorded
