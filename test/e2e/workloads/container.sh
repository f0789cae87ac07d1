#!/bin/bash
# An OCI container of a user, whose root filesystem has one program and nothing of the node.
# Prints: ^on the node: outside\nin the container: inside\n$
mkdir --parents bundle/rootfs/{proc,dev}
gcc -static -o bundle/rootfs/where -x c - <<'EOF'
#include <stdio.h>
#include <unistd.h>
int main(void) { return puts(access("/etc/passwd", F_OK) ? "inside" : "outside") < 0; }
EOF
# A pod cannot mount a new /proc, because parts of its own are hidden: the container gets the pod's.
cat >bundle/config.json <<EOF
{
  "ociVersion": "1.0.2",
  "process": {"args": ["/where"], "cwd": "/", "user": {"uid": 0, "gid": 0}},
  "root": {"path": "rootfs"},
  "mounts": [{"destination": "/proc", "source": "/proc", "type": "bind", "options": ["rbind"]}],
  "linux": {
    "namespaces": [{"type": "user"}, {"type": "mount"}],
    "uidMappings": [{"containerID": 0, "hostID": $(id --user), "size": 1}],
    "gidMappings": [{"containerID": 0, "hostID": $(id --group), "size": 1}]
  }
}
EOF
echo "on the node: $(srun bundle/rootfs/where)"
echo "in the container: $(srun --container="$PWD/bundle" /where)"
