package machine

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/slurm-operator/slurm-operator/hack/cache"
)

// A Kernel is what a machine boots.
type Kernel struct{ Image, Initrd string }

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

// GetKernel returns the kernel of Debian for virtual machines, from its package, with additional modules.
func GetKernel(ctx context.Context, additional ...string) (Kernel, error) {
	name, err := kernelPackage(ctx)
	if err != nil {
		return Kernel{}, err
	}
	modules := slices.Concat(defaultModules, additional)
	entry, err := cache.Entry(ctx, "kernels", cache.Key(name, boot, strings.Join(modules, " ")),
		func(ctx context.Context, dir string) error { return unpackKernel(ctx, name, modules, dir) })
	return Kernel{Image: filepath.Join(entry, "vmlinuz"), Initrd: filepath.Join(entry, "initrd")}, err
}

var dependency = regexp.MustCompile(`(?m)^Depends: (linux-image-[^ ,]+)(?: \(= ([^)]+)\))?`)

// kernelPackage returns the name and version of the package with the current kernel, as apt-get accepts them.
func kernelPackage(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "apt-cache", "show", "linux-image-cloud-amd64").Output()
	if err != nil {
		return "", fmt.Errorf("finding Debian's kernel: %w", err)
	}
	found := dependency.FindSubmatch(output)
	if found == nil {
		return "", fmt.Errorf("linux-image-cloud-amd64 depends on no kernel: %s", output)
	}
	if len(found[2]) == 0 {
		return string(found[1]), nil
	}
	return fmt.Sprintf("%s=%s", found[1], found[2]), nil
}

func unpackKernel(ctx context.Context, name string, modules []string, dir string) error {
	const script = `
apt-get download --quiet "$1"
dpkg-deb --extract ./*.deb package
mv package/boot/vmlinuz-* vmlinuz
`
	download := exec.CommandContext(ctx, "sh", "-euc", script, "sh", name)
	download.Dir = dir
	if err := run(download); err != nil {
		return err
	}
	for _, empty := range []string{"proc", "sys", "dev", "root", "modules"} {
		if err := os.MkdirAll(filepath.Join(dir, "tree", empty), 0o755); err != nil {
			return err
		}
	}
	files, err := findModules(filepath.Join(dir, "package/lib/modules"))
	if err != nil {
		return err
	}
	ordered, err := inOrder(modules, files, dependencies)
	if err != nil {
		return err
	}
	for _, module := range ordered {
		if err := os.Rename(files[module], filepath.Join(dir, "tree/modules", module+".ko")); err != nil {
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
		"cd tree; find . | busybox cpio -o -H newc | gzip -1 >../initrd; cd ..; rm -rf tree package ./*.deb")
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
