package sign

// VerifyLogin reports whether the signature fits a login: the text "login", the key and the
// challenge, on a line each. No request has this text: a line feed is encoded there, unless a form
// is signed as it was sent, and no parameter's name is as long as a challenge.
func (k *Keyed) VerifyLogin(v *Verifier, key, challenge string, signature []byte) bool {
	if !v.begin(signature) {
		return false
	}
	v.message = appendLogin(v.message[:0], key, challenge)
	ok := k.fits(v)
	v.end()
	return ok
}

func appendLogin(dst []byte, key, challenge string) []byte {
	dst = append(append(append(dst, "login\n"...), key...), '\n')
	return append(dst, challenge...)
}
