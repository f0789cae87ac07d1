#!/bin/bash
# A program on a node opens a window on the display of the login session. The display is a socket that prints what it gets.
# Prints: ^a window of worker-\d\n$
perl -MIO::Socket::INET -e '
    my $display = IO::Socket::INET->new(LocalAddr => "127.0.0.1:6042", Listen => 1) or die;
    print scalar readline $display->accept' &
export DISPLAY=localhost:42.0
xauth -q add "$DISPLAY" . "$(od --address-radix=n --format=x1 --read-bytes=16 /dev/urandom | tr --delete ' \n')"
srun --x11 bash -c 'exec {x}<>"/dev/tcp/localhost/$((6000 + $(echo "${DISPLAY#*:}" | cut --delimiter=. --fields=1)))"; echo "a window of $(hostname)" >&$x; cat <&$x'
wait
