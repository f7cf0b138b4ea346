package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"html"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip" // packs smaller than the standard library's
)

//go:embed *.html css/*.css js/*.js js/*/*.js vendor/*/*.js vendor/*/*.mjs
//go:embed vendor/*/LICENSE vendor/*/NOTICE icon.svg
var files embed.FS

// A File is the answer for a page or a part of one.
type File struct {
	ContentType string
	Plain       []byte
	Packed      []byte // by gzip; nil: that is not smaller
	// for the header ETag
	Tag, PackedTag string
}

// A Look is the colour setting of a browser's cookies.
type Look struct {
	theme   string // dark or light; "": the browser's preference
	palette string // blue: blue and orange for up and down; "": green and red
}

// Names of the cookies, and the values that they may have.
const (
	ThemeCookie   = "theme"
	PaletteCookie = "palette"
)

var (
	themes   = []string{"", "dark", "light"}
	palettes = []string{"", "blue"}
)

// LookOf returns the look of the two cookies' values. Any unknown value is "".
func LookOf(theme, palette []byte) (l Look) {
	if i := slices.Index(themes, string(theme)); i > 0 {
		l.theme = themes[i]
	}
	if i := slices.Index(palettes, string(palette)); i > 0 {
		l.palette = palettes[i]
	}
	return l
}

// Theme returns dark or light, or "" for the browser's preference.
func (l Look) Theme() string { return l.theme }

// Colours returns the colour styles of both themes and palettes, for a page whose other styles are
// elsewhere.
func Colours() []byte {
	colours, _, found := bytes.Cut(contents()["css/base.css"], []byte("\n* {"))
	if !found {
		panic("BUG: the colours of css/base.css have no end")
	}
	return colours
}

// Pages has the files of the pages by address.
var pages = map[string]string{"/trade": "trade.html", "/account": "account.html",
	"/licenses": "licenses.html"}

// Addresses returns the addresses of all pages.
func Addresses() (list []string) {
	for address := range pages {
		list = append(list, address)
	}
	slices.Sort(list)
	return list
}

// Page returns the page at an address, nil if there is none.
func Page(address string, l Look) *File { return made().pages[address][l] }

// Asset returns the file at an address below Folder, nil if there is none.
func Asset(address string) *File { return made().assets[address] }

// Folder begins the addresses of all files except the pages. The hash of the tree follows.
const Folder = "/web/"

// A tree holds every file in each sent form.
type tree struct {
	hash   string
	pages  map[string]map[Look]*File
	mails  map[Look][]byte  // the page with the demo's mails, without them
	assets map[string]*File // by address
}

// made makes the tree for the first request of a page.
var made = sync.OnceValue(func() *tree {
	all := contents()
	hash := hashOf(all)
	prefix := Folder + hash
	t := &tree{hash: hash, pages: map[string]map[Look]*File{}, mails: map[Look][]byte{},
		assets: map[string]*File{}}
	for name, content := range all {
		if kind := contentType(name); kind != "" {
			t.assets[prefix+"/"+name] = newFile(kind, withoutComments(name, content))
		}
	}
	for address := range pages {
		t.pages[address] = map[Look]*File{}
	}
	for _, theme := range themes {
		for _, palette := range palettes {
			l := Look{theme, palette}
			t.mails[l] = render(all, mailsPage, prefix, l)
			for address, name := range pages {
				t.pages[address][l] = newFile(htmlType, render(all, name, prefix, l))
			}
		}
	}
	return t
})

const htmlType = "text/html; charset=utf-8"

// contents returns all embedded files by name.
func contents() map[string][]byte {
	all := map[string][]byte{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		all[name], err = files.ReadFile(name)
		return err
	})
	if err != nil {
		panic("BUG: an embedded file cannot be read: " + err.Error())
	}
	return all
}

// hashDigits is the length of a hash in addresses.
const hashDigits = 16

// hashOf returns a hash of names and contents, in hexadecimal digits.
func hashOf(all map[string][]byte) string {
	return fmt.Sprintf("%x", sha256.Sum256(textOf(all)))[:hashDigits]
}

// textOf returns names and contents as one text: for each file a line with its name and its length
// in bytes, and its content.
func textOf(all map[string][]byte) []byte {
	var b bytes.Buffer
	for _, name := range sorted(all) {
		fmt.Fprintf(&b, "%s %d\n%s", name, len(all[name]), all[name])
	}
	return b.Bytes()
}

func sorted(all map[string][]byte) (names []string) {
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// contentType returns the media type of a part of a page. "": the file is not one.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return ""
}

// withoutComments returns one of our files without its comments, indentation, empty lines and
// meaningless spaces, which would be a quarter of a browser's download. A comment after code has a
// space on both sides of its slashes, so no text of a page may have such slashes.
func withoutComments(name string, content []byte) []byte {
	if strings.HasPrefix(name, "vendor/") {
		return content
	}
	content = comments.ReplaceAll(content, nil)
	if path.Ext(name) == ".css" {
		return spaces.ReplaceAll(braces.ReplaceAll(content, []byte("$1$2")), []byte("$1"))
	}
	return tight(content)
}

