package edge_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"exchange/gateway"
	"exchange/gateway/edge"
	"exchange/gateway/tlstest"
	"exchange/prove/harness"
)

func TestExpiringCertificateIsReportedInTime(t *testing.T) {
	logged := &harness.Captured{}
	log := slog.New(slog.NewTextHandler(logged, nil))
	until := time.Now().Add(30 * harness.ADay)
	a, folder, c := harness.NewCertificate(t, until, log)
	scrape := harness.Scraping(t,
		gateway.New(edge.Options{Log: log, BodyBytes: 1 << 10, HeaderBytes: 1 << 10,
			Connections: 10, OperatorToken: harness.OperatorToken, Certificate: c}))
	s := scrape()
	if got := s.Value("exchange_tls_certificate_expiry_timestamp_seconds", "listener",
		"public"); got != float64(until.Unix()) {
		t.Errorf("the metric says %f, want %d", got, until.Unix())
	}
	if got := s.Value("exchange_tls_certificate_stale", "listener", "public"); got != 0 {
		t.Errorf("stale is %f", got)
	}
	if n := len(s.Series("exchange_tls_certificate_stale")); n != 1 {
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
	c.Refresh(now.Add(15 * harness.ADay))
	said(0, 0)
	c.Refresh(now.Add(17 * harness.ADay))
	c.Refresh(now.Add(17*harness.ADay + time.Hour))
	said(1, 0)
	c.Refresh(now.Add(18*harness.ADay + time.Hour))
	said(2, 0)
	c.Refresh(now.Add(31 * harness.ADay))
	said(2, 1)
	certFile, _, _ := tlstest.Files(folder)
	tlstest.Replace(t, certFile, []byte("broken"))
	c.Refresh(now)
	if got := scrape().Value("exchange_tls_certificate_stale", "listener", "public"); got != 1 {
		t.Errorf("stale is %f", got)
	}
	a.Write(folder, 2, now.Add(60*harness.ADay))
	c.Refresh(now.Add(31 * harness.ADay))
	said(2, 1)
	if got := scrape().Value("exchange_tls_certificate_expiry_timestamp_seconds", "listener",
		"public"); got != float64(now.Add(60*harness.ADay).Unix()) {
		t.Errorf("the metric says %f", got)
	}
}
