package document_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/test/document"
)

func TestShellBlocks(t *testing.T) {
	const text = "# Title\n```sh\nbefore\n```\n## First\n\n```sh\none\ntwo\n```\n\n1. a step:\n   ```sh\n   three\n   ```\n" +
		"```yaml\nnot: shell\n```\n## Second\n```sh\nfour\n```\n"
	for heading, want := range map[string][]string{
		"First": {"one\ntwo", "three"}, "Second": {"four"}, "Third": nil,
	} {
		if diff := cmp.Diff(want, document.ShellBlocks(text, heading)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", heading, diff)
		}
	}
}
