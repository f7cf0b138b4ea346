package directory

// Count returns the number of accounts: their ids are 1 to that. It is for tests of actors.
func (d *Directory) Count() uint32 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return uint32(len(d.accounts))
}

// Freeze freezes or unfreezes the account. It is for tests of the gateway.
func (a *Account) Freeze(frozen bool) { a.frozen.Store(frozen) }
