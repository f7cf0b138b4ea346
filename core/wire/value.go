package wire

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"

	"exchange/core/money"
)

// Values are structs of numbers, texts, bytes and lists, for rare messages: reflection finds their
// fields. The encoding goes field by field: numbers as varints, texts and lists with a length
// prefix. Both sides must have the same types; the protocol's version guarantees it.

// maxText bounds a text, in bytes, and maxList a list, in entries; a message bounds its bytes.
const (
	maxText = 64 << 10
	maxList = 64 << 10
)

var (
	balanceType = reflect.TypeFor[money.Balance]()
	totalType   = reflect.TypeFor[money.Total]()
	bytesType   = reflect.TypeFor[[]byte]()
)

// A texter is a struct encoded as a text.
type texter interface {
	Append(b []byte) []byte
	Set(text []byte) error // Set parses a text; "": the zero value
}

// AppendValue writes the value that v points to.
func AppendValue(dst []byte, v any) []byte { return appendField(dst, reflect.ValueOf(v).Elem()) }

func appendField(dst []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		return AppendFlag(dst, v.Bool())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(dst, v.Uint())
	case reflect.Int, reflect.Int64:
		return binary.AppendVarint(dst, v.Int())
	case reflect.String:
		return AppendText(dst, v.String())
	case reflect.Slice:
		if v.Type() == bytesType {
			return AppendText(dst, string(v.Bytes()))
		}
		dst = binary.AppendUvarint(dst, uint64(v.Len()))
		for i := range v.Len() {
			dst = appendField(dst, v.Index(i))
		}
		return dst
	case reflect.Struct:
		if t, ok := v.Addr().Interface().(texter); ok {
			return AppendText(dst, string(t.Append(nil)))
		}
		var hi, lo uint64
		switch v.Type() {
		case balanceType:
			hi, lo = v.Interface().(money.Balance).Bits()
		case totalType:
			hi, lo = v.Interface().(money.Total).Bits()
		default:
			for i := range v.NumField() {
				dst = appendField(dst, v.Field(i))
			}
			return dst
		}
		return AppendUints(dst, lo, hi)
	}
	panic(fmt.Sprintf("BUG: a %v cannot be sent", v.Type()))
}

// Value reads into the value that v points to. A list or bytes of no length become nil.
func (r *Reader) Value(v any) { r.field(reflect.ValueOf(v).Elem()) }

func (r *Reader) field(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.Flag())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := r.Uint()
		r.Check(!v.OverflowUint(n))
		v.SetUint(n)
	case reflect.Int, reflect.Int64:
		n := r.Int()
		r.Check(!v.OverflowInt(n))
		v.SetInt(n)
	case reflect.String:
		v.SetString(r.Text(maxText))
	case reflect.Slice:
		r.list(v)
	case reflect.Struct:
		r.record(v)
	default:
		panic(fmt.Sprintf("BUG: a %v cannot be received", v.Type()))
	}
}

func (r *Reader) record(v reflect.Value) {
	if t, ok := v.Addr().Interface().(texter); ok {
		r.Check(t.Set(r.Bytes(maxText)) == nil)
		return
	}
	switch v.Type() {
	case balanceType:
		v.Set(reflect.ValueOf(r.Balance()))
	case totalType:
		lo, hi := r.Uint(), r.Uint()
		v.Set(reflect.ValueOf(money.TotalFromBits(hi, lo)))
	default:
		for i := range v.NumField() {
			r.field(v.Field(i))
		}
	}
}

// list reads a list. Its memory grows with the entries read, not with the announced length.
func (r *Reader) list(v reflect.Value) {
	v.SetZero()
	n := r.UpTo(uint64(r.Len())) // each entry takes at least a byte
	if v.Type() == bytesType {
		if n > 0 {
			v.SetBytes(slices.Clone(r.Take(int(n))))
		}
		return
	}
	r.Check(n <= maxList)
	for ; n > 0 && !r.Bad(); n-- {
		entry := reflect.New(v.Type().Elem()).Elem()
		r.field(entry)
		v.Set(reflect.Append(v, entry))
	}
}
