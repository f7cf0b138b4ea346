package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A file that is not embedded is missing in the program alone, so its author does not notice.
func TestEveryFileOfAPageIsEmbedded(t *testing.T) {
	all := contents()
	for _, folder := range []string{"css", "js", "vendor", "."} {
		err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				if folder == "." && name != "." {
					return fs.SkipDir
				}
				return err
			}
			at := path.Join(folder, name)
			kind := path.Ext(name)
			isTool := folder == "." && slices.Contains([]string{".go", ".json"}, kind)
			isType := strings.HasSuffix(name, ".d.ts") || strings.HasSuffix(name, ".d.mts")
			if _, there := all[at]; there == (isTool || isType) {
				t.Errorf("%s: embedded is %v", at, there)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// deskModule is the module that the page loads only once an account is requested.
const deskModule = "js/trade/desk.js"

var whileItRuns = regexp.MustCompile(`\bimport\([^)]*\)?`)

func TestEveryModuleThatIsImportedIsThereAndEveryModuleIsImported(t *testing.T) {
	all := contents()
	used := slices.Concat(modulesOf(all, "js/trade/main.js"), modulesOf(all, deskModule),
		modulesOf(all, "js/account/main.js"))
	for _, name := range used {
		if all[name] == nil {
			t.Errorf("%s is imported, and is not there", name)
		}
	}
	blocks := regexp.MustCompile(`(?s)/\*.*?\*/`)
	statement := regexp.MustCompile(`(?m)^(import|export .* from|\} from)\b`)
	for name, content := range all {
		isModule := contentType(name) == "text/javascript; charset=utf-8"
		if isModule && !slices.Contains(used, name) {
			t.Errorf("no module imports %s", name)
		}
		if !isModule || strings.HasPrefix(name, "vendor/") {
			continue
		}
		// else an import of another form would be followed neither here nor by modulepreload
		if a, b := len(statement.FindAll(content, -1)),
			len(imports.FindAll(content, -1)); a != b {
			t.Errorf("%s has %d imports, of which %d are followed", name, a, b)
		}
		late := whileItRuns.FindAll(blocks.ReplaceAll(content, nil), -1)
		if name == "js/trade/main.js" {
			late = slices.DeleteFunc(late, func(found []byte) bool {
				return string(found) == `import("./desk.js")`
			})
		}
		if len(late) > 0 {
			t.Errorf("%s imports while it runs: %s", name, late)
		}
	}
}

// tradingView is the link required by the licence of the charts.
const tradingView = "https://www.tradingview.com/"

func TestThePagesNameNoForeignHost(t *testing.T) {
	address := regexp.MustCompile(`(?:https?|wss?)://[^\s"'<>)]*|["'(]//[a-z]`)
	for name, content := range contents() {
		if strings.HasPrefix(name, "vendor/") { // which npm has, byte for byte
			continue
		}
		for _, found := range address.FindAllString(string(content), -1) {
			if found != tradingView && found != "http://www.w3.org/2000/svg" {
				t.Errorf("%s names %s", name, found)
			}
		}
	}
	if !bytes.Contains(contents()["js/trade/main.js"], []byte(tradingView)) {
		t.Error("the chart does not name its makers")
	}
}

// The policy of the pages would block these.
func TestThePagesHaveNoScriptAndNoStyleWithin(t *testing.T) {
	within := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+="|<script[^>]*>[^<]|javascript:` +
		`|innerHTML|eval\(`)
	for name, content := range contents() {
		if strings.HasPrefix(name, "vendor/") {
			continue
		}
		if found := within.Find(content); found != nil {
			t.Errorf("%s has %q", name, found)
		}
	}
}

func TestEachFileIsMadeInEachForm(t *testing.T) {
	check := func(name string, f *File) {
		t.Helper()
		if len(f.Plain) == 0 || len(f.Tag) < 3 || f.Tag == f.PackedTag || f.ContentType == "" {
			t.Errorf("%s: %d bytes, %s, %s", name, len(f.Plain), f.Tag, f.ContentType)
		}
		if f.Packed == nil {
			return
		}
		r, err := gzip.NewReader(bytes.NewReader(f.Packed))
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := io.ReadAll(r); err != nil || !bytes.Equal(plain, f.Plain) {
			t.Errorf("%s: packed it is another file: %v", name, err)
		}
	}
	for address, f := range made().assets {
		check(address, f)
		if Asset(address) != f || !strings.HasPrefix(address, Folder+hashOf(contents())+"/") {
			t.Errorf("%s is not found", address)
		}
	}
	for _, address := range Addresses() {
		tags := map[string]bool{}
		for _, theme := range themes {
			for _, palette := range palettes {
				l := Look{theme, palette}
				f := Page(address, l)
				check(address, f)
				tags[f.Tag] = true
				if !bytes.Contains(f.Plain, []byte(`data-theme="`+theme+`" data-palette="`+
					palette+`"`)) || bytes.Contains(f.Plain, []byte("{{")) {
					t.Errorf("%s for %+v:\n%s", address, l, f.Plain)
				}
			}
		}
		if len(tags) != len(themes)*len(palettes) {
			t.Errorf("%s has %d tags", address, len(tags))
		}
	}
	if Page("/", Look{}) != nil || Asset("/web/0/icon.svg") != nil || Asset("") != nil {
		t.Error("there is a file where there should be none")
	}
}

func TestSentFilesLackOnlyComments(t *testing.T) {
	const file = "// one\nlet a = 1; // two\n\t/** three\n\t * @type {x} */\n\tb(`//c`);\n" +
		"/* d */\n/** e */ (f);\n/* g */\n  h(/** @type {i} */ (j)); // k\n"
	want := "let a=1;b(`//c`);(f);h((j));"
	if got := string(withoutComments("js/a.js", []byte(file))); got != want {
		t.Errorf("it is %q", got)
	}
	for code, want := range map[string]string{
		"a = b ? c\n\t: (d) => e;\nreturn f + +g - -h;": "a=b?c:(d)=>e;return f+ +g- -h;",
		"a()\nb = \"c => d, e\" + ' f '":                "a()\nb=\"c => d, e\"+' f '",
		"`a , ${b , `c ; ${{ d: 1 } } ;`} , $ { `":      "`a , ${b,`c ; ${{d:1}} ;`} , $ { `",
		"if (/[/\"`] = \\/ ;/.test(a)) b = c / d / e":   "if(/[/\"`] = \\/ ;/.test(a))b=c/d/e",
		"class A {\n\t#b = 1;\n\tget #c() {\n\t\treturn /,  /g;\n\t}\n}\nd": "class A{#b=1;" +
			"get #c(){return/,  /g}}\nd",
	} {
		if got := string(withoutComments("js/a.js", []byte(code))); got != want {
			t.Errorf("of %q stays %q", code, got)
		}
	}
	const style = "/* a */\na, b:is(c, d) > e {\n\tf: g(1px + 2px, 3px) h;\n}\n" +
		"@media (i: 1px) {\n\tj {}\n}\n"
	want = "a,b:is(c,d) > e{f:g(1px + 2px,3px) h}@media (i:1px){j{}}"
	if got := string(withoutComments("css/a.css", []byte(style))); got != want {
		t.Errorf("a style is %q", got)
	}
	if got := string(withoutComments("vendor/a/a.js", []byte(file))); got != file {
		t.Errorf("of another's work it is %q", got)
	}
}

// A cookie is a client's text: it chooses a look, and never becomes part of a page.
func TestACookieChoosesALook(t *testing.T) {
	for _, c := range []struct {
		theme, palette string
		want           Look
	}{{"", "", Look{}}, {"dark", "blue", Look{"dark", "blue"}},
		{"light", "x", Look{"light", ""}}, {`"><script>`, "blue ", Look{}}, {"Dark", "", Look{}}} {
		if got := LookOf([]byte(c.theme), []byte(c.palette)); got != c.want {
			t.Errorf("%q and %q: %+v", c.theme, c.palette, got)
		}
	}
}

// A browser keeps a file permanently, so each change of any file has to change all addresses.
func TestAnyChangeChangesTheHash(t *testing.T) {
	all := contents()
	before := hashOf(all)
	for _, name := range sorted(all) {
		old := all[name]
		all[name] = append(slices.Clone(old), ' ')
		if hashOf(all) == before {
			t.Errorf("%s does not count", name)
		}
		all[name] = old
	}
	delete(all, "icon.svg")
	if hashOf(all) == before {
		t.Error("a file that is gone does not count")
	}
}

func TestAllModulesAreAskedForAtOnce(t *testing.T) {
	all := contents()
	for _, name := range []string{"trade", "account"} {
		page := string(Page("/"+name, Look{}).Plain)
		for _, module := range modulesOf(all, "js/"+name+"/main.js") {
			link := `<link rel="modulepreload" href="` + Folder + hashOf(all) + "/" + module + `">`
			if strings.Count(page, link) != 1 {
				t.Errorf("the page %s has not one %s", name, link)
			}
		}
	}
}

func TestAllLicencesAreShown(t *testing.T) {
	page := string(Page("/licenses", Look{}).Plain)
	for _, words := range []string{"lightweight-charts", "lit-html", "socket.io-client",
		"TradingView, Inc. " + tradingView, "Apache License", "BSD 3-Clause", "MIT License",
		"Google LLC"} {
		if !strings.Contains(page, words) {
			t.Errorf("the page of licences lacks %q", words)
		}
	}
	vendored, err := os.ReadDir("vendor")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vendored {
		if contents()["vendor/"+v.Name()+"/LICENSE"] == nil {
			t.Errorf("%s has no licence", v.Name())
		}
	}
}

// The lock file has the hash of each package. npm installs nothing else, and scripts/vendor
// compares the files here with it.
func TestVendoredPackagesArePinned(t *testing.T) {
	var lock struct {
		Packages map[string]struct {
			Version, Integrity string
			Dependencies       map[string]string
		}
	}
	text, err := os.ReadFile("package-lock.json")
	if err == nil {
		err = json.Unmarshal(text, &lock)
	}
	if err != nil {
		t.Fatal(err)
	}
	wanted := lock.Packages[""].Dependencies
	vendored, err := os.ReadDir("vendor")
	if err != nil || len(vendored) != len(wanted) {
		t.Fatalf("%d packages are vendored, %d wanted: %v", len(vendored), len(wanted), err)
	}
	for _, v := range vendored {
		p := lock.Packages["node_modules/"+v.Name()]
		if p.Version == "" || p.Version != wanted[v.Name()] ||
			!strings.HasPrefix(p.Integrity, "sha512-") {
			t.Errorf("%s: wanted is %q, locked %+v", v.Name(), wanted[v.Name()], p)
		}
	}
}
