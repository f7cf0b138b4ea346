package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A fake is a registry that has some images, and wants a token that it gives to each client.
type fake struct {
	images map[string]string // path of the manifest to its text
	lie    bool              // it names another digest than that of its content
	kind   string            // Content-Type of manifests
	asked  int
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		if r.FormValue("service") != "fake" ||
			!strings.HasPrefix(r.FormValue("scope"), "repository:") {
			http.Error(w, "which?", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, `{"token": "t"}`)
		return
	}
	f.asked++
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/manifests/")
	if r.Header.Get("Authorization") != "Bearer t" {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(
			`Bearer realm="http://%s/token",service="fake",scope="repository:%s:pull"`, r.Host,
			name))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	text, ok := f.images[r.URL.Path]
	if !ok || !strings.Contains(r.Header.Get("Accept"), "oci.image.index") {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Docker-Content-Digest", digestOf(text))
	if f.lie {
		text += " "
	}
	fmt.Fprint(w, text)
}

func digestOf(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }

const (
	goPath    = "/v2/library/golang/manifests/1.26"
	basePath  = "/v2/distroless/static-debian12/manifests/nonroot"
	redisPath = "/v2/library/redis/manifests/7"
)

func newFake(t *testing.T) (*fake, *registry) {
	f := &fake{kind: "application/vnd.oci.image.index.v1+json",
		images: map[string]string{goPath: "go", basePath: "base", redisPath: "redis"}}
	r := newRegistry("http://fake")
	r.client.Transport = f
	return f, r
}

// RoundTrip answers where the registry is.
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != "fake" {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Result(), nil
}

// copies returns copies of the repository's files with images.
func copies(t *testing.T) []string {
	var files []string
	for _, file := range []string{"Dockerfile", "docs/compose.yaml"} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Join(t.TempDir(), "copy"))
		if err := os.WriteFile(files[len(files)-1], text, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func read(t *testing.T, files []string) string {
	var all []byte
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	return string(all)
}

// Each image of this repository gets its digest, and nothing else changes; newer digests replace
// older ones.
func TestAllImagesAreGivenTheirDigests(t *testing.T) {
	f, r := newFake(t)
	files := copies(t)
	for _, text := range []string{"redis", "a newer redis"} {
		f.images[redisPath] = text
		var out bytes.Buffer
		if err := run(t.Context(), r, files, &out); err != nil {
			t.Fatal(err)
		}
		got := read(t, files)
		for _, line := range []string{
			"\nFROM golang:1.26@" + digestOf("go") + " AS build\n",
			"\nFROM gcr.io/distroless/static-debian12:nonroot@" + digestOf("base") + "\n",
			"\n    image: redis:7@" + digestOf(text) + "\n",
		} {
			if strings.Count(got, line) != 1 {
				t.Errorf("there is no %q", line)
			}
		}
		if n := strings.Count(got, "@sha256:"); n != 3 {
			t.Errorf("%d digests are written", n)
		}
		if strings.Count(out.String(), "\n") != 3 {
			t.Errorf("it says %q", out.String())
		}
	}
	info, err := os.Stat(files[0])
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// If one image cannot be pinned, no file changes, and the code shows whether a retry is right.
func TestNothingIsWrittenUnlessAllDigestsAreThere(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fake, *registry)
		code   int
		says   string
	}{
		"no such image": {func(f *fake, _ *registry) { delete(f.images, redisPath) },
			exitUsage, "redis:7"},
		"a lie": {func(f *fake, _ *registry) { f.lie = true }, exitBroken,
			"but what it sends has"},
		"a page": {func(f *fake, _ *registry) { f.kind = "text/html" },
			exitBroken, "no manifest"},
		"too much": {func(f *fake, _ *registry) {
			f.images[redisPath] = strings.Repeat("x", manifestBytes+1)
		}, exitUnavailable, "more than"},
		"no registry": {func(_ *fake, r *registry) { r.mirror = "http://127.0.0.1:1" },
			exitUnavailable, "golang:1.26"},
	} {
		t.Run(name, func(t *testing.T) {
			f, r := newFake(t)
			files := copies(t)
			before := read(t, files)
			c.change(f, r)
			err := run(t.Context(), r, files, io.Discard)
			var e *exitError
			if !errors.As(err, &e) || e.code != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want code %d and %q", err, c.code, c.says)
			}
			if read(t, files) != before {
				t.Error("a file has changed")
			}
		})
	}
}

func TestNamesOfImagesAndTheirRegistries(t *testing.T) {
	r := newRegistry("")
	for image, want := range map[string]string{
		"redis:7":                "https://registry-1.docker.io/v2/library/redis/manifests/7",
		"grafana/grafana:11":     "https://registry-1.docker.io/v2/grafana/grafana/manifests/11",
		"gcr.io/a/b:nonroot":     "https://gcr.io/v2/a/b/manifests/nonroot",
		"localhost:5000/a:1.0-b": "https://localhost:5000/v2/a/manifests/1.0-b",
	} {
		if err := checkImage(image); err != nil || r.place(image) != want {
			t.Errorf("%s: %v, %s", image, err, r.place(image))
		}
	}
	for _, image := range []string{"redis", "${IMAGE}:7", `"redis:7"`, "gcr.io/a/b",
		"redis:", "Redis:7"} {
		if checkImage(image) == nil {
			t.Errorf("%s can be pinned", image)
		}
	}
	var asked []string
	text := "FROM --platform=linux/amd64 a:1 as Build\nFROM build\nFROM scratch\n#FROM " +
		"b:2\nservices:\n  x:\n    image: c:3@sha256:00 # why\n"
	got, err := pin([]byte(text), func(image string) (string, error) {
		asked = append(asked, image)
		return "sha256:11", nil
	})
	want := "FROM --platform=linux/amd64 a:1@sha256:11 as Build\nFROM build\nFROM scratch\n#FROM " +
		"b:2\nservices:\n  x:\n    image: c:3@sha256:11 # why\n"
	if err != nil || string(got) != want || len(asked) != 2 {
		t.Errorf("%v, %q\n%s", err, asked, got)
	}
	if _, err := pin([]byte("nothing\n"), nil); err == nil {
		t.Error("a file without an image passes")
	}
}

// A registry used over TLS must not send the client elsewhere without it.
func TestATokenIsAskedForOverTLSIfTheRegistryIs(t *testing.T) {
	r := newRegistry("")
	for _, challenge := range []string{"", `Basic realm="x"`,
		`Bearer realm="http://127.0.0.1:1/token"`, `Bearer realm="file:///etc/passwd"`} {
		if token, err := r.token(t.Context(), "https://127.0.0.1:1/v2/", challenge); err == nil ||
			!strings.Contains(err.Error(), "no client without an account") {
			t.Errorf("%s: %q, %v", challenge, token, err)
		}
	}
}
