package sign

import "exchange/gateway/params"

// A style is a set of bits for the differences between clients: the characters that are not
// percent-encoded although RFC 3986 reserves them, and absent fields.
type style uint8

const (
	strict       style = 0
	spaceAsPlus  style = 1 << 0 // a space is '+', as in forms
	bareMarks    style = 1 << 1 // !'()* stay as they are, as encodeURIComponent leaves them
	withoutNulls style = 1 << 2 // fields with null are left out
	always       style = 1 << 3 // not a style: a byte that every style encodes

	allStyles = spaceAsPlus | bareMarks | withoutNulls
)

// encoded holds the style of each byte; 0 for unreserved bytes, which no style encodes.
var encoded = func() (t [256]style) {
	for c := range t {
		t[c] = always
	}
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~" {
		t[c] = 0
	}
	for _, c := range "!'()*" {
		t[c] = bareMarks
	}
	t[' '] = spaceAsPlus
	return t
}()

// AppendMessage appends the text that is signed: the key and the sorted parameters. The unreserved
// characters of RFC 3986 stay bare, and a space is %20 or '+'. p may be nil.
func AppendMessage(dst []byte, key []byte, p *params.Set, plus bool) []byte {
	s := strict
	if plus {
		s = spaceAsPlus
	}
	dst, _ = appendMessage(dst, key, p, s)
	return dst
}

// appendMessage also returns the kinds of special characters, and of fields, that occurred. A style
// that differs from s only in other kinds gives the same text.
func appendMessage(dst []byte, key []byte, p *params.Set, s style) (text []byte, special style) {
	dst = append(dst, key...)
	if p == nil {
		return dst, 0
	}
	all, first := p.All(), true
	for i := range all {
		if all[i].Kind == params.Null {
			if special |= withoutNulls; s&withoutNulls != 0 {
				continue
			}
		}
		if !first {
			dst = append(dst, '&')
		}
		first = false
		var inName, inValue style
		dst, inName = appendEncoded(dst, all[i].Name, s)
		dst = append(dst, '=')
		dst, inValue = appendEncoded(dst, all[i].Value, s)
		special |= inName | inValue
	}
	return dst, special
}

func appendEncoded(dst, text []byte, s style) (_ []byte, special style) {
	const digits = "0123456789ABCDEF"
	from := 0
	for i, c := range text {
		e := encoded[c]
		special |= e
		switch {
		case e == 0, e == bareMarks && s&bareMarks != 0:
			continue
		case e == spaceAsPlus && s&spaceAsPlus != 0:
			dst = append(append(dst, text[from:i]...), '+')
		default:
			dst = append(append(dst, text[from:i]...), '%', digits[c>>4], digits[c&15])
		}
		from = i + 1
	}
	return append(dst, text[from:]...), special
}
