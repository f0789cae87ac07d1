package command

import "os"

// resized is empty: Windows has no signal about the size of a terminal.
var resized []os.Signal
