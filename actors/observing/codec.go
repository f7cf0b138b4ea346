package observing

import (
	"encoding/binary"
	"fmt"
	"reflect"

	"exchange/core/money"
)

// Values are structs of numbers, texts and lists. They are written field by field: numbers as
// varints, texts and lists behind their length. Both sides have the same types; version says so.

// maxText bounds a text in a value, and maxList a list.
const (
	maxText = 64 << 10
	maxList = 64 << 10
)

var (
	balanceType = reflect.TypeFor[money.Balance]()
	totalType   = reflect.TypeFor[money.Total]()
)

// appendValue writes what v points to.
func appendValue(dst []byte, v any) []byte { return appendField(dst, reflect.ValueOf(v).Elem()) }

func appendField(dst []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(dst, 1)
		}
		return append(dst, 0)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(dst, v.Uint())
	case reflect.Int, reflect.Int64:
		return binary.AppendVarint(dst, v.Int())
	case reflect.String:
		return append(binary.AppendUvarint(dst, uint64(v.Len())), v.String()...)
	case reflect.Slice:
		dst = binary.AppendUvarint(dst, uint64(v.Len()))
		for i := range v.Len() {
			dst = appendField(dst, v.Index(i))
		}
		return dst
	case reflect.Struct:
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
		return binary.AppendUvarint(binary.AppendUvarint(dst, lo), hi)
	}
	panic(fmt.Sprintf("BUG: a %v cannot be sent", v.Type()))
}

// A parser reads a message. At the first byte that does not fit it notes so, and reads zeros from
// then on.
type parser struct {
	b   []byte
	bad bool
}

func (p *parser) fail() { p.bad, p.b = true, nil }

// done returns an error unless all of the message was read, and made sense.
func (p *parser) done() error {
	if p.bad || len(p.b) > 0 {
		return errSense
	}
	return nil
}

func (p *parser) byte() byte {
	if len(p.b) == 0 {
		p.fail()
		return 0
	}
	c := p.b[0]
	p.b = p.b[1:]
	return c
}

func (p *parser) uint() uint64 {
	n, k := binary.Uvarint(p.b)
	if k <= 0 {
		p.fail()
		return 0
	}
	p.b = p.b[k:]
	return n
}

func (p *parser) int() int64 {
	n, k := binary.Varint(p.b)
	if k <= 0 {
		p.fail()
		return 0
	}
	p.b = p.b[k:]
	return n
}

// bytes reads at most that many bytes. They are the message's.
func (p *parser) bytes(most int) []byte {
	n := p.uint()
	if n > uint64(most) || n > uint64(len(p.b)) {
		p.fail()
		return nil
	}
	b := p.b[:n]
	p.b = p.b[n:]
	return b
}

func (p *parser) text() string { return string(p.bytes(maxText)) }

// value reads what v points to.
func (p *parser) value(v any) { p.field(reflect.ValueOf(v).Elem()) }

func (p *parser) field(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		b := p.byte()
		if b > 1 {
			p.fail()
		}
		v.SetBool(b == 1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := p.uint()
		if v.OverflowUint(n) {
			p.fail()
			n = 0
		}
		v.SetUint(n)
	case reflect.Int, reflect.Int64:
		n := p.int()
		if v.OverflowInt(n) {
			p.fail()
			n = 0
		}
		v.SetInt(n)
	case reflect.String:
		v.SetString(p.text())
	case reflect.Slice:
		p.list(v)
	case reflect.Struct:
		p.record(v)
	default:
		panic(fmt.Sprintf("BUG: a %v cannot be received", v.Type()))
	}
}

func (p *parser) record(v reflect.Value) {
	switch v.Type() {
	case balanceType:
		lo, hi := p.uint(), p.uint()
		v.Set(reflect.ValueOf(money.BalanceFromBits(hi, lo)))
	case totalType:
		lo, hi := p.uint(), p.uint()
		v.Set(reflect.ValueOf(money.TotalFromBits(hi, lo)))
	default:
		for i := range v.NumField() {
			p.field(v.Field(i))
		}
	}
}

// list reads a list, whose memory grows with what is there of it.
func (p *parser) list(v reflect.Value) {
	n := p.uint()
	if n > maxList || n > uint64(len(p.b)) { // each entry takes a byte
		p.fail()
		n = 0
	}
	v.SetZero()
	for ; n > 0 && !p.bad; n-- {
		entry := reflect.New(v.Type().Elem()).Elem()
		p.field(entry)
		v.Set(reflect.Append(v, entry))
	}
}
