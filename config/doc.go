// Package config is the configuration of `exchange serve`.
//
// The first of these sources that has a value wins:
//
//  1. a flag of the command line, such as --listen: options with a Flag have one
//  2. an environment variable that is set and not empty, such as EXCHANGE_LIMITS_IN_FLIGHT
//  3. the YAML file of --config or EXCHANGE_CONFIG
//  4. the default
//
// One table, Options, defines every option: its key, its default, its range and a paragraph for the
// operator. The file's reader, the environment, the flags, the checks, the help and the sample file
// all use it.
//
//	cfg, err := config.Load(config.Sources{File: "exchange.yaml", Environ: os.Environ()})
//
// A Config from Load is complete and valid: paths that depend on others are filled in. Tests start
// from Default or Demo, change what they need, and call Finish. Nothing here does I/O except
// reading the file, and a Config does not change after the start, so all goroutines may read it.
//
// Most secrets are kept outside. The operator's token and the server's key come from files named in
// the configuration, or from the variables EnvOperatorToken and EnvSecretKey. Two values here may
// hold a password: the address of a Redis, which is printed with RedactURL only, and mail.password,
// which is never printed.
//
//	config.go      Config, its defaults and derived values
//	options.go     an option, and the table Options of all of them, made up of:
//	               options_server.go   addresses, files, stores, TLS, metrics, log
//	               options_cluster.go  several nodes with one journal
//	               options_market.go   currencies, pairs, history, withdrawals
//	               options_limits.go   limits and rates
//	               options_stream.go   the event stream
//	               options_timing.go   timeouts, intervals, snapshots
//	               options_mail.go     mails
//	load.go        the sources in their order; file.go reads YAML, redact.go hides passwords
//	validate.go    the checks
//	cluster.go     the nodes of a cluster, and the checks of them
//	example.go     the sample file, and the help
//	market.go      the part that the nodes of a cluster agree on, as text
//	entries.go     the fields of currencies and pairs
//	reload.go      the changes that apply without a restart
//	demo.go, synthetic.go  currencies and pairs of the demo, and of load tests
package config
