package gateway

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"exchange/gateway/edge"
	"exchange/gateway/listen"
	"exchange/gateway/tlstest"
)

// aDay is the life of certificates in tests that are not about a certificate's end.
const aDay = 24 * time.Hour

// newCertificate makes files with a certificate of serial number 1 and loads them.
func newCertificate(t *testing.T, until time.Time, log *slog.Logger) (a *tlstest.Authority,
	folder string, c *listen.Certificate) {
	t.Helper()
	a, folder = tlstest.New(t), t.TempDir()
	a.Write(folder, 1, until)
	certFile, keyFile, _ := tlstest.Files(folder)
	c = must(listen.LoadCertificate(certFile, keyFile, log))
	return a, folder, c
}

func TestExpiringCertificateIsReportedInTime(t *testing.T) {
	logged := &captured{}
	log := slog.New(slog.NewTextHandler(logged, nil))
	until := time.Now().Add(30 * aDay)
	a, folder, c := newCertificate(t, until, log)
	scrape := scraping(t, New(edge.Options{Log: log, BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
		Connections: 10, OperatorToken: operatorToken, Certificate: c}))
	s := scrape()
	if got := s.value("exchange_tls_certificate_expiry_timestamp_seconds", "listener",
		"public"); got != float64(until.Unix()) {
		t.Errorf("the metric says %f, want %d", got, until.Unix())
	}
	if got := s.value("exchange_tls_certificate_stale", "listener", "public"); got != 0 {
		t.Errorf("stale is %f", got)
	}
	if n := len(s.series("exchange_tls_certificate_stale")); n != 1 {
		t.Errorf("%d listeners have a certificate", n)
	}
	said := func(soon, ended int) {
		t.Helper()
		if got := strings.Count(logged.String(), "expires soon"); got != soon {
			t.Errorf("it ends soon, %d times of %d", got, soon)
		}
		if got := strings.Count(logged.String(), "has expired"); got != ended {
			t.Errorf("it has ended, %d times of %d", got, ended)
		}
	}
	now := time.Now()
	c.Refresh(now)
	c.Refresh(now.Add(15 * aDay))
	said(0, 0)
	c.Refresh(now.Add(17 * aDay))
	c.Refresh(now.Add(17*aDay + time.Hour))
	said(1, 0)
	c.Refresh(now.Add(18*aDay + time.Hour))
	said(2, 0)
	c.Refresh(now.Add(31 * aDay))
	said(2, 1)
	certFile, _, _ := tlstest.Files(folder)
	tlstest.Replace(t, certFile, []byte("broken"))
	c.Refresh(now)
	if got := scrape().value("exchange_tls_certificate_stale", "listener", "public"); got != 1 {
		t.Errorf("stale is %f", got)
	}
	a.Write(folder, 2, now.Add(60*aDay))
	c.Refresh(now.Add(31 * aDay))
	said(2, 1)
	if got := scrape().value("exchange_tls_certificate_expiry_timestamp_seconds", "listener",
		"public"); got != float64(now.Add(60*aDay).Unix()) {
		t.Errorf("the metric says %f", got)
	}
}
