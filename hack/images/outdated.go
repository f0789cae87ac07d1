package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// securitySources are the sources of Debian's security updates for the base of all images.
const securitySources = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] " +
	"http://deb.debian.org/debian-security " + base + "-security main\n"

// Outdated lists the packages in the product's images for which Debian has published a security update. Packages of a
// testing suite get no such updates, so it says nothing about them.
func Outdated(ctx context.Context) ([]string, error) {
	updates, err := securityUpdates(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading Debian's security updates: %w", err)
	}
	var outdated []string
	err = eachProductImage(ctx, func(name string, layers []string) error {
		bill, err := billOf(name, layers)
		if err != nil {
			return err
		}
		found, err := pending(bill.Components, updates, func(a, b string) (bool, error) { return isOlder(ctx, a, b) })
		for _, update := range found {
			outdated = append(outdated, name+": "+update)
		}
		return err
	})
	return outdated, err
}

// pending lists the installed packages that are older than one of their updates.
func pending(installed, updates []component, older func(a, b string) (bool, error)) ([]string, error) {
	var found []string
	for _, is := range installed {
		for _, update := range updates {
			if update.Name != is.Name {
				continue
			}
			isOlder, err := older(is.Version, update.Version)
			if err != nil {
				return nil, err
			}
			if isOlder {
				found = append(found, fmt.Sprintf("%s %s, update %s", is.Name, is.Version, update.Version))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// securityUpdates returns the packages in Debian's security archive. apt verifies their signatures.
func securityUpdates(ctx context.Context) ([]component, error) {
	dir, err := os.MkdirTemp("", "security-updates-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "lists", "partial"), 0o755),
		os.WriteFile(filepath.Join(dir, "sources.list"), []byte(securitySources), 0o644)); err != nil {
		return nil, err
	}
	if err := run(ctx, "apt-get", "update", "--quiet", "--error-on=any",
		"--option=Dir::Etc::SourceList="+filepath.Join(dir, "sources.list"), "--option=Dir::Etc::SourceParts=-",
		"--option=Dir::State::Lists="+filepath.Join(dir, "lists"), "--option=Dir::Cache="+filepath.Join(dir, "cache"),
		"--option=Acquire::GzipIndexes=false", "--option=APT::Sandbox::User=root"); err != nil {
		return nil, err
	}
	lists, err := filepath.Glob(filepath.Join(dir, "lists", "*_Packages"))
	if err != nil || len(lists) == 0 {
		return nil, errors.Join(err, errors.New("apt-get has downloaded no list of packages"))
	}
	list, err := os.Open(lists[0])
	if err != nil {
		return nil, err
	}
	defer list.Close()
	return debianPackages(list, func(map[string]string) bool { return true })
}

// isOlder compares versions of Debian packages.
func isOlder(ctx context.Context, version, than string) (bool, error) {
	err := exec.CommandContext(ctx, "dpkg", "--compare-versions", version, "lt", than).Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return false, nil
	}
	return err == nil, err
}
