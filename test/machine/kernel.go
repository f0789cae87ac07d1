package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/slurm-operator/slurm-operator/hack/cache"
)

// A Kernel is what a machine boots.
type Kernel struct{ Image, Initrd string }

// modules are what the kernel needs to mount the disk and to reach the network, in the order of their dependencies.
// Those that are built into a kernel have no file.
var modules = []string{
	"virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk", "failover",
	"net_failover", "virtio_net", "crc16", "mbcache", "jbd2", "ext4", "overlay",
}

const boot = `#!/busybox sh
/busybox mount -t proc none /proc
/busybox mount -t sysfs none /sys
/busybox mount -t devtmpfs none /dev
for module in ` + "MODULES" + `; do
    [ ! -f /modules/$module.ko ] || /busybox insmod /modules/$module.ko
done
while [ ! -b /dev/vda ]; do /busybox sleep 0.1; done
/busybox mount -t ext4 /dev/vda /root
for mounted in proc sys dev; do /busybox mount --move /$mounted /root/$mounted; done
exec /busybox switch_root /root ` + directory + `/start
`

// GetKernel returns the kernel of Debian for virtual machines, from its package.
func GetKernel(ctx context.Context) (Kernel, error) {
	name, err := kernelPackage(ctx)
	if err != nil {
		return Kernel{}, err
	}
	entry, err := cache.Entry(ctx, "kernels", cache.Key(name, boot, strings.Join(modules, " ")),
		func(ctx context.Context, dir string) error { return unpackKernel(ctx, name, dir) })
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

func unpackKernel(ctx context.Context, name, dir string) error {
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
	for _, module := range modules {
		if err := copyModule(dir, module); err != nil {
			return err
		}
	}
	program, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return err
	}
	text := strings.Replace(boot, "MODULES", strings.Join(modules, " "), 1)
	if err := errors.Join(write(filepath.Join(dir, "tree/busybox"), program),
		write(filepath.Join(dir, "tree/init"), []byte(text))); err != nil {
		return err
	}
	pack := exec.CommandContext(ctx, "sh", "-euc",
		"cd tree; find . | busybox cpio -o -H newc | gzip -1 >../initrd; cd ..; rm -rf tree package ./*.deb")
	pack.Dir = dir
	return run(pack)
}

func copyModule(dir, name string) error {
	var content []byte
	err := filepath.WalkDir(filepath.Join(dir, "package/lib/modules"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != name+".ko" {
			return err
		}
		content, err = os.ReadFile(path)
		return err
	})
	if err != nil || content == nil {
		return err
	}
	return write(filepath.Join(dir, "tree/modules", name+".ko"), content)
}
