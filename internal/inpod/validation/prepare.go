package validation

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// prepare copies the candidate's files into etc, with a variant of its slurm.conf and with generated keys, and returns
// their contents by name.
func prepare(config, etc string, variant func(conf string) (string, error)) (map[string]string, error) {
	entries, err := os.ReadDir(config)
	if err != nil {
		return nil, err
	}
	// An interrupted validation run may have left files that this candidate does not have.
	if err := os.RemoveAll(etc); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(etc, 0o700); err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, entry := range entries {
		// A mounted ConfigMap has ..data and the directory that it points to; its files are links into them.
		if strings.HasPrefix(entry.Name(), "..") || entry.Name() == slurmconf.ChangesFile {
			continue
		}
		content, err := os.ReadFile(filepath.Join(config, entry.Name()))
		if err != nil {
			return nil, err
		}
		if entry.Name() == slurmconf.FileName {
			changed, err := variant(string(content))
			if err != nil {
				return nil, err
			}
			content = []byte(changed)
		}
		files[entry.Name()] = string(content)
		// Prologs and the like must be executable; it does not matter for the other files.
		if err := os.WriteFile(filepath.Join(etc, entry.Name()), content, 0o700); err != nil {
			return nil, err
		}
	}
	conf, ok := files["slurm.conf"]
	if !ok {
		return nil, fmt.Errorf("%s has no slurm.conf", config)
	}
	if state := settings(conf)["statesavelocation"]; state != "" {
		// State from an earlier run must not be reused.
		if err := os.RemoveAll(state); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(state, 0o700); err != nil {
			return nil, err
		}
	}
	return files, writeKeys(conf, etc)
}

// jwtFile matches the files that slurm.conf names for tokens.
var jwtFile = regexp.MustCompile(`(?i)\b(jwt_key|jwks)=([^,\s]+)`)

// writeKeys writes the keys that slurmctld needs. They are random, so that it cannot talk to anything real.
func writeKeys(conf, etc string) error {
	keys := map[string][]byte{
		filepath.Join(etc, "slurm.key"):     random(1024),
		filepath.Join(etc, "jwt_hs256.key"): random(32),
	}
	for _, match := range jwtFile.FindAllStringSubmatch(conf, -1) {
		if strings.EqualFold(match[1], "jwks") {
			keys[match[2]] = []byte(`{"keys":[]}`)
		} else {
			keys[match[2]] = random(32)
		}
	}
	for path, content := range keys {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("making keys: %w", err)
		}
	}
	return nil
}

func random(count int) []byte {
	content := make([]byte, count)
	_, _ = rand.Read(content) // never fails
	return content
}
