package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/hack/repo"
	"github.com/slurm-operator/slurm-operator/test/cluster/addons"
	"github.com/slurm-operator/slurm-operator/test/cluster/node"
)

// busybox is Debian's static build; the package is busybox-static.
const busybox = "/bin/busybox"

// addImages adds the images of the cluster's own pods to the image store.
func addImages(ctx context.Context, dirs []string) error {
	programs, err := os.MkdirTemp("", "devcluster-images-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(programs)
	pause, err := buildPause(ctx, programs)
	if err != nil {
		return err
	}
	coredns, err := binaries.Find(dirs, "coredns")
	if err != nil {
		return err
	}
	provisioner, err := binaries.Find(dirs, "local-path-provisioner")
	if err != nil {
		return err
	}
	shell, err := busyboxImage(ctx)
	if err != nil {
		return err
	}
	for name, image := range map[string]images.Scratch{
		node.PauseImage:                  program(pause),
		addons.CoreDNSImage:              program(coredns),
		addons.LocalPathProvisionerImage: program(provisioner),
		addons.BusyboxImage:              shell,
	} {
		if err := images.AddScratch(name, image); err != nil {
			return err
		}
	}
	return nil
}

// program returns an image with a single static program.
func program(path string) images.Scratch {
	target := "/" + filepath.Base(path)
	return images.Scratch{
		Files: map[string]string{target: path}, Config: ociv1.ImageConfig{Entrypoint: []string{target}},
	}
}

func buildPause(ctx context.Context, dir string) (string, error) {
	root, err := repo.Root()
	if err != nil {
		return "", err
	}
	pause := filepath.Join(dir, "pause")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", pause,
		"./test/cluster/pause")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building pause: %w\n%s", err, out)
	}
	return pause, nil
}

func busyboxImage(ctx context.Context) (images.Scratch, error) {
	applets, err := exec.CommandContext(ctx, busybox, "--list").Output()
	if err != nil {
		return images.Scratch{}, fmt.Errorf(
			"listing busybox's commands (install the Debian package busybox-static): %w", err)
	}
	links := map[string]string{}
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" {
			links["/bin/"+applet] = busybox
		}
	}
	return images.Scratch{Files: map[string]string{busybox: busybox}, Links: links}, nil
}
