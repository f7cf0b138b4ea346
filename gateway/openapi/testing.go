package openapi

// Described is an operation of the document, for tests of gateway.
type Described struct {
	Method, Path string
	Parameters   []string // names in the query and in the body

	documentPath string // in the form for clients
}

// Descriptions returns the operations of the document, for tests of gateway.
func Descriptions() (list []Described) {
	for _, d := range descriptions() {
		one := Described{Method: d.method, Path: d.path, documentPath: d.documentPath()}
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

// Files returns the names of the files of the page at /docs, for tests of gateway.
func Files() []string { return docsFiles }
