package images_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slurm-operator/slurm-operator/hack/images"
)

// startRegistry serves a layout with the images devcluster/tool:1 and plain:1.
func startRegistry(t *testing.T) *httptest.Server {
	t.Helper()
	layout := useEmptyCache(t)
	addTool(t, "devcluster/tool:1", "one")
	addTool(t, "plain:1", "two")
	server := httptest.NewServer(images.Registry(layout))
	t.Cleanup(server.Close)
	return server
}

// response is the result of a request.
type response struct {
	status int
	header http.Header
	body   string
}

func request(t *testing.T, method, url string) response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{got.StatusCode, got.Header, string(body)}
}

func TestRegistryServesCompleteImage(t *testing.T) {
	server := startRegistry(t)
	byTag := request(t, http.MethodGet, server.URL+"/v2/devcluster/tool/manifests/1?ns=docker.io")
	if byTag.status != http.StatusOK || byTag.header.Get("Content-Type") != ociv1.MediaTypeImageManifest {
		t.Fatalf("manifest: %d, %s", byTag.status, byTag.header.Get("Content-Type"))
	}
	of := byTag.header.Get("Docker-Content-Digest")
	if of != digest.FromString(byTag.body).String() {
		t.Errorf("manifest has digest %s, but the header says %s", digest.FromString(byTag.body), of)
	}
	if byDigest := request(t, http.MethodGet,
		server.URL+"/v2/devcluster/tool/manifests/"+of); byDigest.body != byTag.body {
		t.Errorf("by digest: %s, by tag: %s", byDigest.body, byTag.body)
	}
	var manifest ociv1.Manifest
	if err := json.Unmarshal([]byte(byTag.body), &manifest); err != nil {
		t.Fatal(err)
	}
	for _, blob := range append(manifest.Layers, manifest.Config) {
		content := request(t, http.MethodGet, server.URL+"/v2/devcluster/tool/blobs/"+blob.Digest.String()).body
		if digest.FromString(content) != blob.Digest || int64(len(content)) != blob.Size {
			t.Errorf("blob %s: got %d bytes with digest %s", blob.Digest, len(content), digest.FromString(content))
		}
	}
}

func TestRegistryResponses(t *testing.T) {
	server := startRegistry(t)
	for name, test := range map[string]struct {
		method, path string
		status       int
		code         string
	}{
		"the version check":              {http.MethodGet, "/v2/", http.StatusOK, ""},
		"HEAD of a manifest":             {http.MethodHead, "/v2/devcluster/tool/manifests/1", http.StatusOK, ""},
		"a name with docker.io's prefix": {http.MethodGet, "/v2/library/plain/manifests/1", http.StatusOK, ""},
		"an unknown tag": {
			http.MethodGet, "/v2/devcluster/tool/manifests/2", http.StatusNotFound, "MANIFEST_UNKNOWN",
		},
		"an unknown image": {
			http.MethodGet, "/v2/none/manifests/1", http.StatusNotFound, "MANIFEST_UNKNOWN",
		},
		"an unknown blob": {
			http.MethodGet, "/v2/plain/blobs/" + digest.FromString("x").String(), http.StatusNotFound, "BLOB_UNKNOWN",
		},
		"a digest that leaves the layout": {
			http.MethodGet, "/v2/plain/blobs/sha256:..%2f..%2findex.json", http.StatusBadRequest, "DIGEST_INVALID",
		},
		"a push": {
			http.MethodPost, "/v2/plain/blobs/uploads/", http.StatusMethodNotAllowed, "",
		},
		"a list of tags, not supported": {http.MethodGet, "/v2/plain/tags/list", http.StatusNotFound, "UNSUPPORTED"},
	} {
		t.Run(name, func(t *testing.T) {
			got := request(t, test.method, server.URL+test.path)
			if got.status != test.status || !strings.Contains(got.body, test.code) {
				t.Errorf("got %d with %q, want %d with %q", got.status, got.body, test.status, test.code)
			}
		})
	}
}
