package images

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Registry serves the images of an OCI image layout as a read-only container registry. A runtime that uses it as a
// mirror asks for docker.io's names, so an image is found with and without the library/ prefix.
func Registry(layoutDir string) http.Handler {
	r := registry{layout(layoutDir)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	})
	// An image's name may contain slashes, which patterns cannot express before the fixed part of a path.
	mux.HandleFunc("GET /v2/", func(w http.ResponseWriter, request *http.Request) {
		path := strings.TrimPrefix(request.URL.Path, "/v2/")
		if name, reference, ok := strings.Cut(path, "/manifests/"); ok {
			r.manifest(w, request, name, reference)
		} else if _, of, ok := strings.Cut(path, "/blobs/"); ok {
			r.blob(w, request, "application/octet-stream", digest.Digest(of))
		} else {
			refuse(w, http.StatusNotFound, "UNSUPPORTED", "this registry only serves manifests and blobs")
		}
	})
	return mux
}

type registry struct{ layout layout }

func (r registry) manifest(w http.ResponseWriter, request *http.Request, name, reference string) {
	if of := digest.Digest(reference); of.Validate() == nil {
		r.blob(w, request, ociv1.MediaTypeImageManifest, of)
		return
	}
	image, err := r.layout.find(strings.TrimPrefix(name, "library/") + ":" + reference)
	switch {
	case errors.Is(err, errNotFound):
		refuse(w, http.StatusNotFound, "MANIFEST_UNKNOWN", err.Error())
	case err != nil:
		refuse(w, http.StatusInternalServerError, "UNKNOWN", err.Error())
	default:
		r.blob(w, request, image.MediaType, image.Digest)
	}
}

func (r registry) blob(w http.ResponseWriter, request *http.Request, mediaType string, of digest.Digest) {
	// Validate it before it becomes part of a path.
	if err := of.Validate(); err != nil {
		refuse(w, http.StatusBadRequest, "DIGEST_INVALID", err.Error())
		return
	}
	blob, err := os.Open(r.layout.blobPath(of))
	if err != nil {
		refuse(w, http.StatusNotFound, "BLOB_UNKNOWN", of.String()+" is not in this registry")
		return
	}
	defer blob.Close()
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", of.String())
	// It also handles HEAD and the range requests of a resumed download.
	http.ServeContent(w, request, "", time.Time{}, blob)
}

// refuse returns an error in the format of the registry API.
func refuse(w http.ResponseWriter, status int, code, message string) {
	type fault struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string][]fault{"errors": {{code, message}}}) //nolint:errchkjson // it fails only when the client is gone
}
