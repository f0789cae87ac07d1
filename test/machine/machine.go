// Package machine runs a virtual machine for a test, with cgroup v2 or v1 whatever the computer has. QEMU emulates the
// processor, because not every computer can virtualize it. A machine boots in some seconds.
//
// The machine's root filesystem comes from package hack/images. The test runs commands in it over the network, where a
// small server executes them as root.
package machine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// port is where the machine's server listens.
const port = 7000

// cpu is the processor of a machine. Without fast string operations (erms, fsrm), which an emulator executes byte by
// byte, the kernel copies memory in larger units.
const cpu = "max,vendor=GenuineIntel,erms=off,fsrm=off"

// Options describe a machine.
type Options struct {
	// Name is the host name.
	Name string
	// Disk is the root filesystem, from Disk. Changes to it are lost with the machine.
	Disk string
	// Tap is the name of its network interface on the host. Address is its own, with the length of the prefix.
	Tap, Address string
	// CPUs are its CPUs as QEMU's option -smp describes them, such as 4,cores=2,threads=2.
	CPUs string
	// Memory is its memory in MiB.
	Memory int
	// CgroupV1 gives it the hierarchies of cgroup v1 instead of v2.
	CgroupV1 bool
	// Console is the file that gets the kernel's messages.
	Console string
}

// Command returns the command that runs a machine until it is killed.
func Command(ctx context.Context, kernel Kernel, opts Options) *exec.Cmd {
	// Without mitigations, a system call does not change the page tables, which is expensive in an emulated processor.
	words := fmt.Sprintf("console=ttyS0 panic=1 quiet mitigations=off address=%s host=%s", opts.Address, opts.Name)
	if opts.CgroupV1 {
		words += " cgroups=v1"
	} else {
		words += " cgroup_no_v1=all"
	}
	return exec.CommandContext(ctx, "qemu-system-x86_64",
		"-accel", "tcg,thread=multi", "-cpu", cpu, "-smp", opts.CPUs, "-m", strconv.Itoa(opts.Memory),
		"-nodefaults", "-display", "none", "-no-reboot", "-serial", "file:"+opts.Console,
		"-kernel", kernel.Image, "-initrd", kernel.Initrd,
		"-append", words,
		"-drive", "if=virtio,format=raw,cache=unsafe,snapshot=on,file="+opts.Disk,
		"-netdev", "tap,id=net,script=no,downscript=no,ifname="+opts.Tap, "-device", "virtio-net-pci,netdev=net",
	)
}

// Run runs a shell script in the machine with an address, and returns what it prints.
func Run(ctx context.Context, address, script string) (string, error) {
	url := fmt.Sprintf("http://%s:%d/cgi-bin/run", address, port)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(script))
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	output, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	end := bytes.LastIndex(output, []byte(endMarker))
	if end < 0 {
		return string(output), fmt.Errorf("the machine's server failed: %s", output)
	}
	printed := string(output[:end])
	if code := strings.TrimSpace(string(output[end+len(endMarker):])); code != "0" {
		return printed, fmt.Errorf("exit status %s: %s", code, printed)
	}
	return printed, nil
}

// endMarker is followed by the exit code of a script.
const endMarker = "\nexit status "

// WaitReady waits until the machine answers.
func WaitReady(ctx context.Context, address string) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	// A request to a machine that does not listen yet may get no answer at all. An emulated one may be slow, so each
	// attempt takes longer.
	for patience := 5 * time.Second; ; patience *= 2 {
		attempt, cancel := context.WithTimeout(ctx, patience)
		_, err := Run(attempt, address, "true")
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the machine does not answer: %w", err)
		case <-ticker.C:
		}
	}
}

// server is the script that runs a request's body.
const server = `#!` + busybox + ` sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
printf 'Content-Type: text/plain\r\n\r\n'
script=/run/script.$$
` + busybox + ` head -c "$CONTENT_LENGTH" >$script
sh $script </dev/null 2>&1
printf '\nexit status %s' $?
rm -f $script
`

// start is the machine's first process.
const start = `#!` + busybox + ` sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t tmpfs none /run
mount -t tmpfs none /tmp
mkdir -p /dev/pts /dev/shm
mount -t devpts none /dev/pts
mount -t tmpfs none /dev/shm
B=` + busybox + `
$B ip link set lo up
for word in $(cat /proc/cmdline); do
    case $word in
    address=*) $B ip address add "${word#*=}" dev eth0; $B ip link set eth0 up ;;
    host=*) $B hostname "${word#*=}" ;;
    cgroup_no_v1=all) mount -t cgroup2 -o nsdelegate cgroup2 /sys/fs/cgroup ;;
    cgroups=v1)
        mount -t tmpfs none /sys/fs/cgroup
        for hierarchy in blkio cpu cpuacct cpuset devices freezer memory pids; do
            mkdir /sys/fs/cgroup/$hierarchy
            mount -t cgroup -o $hierarchy cgroup /sys/fs/cgroup/$hierarchy
        done
        mkdir /sys/fs/cgroup/systemd
        mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
        ;;
    esac
done
$B httpd -p ` + "7000" + ` -h ` + directory + `/http
while :; do sleep 1000; done
`

// directory holds the machine's own files in its root filesystem.
const (
	directory = "/machine"
	busybox   = directory + "/busybox"
)

// ownFiles are the machine's own files.
func ownFiles() map[string]string {
	return map[string]string{
		filepath.Join(directory, "start"):            start,
		filepath.Join(directory, "http/cgi-bin/run"): server,
	}
}
