// Package processes proves on the real program that acknowledged changes survive. Its tests run the
// exchange as a child process under signed load from many clients, end it with kill -9 at a random
// moment, and start it again. Then they compare the outcome of each request with the exchange's
// state.
//
//	acknowledged      present, with at least what was acknowledged
//	refused           absent
//	unknown           present as a whole, or absent; never half
//
// and over everything: money is conserved, reserves are what open orders and pending withdrawals
// hold, no id is given twice, a request whose nonce was used is refused when its bytes are sent
// again, so is one by a key that was revoked or of an account that is frozen, and the exchange's
// own audit finds no difference. So does an exchange that was restored from a backup.
//
// chaos_test.go is the campaign of `make chaos`: hundreds of faults of many kinds, of the exchange,
// of its Redis and of the network between them. During each fault `exchange loadtest` drives and
// verifies, while money and keys come and go beside it.
// siege_test.go is the campaign of `make siege`, on a cluster of three nodes.
// linear_test.go records what clients are told through kills, and has it checked by
// actors/lineartest; linear_batch_test.go has their batches, linear_own_test.go the subscribers of
// their accounts, and linear_cluster_test.go three nodes.
// loadtest_test.go runs the load tester itself against the program, soak_test.go a short soak.
// tools_test.go has operators' exports, files of deposits and calls of the API.
// maker_test.go runs the market makers of docs/examples, balancer_test.go its load balancers.
package processes
