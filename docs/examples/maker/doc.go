// Maker is a market maker over the event stream: it quotes on both sides, and lives through losses.
//
//	EXCHANGE_KEY=demo-alice EXCHANGE_SECRET=demo-alice-secret \
//	  go run ./docs/examples/maker http://127.0.0.1:8080 BTC_USDT 50000 0.01
//
// The arguments are the address, the pair, the first price, and the amount of a quote. The address
// may be several, with commas: of nodes, of which each new connection takes the next. The account
// is the maker's alone. Ctrl-C ends it: it cancels its orders, and sells what it has bought.
//
//	main.go     the maker
//	quote.go    its orders
//	account.go  its account and the book, as the stream sends them
//	socket.go   the connection
package main
