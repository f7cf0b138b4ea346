package demomarket

// Accounts are those of the demo's visitors. Their keys are public. So the demo serves loopback
// addresses only, and neither its store nor a real one is ever served as the other.
var Accounts = []string{"alice", "bob"}

// Key returns the plain key of one of the accounts.
func Key(account string) string { return "demo-" + account }

// ParallelKey returns an account's key for parallel use.
func ParallelKey(account string) string { return Key(account) + "-parallel" }

// Secret returns the secret of a key.
func Secret(key string) string { return key + "-secret" }

// Email returns an account's address.
func Email(account string) string { return account + "@demo.example" }
