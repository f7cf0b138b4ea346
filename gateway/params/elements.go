package params

// Elements calls f with each element of a text that is one JSON array, as it is written, until f
// returns false. An error says where the text is no JSON array; f may have been called before.
func Elements(text []byte, f func(element []byte) bool) error {
	var s Set
	i := skipSpace(text, 0)
	if at(text, i) != '[' {
		return expected(i, "'['")
	}
	i = skipSpace(text, i+1)
	if at(text, i) == ']' {
		return end(text, i+1)
	}
	for {
		var p Param
		next, err := s.readValue(text, i, &p)
		if err != nil {
			return err
		}
		if !f(text[i:next:next]) {
			return nil
		}
		i = skipSpace(text, next)
		switch at(text, i) {
		case ',':
			i = skipSpace(text, i+1)
		case ']':
			return end(text, i+1)
		default:
			return expected(i, "',' or ']'")
		}
	}
}
