package openapi

import "exchange/gateway/api"

// Described is an operation of the document, for tests of gateway.
type Described struct {
	Method, Path string
	DocumentPath string   // in the form for clients
	Parameters   []string // names in the query and in the body
}

// Descriptions returns the operations of the document, for tests of gateway.
func Descriptions() (list []Described) {
	for _, d := range descriptions() {
		one := Described{Method: d.method, Path: d.path, DocumentPath: d.documentPath()}
		for _, p := range d.parameters {
			if p.in == "query" {
				one.Parameters = append(one.Parameters, p.name)
			}
		}
		if d.body != "" {
			for _, p := range at(at(schemas(), d.body).(object), "properties").(object) {
				one.Parameters = append(one.Parameters, p.name)
			}
		}
		list = append(list, one)
	}
	return list
}

// at returns the value of a member.
func at(o object, name string) any {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// Text returns the encoded document, for tests of gateway.
func (d *Document) Text() []byte { return d.body }

// About returns the case of a failure's example, for tests of gateway.
func About(f *api.Failure) string { return failureAbout[f] }

// LastNonce is the nonce of the example of WrongNonce, for tests of gateway.
const LastNonce = lastNonceExample

// Files returns the names of the files of the page at /docs, for tests of gateway.
func Files() []string { return docsFiles }

// StatusTexts returns the texts of statuses that are failures, for tests of gateway.
func StatusTexts() map[int]string { return statusTexts }
