// Command release builds and publishes a release; docs/releases.md describes both. Usage:
//
//	release build -version v0.1.0 -registry registry.example.com/slurm-operator
//	release publish
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slurm-operator/slurm-operator/hack/binaries"
	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/hack/release/build"
	"github.com/slurm-operator/slurm-operator/hack/release/publish"
	"github.com/slurm-operator/slurm-operator/hack/repo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to release
	}
}

func run(ctx context.Context, arguments []string) error {
	commands := map[string]func(context.Context, []string) error{"build": runBuild, "publish": runPublish}
	if len(arguments) == 0 || commands[arguments[0]] == nil {
		return errors.New("usage: release build|publish [flags]")
	}
	return commands[arguments[0]](ctx, arguments[1:])
}

func runBuild(ctx context.Context, arguments []string) error {
	var (
		options       = build.Options{Log: os.Stdout}
		architectures string
		layouts       string
		allowDirty    bool
	)
	flags := flag.NewFlagSet("release build", flag.ContinueOnError)
	flags.StringVar(&options.Version, "version", "", "version, such as v0.1.0")
	flags.StringVar(&options.Registry, "registry", "", "prefix of the images, such as registry.example.com/slurm-operator")
	flags.StringVar(&options.Out, "out", "dist", "directory of the release")
	flags.StringVar(&options.Builder, "builder", "local", "URI of the builder, in the provenance")
	flags.StringVar(&architectures, "architectures", "amd64,arm64", "architectures of the operator's image")
	flags.StringVar(&layouts, "layouts", "", "layouts with images of Slurm for other architectures, separated by commas")
	flags.BoolVar(&allowDirty, "allow-dirty", false, "build a checkout that differs from its commit")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	root, err := repo.Root()
	if err != nil {
		return err
	}
	if options.Source, err = build.ReadSource(ctx, root, allowDirty); err != nil {
		return err
	}
	if err := images.Build(ctx, os.Stdout, images.Options{}); err != nil {
		return err
	}
	own, err := images.Dir()
	if err != nil {
		return err
	}
	if options.Helm, err = helm(ctx); err != nil {
		return err
	}
	options.Architectures = split(architectures)
	options.Layouts = append([]string{own}, split(layouts)...)
	options.Compile = build.Compiler(root)
	_, err = build.Build(ctx, options)
	return err
}

func runPublish(ctx context.Context, arguments []string) error {
	var (
		options   = publish.Options{Log: os.Stdout}
		signFlags string
		err       error
	)
	flags := flag.NewFlagSet("release publish", flag.ContinueOnError)
	flags.StringVar(&options.Dir, "dir", "dist", "directory of the release")
	flags.BoolVar(&options.PlainHTTP, "plain-http", false, "the registry has no TLS")
	flags.StringVar(&options.Cosign, "cosign", "cosign", "path of cosign")
	flags.StringVar(&signFlags, "sign-flags", "", "flags of cosign for every signature, separated by spaces")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if options.Helm, err = helm(ctx); err != nil {
		return err
	}
	options.SignFlags = strings.Fields(signFlags)
	return publish.Publish(ctx, options)
}

// helm returns the path of the pinned Helm.
func helm(ctx context.Context) (string, error) {
	dir, err := binaries.Helm.Build(ctx, os.Stderr)
	return filepath.Join(dir, "helm"), err
}

// split returns the parts of a list that is separated by commas; none of the empty one.
func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}
