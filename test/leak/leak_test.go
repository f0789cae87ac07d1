package leak_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/test/leak"
)

func TestLeaksAreFoundInEveryEncoding(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	key := make([]byte, 1024)
	for i := range key {
		key[i] = byte(random.IntN(256))
	}
	quoted, err := json.Marshal(map[string]any{"data": key})
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string][]byte{"slurm.key": key, "password": []byte("canary-ABCDEFGH"), "short": []byte("tiny")}
	tests := map[string]struct{ text, want string }{
		"raw":    {"key=" + string(key), "slurm.key (raw)"},
		"base64": {base64.StdEncoding.EncodeToString(key), "slurm.key (base64)"},
		"base64 of a longer text": {
			base64.StdEncoding.EncodeToString(append([]byte("x"), append(slices.Clone(key), "yz"...)...)),
			"slurm.key (base64)",
		},
		"base64 for URLs": {
			base64.RawURLEncoding.EncodeToString(append([]byte("xy"), key...)), "slurm.key (base64)",
		},
		"JSON":                    {string(quoted), "slurm.key (base64)"},
		"hex":                     {hex.EncodeToString(key), "slurm.key (hex)"},
		"HEX":                     {strings.ToUpper(hex.EncodeToString(key)), "slurm.key (hex)"},
		"printed bytes":           {fmt.Sprintf("%d", key), "slurm.key (decimal)"},
		"printed bytes of a list": {strings.ReplaceAll(fmt.Sprintf("%d", key), " ", ", "), "slurm.key (decimal)"},
		"quoted":                  {fmt.Sprintf("%q", key), "slurm.key (quoted)"},
		"the end of a log line":   {hex.EncodeToString(key[900:1000]), "slurm.key (hex)"},
		"a password in a URL":     {"mysql://slurm:canary-ABCDEFGH@db", "password (raw)"},
		"a short secret":          {"pass tiny", "short (raw)"},
		"a key in a query":        {"https://db/?key=" + url.QueryEscape(string(key)), "slurm.key (URL)"},
		"a key in a path":         {"https://db/" + url.PathEscape(string(key)) + "/", "slurm.key (URL)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if found := leak.Find(test.text, secrets); !slices.Contains(found, test.want) {
				t.Errorf("found %v, not %s", found, test.want)
			}
		})
	}
	if found := leak.Find("nothing of the kind; slurm.key has 1024 bytes", secrets); len(found) > 0 {
		t.Errorf("found %v in a text without secrets", found)
	}
}
