// Package processes tests on the real program that acknowledged changes survive. Its tests run the
// exchange as a child process under signed load of many clients, kill it with kill -9 at a random
// moment, and restart it. Then they compare the outcome of each request with the exchange's state.
//
//	acknowledged      present, with at least the acknowledged content
//	refused           absent
//	unknown           completely present, or absent
//
// Further invariants: money is conserved, reserves equal open orders and pending withdrawals, ids
// are unique, a request with a used nonce is refused when its bytes are sent again, and so is one
// of a revoked key or a frozen account, and the exchange's own audit finds no difference. The same
// holds for an exchange restored from a backup.
//
// chaos_test.go is the campaign of `make chaos`: hundreds of faults of many kinds, of the exchange,
// of its Redis and of the network between them. During each fault `exchange loadtest` drives and
// verifies, while deposits, withdrawals and keys change concurrently.
// siege_test.go is the campaign of `make siege`, on a cluster of three nodes.
// linear_test.go records clients' answers through kills, and has them checked by actors/lineartest;
// linear_batch_test.go covers batches, linear_own_test.go the subscribers of accounts, and
// linear_cluster_test.go three nodes.
// loadtest_test.go runs the load tester itself against the program, soak_test.go a short soak.
// tools_test.go covers operators' exports, files of deposits and calls of the API.
// maker_test.go runs the market makers of docs/examples, balancer_test.go its load balancers.
package processes
