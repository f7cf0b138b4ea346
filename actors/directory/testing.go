package directory

// Count returns how many accounts there are: their ids are 1 to that. It is for tests of actors.
func (d *Directory) Count() uint32 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return uint32(len(d.accounts))
}