// tight removes meaningless spaces and line ends from a module. Texts, the text of templates and
// regular expressions stay as they are.
func tight(code []byte) (b []byte) {
	var depths []int // of braces, in each expression of a template that is open
	inText := false  // of a template
	for i := 0; i < len(code); {
		n := 1
		switch rest := code[i:]; {
		case inText:
			n = len(templateText.Find(rest))
			if inText = false; rest[n-1] == '{' {
				depths = append(depths, 0)
			}
		case rest[0] == '`':
			inText = true
		case rest[0] == '"' || rest[0] == '\'' || rest[0] == '/' && startsRegexp(b):
			n = len(literals.Find(rest))
		case rest[0] == ' ' || rest[0] == '\n':
			n = len(rest) - len(bytes.TrimLeft(rest, " \n"))
			if n == len(rest) || len(b) == 0 || isFree(b[len(b)-1], rest[:n], rest[n]) {
				i, n = i+n, 0
			}
		case len(depths) > 0 && rest[0] == '{':
			depths[len(depths)-1]++
		case rest[0] == '}' && len(depths) == 0:
			b = bytes.TrimSuffix(b, []byte(";"))
		case rest[0] == '}':
			if last := len(depths) - 1; depths[last] == 0 {
				depths, inText = depths[:last], true
			} else {
				depths[last]--
			}
		}
		b = append(b, code[i:i+n]...)
		i += n
	}
	return b
}

// isFree reports whether the space between two signs of code is removable. A line end is if the
// statement continues, or ends anyway.
func isFree(before byte, space []byte, after byte) bool {
	const words = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$#"
	if bytes.IndexByte(space, '\n') >= 0 {
		return strings.IndexByte("{([,;=>?:&|", before) >= 0 ||
			strings.IndexByte(")].?:&|=}", after) >= 0
	}
	return (strings.IndexByte(words, before) < 0 || strings.IndexByte(words, after) < 0) &&
		(before != after || strings.IndexByte("+-", before) < 0)
}

// startsRegexp reports whether a slash after code begins a regular expression, or divides.
func startsRegexp(code []byte) bool {
	code = bytes.TrimRight(code, " \n")
	return len(code) == 0 || strings.IndexByte("(,=:[!&|?{};>", code[len(code)-1]) >= 0 ||
		bytes.HasSuffix(code, []byte("return"))
}

var (
	// up to the next expression within the template, or to its end
	templateText = regexp.MustCompile("(?s)^(?:[^`\\\\$]|\\\\.|\\$+[^{`$])*(?:`|\\$+\\{|\\$+`|$)")
	literals     = regexp.MustCompile(`^(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` +
		`/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\]|\\.)*\])+/)`)
)

// Spaces that a style does not need. No text in a style has one of these signs.
var (
	braces = regexp.MustCompile(`\s*(?:;?\s*(\})|([{;]))\s*`)
	spaces = regexp.MustCompile(`([:,]) `)
)

var comments = regexp.MustCompile(`(?m)^[ \t]*(?://.*|/\*(?:[^*]|\*+[^*/])*\*+/[ \t]*)\n` +
	`|^[ \t]+|^\n|[ \t]+// .*$|/\*\*(?:[^*]|\*+[^*/])*\*+/ ?`)

// newFile packs a file.
func newFile(contentType string, plain []byte) *File {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	w.Write(plain) //nolint:errcheck // a buffer takes everything
	w.Close()      //nolint:errcheck // likewise
	f := &File{ContentType: contentType, Plain: plain, Tag: tag(plain)}
	if b.Len() < len(plain) {
		f.Packed, f.PackedTag = b.Bytes(), tag(b.Bytes())
	}
	return f
}

func tag(body []byte) string { return fmt.Sprintf(`"%x"`, sha256.Sum256(body)) }

// render fills the places of a page's HTML, which are words in double braces.
func render(all map[string][]byte, name, prefix string, l Look) []byte {
	page := string(all[name])
	var preload strings.Builder
	for _, script := range scripts.FindAllStringSubmatch(page, -1) {
		for _, module := range modulesOf(all, script[1]) {
			fmt.Fprintf(&preload, "<link rel=\"modulepreload\" href=\"%s/%s\">\n", prefix, module)
		}
	}
	return []byte(strings.NewReplacer("{{web}}", prefix, "{{theme}}", l.theme,
		"{{palette}}", l.palette, "{{preload}}\n", preload.String(),
		"{{licenses}}", licenses(all)).Replace(page))
}

var (
	scripts = regexp.MustCompile(`<script type="module" src="\{\{web\}\}/([^"]+)">`)
	imports = regexp.MustCompile(`(?m)^(?:import|export|\}) ?[^"\n]*"(\.[^"]+)";$`)
)

// modulesOf returns the names of a module and of all modules that it imports, each once. So a
// browser asks for all of them at once, and not for one link of the chain after the other.
func modulesOf(all map[string][]byte, name string) []string {
	list := []string{name}
	for i := 0; i < len(list); i++ {
		if strings.HasPrefix(list[i], "vendor/") { // imports nothing
			continue
		}
		for _, m := range imports.FindAllSubmatch(all[list[i]], -1) {
			if to := path.Join(path.Dir(list[i]), string(m[1])); !slices.Contains(list, to) {
				list = append(list, to)
			}
		}
	}
	return list
}

// licenses returns the licences of all vendored packages as HTML.
func licenses(all map[string][]byte) string {
	var b strings.Builder
	last := ""
	for _, name := range sorted(all) {
		folder, file := path.Split(name)
		if file != "LICENSE" && file != "NOTICE" {
			continue
		}
		if folder != last {
			fmt.Fprintf(&b, "<h2>%s</h2>\n", html.EscapeString(path.Base(folder)))
			last = folder
		}
		fmt.Fprintf(&b, "<pre tabindex=\"0\">%s</pre>\n", html.EscapeString(string(all[name])))
	}
	return b.String()
}
