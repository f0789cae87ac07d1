// Command pluginrelease builds the archives of a release of kubectl slurm, with man pages and completions, their
// checksums, and a manifest for krew, the package manager for plugins of kubectl.
//
// Usage: pluginrelease -version v0.1.0 -base-url https://example.org/v0.1.0 [-out dist] [-platforms linux/amd64,…]
//
// The same sources, version and Go release make the same bytes; files in archives have the time of SOURCE_DATE_EPOCH.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/repo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pluginrelease:", err)
		os.Exit(1)
	}
}

// versions that krew accepts.
var versions = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

func run(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("pluginrelease", flag.ContinueOnError)
	version := flags.String("version", "", "version of the release, such as v0.1.0")
	baseURL := flags.String("base-url", "", "where the archives will be downloaded from")
	homepage := flags.String("homepage", "", "page about the plugin, for krew; the base URL if empty")
	out := flags.String("out", "dist", "directory to write to")
	only := flags.String("platforms", strings.Join(platforms, ","), "operating systems and architectures to build for")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	base, err := url.Parse(*baseURL)
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case !versions.MatchString(*version):
		return fmt.Errorf("-version=%s is not a semantic version with a v, such as v0.1.0", *version)
	case err != nil || base.Host == "":
		return fmt.Errorf("-base-url=%s is not a URL, such as https://example.org/%s", *baseURL, *version)
	}
	modified, err := modificationTime(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	root, err := repo.Root()
	if err != nil {
		return err
	}
	release := &release{
		version: *version, baseURL: strings.TrimSuffix(*baseURL, "/"), homepage: *homepage, root: root, modified: modified,
		build: goBuild(root, *version),
	}
	if release.homepage == "" {
		release.homepage = release.baseURL
	}
	return release.write(ctx, *out, strings.Split(*only, ","))
}

// modificationTime returns the time of files in archives. ZIP files have none before 1980.
func modificationTime(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%s is no number of seconds", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
