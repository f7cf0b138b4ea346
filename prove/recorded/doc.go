// Package recorded contains only tests. They run the real program, list the names and formats that
// its users depend on, and compare them with the recorded ones in testdata:
//
//   - openapi.json: the document of the API, whole
//   - operator.json: the document of the operator's API, whole
//   - commands.txt: commands, arguments, flags with their defaults, exit codes
//   - configuration.txt: the options with their defaults, and the variables of the environment
//   - session.txt: requests and commands with their answers: status, headers, body, text, JSON, CSV
//   - plain.txt: requests about plain limit orders with their answers, and the stream's events of
//     them, to the byte except for times
//   - metrics.txt: each metric with its type, its help and its labels
//   - stream.txt: events and the members of each
//   - files.txt: the files of a data folder, a backup and an archive
//   - keys.txt: the keys of a Redis, with their types
//   - scripts.txt: the scripts of Redis, by their hashes
//   - report.txt: the members of a load test's report
//   - source.txt: texts of the source that stored data, documentation, tests or alerts depend on,
//     and the attributes of the log lines among them
//
// Clients of a cluster get the same answers: session.txt, plain.txt, stream.txt and openapi.json
// are also played through an observer, and must be equal to the byte. Operators' commands go to the
// leader. The other lists are of one process or its store, not of answers to clients; a cluster's
// node has further metrics and files.
//
// A failing test has found a change that users notice. If it is intended, record the lists again,
// read the differences, and notify users:
//
//	go test -tags=prove ./prove/recorded -record
//
// plain.txt is never recorded again: a request without new features keeps its answer permanently.
package recorded
