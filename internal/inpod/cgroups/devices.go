package cgroups

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// allowAll are the instructions of a device filter that allows everything: r0 = 1; exit.
var allowAll = [...]uint64{0x1_0000_00b7, 0x95}

// tryDeviceFilter attaches a device filter to a cgroup, and removes it again. With cgroup v2, slurmd limits jobs to
// their devices with such a filter.
func tryDeviceFilter(cgroup string) error {
	filter, err := loadFilter()
	if err != nil {
		return fmt.Errorf("loading a device filter: %w: to limit jobs to their devices, slurmd needs the capabilities "+
			"BPF and NET_ADMIN and a seccomp profile that allows bpf; %s", err, remedy)
	}
	defer unix.Close(filter)
	directory, err := os.Open(cgroup)
	if err != nil {
		return err
	}
	defer directory.Close()
	attachment := struct{ cgroup, filter, kind, flags uint32 }{
		uint32(directory.Fd()), uint32(filter), unix.BPF_CGROUP_DEVICE, unix.BPF_F_ALLOW_MULTI,
	}
	if _, err := bpf(unix.BPF_PROG_ATTACH, unsafe.Pointer(&attachment), unsafe.Sizeof(attachment)); err != nil {
		return fmt.Errorf("attaching a device filter to a cgroup: %w; %s", err, remedy)
	}
	attachment.flags = 0
	_, err = bpf(unix.BPF_PROG_DETACH, unsafe.Pointer(&attachment), unsafe.Sizeof(attachment))
	return err
}

// loadFilter loads the filter into the kernel and returns its file descriptor.
func loadFilter() (int, error) {
	license := new(byte) // an empty string
	program := struct {
		kind, length          uint32
		instructions, license uintptr
	}{
		unix.BPF_PROG_TYPE_CGROUP_DEVICE, uint32(len(allowAll)),
		uintptr(unsafe.Pointer(&allowAll)), uintptr(unsafe.Pointer(license)),
	}
	filter, err := bpf(unix.BPF_PROG_LOAD, unsafe.Pointer(&program), unsafe.Sizeof(program))
	runtime.KeepAlive(license)
	return filter, err
}

// bpf repeats the system call when a signal has interrupted the kernel's check of a filter: the Go runtime sends itself
// signals.
func bpf(command int, attributes unsafe.Pointer, size uintptr) (int, error) {
	for range 100 {
		result, _, errno := unix.Syscall(unix.SYS_BPF, uintptr(command), uintptr(attributes), size)
		if errno == 0 {
			return int(result), nil
		}
		if errno != unix.EAGAIN {
			return 0, errno
		}
	}
	return 0, unix.EAGAIN
}

// tryDeviceList changes the devices of a new cgroup. With cgroup v1, slurmd limits jobs to their devices in this way.
func tryDeviceList(cgroup string) error {
	if err := os.Mkdir(cgroup, 0o755); err != nil {
		return err
	}
	defer os.Remove(cgroup)
	const nullDevice = "c 1:3 rwm"
	if err := os.WriteFile(filepath.Join(cgroup, "devices.deny"), []byte(nullDevice), 0); err != nil {
		return fmt.Errorf("denying access to a device: %w: to limit jobs to their devices with cgroup v1, slurmd needs "+
			"SYS_ADMIN; %s", err, remedy)
	}
	return nil
}
