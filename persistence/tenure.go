package persistence

// A Tenure is one claim of a host to a store that others can reach.
type Tenure struct {
	ID string `json:"id"` // of the claim; "": there was none
	// Early says that the claim took the store from an owner that may have lived, and that admission has
	// not opened since.
	Early bool `json:"early,omitempty"`
}

// Tenures are the newest claims of a host. The newest may have come to nothing, and the one before counts then.
type Tenures struct{ Newest, Before Tenure }

// Of finds the tenure that a token belongs to.
func (k *Tenures) Of(tok Token) (t Tenure, own bool) {
	for _, t := range []Tenure{k.Newest, k.Before} {
		if t.ID != "" && t.ID == tok.ID() {
			return t, true
		}
	}
	return Tenure{}, false
}
