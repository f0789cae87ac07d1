package network

import (
	"context"
	"fmt"
	"strings"
)

// Tap is the network connection of a virtual machine, identified by the machine's number (from 1): a tap device in the
// bridge. The machine configures its own end.
type Tap struct{ number int }

// TapOf returns the connection of the machine with a number.
func TapOf(number int) Tap { return Tap{number} }

// Device returns the name of the tap device.
func (t Tap) Device() string { return fmt.Sprintf("soc-vm-%d", t.number) }

// Address returns the machine's address.
func (t Tap) Address() string { return fmt.Sprintf("10.89.0.%d", 100+t.number) }

// Prefix returns the machine's address with the length of the network's prefix.
func (t Tap) Prefix() string { return t.Address() + linkWidth }

// PodCIDR returns the range of addresses of the machine's pods.
func (t Tap) PodCIDR() string { return fmt.Sprintf("10.244.%d.0/24", 100+t.number) }

// Up creates the device, and routes to the machine's pods on the host and on the nodes.
func (t Tap) Up(ctx context.Context, wires []Wire) error {
	if err := t.Down(ctx, wires); err != nil {
		return err
	}
	route := []string{"ip", "route", "add", t.PodCIDR(), "via", t.Address()}
	commands := [][]string{
		{"ip", "tuntap", "add", "dev", t.Device(), "mode", "tap"},
		{"ip", "link", "set", t.Device(), "master", bridge, "up"},
		route,
	}
	for _, wire := range wires {
		commands = append(commands, wire.inside(route...))
	}
	return runAll(ctx, commands)
}

// Down undoes Up. It does nothing if there is no such device.
func (t Tap) Down(ctx context.Context, wires []Wire) error {
	if !exists(ctx, t.Device()) {
		return nil
	}
	route := []string{"ip", "route", "flush", t.PodCIDR()}
	commands := [][]string{route}
	for _, wire := range wires {
		commands = append(commands, wire.inside(route...))
	}
	return runAll(ctx, append(commands, []string{"ip", "link", "del", t.Device()}))
}

// Script returns a shell script that sets up the routes in the machine.
func (t Tap) Script(wires []Wire) string {
	var script strings.Builder
	fmt.Fprintf(&script, "ip route add default via %s\n", HostAddress)
	for _, wire := range wires {
		fmt.Fprintf(&script, "ip route add %s via %s\n", wire.PodCIDR(), wire.Address())
	}
	script.WriteString("echo 1 >/proc/sys/net/ipv4/ip_forward\n")
	return script.String()
}
