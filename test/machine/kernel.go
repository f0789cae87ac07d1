package machine

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/hack/cache"
)

// A Kernel is what a machine boots.
type Kernel struct {
	// Image and Initrd are files.
	Image, Initrd string
	// Version is the name and version of the package.
	Version string
}

// defaultModules are what the kernel needs to mount the disk and to reach the network, besides the modules that these
// depend on. Those that are built into a kernel have no file.
var defaultModules = []string{"virtio_pci", "virtio_blk", "virtio_net", "ext4", "overlay"}

const boot = `#!/busybox sh
/busybox mount -t proc none /proc
/busybox mount -t sysfs none /sys
/busybox mount -t devtmpfs none /dev
for module in ` + "MODULES" + `; do
    /busybox insmod /modules/$module.ko || /busybox reboot -f
done
while [ ! -b /dev/vda ]; do /busybox sleep 0.1; done
/busybox mount -t ext4 /dev/vda /root
for mounted in proc sys dev; do /busybox mount --move /$mounted /root/$mounted; done
exec /busybox switch_root /root ` + directory + `/start
`

// GetKernel returns a kernel of Debian for virtual machines, with additional modules. Once it is in the cache, it stays
// the same: a machine needs no updates.
func GetKernel(ctx context.Context, additional ...string) (Kernel, error) {
	kernel, err := cache.Entry(ctx, "kernels", cache.Key(downloadScript), downloadKernel)
	if err != nil {
		return Kernel{}, err
	}
	version, err := os.ReadFile(filepath.Join(kernel, "version"))
	if err != nil {
		return Kernel{}, err
	}
	modules := slices.Concat(defaultModules, additional)
	initrd, err := cache.Entry(ctx, "initrds", cache.Key(string(version), boot, strings.Join(modules, " ")),
		func(ctx context.Context, dir string) error { return makeInitrd(ctx, kernel, modules, dir) })
	return Kernel{
		Image: filepath.Join(kernel, "vmlinuz"), Initrd: filepath.Join(initrd, "initrd"),
		Version: strings.TrimSpace(string(version)),
	}, err
}

// downloadScript downloads and unpacks the current kernel. It gets its own lists of packages, because Debian's archive
// does not keep what older lists name. A source that the kernel is not from may fail.
const downloadScript = `
mkdir --parents lists/partial
set -- --option=Dir::State::Lists="$PWD/lists" --option=Dir::Cache="$PWD/lists" --option=APT::Sandbox::User=root
apt-get update --quiet "$@" || true
name=$(apt-cache "$@" depends linux-image-cloud-amd64 | sed --quiet 's/^ *Depends: \(linux-image-.*\)/\1/p')
apt-get download --quiet "$@" "${name:?apt knows no linux-image-cloud-amd64}"
dpkg-deb --show --showformat='${Package} ${Version}\n' ./*.deb >version
dpkg-deb --extract ./*.deb package
mv package/boot/vmlinuz-* vmlinuz
mv package/usr/lib/modules modules 2>/dev/null || mv package/lib/modules modules # since Debian 13, or before
find modules -name '*.ko.xz' -exec busybox unxz {} +
rm -rf lists package ./*.deb
`

func downloadKernel(ctx context.Context, dir string) error {
	download := exec.CommandContext(ctx, "sh", "-euc", downloadScript)
	download.Dir = dir
	return run(download)
}

// makeInitrd writes an initrd with modules of an unpacked kernel.
func makeInitrd(ctx context.Context, kernel string, modules []string, dir string) error {
	for _, empty := range []string{"proc", "sys", "dev", "root", "modules"} {
		if err := os.MkdirAll(filepath.Join(dir, "tree", empty), 0o755); err != nil {
			return err
		}
	}
	files, err := findModules(filepath.Join(kernel, "modules"))
	if err != nil {
		return err
	}
	ordered, err := inOrder(modules, files, dependencies)
	if err != nil {
		return err
	}
	for _, module := range ordered {
		content, err := os.ReadFile(files[module])
		if err != nil {
			return err
		}
		if err := write(filepath.Join(dir, "tree/modules", module+".ko"), content); err != nil {
			return err
		}
	}
	program, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return err
	}
	text := strings.Replace(boot, "MODULES", strings.Join(ordered, " "), 1)
	if err := errors.Join(write(filepath.Join(dir, "tree/busybox"), program),
		write(filepath.Join(dir, "tree/init"), []byte(text))); err != nil {
		return err
	}
	pack := exec.CommandContext(ctx, "sh", "-euc",
		"cd tree; find . | busybox cpio -o -H newc | gzip -1 >../initrd; cd ..; rm -rf tree")
	pack.Dir = dir
	return run(pack)
}

// findModules returns the files of a kernel's modules by their names.
func findModules(dir string) (map[string]string, error) {
	files := map[string]string{}
	return files, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if name, module := strings.CutSuffix(filepath.Base(path), ".ko"); module {
			files[name] = path
		}
		return err
	})
}

// inOrder returns modules and all that they depend on, each after its dependencies. Modules without a file are built
// into the kernel. The order differs between versions of a kernel.
func inOrder(wanted []string, files map[string]string,
	dependencies func(file string) ([]string, error)) (ordered []string, err error) {
	for _, name := range wanted {
		file, found := files[name]
		if !found || slices.Contains(ordered, name) {
			continue
		}
		needed, err := dependencies(file)
		if err != nil {
			return nil, err
		}
		before, err := inOrder(needed, files, dependencies)
		if err != nil {
			return nil, err
		}
		for _, each := range append(before, name) {
			if !slices.Contains(ordered, each) {
				ordered = append(ordered, each)
			}
		}
	}
	return ordered, nil
}

// dependencies returns the modules that a module names in its own file.
func dependencies(file string) ([]string, error) {
	module, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer module.Close()
	section := module.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("%s is not a kernel module", file)
	}
	content, err := section.Data()
	if err != nil {
		return nil, err
	}
	for field := range strings.SplitSeq(string(content), "\x00") {
		if names, found := strings.CutPrefix(field, "depends="); found && names != "" {
			return strings.Split(names, ","), nil
		}
	}
	return nil, nil
}
