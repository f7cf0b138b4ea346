package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

const (
	askWithin     = 30 * time.Second
	manifestBytes = 4 << 20 // the most that a registry may send
	tokenBytes    = 64 << 10
)

// The types of a registry's answers: a list for several architectures is preferred.
const manifestTypes = "application/vnd.oci.image.index.v1+json, " +
	"application/vnd.docker.distribution.manifest.list.v2+json, " +
	"application/vnd.oci.image.manifest.v1+json, " +
	"application/vnd.docker.distribution.manifest.v2+json"

// A registry queries registries of images, without an account.
type registry struct {
	mirror string // scheme and host for all images; "" for the registry of each
	client http.Client
}

func newRegistry(mirror string) *registry {
	return &registry{mirror: strings.TrimSuffix(mirror, "/"),
		client: http.Client{Timeout: askWithin}}
}

// place returns the address of an image's manifest.
func (r *registry) place(image string) string {
	colon := strings.LastIndexByte(image, ':')
	name, tag := image[:colon], image[colon+1:]
	host, rest, found := strings.Cut(name, "/")
	switch {
	case !found: // redis
		host, name = "docker.io", "library/"+name
	case strings.ContainsAny(host, ".:") || host == "localhost": // gcr.io/distroless/static
		name = rest
	default: // grafana/grafana
		host = "docker.io"
	}
	if host == "docker.io" {
		host = "registry-1.docker.io"
	}
	base := "https://" + host
	if r.mirror != "" {
		base = r.mirror
	}
	return base + "/v2/" + name + "/manifests/" + tag
}

// digest gets the digest of an image's tag from its registry, and checks it against the received
// bytes.
func (r *registry) digest(ctx context.Context, image string) (string, error) {
	place := r.place(image)
	status, header, body, err := r.get(ctx, place, "")
	if err == nil && status == http.StatusUnauthorized {
		var token string
		if token, err = r.token(ctx, place, header.Get("WWW-Authenticate")); err == nil {
			status, header, body, err = r.get(ctx, place, token)
		}
	}
	if err != nil {
		return "", failf(exitUnavailable, "the digest of %s cannot be had: %v", image, err)
	}
	switch status {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusUnauthorized, http.StatusForbidden:
		return "", failf(exitUsage, "there is no image %s for everybody: %s answers %d",
			image, place, status)
	default:
		return "", failf(exitUnavailable, "the digest of %s cannot be had: %s answers %d",
			image, place, status)
	}
	if kind := header.Get("Content-Type"); !strings.Contains(manifestTypes,
		strings.Split(kind, ";")[0]) || kind == "" {
		return "", failf(exitBroken, "%s sends %q, which is no manifest", place, kind)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(body))
	if said := header.Get("Docker-Content-Digest"); said != "" && said != digest {
		return "", failf(exitBroken, "%s says that its digest is %s, but what it sends has %s",
			place, said, digest)
	}
	return digest, nil
}

func (r *registry) get(ctx context.Context, place, token string) (int, http.Header, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header.Set("Accept", manifestTypes)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return r.do(request, manifestBytes)
}

// do reads an answer of at most most bytes.
func (r *registry) do(request *http.Request, most int64) (int, http.Header, []byte, error) {
	response, err := r.client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err == nil && int64(len(body)) > most {
		err = fmt.Errorf("%s sends more than %d bytes", request.URL, most)
	}
	return response.StatusCode, response.Header, body, err
}

var challengeField = regexp.MustCompile(`([a-z]+)="([^"]*)"`)

// token returns the token for clients without an account, from the address in the registry's
// challenge.
func (r *registry) token(ctx context.Context, place, challenge string) (string, error) {
	fields := map[string]string{}
	for _, m := range challengeField.FindAllStringSubmatch(challenge, -1) {
		fields[m[1]] = m[2]
	}
	realm, err := url.Parse(fields["realm"])
	secure := strings.HasPrefix(place, "https://")
	if err != nil || realm.Host == "" ||
		realm.Scheme != "https" && (secure || realm.Scheme != "http") {
		return "", fmt.Errorf("%s asks for %q, which no client without an account has",
			place, challenge)
	}
	query := realm.Query()
	for _, name := range []string{"service", "scope"} {
		if fields[name] != "" {
			query.Set(name, fields[name])
		}
	}
	realm.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, realm.String(), nil)
	if err != nil {
		return "", err
	}
	status, _, body, err := r.do(request, tokenBytes)
	if err != nil {
		return "", err
	}
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &answer); status != http.StatusOK || err != nil {
		return "", fmt.Errorf("%s gives no token: it answers %d", realm.Host, status)
	}
	if answer.Token == "" {
		answer.Token = answer.AccessToken
	}
	return answer.Token, nil
}
