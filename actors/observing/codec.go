package observing

import (
	"encoding/binary"
	"fmt"
	"reflect"

	"exchange/core/money"
	"exchange/core/wire"
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
		return wire.AppendText(dst, v.String())
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
		return wire.AppendUints(dst, lo, hi)
	}
	panic(fmt.Sprintf("BUG: a %v cannot be sent", v.Type()))
}

// A parser reads a message.
type parser struct{ wire.Reader }

func parse(message []byte) *parser { return &parser{wire.Read(message)} }

// done returns an error unless all of the message was read, and made sense.
func (p *parser) done() error {
	if !p.End() {
		return errSense
	}
	return nil
}

func (p *parser) fail() { p.Fail("a value that none can have") }

func (p *parser) text() string { return p.Text(maxText) }

// value reads what v points to.
func (p *parser) value(v any) { p.field(reflect.ValueOf(v).Elem()) }

func (p *parser) field(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(p.Flag())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := p.Uint()
		if v.OverflowUint(n) {
			p.fail()
			n = 0
		}
		v.SetUint(n)
	case reflect.Int, reflect.Int64:
		n := p.Int()
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
		v.Set(reflect.ValueOf(p.Balance()))
	case totalType:
		lo, hi := p.Uint(), p.Uint()
		v.Set(reflect.ValueOf(money.TotalFromBits(hi, lo)))
	default:
		for i := range v.NumField() {
			p.field(v.Field(i))
		}
	}
}

// list reads a list, whose memory grows with what is there of it.
func (p *parser) list(v reflect.Value) {
	n := p.Uint()
	if n > maxList || n > uint64(p.Len()) { // each entry takes a byte
		p.fail()
		n = 0
	}
	v.SetZero()
	for ; n > 0 && !p.Bad(); n-- {
		entry := reflect.New(v.Type().Elem()).Elem()
		p.field(entry)
		v.Set(reflect.Append(v, entry))
	}
}
