package serve

import (
	"errors"
	"fmt"
	"os"

	"exchange/actors/audit"
	"exchange/actors/seal"
	"exchange/config"
	"exchange/persistence"
	"exchange/persistence/archive"
)

// An auditable is the server's archive for audits, read with the server's current keys, and retired
// ones.
type auditable struct {
	*archive.Archive
	cfg *config.Config
}

func (a auditable) Open(authenticated bool) (audit.Archive, error) {
	if !authenticated {
		return a.Archive, nil
	}
	keys, err := seal.Load(os.Getenv(config.EnvSecretKey), a.cfg.SecretKeyFile, false)
	if err == nil {
		if err = a.Provable(keys); errors.Is(err, persistence.ErrCorrupt) {
			err = nil // the audit reports it
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the archive is not audited: %w; %s", err, bringKey(a.cfg))
	}
	return a.Under(keys), nil
}

// bringKey describes how an operator brings back a missing key.
func bringKey(cfg *config.Config) string {
	return fmt.Sprintf(
		"bring the server's secret key of that time to %s, or as a further line into it, "+
			"or a retired one to %[1]s.ID, each with mode 0600; or give it in %s. "+
			"--without-authentication continues "+
			"without proof that the exchange wrote it", cfg.SecretKeyFile, config.EnvSecretKey)
}
