package event

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
)

// fields calls fn with each field that sentToObservers lists.
func fields(v reflect.Value, path string, fn func(path string, v reflect.Value)) {
	for i := range v.NumField() {
		name := strings.TrimPrefix(path+"."+v.Type().Field(i).Name, ".")
		if _, decided := sentToObservers[name]; !decided && v.Field(i).Kind() == reflect.Struct {
			fields(v.Field(i), name, fn)
			continue
		}
		fn(name, v.Field(i))
	}
}

func TestEachFieldOfARecordIsDecidedOnForObservers(t *testing.T) {
	seen := map[string]bool{}
	fields(reflect.ValueOf(Record{}), "", func(path string, _ reflect.Value) {
		seen[path] = true
		if _, decided := sentToObservers[path]; !decided {
			t.Errorf("sentToObservers lacks %s", path)
		}
	})
	for path := range sentToObservers {
		if !seen[path] {
			t.Errorf("records have no %s", path)
		}
	}
	// those that are decided on as a whole
	for _, v := range []any{Order{}, Cancel{}, Refusal{}, Withdrawal{}, Adjusted{}, CodeRefused{},
		Halt{}, Freeze{}, Fees{}, Switch{}, Settings{}, WithdrawalStatus{}, Expired{}, Amended{},
		Triggered{}, Trade{}, Was{}} {
		want := map[string]string{"Withdrawal": "Address", "WithdrawalStatus": "Details",
			"Adjusted": "Reason"}
		kind := reflect.TypeOf(v)
		for i := range kind.NumField() {
			if f := kind.Field(i); f.Type.Kind() == reflect.String &&
				want[kind.Name()] != f.Name {
				t.Errorf("sentToObservers lacks the text %s.%s", kind.Name(), f.Name)
			}
		}
	}
}

// marked returns a golden record with texts that can be found again.
func marked(r Record) Record {
	if r.Operator == "" {
		r.Operator = "x"
	}
	fields(reflect.ValueOf(&r).Elem(), "", func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			v.SetString("<" + path + ">")
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Uint8 {
				v.SetBytes([]byte("<" + path + ">"))
			}
		}
	})
	return r
}

func TestWithheldTextsAreNotInObserversBatches(t *testing.T) {
	batch, count := BeginBatch(nil), uint32(0)
	for i := range golden {
		r := marked(golden[i].record)
		batch = r.Append(batch)
		count++
	}
	batch = EndBatch(batch, 7, 8, count)
	got, err := WithholdBatch(nil, batch)
	if err != nil {
		t.Fatal(err)
	}
	fields(reflect.ValueOf(Record{}), "", func(path string, v reflect.Value) {
		text := v.Kind() == reflect.String ||
			v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8
		mark := []byte("<" + path + ">")
		if text && !bytes.Contains(batch, mark) {
			t.Errorf("%s is not in the batch", path)
		}
		if text && bytes.Contains(got, mark) != sentToObservers[path] {
			t.Errorf("%s: observers get it: %v", path, !sentToObservers[path])
		}
	})
	b, err := OpenBatch(got)
	if err != nil || b.Epoch != 7 || b.Prev != 8 || b.Count != count {
		t.Fatalf("the batch is %+v, %v", b, err)
	}
	for i, rest := 0, b.Records; len(rest) > 0; i++ {
		var r Record
		if rest, err = r.Decode(rest); err != nil {
			t.Fatal(err)
		}
		want := marked(golden[i].record)
		want.withhold()
		if !bytes.Equal(r.Append(nil), want.Append(nil)) {
			t.Errorf("%+v came as %+v", want, r)
		}
		if r.withhold() {
			t.Errorf("%v: something was left to withhold", r.Kind)
		}
	}
}

// A record without an operator, an e-mail address and the like keeps its bytes.
func TestRecordsWithoutWithheldTextsAreCopied(t *testing.T) {
	for i := range golden {
		r := golden[i].record
		changed := r.withhold()
		batch, err := hex.DecodeString(golden[i].hex)
		if err != nil {
			t.Fatal(err)
		}
		batch = EndBatch(append(BeginBatch(nil), batch...), 1, 2, 1)
		got, err := WithholdBatch(nil, batch)
		if err != nil || bytes.Equal(got, batch) == changed {
			t.Errorf("%v: changed: %v, %v", r.Kind, changed, err)
		}
	}
}

func FuzzWithholdBatch(f *testing.F) {
	f.Add(goldenBatch())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := WithholdBatch(nil, data)
		if err != nil {
			return
		}
		again, err := WithholdBatch(nil, got)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%x is withheld as %x, and that as %x: %v", data, got, again, err)
		}
	})
}
