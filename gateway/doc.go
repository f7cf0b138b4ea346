// Package gateway is the HTTP side of the exchange: it authenticates requests, checks their form,
// turns them into messages for the engine, and writes the answers. It knows no matching and no
// wallets; everything it shows is either configuration or an answer of the engine.
//
// A request goes through the checks in one fixed order, each of which may end it: path, method, format,
// size, headers and key, the key's addresses, the body's form, signature, permission, whether the
// exchange takes writes, the fields, admission. None of these touches a wallet, and none of them uses
// the nonce. What comes after is decided by the wallet's actor: the nonce, then the funds.
//
//	gateway.go   servers, routes, the checks that need no account
//	request.go   one request: its parameters, its answer, its memory
//	auth.go      keys, signatures, nonces, permissions
//	market.go    public resources
//	account.go   an account's own lists
//	orders.go    placing and cancelling
//	operator.go  the operator's listener
//	failure.go   every way to fail
//	params/      bodies and queries into parameters
//	sign/        signatures
package gateway
